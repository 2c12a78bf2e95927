"""Advice: which way to run the app is the cheapest, by what it has done of late."""
