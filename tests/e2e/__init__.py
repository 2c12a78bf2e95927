"""The whole of it, deployed to a local cloud by the template that users deploy."""
