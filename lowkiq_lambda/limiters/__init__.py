"""Limits that handlers ask while they run: of the other side, by key, fair to those that asked first."""
