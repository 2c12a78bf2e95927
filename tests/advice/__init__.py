"""Tests of the advice which way to run an app."""
