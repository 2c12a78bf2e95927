"""Tells which promises hold on an app's server, and which work nobody looks after. It changes nothing."""
