"""How fast it is: `python -m bench` measures, on a server that it starts, and prints a table."""
