"""Tests of limiters that handlers ask."""
