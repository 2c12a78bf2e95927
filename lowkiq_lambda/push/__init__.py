"""Jobs on their way in: checked, and sent to their shards."""
