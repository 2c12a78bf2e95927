"""The promises, each as far as one process can show it; whole processes die in the chaos tests.

P4 is in test_promise_fencing, P5 in test_promise_budget, P8 in test_promise_round_trips, P9 in test_promise_numbers.
"""

import threading
from collections import Counter
from random import Random

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.workers import declare, jobs_of, shard_of
from tests.kit.looks import left_behind


def test_p1_one_at_a_time(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: until the lease's time is over *and* its key is gone, nobody else gets what a holder is running."""
    first, second = make_app(), make_app()
    stop_renewing(first, monkeypatch)
    others, seen, seen_meanwhile = Notes(), list[tuple[dict[str, int], str]](), list[dict[str, list[object]]]()

    def try_both_ways() -> None:
        # A drain asks first, and would not even try.
        seen.append((second.drain(), second.drainer.visit(shard, Budget(clock)).reason))

    def let_others_try(_batch: Batch) -> None:
        try_both_ways()
        clock.advance(29.9)
        second.backend.client.delete(key)
        try_both_ways()
        clock.advance(0.2)
        second.backend.client.set(key, "evicted and set again", px=60_000)
        try_both_ways()
        seen_meanwhile.extend(others.batches)
        second.backend.client.delete(key)
        try_both_ways()

    worker = declare(first, queue_name, let_others_try)
    declare(second, queue_name, others)
    shard = shard_of(first, worker, "a")
    key = shard.key("lease")
    worker.perform_async(jobs_of("a"))
    first.drain()

    assert [] == seen_meanwhile
    assert [*[({}, "held")] * 3, ({"recovered": 1, "done": 1}, "empty")] == seen


@pytest.mark.parametrize("death", range(9))
def test_p2_nothing_is_lost(app: Lowkiq, clock: ManualClock, queue_name: str, death: int) -> None:
    """P2: wherever between two calls the process dies, each payload is performed, or in the morgue with its error."""
    mortal, calls = Mortal(app), Counter[str]()
    done: list[tuple[str, int]] = []

    def perform(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            if job_id == "bad":
                batch.fail(job_id, "bad")
            else:
                done.extend((job_id, payload) for payload in payloads)

    def dies_before(name: str) -> bool:
        calls[name] += 1
        return calls.total() == death + 1

    notes = Notes(perform)
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=1)
    worker.perform_async({"id": job_id, "payload": n} for job_id in ("a", "bad", "b", "c") for n in range(2))
    mortal.dies_before = dies_before
    mortal.drain()
    for _ in range(10):
        outlive(app, clock, worker)
        app.drain()

    assert {(job_id, n) for job_id in "abc" for n in range(2)} == set(done)
    (buried,) = app.queries(worker).morgue_fetch(["bad"])
    assert ([0, 1], "bad") == ([payload for payload, _ in buried.payloads], buried.error)
    assert {} == left_behind(app, worker)


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
        worker.perform_async({"id": "a", "payload": place, "score": place[0]} for place in pushed)
        if mortal.drain() is None:
            outlive(app, clock, worker)
        clock.advance(1)
    while queued:
        if mortal.drain() is None:
            outlive(app, clock, worker)
        clock.advance(3)

    assert [oldest for oldest, _ in handed_over] == [payloads for _, payloads in handed_over]
    assert {} == left_behind(app, worker)
    assert [] == app.queries(worker).morgue_fetch(["a"])


def test_p6_failures_stay_where_they_belong(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: a failing id, an undecodable payload and a hook that raises, all in one batch, cost the others nothing."""

    def retries_exhausted(_self: object, _jobs: object) -> None:
        raise Broken("hook")

    notes = Notes(failing("bad"))
    worker = declare(app, queue_name, notes, batch_size=5, max_retry_count=0, retries_exhausted=retries_exhausted)
    worker.perform_async(jobs_of(["a", "bad", "b", "corrupt", "c"]))
    key = shard_of(app, worker, "corrupt").key("jobs")
    record = app.backend.client.hget(key, "corrupt")
    assert isinstance(record, bytes)
    app.backend.client.hset(key, "corrupt", record[:-2] + b"}")

    assert {"done": 3, "failed": 2, "buried": 2} == app.drain()
    clock.advance(1_000)
    assert ({}, [["a", "b", "bad", "c"]]) == (app.drain(), notes.ids)


def test_p7_equal_chances(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: each payload is the oldest of its id in exactly max_retry_count + 1 failures, alone or in an outage."""
    oldest: Counter[tuple[str, int]] = Counter()

    def note_and_raise(batch: Batch) -> None:
        if len(batch) == 1:
            oldest.update((job_id, payloads[0]) for job_id, payloads in batch.items())
        raise Broken

    worker = declare(app, queue_name, note_and_raise, batch_size=2, max_retry_count=2)
    worker.perform_async({"id": job_id, "payload": n, "score": n} for job_id in "ab" for n in range(3))
    for _ in range(20):
        app.drain()
        clock.advance(100)

    assert dict.fromkeys([(job_id, n) for job_id in "ab" for n in range(3)], 3) == oldest
    assert 2 == app.stats()["by_worker"][queue_name]["morgue_length"]


def test_p7_interruptions_and_deaths_take_no_chance(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: only attributed failures count: neither a stop, nor a death, nor a failure in company does."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=0)
    worker.perform_async(jobs_of("ab"))
    stop = threading.Event()
    stop.set()
    app.drainer.visit(app.queue_of(worker).shards[0], Budget(clock, stopping=stop.is_set))
    notes.then = mortal.die
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = raising(SystemExit())
    with pytest.raises(SystemExit):
        app.drain()
    notes.then = None
    app.drain()

    assert ([], {}) == (notes.buried, left_behind(app, worker))
    assert {-1.0} == {job.retry_count for jobs in notes.jobs for job in jobs}
