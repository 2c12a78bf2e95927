"""Tests of the bundled demo."""
