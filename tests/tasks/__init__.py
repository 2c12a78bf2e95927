"""Tasks: what code does with them, when they are complete, and what becomes of them."""
