"""An app to deploy, and to play events against: it replays the history of some files into Redis.

Each file is an id, each change of it a payload: the number of a commit and the content it left, None for a deletion.
A job may run twice, as where another of its batch failed: then all its changes come again, and in order.
"""

from functools import cache
from typing import Final

import redis

from lowkiq_lambda import Batch, Lowkiq, Worker

FILES: Final = "demo:files"
"""A hash: each file and its content, as the changes that were applied have left it."""
NEWEST: Final = "demo:newest"
"""A hash: each file and the number of the last commit that was applied to it."""
APPLIED: Final = "demo:applied"
"""A set: each change that was applied. What comes again is a repeat, and no change that came too late."""

app = Lowkiq()


@app.worker
class ApplyChanges(Worker):
    """Brings the files up to date."""

    shards_count = 5
    batch_size = 25
    max_retry_count = 3

    def perform(self, batch: Batch) -> None:
        """Apply the changes of each file, oldest first."""
        store = _store()
        for path, changes in batch.items():
            for seq, blob in changes:
                before = int(store.hget(NEWEST, path) or 0)
                change = f"{seq} {path}"
                if seq < before and not store.sismember(APPLIED, change):
                    raise ValueError(f"{path}: change {seq} comes after {before}")
                store.hset(NEWEST, path, seq)
                store.sadd(APPLIED, change)
                if blob is None:
                    store.hdel(FILES, path)
                else:
                    store.hset(FILES, path, blob)


@cache
def _store() -> redis.Redis:
    return redis.Redis.from_url(str(app.config.redis_url), decode_responses=True)
