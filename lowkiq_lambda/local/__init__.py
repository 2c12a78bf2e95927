"""The entrance for a machine of one's own: the daemon, what it is made of, and the bundled demo."""
