"""Explicit models: every order of steps of a protocol is gone through, and each of its guards is shown to be needed."""
