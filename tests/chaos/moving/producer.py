"""A process that pushes to a queue that moves: `python -m tests.chaos.moving.producer PREFIX IDS RATE`.

Ids are PREFIX-0 and so on, a tenth of them bad; payloads of each are 1, 2, 3 and so on; RATE is payloads a second. It
tells on standard output how many it has pushed, again and again. No push may fail: neither a move nor the death of a
mover is an outage.
"""

import random
import signal
import sys
import threading
import time
from typing import Any, Final

from lowkiq_lambda import Worker
from tests.chaos.moving import app as moving
from tests.proof.history import Recorder

TICK: Final = 0.05
BAD_SHARE: Final = 0.005


def ids_of(prefix: str, count: int) -> list[str]:
    """The good ones before the bad ones."""
    bad = max(count // 10, 1)
    return [f"{prefix}-{number}" for number in range(count - bad)] + [
        f"{moving.BAD}-{prefix}-{number}" for number in range(bad)
    ]


class PacedProducer:
    """Payloads of so many ids, so many in each tick."""

    def __init__(self, worker: type[Worker], history: Recorder, ids: list[str], at_once: int) -> None:
        self._worker = worker
        self._history = history
        self._good = [job_id for job_id in ids if not job_id.startswith(moving.BAD)]
        self._bad = [job_id for job_id in ids if job_id.startswith(moving.BAD)]
        self._at_once = at_once
        self._rng = random.Random(ids[0])
        self._last: dict[str, int] = {}

    def push(self) -> None:
        """Push the next payloads of ids at random, in one call."""
        jobs: list[dict[str, Any]] = []
        sent: dict[str, list[int]] = {}
        for _ in range(self._at_once):
            job_id = self._rng.choice(self._bad if self._rng.random() < BAD_SHARE else self._good)
            number = self._last[job_id] = self._last.get(job_id, 0) + 1
            jobs.append({"id": job_id, "payload": number})
            sent.setdefault(job_id, []).append(number)
        for job_id, numbers in sent.items():
            self._history.write("push-begin", job_id, numbers)
        self._worker.push_many(jobs)
        for job_id, numbers in sent.items():
            self._history.write("push-end", job_id, numbers, outcome="ok")


def main(prefix: str, ids: str, rate: str) -> None:
    """Push until SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    assert moving.worker
    assert moving.history
    at_once = max(round(float(rate) * TICK), 1)
    producer = PacedProducer(moving.worker, moving.history, ids_of(prefix, int(ids)), at_once)
    count, due = 0, time.monotonic()
    while not ended.is_set():
        producer.push()
        count += 1
        sys.stdout.write(f"{count}\n")
        sys.stdout.flush()
        # Nothing is made up for after a freeze: the rate is a bound.
        due = max(due + TICK, time.monotonic() - TICK)
        ended.wait(due - time.monotonic())


if __name__ == "__main__":
    main(*sys.argv[1:])
