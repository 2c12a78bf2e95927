"""Alerts: one message when something begins to need somebody, and one when that ends."""
