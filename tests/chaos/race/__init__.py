"""A race: processes that drain two shards with many batches at once, and a judge that reads only what they noted."""
