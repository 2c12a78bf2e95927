"""AWS on this machine, and a stack deployed to it: for development and tests, never in a package of a function."""
