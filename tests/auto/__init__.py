"""How many shards queues need: the rule, and queues that are played."""
