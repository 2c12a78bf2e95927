"""A primary that is killed again and again while jobs are pushed and performed, and a replica that takes its place.

Replication is asynchronous, so what the old primary had acknowledged and not sent on yet is lost: this measures it.
`min-replicas-to-write 1` is set, as docs/redis.md advises.
"""

import logging
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from lowkiq_lambda import Batch, Config, Lowkiq, LowkiqError, Worker
from tests.kit.apps import closing_app
from tests.kit.servers import SentinelSetup
from tests.kit.trust import has_lost_its_lease
from tests.kit.waiting import eventually
from tests.proof.history import Event, Recorder, Terms, check
from tests.proof.results import Run

FAILOVERS: Final = 10
"""Of one run."""
IDS: Final = 200
LEASE: Final = 2.0
_TIMEOUT: Final = 120.0


def fail_over_again_and_again(seed: int, size: float) -> Run:
    """Kill the primary, ten times if the size is 1.

    What was accepted and is nowhere afterwards is told as lost, not as a violation.
    """
    began, failovers = time.monotonic(), round(FAILOVERS * size)
    logging.getLogger("lowkiq_lambda").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, SentinelSetup(min_replicas=1) as setup:
        history = Recorder(Path(folder) / "history")
        with closing_app(Lowkiq(Config(redis_url=setup.url, lease_ttl=LEASE, redis_timeout=1.0))) as app:
            worker = _worker(app, history)
            stop = threading.Event()
            threads = [
                threading.Thread(target=_push, args=(worker, history, stop, seed)),
                *(threading.Thread(target=_drain, args=(app, stop)) for _ in range(2)),
            ]
            for thread in threads:
                thread.start()
            try:
                for _ in range(failovers):
                    _await_more(history)
                    setup.kill_primary()
                    setup.heal()
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            eventually(lambda: _is_drained(app), timeout=_TIMEOUT, what="the end of all jobs")
        events = history.read()
        history.close()
    done = {
        "payloads": _accepted(events),
        "handler runs": _count(events, "begin"),
        "lost": _lost(events),
        "again": _again(events),
    }
    overlaps = [str(each) for each in check(events, Terms(ended=False)).violations["P1"]]
    return Run(seed, time.monotonic() - began, done, {"primary killed": failovers}, overlaps)


def _worker(app: Lowkiq, history: Recorder) -> type[Worker]:
    class Noting(Worker):
        queue_name = "proof"
        shards_count = 2
        batch_size = 20

        def perform(self, batch: Batch) -> None:
            for job_id, payloads in batch.items():
                history.write("begin", job_id, payloads, process=threading.get_ident())
            for job_id in batch:
                history.write(
                    "end",
                    job_id,
                    process=threading.get_ident(),
                    outcome="stale" if has_lost_its_lease(batch) else "done",
                )

    return app.worker(Noting)


def _push(worker: type[Worker], history: Recorder, stop: threading.Event, seed: int) -> None:
    number = 0
    while not stop.wait(0.005):
        number += 1
        job_id = f"id{(seed + number) % IDS}"
        history.write("push-begin", job_id, [number])
        outcome = "unknown"
        with suppress(LowkiqError):
            worker.push_many([{"id": job_id, "payload": number, "score": number}])
            outcome = "ok"
        history.write("push-end", job_id, [number], outcome=outcome)


def _drain(app: Lowkiq, stop: threading.Event) -> None:
    while not stop.wait(0.01):
        with suppress(LowkiqError):
            app.drain(seconds=1.0)


def _await_more(history: Recorder) -> None:
    """Jobs are pushed and performed again."""
    before = history.read()
    goal = _accepted(before) + 50, _count(before, "begin") + 20

    def is_reached() -> bool:
        events = history.read()
        return _accepted(events) >= goal[0] and _count(events, "begin") >= goal[1]

    eventually(is_reached, timeout=_TIMEOUT, what="jobs that are pushed and performed")


def _is_drained(app: Lowkiq) -> bool:
    with suppress(LowkiqError):
        app.drain(seconds=2.0)
        return app.operate.stats()["total"]["length"] == 0
    return False


def _accepted(events: list[Event]) -> int:
    return sum(len(event.numbers) for event in events if event.what == "push-end" and event.outcome == "ok")


def _count(events: list[Event], what: str) -> int:
    return sum(event.what == what for event in events)


def _lost(events: list[Event]) -> int:
    accepted = {n for event in events if event.what == "push-end" and event.outcome == "ok" for n in event.numbers}
    return len(accepted - {n for event in events if event.what == "begin" for n in event.numbers})


def _again(events: list[Event]) -> int:
    runs = Counter(n for event in events if event.what == "begin" for n in event.numbers)
    return sum(count - 1 for count in runs.values())
