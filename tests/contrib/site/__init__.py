"""A site of Django with two apps: a shop, and its stock."""
