"""Shards follow the code: one schedule for each shard index, compared with the app's workers and brought in line."""
