"""The app of the replay. As a program it pushes the history, as fast as the daemons take it.

Its handler is slow, and fails now and then: half of the failures are the file's own, half hit the whole batch.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from lowkiq_lambda import Batch, Lowkiq, Worker
from tests.chaos.replay import SHARDS, Note, alone, read_history
from tests.waiting import eventually

FOLDER = Path(os.environ["REPLAY_FOLDER"])
CHUNK = 50
BACKLOG = 60
"""Files that may wait before the next chunk is pushed."""
LONGEST_WORK = 0.012
"""Seconds for one change."""
FAILURES = 0.05
"""Of deliveries."""

app = Lowkiq()
rng = Random()


class Broken(Exception):
    """What the handler raises."""


@app.worker
class Replay(Worker):
    """Notes each change of each file, in the order in which they come."""

    queue_name = os.environ["REPLAY_QUEUE"]
    shards_count = SHARDS
    batch_size = 5
    max_retry_count = 1_000

    def retry_in(self, retry_count: int) -> float:
        """Soon."""
        del retry_count
        return 0.05

    def perform(self, batch: Batch) -> None:
        """Apply what the batch brings."""
        for path in batch:
            try:
                self._apply(batch, path)
            except Broken as error:
                if rng.random() < 0.5:
                    raise
                batch.fail(path, error)

    @staticmethod
    def _apply(batch: Batch, path: str) -> None:
        seqs = [int(score) for score in batch.job(path).scores]
        breaks_at = rng.choice(seqs) if rng.random() < FAILURES else None
        with alone(FOLDER, path) as note:
            note(Note("begin", seqs[0], last=seqs[-1], count=len(seqs), token=batch.token))
            for seq, payload in zip(seqs, batch[path], strict=True):
                time.sleep(rng.uniform(0.0, LONGEST_WORK))
                if seq == breaks_at or batch.stopping:
                    note(Note("fail", seqs[0]))
                    raise Broken("stopped" if batch.stopping else "broken")
                note(Note("apply", seq, blob=payload["blob"]))
            note(Note("end", seqs[0]))


def chunks() -> Iterator[list[dict[str, object]]]:
    """The history as jobs, in its order."""
    jobs = [change.job() for change in read_history()]
    return (jobs[at : at + CHUNK] for at in range(0, len(jobs), CHUNK))


def has_room() -> bool:
    """Whether the daemons have caught up."""
    return app.stats()["total"]["length"] < BACKLOG


if __name__ == "__main__":
    for chunk in chunks():
        eventually(has_room, timeout=60.0)
        Replay.perform_async(chunk)
