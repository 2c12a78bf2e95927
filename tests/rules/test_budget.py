"""P5: the budget holds."""

import logging

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of


def taking(clock: ManualClock, seconds: float) -> Notes:
    """A handler that takes that long."""
    return Notes(lambda _batch: clock.advance(seconds))


def test_p5_nothing_starts_that_is_not_predicted_to_fit(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: batches of 3 s in a budget of 10 s: three start, and the drain is over in time, its lease released."""
    notes = taking(clock, 3)
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("abcdefgh"))
    started = clock.time()

    counts = app.drain(seconds=10)

    assert (3, 9) == (counts["done"], clock.time() - started)
    assert 0 == app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("lease"))
    assert {"due": 5, "jobs": 5} == left_behind(app, worker)


def test_p5_a_cold_start_knows_how_long_batches_take(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P5: the prediction is kept in Redis, so that a new process does not start what will not fit."""
    first, second = make_app(), make_app()
    worker = declare(first, queue_name, taking(clock, 3), batch_size=2)
    worker.push_many(jobs_of("abcdefgh"))
    first.drain(seconds=4)
    notes = taking(clock, 3)
    declare(second, queue_name, notes, batch_size=2)

    second.drain(seconds=5)

    assert [["c", "d"]] == notes.ids


def test_p5_a_wrong_prediction_silences_no_shard(
    make_app: MakeApp, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P5: a drain that has run nothing may start one id though it is not predicted to fit, with a warning."""
    first, second = make_app(), make_app()
    worker = declare(first, queue_name, taking(clock, 20), batch_size=2)
    worker.push_many(jobs_of("abcdefgh"))
    first.drain(seconds=25)
    notes = taking(clock, 1)
    declare(second, queue_name, notes, batch_size=2)
    with caplog.at_level(logging.WARNING):
        second.drain(seconds=5)

    assert [["c"]] == notes.ids
    assert "a batch takes 20.0 s by experience and 5.0 s are left: one id is tried" in caplog.text


def test_p5_other_queues_are_not_held_back(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: where a batch of one queue does not fit any more, one of a faster queue still may."""
    slow, fast = taking(clock, 4), taking(clock, 1)
    for name, notes in (("slow", slow), ("fast", fast)):
        worker = declare(app, f"{queue_name}-{name}", notes)
        worker.push_many(jobs_of("abcdefgh", due_at=clock.time() - (name == "slow")))

    app.drain(seconds=10)

    assert (2, 1) == (len(slow.batches), len(fast.batches))


@pytest.mark.parametrize("seconds", [0, -1])
def test_p5_without_time_nothing_is_claimed(app: Lowkiq, queue_name: str, seconds: float) -> None:
    """E-30: when there is no time at the start, the drain ends without having touched anything."""
    notes = Notes()
    declare(app, queue_name, notes).push_many(jobs_of("a"))

    assert ({}, []) == (app.drain(seconds=seconds), notes.batches)


def test_p5_work_is_acknowledged_within_the_interval(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P5, E-15: in a claim whose handlers slow down what is finished is settled in parts: a crash repeats little."""
    app = make_app(settle_interval=0.05)
    processed: list[int] = []

    def slow_down(_batch: Batch) -> None:
        clock.advance(0.0001 if len(processed) < 50 else 0.03)
        processed.append(app.operate.metrics()[queue_name].done)

    worker = declare(app, queue_name, slow_down)
    worker.push_many(jobs_of([str(n) for n in range(150)]))
    app.drain()

    unacknowledged = [started - done for started, done in enumerate(processed)]
    assert max(unacknowledged[52:]) <= 2


def test_d7_a_drain_without_seconds_has_a_limit(app: Lowkiq, queue_name: str) -> None:
    """D-7: nobody has to set a limit for there to be one: five minutes (the daemon's and Lambda's are theirs)."""
    seen: list[float] = []
    worker = declare(app, queue_name, lambda batch: seen.append(batch.remaining))
    worker.push_many(jobs_of("a"))

    app.drain()

    assert [300.0] == seen


def test_p5_one_id_is_tried_on_a_budget_that_several_visits_share(clock: ManualClock) -> None:
    """P5: whichever asks first has the one try, and none has it once something was started."""
    budget, started = Budget(clock, 5.0), Budget(clock, 5.0)
    started.note_batch()
    visits = [budget.for_turn(bool), budget.for_turn(bool), started.for_turn(bool)]

    assert [True, False, False] == [visit.try_one() for visit in visits]
