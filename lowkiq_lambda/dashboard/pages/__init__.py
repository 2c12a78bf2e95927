"""The pages: each reads, makes a view of what it read, and gives that to a template."""
