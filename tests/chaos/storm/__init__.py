"""A storm: processes that push and drain, faults at random, judged by the history of what they noted."""
