"""Recurring work: one registry, and one runner that ticks of the dispatcher and a thread of the daemon drive."""
