"""Jobs that kill their process (E-50, LB-8): suspects, counted crashes, and the morgue for the culprit alone."""

import logging
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of, shard_of


def drain_through(app: Lowkiq, clock: ManualClock, mortal: Mortal, worker: type[Worker], deaths: int = 50) -> int:
    """Start a new process each time that one died, until one ends by itself; how many died."""
    for died in range(deaths):
        if mortal.drain() is not None:
            return died
        outlive(app, clock, worker)
    raise AssertionError(f"{deaths} processes died")


def killed_by(mortal: Mortal, kills: Callable[[Batch], object]) -> Callable[[Batch], None]:
    """A handler that dies of some batches."""

    def then(batch: Batch) -> None:
        if kills(batch):
            mortal.die()

    return then


def test_a_crash_counts_nothing_and_makes_all_in_flight_suspects(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """What a dead process had in flight runs alone next, each id as it was; nothing is counted."""
    mortal, notes = Mortal(app), Notes()
    notes.then = killed_by(mortal, lambda batch: len(batch) > 1)
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many(jobs_of("abc"))

    assert 1 == drain_through(app, clock, mortal, worker)

    assert [["a", "b", "c"], ["a"], ["b"], ["c"]] == notes.ids
    assert {-1.0} == {job.retry_count for jobs in notes.jobs for job in jobs}
    assert {} == left_behind(app, worker)


def test_e50_the_culprit_dies_alone_and_soon(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-50, LB-8: an id that kills its process each time is in the morgue after three counted crashes, as "crashed"."""
    mortal, notes = Mortal(app), Notes()
    notes.then = killed_by(mortal, lambda batch: "b" in batch)
    worker = declare(app, queue_name, notes, batch_size=4)
    worker.push_many(jobs_of("abcd", payload="v", score=5))

    assert 4 == drain_through(app, clock, mortal, worker)

    (dead,) = notes.dead
    assert ("b", [("v", 5.0)]) == (dead.id, [tuple(one) for one in dead.payloads])
    assert str(dead.error).startswith("crashed: ")
    assert [["a", "b", "c", "d"], ["a"], ["b"], ["b"], ["b"], ["c"], ["d"]] == notes.ids
    assert {} == left_behind(app, worker)


def test_a_crash_tells_its_group_apart(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A group of suspects of which one crashed for the last time is not systemic, and nothing of it is left."""
    mortal, notes = Mortal(app), Notes()

    def then(batch: Batch) -> None:
        if list(batch) == ["b"]:
            mortal.die()
        raise Broken

    notes.then = then
    worker = declare(app, queue_name, notes, batch_size=4, max_retry_count=0)
    worker.push_many(jobs_of("abcd"))

    drain_through(app, clock, mortal, worker)

    assert [["a", "b", "c", "d"], ["a"], ["b"], ["b"], ["b"], ["c"], ["d"]] == notes.ids
    assert {} == left_behind(app, worker)


def test_a_holder_that_dies_before_the_handler_starts_has_no_crash_counted(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Only a lone suspect whose handler had started has a crash counted: else the process died of something else."""
    mortal, notes = Mortal(app), Notes()
    notes.then = killed_by(mortal, lambda batch: len(batch) > 1)
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.drain()
    for _ in range(5):
        outlive(app, clock, worker)
        mortal.die_before("start")
        assert mortal.drain() is None
    outlive(app, clock, worker)

    assert {"recovered": 1, "done": 2} == app.drain()
    assert [] == notes.dead


@pytest.mark.parametrize(("pushed", "lone_deaths"), [(("other", 5), 3), (("first", 20), 1)])
def test_p7_counted_crashes_are_the_payloads_own(
    app: Lowkiq, clock: ManualClock, queue_name: str, pushed: tuple[str, int], lone_deaths: int
) -> None:
    """P7: a payload that came before one with two counted crashes has all of its own; an equal one takes them over."""
    mortal, notes = Mortal(app), Notes(lambda _batch: mortal.die())
    worker = declare(app, queue_name, notes, merge="max")
    worker.push_many([{"id": "x", "payload": "first", "score": 10}])
    for _ in range(3):
        mortal.drain()
        outlive(app, clock, worker)
    payload, score = pushed
    worker.push_many([{"id": "x", "payload": payload, "score": score}])
    notes.clear()
    while not notes.dead:
        mortal.drain()
        outlive(app, clock, worker)

    (dead,) = notes.dead
    assert (payload, lone_deaths) == (dead.payloads[0].payload, notes.batches.count({"x": [payload]}))


def test_any_outcome_clears_counted_crashes(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Two counted crashes and then an outcome: the next two are the first again."""
    mortal, notes, deaths = Mortal(app), Notes(), [3, 3]

    def then(batch: Batch) -> None:
        if deaths[0] > 0:
            deaths[0] -= 1
            mortal.die()
        else:
            deaths.pop(0)
            if deaths:
                failing("a")(batch)

    notes.then = then
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    died = 0
    for _ in range(2):
        died += drain_through(app, clock, mortal, worker)
        clock.advance(10)

    assert (6, []) == (died, notes.dead)
    assert {} == left_behind(app, worker)


def test_a_counted_crash_halves_the_next_chunk_until_the_culprit_is_found(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Of an id with many payloads only the one that kills is dead; the others run, in order."""
    mortal, notes, done = Mortal(app), Notes(), list[int]()

    def then(batch: Batch) -> None:
        if 5 in batch["a"]:
            mortal.die()
        else:
            done.extend(batch["a"])

    notes.then = then
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(8)])

    drain_through(app, clock, mortal, worker)

    assert [5] == [payload for job in notes.dead for payload, _ in job.payloads]
    assert [0, 1, 2, 3, 4, 6, 7] == done
    assert [8, 8, 4] == [len(batch["a"]) for batch in notes.batches[:3]]
    assert {} == left_behind(app, worker)


def test_after_a_crashed_payload_the_rest_starts_anew(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-2: what was pushed behind the dead payload is due now, with retry_count -1."""
    mortal, notes = Mortal(app), Notes(failing("a"))
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": "deadly", "score": 1}])
    app.drain()
    clock.advance(10)
    notes.then = killed_by(mortal, lambda batch: "deadly" in batch["a"])
    mortal.drain()
    outlive(app, clock, worker)
    worker.push_many([{"id": "a", "payload": "later", "score": 2}])

    drain_through(app, clock, mortal, worker)

    assert ["deadly"] == [payload for job in notes.dead for payload, _ in job.payloads]
    assert ({"a": ["later"]}, -1.0) == (notes.batches[-1], notes.last.retry_count)


def test_what_was_pushed_meanwhile_merges_with_what_is_recovered(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """E-21: recovered payloads merge in order of score with those that came while the process was dying."""
    mortal, notes = Mortal(app), Notes()
    worker = declare(app, queue_name, notes)

    def push_and_die(_batch: Batch) -> None:
        notes.then = None
        worker.push_many({"id": "a", "payload": n, "score": n, "delay": 500} for n in (0, 2, 4))
        mortal.die()

    notes.then = push_and_die
    worker.push_many({"id": "a", "payload": n, "score": n} for n in (1, 3))
    at = clock.time()

    drain_through(app, clock, mortal, worker)

    assert [[1, 3], [0, 1, 2, 3, 4]] == [batch["a"] for batch in notes.batches]
    assert at == notes.last.due_at


def test_an_abandoned_batch_is_interrupted_and_not_suspect(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What a process gave back before it ended, though it was running, comes back in one batch, uncounted."""
    mortal, notes = Mortal(app), Notes()

    def abandon_and_die(_batch: Batch) -> None:
        app.core.drains.drainer.abandon_all(0.01)
        mortal.die()

    notes.then = abandon_and_die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.drain()
    notes.then = None
    clock.advance(0.02)
    app.core.backend.client.delete(app.core.queues.agreed(worker).shards[0].key("lease"))

    assert {"recovered": 2, "done": 2} == app.drain()
    assert [["a", "b"], ["a", "b"]] == notes.ids
    assert look(app, worker, "a") is None


def test_a_takeover_is_logged_with_its_shard_and_the_owner_that_died(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each acquisition that recovers something: which ids, from which holder; repeated or not."""
    backend = app.core.drains.drainer._backend
    run = backend.run

    def lose_first_reply(name: str, *args: Any, **options: Any) -> Any:
        if name == "acquire":
            run(name, *args, **options)
        return run(name, *args, **options)

    backend.run = lose_first_reply  # type: ignore[method-assign]  # the call of a client that heard no reply
    mortal, notes = Mortal(app), Notes()
    notes.then = killed_by(mortal, lambda batch: len(batch) > 1)
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many(jobs_of("abc"))

    drain_through(app, clock, mortal, worker)

    (line,) = (record for record in caplog.records if record.getMessage().startswith("took over"))
    told = {name: vars(line)[name] for name in ("levelno", "queue", "shard", "count", "owner")}
    owner = f"{socket.gethostname()}:{os.getpid()}"
    assert {"levelno": logging.WARNING, "queue": queue_name, "shard": 0, "count": 3, "owner": owner} == told
    assert {"a", "b", "c"} == set(vars(line)["ids"])


def test_ids_that_go_to_the_morgue_are_logged_without_their_payloads(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that failed and those that crashed alike; a line names ten at most, each cut, and counts all."""
    mortal, notes = Mortal(app), Notes()
    notes.then = killed_by(mortal, lambda batch: "crash" in batch)
    crashing = declare(app, f"{queue_name}-crashing", notes)
    failing_ids = [f"{number:02}" + "x" * 500 for number in range(12)]
    worker = declare(app, f"{queue_name}-failing", failing(*failing_ids), max_retry_count=0, batch_size=12)
    worker.isolate = False
    crashing.push_many(jobs_of(["crash"], payload="secret"))
    worker.push_many(jobs_of(failing_ids, payload="secret"))

    drain_through(app, clock, mortal, crashing)

    lines = {vars(record)["queue"]: vars(record) for record in caplog.records if "morgue" in record.getMessage()}
    crashed, failed = lines[f"{queue_name}-crashing"], lines[f"{queue_name}-failing"]
    assert (["crash"], 1, 0) == (crashed["ids"], crashed["count"], crashed["shard"])
    assert (10, 12) == (len(failed["ids"]), failed["count"])
    assert {*failed["ids"]} <= {job_id[:100] + "…" for job_id in failing_ids}
    assert "secret" not in caplog.text
    assert not any("secret" in str(vars(record)) for record in caplog.records)


def test_p6_one_suspect_runs_at_a_time_in_a_process(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: were two to run alone in one process, its death would be held against both; the other waits its turn."""
    mortal, notes, met = Mortal(app), Notes(), list[VisitResult]()
    ids = [next(str(n) for n in range(99) if shard_for(str(n), 2) == index) for index in range(2)]
    worker = declare(app, queue_name, notes, shards_count=2)
    worker.push_many(jobs_of(ids))
    notes.then = mortal.die
    assert [None, None] == [mortal.drain(), mortal.drain()]
    outlive(app, clock, worker)

    def visit_the_other(batch: Batch) -> None:
        if not met:
            (other,) = set(ids) - set(batch)
            met.append(app.core.drains.drainer.visit(shard_of(app, worker, other), Budget(clock)))

    notes.clear()
    notes.then = visit_the_other
    app.drain()

    assert [("held", {"recovered": 1, "returned": 1})] == [(one.reason, dict(one.counts)) for one in met]
    assert sorted([job_id] for job_id in ids) == sorted(notes.ids)
    assert {} == left_behind(app, worker)
