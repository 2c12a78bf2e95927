"""A race: processes that drain two shards with many batches at once, judged by the history of what they noted."""
