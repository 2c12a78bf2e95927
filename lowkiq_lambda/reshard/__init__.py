"""Live resharding: a queue gets another number of shards while it is pushed to and drained. docs/resharding.md."""
