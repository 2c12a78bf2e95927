"""Tests of numbers that holders find by themselves."""
