"""A storm: processes that push and drain, faults at random, and a checker that reads only what they noted."""
