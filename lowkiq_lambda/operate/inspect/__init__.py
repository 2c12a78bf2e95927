"""Reads and changes of shards by operators; never loaded by a drain."""
