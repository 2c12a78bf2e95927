"""The kit for tests of users, and the fixtures of pytest."""
