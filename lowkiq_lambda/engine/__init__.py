"""One visit of a shard after another: what is taken, run, settled and given back."""
