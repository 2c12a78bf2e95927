"""Schedules as values: when an entry fires, the job that it pushes, and the rule for missed times."""
