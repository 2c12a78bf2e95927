"""Duties: what recurs for an app, done once in each period whichever process does it."""
