"""Recurring work: one registry, and one runner that ticks and a thread of the daemon drive."""
