"""The site of the docs: its build, its checks, and the reference of the API on it."""
