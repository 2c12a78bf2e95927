"""Spans, metrics and errors that leave the process."""
