"""Values, and what needs a server only to be true: each file tests the module of its name."""
