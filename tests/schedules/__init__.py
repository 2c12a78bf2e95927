"""Schedules as values: planned times, entries, and what becomes of missed times; no server."""
