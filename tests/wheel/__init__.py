"""Tests of what is published: the wheel holds all of the checkout, in less room."""
