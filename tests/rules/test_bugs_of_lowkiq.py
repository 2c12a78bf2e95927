"""Weak spots of Lowkiq that must not come back, those of the engine.

Those from LB-11 on are in test_more_bugs_of_lowkiq, others where their theme is: LB-8 test_crashes, LB-9
test_blame_company, LB-10 test_broken_hooks, LB-13 test_job_payloads, LB-14 and LB-15 test_job_fields, LB-18 and LB-19
test_job_ids, LB-23 test_morgue_bounds, LB-28 and LB-30 test_job_pushes. LB-20 to LB-22 are the daemon's, LB-24 and
LB-25 the dashboard's, LB-27 the cluster's.
"""

import threading

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Notes, failing
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import left_behind, look
from tests.kit.servers import MakeServer


def test_lb1_a_starting_process_touches_no_live_work(make_app: MakeApp, queue_name: str) -> None:
    """LB-1: a second process of a rolling deploy neither restores nor runs what the first one is running."""
    old, new = make_app(), make_app()
    seen = Notes()
    found: list[dict[str, int]] = []
    worker = declare(old, queue_name, lambda _batch: found.append(new.drain()))
    declare(new, queue_name, seen)
    worker.perform_async(jobs_of("a"))

    assert ({"done": 1}, [{}], []) == (old.drain(), found, seen.batches)


def test_lb2_a_second_claim_keeps_the_first_ones_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-2: what was in flight when the process died, and what was pushed meanwhile, are both there."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes)

    def push_and_die(_batch: Batch) -> None:
        worker.perform_async(jobs_of("a", payload="second", score=2))
        mortal.die()

    notes.then = push_and_die
    worker.perform_async(jobs_of("a", payload="first", score=1))
    mortal.drain()
    notes.then = None
    outlive(app, clock, worker)
    app.drain()

    assert {"a": ["first", "second"]} == notes.batches[-1]


def test_lb3_an_id_deleted_meanwhile_harms_nobody(app: Lowkiq, queue_name: str) -> None:
    """LB-3: deleting an id that would have been claimed next, or that is in flight, stops no drain."""

    def delete(_batch: Batch) -> None:
        if len(notes.batches) == 1:
            app.actions(worker).delete(["a", "b", "c"])

    notes = Notes(delete)
    worker = declare(app, queue_name, notes)
    worker.perform_async(jobs_of("abcd"))

    assert {"done": 2} == app.drain()
    assert [["a"], ["d"]] == notes.ids
    assert {} == left_behind(app, worker)


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
    worker.perform_async(jobs_of("abcdefgh"))

    assert {"done": 8} == app.drain()
    assert [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]] == notes.ids
    server.admin.script_flush()
    worker.perform_async(jobs_of("i"))
    assert {"done": 1} == app.drain()


def test_lb5_a_late_settling_touches_nothing_of_the_next_holder(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LB-5, E-1: a holder that overslept its lease settles nothing that the next one has in flight."""
    late, next_one = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    running, settled, in_time = threading.Event(), threading.Event(), list[bool]()

    def oversleep(_batch: Batch) -> None:
        outlive(late, clock, worker)
        thread.start()
        in_time.append(running.wait(10))

    def run(batch: Batch) -> None:
        if not running.is_set():
            running.set()
            in_time.append(settled.wait(10))
            batch.fail("a", "must count")

    thread = threading.Thread(target=next_one.drain)
    worker = declare(late, queue_name, oversleep, batch_size=2)
    other = declare(next_one, queue_name, run, batch_size=2)
    worker.perform_async(jobs_of("ab"))
    counts = late.drain()
    in_flight = [job.id for job in late.queries(worker).processing()]
    settled.set()
    thread.join()

    assert [True, True] == in_time
    assert ({}, ["a"]) == (counts, in_flight)
    waiting = [look(next_one, other, job_id) for job_id in "ab"]
    assert ["must count", None] == [one and one.error for one in waiting]


def test_lb6_a_failure_is_written_in_one_step(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-6: retry_count, morgue and queue change together, or not at all, when the process dies there."""
    mortal, notes = Mortal(app), Notes(failing("a", "b"))
    worker = declare(app, queue_name, notes, batch_size=3, max_retry_count=0)
    worker.perform_async([{"id": job_id, "payload": n, "score": n} for job_id in "abc" for n in range(2)])
    mortal.die_before("settle")
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = lambda batch: failing("a")(batch) if 0 in batch.get("a", []) else None
    app.drain()

    assert [("a", [(0, 0.0)])] == [(job.id, [tuple(one) for one in job.payloads]) for job in notes.buried]
    assert {-1.0} == {job.retry_count for jobs in notes.jobs for job in jobs}
    assert {} == left_behind(app, worker)


def test_lb7_any_drain_recovers_what_a_dead_node_left(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-7, E-14: no restart and no renumbering of nodes is needed, not even another job in the shard."""
    dead, alive = make_app(), make_app()
    mortal, notes = Mortal(dead), Notes()
    worker = declare(dead, queue_name, mortal.die, shards_count=3)
    declare(alive, queue_name, notes, shards_count=3)
    worker.perform_async(jobs_of("a"))
    alive.drainer.begin()
    mortal.drain()
    outlive(alive, clock, worker)

    assert {"recovered": 1, "done": 1} == alive.drain()
    assert [["a"]] == notes.ids
