"""The history of a real repository as jobs."""
