"""Schedules as values: when an entry fires, what it pushes, and what becomes of the times that it missed."""
