"""Live resharding: the scripts of a move, its protocol, and its commands."""
