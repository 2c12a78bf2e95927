"""The records of a shard that pushes and drains read and write."""
