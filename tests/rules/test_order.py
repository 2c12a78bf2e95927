"""P3: payloads of an id come in order, and ids come when they are due (L-10, LN-7, LN-8, LN-10, D-6)."""

import threading
from collections import defaultdict
from random import Random
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import left_behind
from tests.kit.workers import declare
from tests.rules.together import in_threads


@pytest.mark.parametrize("seed", range(5))
def test_p3_order(make_app: MakeApp, clock: ManualClock, queue_name: str, seed: int) -> None:
    """P3: what is handed over is always the oldest of what is queued, by score and arrival, whatever happened."""
    rng, app = Random(seed), make_app(claim_payloads=4)
    mortal, queued, arrivals = Mortal(app), list[tuple[int, int]](), 0
    handed_over: list[tuple[list[tuple[int, int]], list[tuple[int, ...]]]] = []

    def perform(batch: Batch) -> None:
        payloads = [tuple(payload) for payload in batch["a"]]
        handed_over.append((sorted(queued)[: len(payloads)], payloads))
        match rng.randrange(4):
            case 0:
                raise Broken
            case 1:
                mortal.die()
            case _:
                queued[:] = sorted(queued)[len(payloads) :]

    worker = declare(app, queue_name, perform, retry_in=lambda _self, _count: rng.randrange(3), max_retry_count=1_000)
    for _ in range(60):
        pushed = [(rng.randrange(20), arrivals + n) for n in range(rng.randrange(4))]
        arrivals += len(pushed)
        queued += pushed
        worker.push_many({"id": "a", "payload": place, "score": place[0]} for place in pushed)
        if mortal.drain() is None:
            outlive(app, clock, worker)
        clock.advance(1)
    while queued:
        if mortal.drain() is None:
            outlive(app, clock, worker)
        clock.advance(3)

    assert [oldest for oldest, _ in handed_over] == [payloads for _, payloads in handed_over]
    assert {} == left_behind(app, worker)
    assert [] == app.operate(worker).morgue.fetch(["a"])


def test_l10_an_older_change_never_overwrites_a_newer(make_app: MakeApp, queue_name: str) -> None:
    """L-10: M1 then M2 of one entity, performed by several holders, never end with M1's state over M2's."""
    state, seen = dict[str, int](), defaultdict[str, list[int]](list)

    def write(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            for version in payloads:
                seen[job_id].append(version)
                state[job_id] = version

    apps = [make_app(), make_app()]
    workers: list[type[Worker]] = [declare(app, queue_name, write, shards_count=2) for app in apps]
    threads = [threading.Thread(target=in_threads, args=apps) for _ in range(2)]
    for version in range(30):
        pushed = [{"id": n, "payload": version, "score": version} for n in range(5)]
        workers[version % 2].push_many(pushed)
        if version == 3:
            for thread in threads:
                thread.start()
    for thread in threads:
        thread.join()
    in_threads(*apps)

    assert {} == left_behind(apps[0], workers[0])
    assert {str(n): 29 for n in range(5)} == state
    assert all(versions == sorted(versions) for versions in seen.values())


def test_d6_ids_come_by_due_at_and_payloads_by_score(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-6: it is no first-in-first-out queue: ids come by their time, payloads within an id by score."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    now = clock.time()
    pushed: list[dict[str, Any]] = [
        {"id": "c", "due_at": now - 1, "payload": "newest", "score": 9},
        {"id": "a", "due_at": now - 3},
        {"id": "b", "due_at": now - 2},
        {"id": "c", "payload": "oldest", "score": 1},
    ]

    worker.push_many(pushed)
    app.drain()

    assert [["a", "b", "c"]] == notes.ids
    assert ["oldest", "newest"] == notes.batches[0]["c"]


def test_ln7_due_ids_come_by_time_up_to_batch_size(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-7: a batch has the due ids with the earliest times, in that order, at most batch_size of them."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)
    now = clock.time()
    times = {"e": 0.0, "a": -3.0, "d": -1.0, "b": -2.0, "later": 0.5}

    worker.push_many({"id": job_id, "due_at": now + at} for job_id, at in times.items())
    app.drain()

    assert [["a", "b"], ["d", "e"]] == notes.ids


def test_ln8_newer_payload_waits_behind_the_older_in_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-8: while an older payload waits for its retry, a newer one of its id waits too, and other ids pass."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": "old"}])
    app.drain()
    notes.clear()
    notes.then = None

    worker.push_many([{"id": "a", "payload": "new"}, {"id": "b"}])
    app.drain()
    assert [{"b": [""]}] == notes.batches
    clock.advance(10)
    app.drain()

    assert {"a": ["old", "new"]} == notes.batches[-1]


def test_ln10_payload_pushed_while_its_id_runs_comes_after(app: Lowkiq, queue_name: str) -> None:
    """LN-10: it stays queued, is performed after the running one, and is never lost."""

    def push_once(_batch: Batch) -> None:
        notes.then = None
        worker.push_many([{"id": "a", "payload": "during"}])

    notes = Notes(push_once)
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": "before"}])

    app.drain()

    assert [{"a": ["before"]}, {"a": ["during"]}] == notes.batches
