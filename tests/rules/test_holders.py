"""P1: a shard has one holder, and an id one execution, at a time (L-1, L-4, LB-1 to LB-3)."""

import threading

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of, shard_of
from tests.rules.together import in_threads


def test_p1_one_at_a_time(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: until the lease's time is over *and* its key is gone, nobody else gets what a holder is running."""
    first, second = make_app(), make_app()
    stop_renewing(first, monkeypatch)
    others, seen, seen_meanwhile = Notes(), list[tuple[dict[str, int], str]](), list[dict[str, list[object]]]()

    def try_both_ways() -> None:
        # A drain asks first, and would not even try.
        seen.append((second.drain(), second.core.drains.drainer.visit(shard, Budget(clock)).reason))

    def let_others_try(_batch: Batch) -> None:
        try_both_ways()
        clock.advance(29.9)
        second.core.backend.client.delete(key)
        try_both_ways()
        clock.advance(0.2)
        second.core.backend.client.set(key, "evicted and set again", px=60_000)
        try_both_ways()
        seen_meanwhile.extend(others.batches)
        second.core.backend.client.delete(key)
        try_both_ways()

    worker = declare(first, queue_name, let_others_try)
    declare(second, queue_name, others)
    shard = shard_of(first, worker, "a")
    key = shard.key("lease")
    worker.push_many(jobs_of("a"))
    first.drain()

    assert [] == seen_meanwhile
    assert [*[({}, "held")] * 3, ({"recovered": 1, "done": 1}, "empty")] == seen


def test_l1_jobs_of_one_id_never_run_at_one_time(make_app: MakeApp, queue_name: str) -> None:
    """L-1: several holders drain one queue, and no id is ever in two handlers."""
    running, overlaps, lock = set[str](), list[str](), threading.Lock()

    def enter_and_leave(batch: Batch) -> None:
        with lock:
            overlaps.extend(running & set(batch))
            running.update(batch)
        for job_id in batch:
            workers[0].push_many([{"id": job_id, "payload": 1}] if batch[job_id] == [0] else [])
        with lock:
            running.difference_update(batch)

    apps = [make_app() for _ in range(3)]
    workers = [declare(app, queue_name, enter_and_leave, shards_count=4, batch_size=3) for app in apps]
    workers[0].push_many([{"id": n, "payload": 0} for n in range(200)])
    in_threads(*apps)
    in_threads(*apps)

    assert [] == overlaps
    assert {} == left_behind(apps[0], workers[0])


def test_l1_threads_of_one_app_share_its_queues(app: Lowkiq, queue_name: str) -> None:
    """L-1, L-4: several threads that drain one app perform each job once, none beside another of its shard."""
    inside: dict[int, int] = {}
    overlaps: list[int] = []
    performed: list[str] = []

    def perform(batch: Batch) -> None:
        shard = shard_for(next(iter(batch)), 3)
        if inside.setdefault(shard, threading.get_ident()) != threading.get_ident():
            overlaps.append(shard)
        performed.extend(batch)
        inside.pop(shard, None)

    worker = declare(app, queue_name, perform, shards_count=3, batch_size=5)
    worker.push_many([{"id": n} for n in range(500)])
    in_threads(app, app, app, app)
    app.drain()

    assert [] == overlaps
    assert sorted(str(n) for n in range(500)) == sorted(performed)
    assert {} == left_behind(app, worker)


def test_l4_a_shard_has_one_holder(make_app: MakeApp, queue_name: str) -> None:
    """L-4: while one drain holds a shard, another finds it held and performs nothing of it."""
    first, second = make_app(), make_app()
    seen: list[dict[str, int]] = []
    worker = declare(first, queue_name, lambda _batch: seen.append(second.drain()))
    others = Notes()
    declare(second, queue_name, others)
    worker.push_many(jobs_of("ab"))

    first.drain()

    assert ([{}, {}], []) == (seen, others.batches)


def test_lb1_a_starting_process_touches_no_live_work(make_app: MakeApp, queue_name: str) -> None:
    """LB-1: a second process of a rolling deploy neither restores nor runs what the first one is running."""
    old, new = make_app(), make_app()
    seen = Notes()
    found: list[dict[str, int]] = []
    worker = declare(old, queue_name, lambda _batch: found.append(new.drain()))
    declare(new, queue_name, seen)
    worker.push_many(jobs_of("a"))

    assert ({"done": 1}, [{}], []) == (old.drain(), found, seen.batches)


def test_lb2_a_second_claim_keeps_the_first_ones_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-2: what was in flight when the process died, and what was pushed meanwhile, are both there."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes)

    def push_and_die(_batch: Batch) -> None:
        worker.push_many(jobs_of("a", payload="second", score=2))
        mortal.die()

    notes.then = push_and_die
    worker.push_many(jobs_of("a", payload="first", score=1))
    mortal.drain()
    notes.then = None
    outlive(app, clock, worker)
    app.drain()

    assert {"a": ["first", "second"]} == notes.batches[-1]


def test_lb3_an_id_deleted_meanwhile_harms_nobody(app: Lowkiq, queue_name: str) -> None:
    """LB-3: deleting an id that would have been claimed next, or that is in flight, stops no drain."""

    def delete(_batch: Batch) -> None:
        if len(notes.batches) == 1:
            app.operate(worker).waiting.delete(["a", "b", "c"])

    notes = Notes(delete)
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("abcd"))

    assert {"done": 2} == app.drain()
    assert [["a"], ["d"]] == notes.ids
    assert {} == left_behind(app, worker)
