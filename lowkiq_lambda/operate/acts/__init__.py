"""The acts of an operator: on ids, on shards, on all of a list; and what each would do."""
