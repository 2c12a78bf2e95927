"""An app to deploy, and to play events against: it replays the history of some files into Redis.

Each file is an id, each change of it a payload: the number of a commit and the content it left, None for a deletion.
A job may run twice, as where another of its batch failed: then all its changes come again, and in order.
"""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import redis

from lowkiq_lambda import Batch, BatchJob, Incoming, Lowkiq, Worker

FILES: Final = "demo:files"
"""A hash: each file and its content, as the changes that were applied have left it."""
NEWEST: Final = "demo:newest"
"""A hash: each file and the number of the last commit that was applied to it."""
APPLIED: Final = "demo:applied"
"""A set: each change that was applied. What comes again is a repeat, and no change that came too late."""
COUNTED: Final = "demo:counted"
"""A hash: how often each item of a count was done."""
ITEM: Final = 0.05
"""Seconds of such an item."""

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


@app.worker
class CountItems(Worker):
    """A long job, which drains do part by part: so many items as its payload says."""

    shards_count = 1
    payloads_at_once = 1

    def perform_job(self, job: BatchJob) -> Iterator[int]:
        """Do each item once."""
        [items] = job.payloads
        for item in range(0 if job.cursor is None else job.cursor + 1, items):
            time.sleep(ITEM)
            _store().hincrby(COUNTED, str(item), 1)
            yield item


@app.ingest
def changes(record: Incoming) -> Iterator[tuple[type[Worker], dict[str, Any]]]:
    """A change that comes in: `path`, `seq` and `blob`; an object is the first change of the file of its key."""
    change = record.body.get("new", record.body)
    path, seq = (change["key"], 1) if record.kind == "s3" else (change["path"], change["seq"])
    yield ApplyChanges, {"id": path, "score": seq, "payload": [seq, change.get("blob")]}


@cache
def _store() -> redis.Redis:
    return redis.Redis.from_url(str(app.config.redis_url), decode_responses=True)
