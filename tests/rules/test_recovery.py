"""P2: no job is lost when a process dies or a server forgets (L-2, LN-13, LB-4, LB-6, LB-7)."""

from collections import Counter

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.testing import AppUnderTest, ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.looks import left_behind
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of


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
    worker.push_many({"id": job_id, "payload": n} for job_id in ("a", "bad", "b", "c") for n in range(2))
    mortal.dies_before = dies_before
    mortal.drain()
    for _ in range(10):
        outlive(app, clock, worker)
        app.drain()

    assert {(job_id, n) for job_id in "abc" for n in range(2)} == set(done)
    (dead,) = app.operate(worker).morgue.fetch(["bad"])
    assert ([0, 1], "bad") == ([payload for payload, _ in dead.payloads], dead.error)
    assert {} == left_behind(app, worker)


def test_l2_death_of_a_process_loses_no_job(lowkiq: AppUnderTest) -> None:
    """L-2: what a dead process had in its hands, and what it had not, is performed."""
    worker = declare(lowkiq.app, "orders", Notes(), batch_size=2)
    worker.push_many(jobs_of("abcde"))

    with lowkiq.crash_after(worker):
        died = lowkiq.drain()
    result = lowkiq.drain()

    assert ([], ["a", "b"]) == (died.done, result.recovered)
    assert [*"abcde"] == sorted(result.done) == sorted(job_id for job_id, _ in result.calls)
    lowkiq.assert_empty(worker)
    assert {} == left_behind(lowkiq.app, worker)


@pytest.mark.parametrize("how", ["SCRIPT FLUSH", "restart"])
def test_lb4_scripts_that_the_server_forgot_lose_nothing(
    make_server: MakeServer, clock: ManualClock, queue_name: str, how: str
) -> None:
    """LB-4, E-36: after SCRIPT FLUSH or a restart in the middle of a drain each job is performed once."""
    server = make_server(appendonly=True)
    app = Lowkiq(Config(redis_url=server.url), clock=clock)

    def forget(_batch: Batch) -> None:
        if len(notes.batches) in (1, 3):
            if how == "restart":
                server.restart()
            else:
                server.admin.script_flush()

    notes = Notes(forget)
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=0)
    worker.push_many(jobs_of("abcdefgh"))

    assert {"done": 8} == app.drain()
    assert [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]] == notes.ids
    server.admin.script_flush()
    worker.push_many(jobs_of("i"))
    assert {"done": 1} == app.drain()


def test_lb6_a_failure_is_written_in_one_step(lowkiq: AppUnderTest) -> None:
    """LB-6: retry_count, morgue and queue change together, or not at all, when the process dies there."""
    notes = Notes(failing("a", "b"))
    worker = declare(lowkiq.app, "orders", notes, batch_size=3, max_retry_count=0)
    worker.push_many([{"id": job_id, "payload": n, "score": n} for job_id in "abc" for n in range(2)])
    with lowkiq.crash_after(worker):
        lowkiq.drain()
    notes.then = lambda batch: failing("a")(batch) if 0 in batch.get("a", []) else None

    assert ["a"] == lowkiq.drain(raises=False).dead
    lowkiq.assert_dead(worker, id="a", error="a is broken")
    assert [("a", [(0, 0.0)])] == [(job.id, [tuple(one) for one in job.payloads]) for job in notes.dead]
    assert {-1.0} == {job.retry_count for jobs in notes.jobs for job in jobs}
    assert {} == left_behind(lowkiq.app, worker)


def test_lb7_any_drain_recovers_what_a_dead_node_left(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-7, E-14: no restart and no renumbering of nodes is needed, not even another job in the shard."""
    dead, alive = make_app(), make_app()
    mortal, notes = Mortal(dead), Notes()
    worker = declare(dead, queue_name, mortal.die, shards_count=3)
    declare(alive, queue_name, notes, shards_count=3)
    worker.push_many(jobs_of("a"))
    alive.core.drains.drainer.begin()
    mortal.drain()
    outlive(alive, clock, worker)

    assert {"recovered": 1, "done": 1} == alive.drain()
    assert [["a"]] == notes.ids


def test_ln13_recovery_keeps_time_and_retry_count(lowkiq: AppUnderTest) -> None:
    """LN-13: what a dead process had in flight comes back with time, retry_count and error unchanged."""
    notes = Notes(raising(Broken("first")))
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many(jobs_of("a"))
    assert ["a"] == lowkiq.drain(raises=False).retried
    lowkiq.advance(seconds=10)
    at = lowkiq.clock.time()
    notes.then = None
    with lowkiq.crash_after(worker):
        lowkiq.drain()
        lowkiq.assert_not_pushed(worker)

    assert ["a"] == lowkiq.drain().recovered
    assert (0.0, at, "first", True) == (
        notes.last.retry_count,
        notes.last.due_at,
        notes.last.error,
        notes.last.repeated,
    )
