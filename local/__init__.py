"""What a developer runs on a machine of their own."""
