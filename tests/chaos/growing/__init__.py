"""A queue gets the shards that it lacks while it is pushed to, and daemons that make them are killed."""
