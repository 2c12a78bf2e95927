"""What people look at and change in shards; never loaded by a drain."""
