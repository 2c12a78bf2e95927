"""Faults that the tests must see."""
