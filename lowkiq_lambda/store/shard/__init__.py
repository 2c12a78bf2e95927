"""What pushes and drains read and write in a shard."""
