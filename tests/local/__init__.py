"""The daemon, its parts, and its command line."""
