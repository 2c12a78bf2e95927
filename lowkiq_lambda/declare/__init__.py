"""Declarations: workers and their limits, payload types, ways in, duties."""
