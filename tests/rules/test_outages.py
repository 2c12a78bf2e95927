"""Batches that fail alike in a row: the ids of the next one are tried at once, and the others share the failure."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker, kill_on
from lowkiq_lambda.engine import side_by_side
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.flight import Flight
from lowkiq_lambda.engine.outage import ALIKE, BATCHES, PROOFS
from lowkiq_lambda.testing import ManualClock
from tests.kit.beside import Declare, Gathering, declare_coroutines, declare_threads
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import left_behind, look
from tests.kit.servers import Server
from tests.kit.tracking import TaskOfTests
from tests.kit.workers import declare, jobs_of

LETTERS = "abcde"
MANY = 10
"""Batches of a test."""
UNTRIED = BATCHES - 1
PROVEN = UNTRIED + PROOFS
"""Batches after which one id is enough."""


def ids(batches: range = range(MANY)) -> list[str]:
    """Of these batches: the number of the batch, and a letter."""
    return [f"{batch}{letter}" for batch in batches for letter in LETTERS]


def push(app: Lowkiq, queue_name: str, handler: Callable[[Batch], object], **fields: Any) -> type[Worker]:
    """A queue whose batches are those that `ids` names."""
    worker = declare(app, queue_name, handler, batch_size=len(LETTERS), **fields)
    worker.push_many(jobs_of(ids()))
    return worker


def alone(notes: Notes) -> list[int]:
    """How many runs of ids alone each batch took."""
    runs = Counter(batch[0][0] for batch in notes.ids if len(batch) == 1)
    return [runs[str(number)] for number in range(MANY)]


def flights_of(monkeypatch: pytest.MonkeyPatch) -> list[Flight]:
    """Those of the visits to come, of batches side by side."""
    flights: list[Flight] = []

    def begin() -> Flight:
        flights.append(Flight())
        return flights[-1]

    monkeypatch.setattr(side_by_side, "Flight", begin)
    return flights


def failures(app: Lowkiq, worker: type[Worker], found: list[str]) -> list[int]:
    """How many failures each of these ids has had; 0 where it does not wait."""
    waiting = {job.id: int(job.retry_count) + 1 for job in app.operate(worker).waiting.list(limit=1_000)}
    return [waiting.get(job_id, 0) for job_id in found]


def test_after_a_few_batches_one_id_is_enough(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Two batches are suspected, of three more three ids each fail at once, and of each that follows one does."""
    notes = Notes(raising())
    worker = push(app, queue_name, notes)

    assert {"suspected": 10, "failed": 50, "retried": 50} == app.drain()

    assert [ALIKE] * PROVEN + [1] * (MANY - PROVEN) == alone(notes)
    assert [1] * 50 == failures(app, worker, ids())
    assert ["broken"] * 2 == [(found := look(app, worker, name)) and found.error for name in ("9a", "9e")]
    clock.advance(10)
    notes.clear()
    notes.then = None
    assert {"done": 50} == app.drain()
    assert ([5] * MANY, {}) == ([len(batch) for batch in notes.ids], left_behind(app, worker))


def test_p7_in_a_long_outage_each_id_has_all_its_tries(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: it costs each id one retry at a time, and all die with the last, one as the other."""
    notes = Notes(raising())
    worker = push(app, queue_name, notes, max_retry_count=2)
    steps = []
    for _ in range(4):
        steps.append((app.drain().get("failed", 0), set(failures(app, worker, ids()))))
        clock.advance(1_000)

    assert [(50, {1}), (50, {2}), (50, {0}), (0, {0})] == steps
    assert ids() == sorted(job.id for job in notes.dead)
    assert {} == left_behind(app, worker)


def test_as_soon_as_an_id_succeeds_each_runs_alone(app: Lowkiq, queue_name: str) -> None:
    """The others of its batch pay nothing, and the next batches that fail are suspected as the first were."""

    def but_of_one_batch(batch: Batch) -> None:
        if len(batch) > 1 or min(batch)[0] != "6":
            raise Broken

    notes = Notes(but_of_one_batch)
    worker = push(app, queue_name, notes)

    assert {"done": 5, "failed": 45, "retried": 45, "suspected": 10 + 10} == app.drain()
    assert [3, 3, 3, 3, 3, 1, 5, 3, 3, 3] == alone(notes)
    assert [0] * 5 == failures(app, worker, ids(range(6, 7)))


def test_p6_a_poison_behind_an_outage_is_found_alone(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: an outage ends, and one bad id fails the next batch: its neighbours pay nothing, and it runs alone later."""

    def then(batch: Batch) -> None:
        if min(batch) < "7" or "7c" in batch:
            raise Broken

    notes = Notes(then)
    worker = push(app, queue_name, notes)
    app.drain()

    assert [1, 1, 0, 0, 1, 0, 0] == failures(app, worker, ["6a", "6e", "7a", "7b", "7c", "7d", "8a"])
    clock.advance(10)
    notes.clear()
    notes.then = None
    app.drain()
    assert [["7c"]] == [batch for batch in notes.ids if "7c" in batch]


@pytest.mark.parametrize("in_turns", [2, 4])
def test_errors_in_turns_are_no_outage(app: Lowkiq, queue_name: str, in_turns: int) -> None:
    """Where another error comes before a third batch fails alike, each batch is suspected."""

    def then(batch: Batch) -> None:
        raise Broken(f"kind {int(min(batch)[0]) % in_turns // (in_turns // 2)}")

    push(app, queue_name, then)

    assert {"suspected": 50, "failed": 50, "retried": 50} == app.drain()


def test_another_outage_is_proven_anew(app: Lowkiq, queue_name: str) -> None:
    """What one error has proven is no proof of the next."""

    def then(batch: Batch) -> None:
        raise Broken("the second" if min(batch) > "6" else "the first")

    notes = Notes(then)
    push(app, queue_name, notes)

    assert {"suspected": 20, "failed": 50, "retried": 50} == app.drain()
    assert [3, 3, 3, 3, 3, 1, 3, 3, 3, 3] == alone(notes)


def test_another_error_than_that_of_the_batches_is_the_ids_own(app: Lowkiq, queue_name: str) -> None:
    """The id that is tried fails, but not alike: each of the others of its batch runs for itself."""

    def then(batch: Batch) -> None:
        raise Broken("its own" if list(batch) == ["6a"] else "all")

    notes = Notes(then)
    worker = push(app, queue_name, notes)

    assert {"suspected": 20, "failed": 50, "retried": 50} == app.drain()
    assert [3, 3, 3, 3, 3, 1, 5, 3, 3, 3] == alone(notes)
    own = look(app, worker, "6a")
    assert own is not None
    assert "its own" == own.error


def test_a_permanent_error_is_no_outage(app: Lowkiq, queue_name: str) -> None:
    """Each id runs for itself, as an error that a rule kills is the id's own."""
    notes = Notes(raising())
    push(app, queue_name, notes, on_error=(kill_on(Broken),))

    counts = app.drain()

    assert (50, [5] * MANY) == (counts["dead"], alone(notes))


@pytest.mark.parametrize(("fields", "runs"), [({"isolate": False}, 0), ({"keep_runs": 1_000}, ALIKE)])
def test_some_queues_try_no_batch_at_once(app: Lowkiq, queue_name: str, fields: dict[str, Any], runs: int) -> None:
    """Without isolation nothing is tried; and a run that is kept has an outcome of its own."""
    notes = Notes(raising())
    worker = push(app, queue_name, notes, **fields)

    counts = app.drain()

    assert (50, 50 * bool(runs)) == (counts["retried"], counts.get("suspected", 0))
    assert [runs] * MANY == alone(notes)
    assert [1] * 50 == failures(app, worker, ids())


def test_two_ids_prove_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A batch of two runs out before three could fail alike: each failure is its id's own, and it runs alone next."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("abcdefghij"))

    assert {"suspected": 4, "failed": 10, "retried": 10} == app.drain()
    assert list("abcdefghij") == sorted(batch[0] for batch in notes.ids if len(batch) == 1)
    clock.advance(10)
    notes.clear()
    notes.then = None
    app.drain()
    assert [1] * 10 == [len(batch) for batch in notes.ids]


def test_a_payload_that_was_done_is_a_success(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A batch that raises after it marked one as done ends the row, and that payload is not handed over again."""

    def then(batch: Batch) -> None:
        if len(batch) > 1:
            batch.done(min(batch), payload=0)
        raise Broken

    notes = Notes(then)
    worker = declare(app, queue_name, notes, batch_size=len(LETTERS))
    worker.push_many([{"id": job_id, "payload": n, "score": n} for job_id in ids() for n in (0, 1)])

    assert 50 == app.drain()["suspected"]
    clock.advance(10)
    notes.clear()
    notes.then = None
    app.drain()
    assert [[1]] * MANY == [batch[job_id] for batch in notes.batches for job_id in batch if job_id.endswith("a")]


def test_a38_what_a_batch_noted_is_kept(app: Lowkiq, server: Server, queue_name: str) -> None:
    """A-38: the messages of a batch that failed in an outage, and those of the id that was tried."""

    def then(batch: Batch) -> None:
        for job_id in batch:
            batch.note(job_id, f"one of {len(batch)}")
        raise Broken

    worker = declare(app, queue_name, then, batch_size=len(LETTERS))
    task = TaskOfTests(worker, server.admin)
    task.push_many(*[(job_id, "payload", job_id) for job_id in ids()])
    app.drain()

    assert ("one of 5", "one of 1", "Broken") == task.items["6a"].messages
    assert ("one of 5", "Broken") == task.items["6b"].messages


@pytest.mark.parametrize("declare_kind", [declare, declare_coroutines])
def test_what_a_visit_has_no_time_to_try_is_returned(
    app: Lowkiq, clock: ManualClock, queue_name: str, declare_kind: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids that were tried have failed by themselves; the others wait as they were."""
    flights, stop = flights_of(monkeypatch), threading.Event()

    def then(batch: Batch) -> None:
        if list(batch) == ["2b"]:
            stop.set()
        raise Broken

    notes = Notes(then)
    worker = declare_kind(app, queue_name, notes, batch_size=len(LETTERS), concurrency=1)
    worker.push_many(jobs_of(ids()))
    shard = app.core.queues.agreed(worker).shards[0]

    counts = app.core.drains.drainer.visit(shard, Budget(clock, stopping=stop.is_set)).counts

    of_third = failures(app, worker, ids(range(2, 3)))
    assert [1, 1, 0, 0, 0] == of_third
    assert 50 == counts["retried"] + counts["returned"] + len(app.operate(worker).waiting.fetch(ids(range(1, 2))))
    assert [{}] * len(flights) == [flight.since for flight in flights]
    notes.clear()
    notes.then = None
    assert 43 == app.drain()["done"]


def test_an_id_that_expires_before_it_is_tried_ends_the_trial(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What was tried has failed, and the others of its batch are claimed again."""

    def then(batch: Batch) -> None:
        if list(batch) == ["2a"]:
            clock.advance(2)
        raise Broken

    notes = Notes(then)
    worker = declare(app, queue_name, notes, batch_size=len(LETTERS))
    worker.push_many([{"id": job_id, **({"expires_in": 1} if job_id == "2b" else {})} for job_id in ids()])

    counts = app.drain()

    assert (1, 49) == (counts["expired"], counts["retried"])
    assert [1, 0, 1, 1, 1] == failures(app, worker, ids(range(2, 3)))


def test_p6_a_death_while_an_id_is_tried_blames_nobody(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: all that was in flight runs alone, and the death is held against none of it, as others were in flight."""
    mortal = Mortal(app)

    def then(batch: Batch) -> None:
        if list(batch) == ["6a"]:
            mortal.die()
        raise Broken

    notes = Notes(then)
    worker = push(app, queue_name, notes)
    assert mortal.drain() is None
    outlive(app, clock, worker)
    notes.clear()
    notes.then = None

    counts = app.drain()

    assert {"recovered": 45, "done": 50} == counts
    assert [["6a"]] == [batch for batch in notes.ids if "6a" in batch]
    assert [-1.0] == [job.retry_count for jobs in notes.jobs for job in jobs if job.id == "6a"]


@pytest.fixture(params=[declare_threads, declare_coroutines])
def declare_beside(request: pytest.FixtureRequest) -> Declare:
    """Declares a worker whose calls run side by side."""
    declare_kind: Declare = request.param
    return declare_kind


@pytest.mark.parametrize("concurrency", [1, 3])
def test_side_by_side_batches_are_tried_at_once_too(
    app: Lowkiq, queue_name: str, declare_beside: Declare, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost their ids what an outage costs, and nothing stays in the flight of the visit."""
    flights = flights_of(monkeypatch)
    notes = Notes(raising())
    worker = declare_beside(app, queue_name, notes, batch_size=len(LETTERS), concurrency=concurrency)
    many = ids(range(10)) + [f"x{job_id}" for job_id in ids()]
    worker.push_many(jobs_of(many))

    counts = app.drain()

    assert (100, [1] * 100) == (counts["retried"], failures(app, worker, many))
    assert counts["suspected"] <= len(LETTERS) * (UNTRIED + concurrency)
    assert [{}] * len(flights) == [flight.since for flight in flights]
    assert 0 == left_behind(app, worker).get("flight", 0)


def test_p2_side_by_side_an_id_that_succeeds_ends_all_trials(
    app: Lowkiq, queue_name: str, declare_beside: Declare
) -> None:
    """P2: of two batches that are tried at once one proves no outage: each id of both runs, and none is done unrun."""
    gathering = Gathering(2)

    def then(batch: Batch) -> None:
        if list(batch) in (["2a"], ["3a"]):
            gathering(batch)
        if len(batch) > 1 or min(batch)[0] != "2":
            raise Broken

    notes = Notes(then)
    worker = declare_beside(app, queue_name, notes, batch_size=len(LETTERS), concurrency=2)
    worker.push_many(jobs_of(ids()))

    assert 5 == app.drain()["done"]
    assert [5, 5] == alone(notes)[2:4]
    assert [0] * 5 + [1] * 5 == failures(app, worker, ids(range(2, 4)))
