"""Checks which promises hold on an app's server, and which work is left undone. It is read-only."""
