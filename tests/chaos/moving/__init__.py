"""A queue moves to other numbers of shards while it is pushed to and drained, and processes are killed."""
