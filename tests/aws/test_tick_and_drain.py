"""A tick and the drain behind it, in one invocation: what a stack's schedule asks for each minute."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws import fan_out, ticking
from lowkiq_lambda.aws.drain_function import DrainFailed
from lowkiq_lambda.aws.events import BadEvent
from lowkiq_lambda.aws.tick import HousekeepingFailed
from tests.aws.functions import DrainFunction, overdue
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.duties import Noted
from tests.kit.handlers import Notes
from tests.kit.workers import declare, shard_of

BOTH = {"tick": True}
MANY = [str(number) for number in range(200)]


@pytest.fixture
def invocations(monkeypatch: pytest.MonkeyPatch) -> Invocations:
    """What was invoked, in place of Lambda's API."""
    invocations = Invocations()
    monkeypatch.setattr(fan_out, "shared_invoker", lambda: invocations)
    return invocations


def ticking_app(make_app: MakeApp, drain: DrainFunction, **settings: object) -> Lowkiq:
    """An app that the function finds."""
    app = make_app(threads_per_node=2)
    drain.install(app, **settings)
    return app


def test_jobs_that_a_tick_brings_are_done_behind_it(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """The tick comes first; what it did is told with the drain."""
    app = ticking_app(make_app, drain)
    worker = declare(app, queue_name, notes := Notes())
    app.add_duty(Noted(act=lambda: [one.merged for one in worker.push_many(overdue("a"))]))

    told = drain(BOTH)

    assert ({"sweep": [False]}, {"done": 1}) == (told["tick"]["duties"], told["counts"])
    assert ["a"] == [job_id for batch in notes.batches for job_id in batch]


def test_an_idle_minute_is_one_line_of_log(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Whatever an app has declared."""
    app = ticking_app(make_app, drain)
    for number in range(3):
        declare(app, f"{queue_name}-{number}", Notes())
    drain(BOTH)
    before = len(drain.logs)

    drain(BOTH)

    (line,) = drain.logs[before:]
    assert ("drained", "empty", {"queues"}) == (line["message"], line["reason"], line["tick"].keys())


@pytest.mark.parametrize("said", ["yes", 1, None, "Only"])
def test_a_tick_is_asked_for_in_so_many_words(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, said: Any
) -> None:
    """Else nothing is done, as with any other event that is not understood."""
    declare(ticking_app(make_app, drain), queue_name, notes := Notes()).push_many(overdue("a"))

    with pytest.raises(BadEvent, match="tick must be true, false or 'only'"):
        drain({"tick": said})
    with pytest.raises(BadEvent, match="did you mean 'tick'"):
        drain({"Tick": True})
    assert [] == notes.batches


def test_a_target_is_checked_before_the_tick(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """An event that names no queue does nothing at all."""
    app = ticking_app(make_app, drain)
    declare(app, queue_name, Notes())
    app.add_duty(duty := Noted())

    with pytest.raises(BadEvent, match="queue 'other' is unknown"):
        drain({**BOTH, "queue": "other"})
    assert [] == duty.runs


def test_a_tick_that_fails_keeps_no_job_waiting(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Its error is that of the invocation, behind the drain."""
    app = ticking_app(make_app, drain)
    declare(app, queue_name, notes := Notes()).push_many(overdue("a"))
    app.add_duty(Noted("broken", act=failing))

    with pytest.raises(HousekeepingFailed, match="The duty 'broken' failed: ValueError: is broken"):
        drain(BOTH)
    assert 1 == len(notes.batches)


def test_both_are_told_where_both_fail(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Nobody looks for the second cause when the first is mended."""
    app = ticking_app(make_app, drain)
    declare(app, queue_name, leave).push_many(overdue("a"))
    app.add_duty(Noted("broken", act=failing))

    with pytest.raises(DrainFailed, match=r"Handlers exited.*The duty 'broken' failed"):
        drain(BOTH)


def test_only_what_cannot_begin_at_once_is_handed_over(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, invocations: Invocations
) -> None:
    """As many shards as are visited at once are drained here, the others each by an invocation of its own."""
    app = ticking_app(make_app, drain, idle="start")
    worker = declare(app, queue_name, notes := Notes(), shards_count=6)
    worker.push_many(overdue(MANY))

    told = drain(BOTH)

    assert ({"due": 6, "started": 4}, 4) == (told["tick"]["drains"], len(invocations.accepted))
    handed = {event["shard"] for event in invocations.events}
    done = {shard_of(app, worker, job_id).index for batch in notes.batches for job_id in batch}
    assert set(range(6)) - handed == done


def test_a_minute_with_little_to_do_hands_nothing_over(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, invocations: Invocations
) -> None:
    """No invocation more is paid for."""
    app = ticking_app(make_app, drain, idle="start")
    declare(app, queue_name, notes := Notes(), shards_count=2).push_many(overdue(MANY))

    told = drain(BOTH)

    assert ({"due": 2, "started": 0}, []) == (told["tick"]["drains"], invocations.accepted)
    assert 200 == told["counts"]["done"] == sum(len(batch) for batch in notes.batches)


def test_a_tick_has_a_minute_however_long_the_drain_may_be(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """A duty is told of half of the tick's time, less the reserve, and not of half of a quarter of an hour."""
    app = ticking_app(make_app, drain)
    declare(app, queue_name, Notes())
    app.add_duty(duty := Noted(every=3_600.0))

    drain(BOTH, seconds=900.0)

    assert [pytest.approx((ticking.TIME - 3.0) / 2, abs=1.0)] == duty.runs


def failing() -> None:
    """Raise."""
    raise ValueError("is broken")


def leave(_batch: object) -> None:
    """Exit."""
    raise SystemExit(3)
