"""The example applications, as anybody would run them, and piece by piece."""
