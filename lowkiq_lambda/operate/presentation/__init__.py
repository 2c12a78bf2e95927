"""Queues and jobs in words and numbers for people: on pages, by the API and at the command line."""
