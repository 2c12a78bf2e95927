"""Pushes that are stored only if their id has no work: when an id has work, and what becomes of the push."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lowkiq_lambda import Conflict, Lowkiq, Pushed
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import failing, raising
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import left_behind, look
from tests.kit.unique import Case, WatchingPushes

DAY = 86_400


@pytest.fixture
def case(app: Lowkiq, clock: ManualClock, queue_name: str) -> Case:
    """An id of its own queue."""
    return Case(app, clock, queue_name)


def waits(case: Case) -> None:
    """It is due later."""
    case.push("old", delay=60)


def waits_for_its_retry(case: Case) -> None:
    """It has failed once."""
    case.notes.then = failing("7")
    case.push("old")
    case.app.drain()


def is_paused(case: Case) -> None:
    """An operator has paused it."""
    case.push("old")
    case.app.operate(case.worker).pause_jobs([7])


@pytest.mark.parametrize("unless", ["waiting", "busy"])
@pytest.mark.parametrize("state", [waits, waits_for_its_retry, is_paused])
def test_a_push_meets_an_id_that_waits(case: Case, state: Callable[[Case], None], unless: str) -> None:
    """It is dropped, says why, and tells when the id is due; what waits is as it was."""
    state(case)
    before = look(case.app, case.worker, "7")

    pushed = case.push(unless=unless)

    assert ("waiting", False, before and before.due_at) == (pushed.dropped, pushed.merged, pushed.due_at)
    assert before == look(case.app, case.worker, "7")


@pytest.mark.parametrize(("unless", "reason", "ran"), [("waiting", "", ["old", "new"]), ("busy", "running", ["old"])])
def test_a_push_meets_an_id_that_runs(case: Case, unless: str, reason: str, ran: list[str]) -> None:
    """Only `busy` drops it; what is stored runs after it."""
    pushed = case.while_running(lambda: case.push(unless=unless))
    case.app.drain()

    assert reason == pushed.dropped
    assert ran == case.ran
    assert {} == left_behind(case.app, case.worker)


@pytest.mark.parametrize("unless", ["waiting", "busy"])
def test_a_push_meets_an_id_that_runs_while_another_payload_waits(case: Case, unless: str) -> None:
    """Either is a conflict."""

    def push_two() -> Pushed:
        case.push("second")
        return case.push(unless=unless)

    pushed = case.while_running(push_two)

    assert {"waiting": "waiting", "busy": "running"}[unless] == pushed.dropped


def test_a_dropped_job_has_the_time_that_its_call_leaves(case: Case) -> None:
    """Two jobs of one call: the first meets the id in flight, and the second is stored for a later time."""
    due_at = case.clock.time() + 7.0
    jobs = [{"id": 7, "payload": "first", "unless": "busy"}, {"id": 7, "payload": "second", "due_at": due_at}]

    first, second = case.while_running(lambda: case.worker.push_many(jobs))

    assert ("running", due_at) == (first.dropped, first.due_at)
    assert ("", due_at) == (second.dropped, second.due_at)
    assert ["second"] == case.waiting


def is_in_the_morgue(case: Case) -> None:
    """It has failed for the last time."""
    case.notes.then = raising()
    for _ in range(2):
        case.push("old")
        case.app.drain()
        case.clock.advance(DAY)
        case.app.drain()
    case.notes.then = None


def is_done(case: Case) -> None:
    """It has run."""
    case.push("old")
    case.app.drain()


def was_cancelled(case: Case) -> None:
    """An operator has ended it."""
    case.push("old")
    case.app.operate(case.worker).cancel([7])


def has_expired(case: Case) -> None:
    """What waits is over, and nobody has looked yet; nor after that."""
    case.push("old", expires_in=10, delay=20)
    case.clock.advance(60)


@pytest.mark.parametrize("unless", ["waiting", "busy"])
@pytest.mark.parametrize("state", [is_in_the_morgue, is_done, was_cancelled, has_expired])
def test_no_conflict_with_an_id_without_work(
    app: Lowkiq, clock: ManualClock, queue_name: str, state: Callable[[Case], None], unless: str
) -> None:
    """The push is stored, and runs."""
    case = Case(app, clock, queue_name, max_retry_count=0)
    state(case)
    case.notes.clear()

    pushed = case.push(unless=unless)
    app.drain()

    assert ("", [{"7": ["new"]}]) == (pushed.dropped, case.notes.batches)


def test_one_payload_that_is_not_over_is_work(case: Case) -> None:
    """An id is over only with all of its payloads."""
    case.push("old", expires_in=10, delay=20)
    case.push("other")
    case.clock.advance(60)

    assert "waiting" == case.push(unless="waiting").dropped


def test_of_two_pushes_in_one_call_the_second_meets_the_first(case: Case) -> None:
    """Also where what waited is over."""
    has_expired(case)

    pushed = case.worker.push_many([{"id": 7, "payload": n, "unless": "waiting"} for n in range(2)])
    case.app.drain()

    assert ["", "waiting"] == [one.dropped for one in pushed]
    assert [{"7": [0]}] == case.notes.batches


def test_a_blocked_id_waits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nothing runs for it, and nothing is stored: an operator has to look at it."""
    case = Case(app, clock, queue_name, max_retry_count=0, dead_head="block")
    waits_for_its_retry(case)

    assert "waiting" == case.push(unless="busy").dropped


def test_an_id_in_the_hands_of_a_dead_holder_is_busy(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Until it is recovered, and while it waits then; the payload that was there runs."""
    case = Case(app, clock, queue_name)
    mortal = Mortal(app)
    case.notes.then = mortal.die
    case.push("old")
    mortal.drain()
    case.notes.then = None
    dropped = [case.push(unless="busy").dropped]
    outlive(app, clock, case.worker)
    app.drain()

    assert (["running"], ["old", "old"]) == (dropped, [batch["7"][0] for batch in case.notes.batches])
    assert "" == case.push(unless="busy").dropped


def test_a_started_job_waits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It has begun, and goes on: a push is dropped; one that replaces says that it would lose the cursor."""

    def stop(_job: object, item: int) -> None:
        if item == 2 and len(items.runs) == 1:
            raise RuntimeError("once")

    items = Items(4, stop)
    worker = declare_items(app, queue_name, items)
    worker.push(7)
    app.drain()

    dropped = [worker.push(7, "new", unless="waiting"), worker.push(7, "new", on_conflict="replace")]
    clock.advance(60)
    app.drain()

    assert (["waiting", "cursor"], [0, 1, 2, 3]) == ([one.dropped for one in dropped], items.of("7"))


def test_a_conflict_may_raise(case: Case) -> None:
    """After the call: the other jobs are written, and the error names both."""
    waits(case)
    jobs = [{"id": id_, "payload": "new"} for id_ in (6, 7, 8, 7)]

    with pytest.raises(Conflict) as caught:
        case.worker.push_many([{**job, "unless": "waiting", "on_conflict": "raise"} for job in jobs])

    assert ([1, 3], [0, 2]) == (caught.value.positions, caught.value.written)
    assert ["", "waiting", "", "waiting"] == [one.dropped for one in caught.value.results]
    assert ["new", None] == [look(case.app, case.worker, "6").payloads[0][0], look(case.app, case.worker, "9")]  # type: ignore[union-attr]  # it waits
    assert ["old"] == case.waiting


def test_a_conflict_may_call_a_function(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """With the job and its result, after the call; if it raises, that is logged, and the push has its results."""
    calls: list[tuple[object, str]] = []

    def note(job: Mapping[str, Any], pushed: Pushed) -> None:
        calls.append((job["payload"], pushed.dropped))
        raise RuntimeError("no")

    waits(case)
    pushed = case.push(unless="busy", on_conflict=note)

    assert ("waiting", [("new", "waiting")]) == (pushed.dropped, calls)
    assert "a function that a conflict calls raised" in caplog.text


@pytest.mark.parametrize("on_conflict", ["drop", "raise"])
def test_u7_observers_see_conflicts(case: Case, on_conflict: str) -> None:
    """U-7: an observer with a method `conflict` is called for each push that was dropped."""
    watching = WatchingPushes()
    case.app.observers.append(watching)
    waits(case)
    try:
        case.push(unless="waiting", on_conflict=on_conflict)
    except Conflict:
        assert "raise" == on_conflict
    case.push(unless="waiting", on_conflict="replace")

    assert [(case.worker.queue_name, 7, "waiting")] == watching.conflicts


def test_a_dropped_push_leaves_nothing(case: Case) -> None:
    """No receipt of its key, no header, no expiry: the next push with its key is stored."""
    waits(case)
    options: dict[str, Any] = {"key": "k", "headers": {"a": "b"}, "expires_in": 600, "unless": "waiting"}
    dropped = case.push(**options)
    case.clock.advance(61)
    case.app.drain()

    stored = case.push(**options)
    again = case.push(**options)

    assert ("waiting", False) == (dropped.dropped, dropped.repeated)
    assert [("", False), ("", True)] == [(one.dropped, one.repeated) for one in (stored, again)]


def test_payloads_that_follow_a_dead_head_are_no_work(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """They go to the morgue chunk by chunk: a push that comes before the last of them is stored, and runs."""
    case = Case(app, clock, queue_name, max_retry_count=0, dead_head="drop", merge="never", payloads_at_once=1)
    mortal = Mortal(app)
    case.notes.then = failing("7")
    case.worker.push_many([{"id": 7, "payload": "old"} for _ in range(2_500)])
    settlings = iter((False, True))
    mortal.dies_before = lambda name: name == "settle" and next(settlings)
    mortal.drain()
    case.notes.then = None

    pushed = case.push(unless="waiting")
    outlive(app, clock, case.worker)
    app.drain()

    assert ("", ["old", "new"]) == (pushed.dropped, case.ran)
    assert 1 == app.operate(case.worker).morgue.count()
    assert {} == left_behind(app, case.worker)
