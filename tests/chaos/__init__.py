"""Processes killed and frozen at chosen points, and servers that fail: nothing is lost, nothing is reversed."""
