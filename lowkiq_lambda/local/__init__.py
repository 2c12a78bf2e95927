"""The entrance for your own machine: the daemon, its parts, and the bundled demo."""
