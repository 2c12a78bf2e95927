"""Functions in the real runtime client, killed and frozen as AWS does it."""
