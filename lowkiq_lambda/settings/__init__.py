"""The settings, and how a process finds them, its project and its app."""
