"""Schedules that follow the code."""
