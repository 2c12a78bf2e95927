"""Duties that ask to be run again sooner than in a period."""

from itertools import pairwise

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.declare.duty import RunAgain
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.duties import Noted, record_of, run_due, runs_of, with_queue


def test_the_duty_of_schedules_has_its_name_alone(app: Lowkiq) -> None:
    """What it returns is read by ticks."""
    with pytest.raises(DeclarationError, match="is that of the duty which fires schedule entries"):
        app.add_duty(Noted("schedules"))


def test_a_run_may_ask_for_the_next_one(app: Lowkiq, clock: ManualClock) -> None:
    """It comes then, neither sooner nor later; without such a wish the period counts again."""
    wishes: list[float | None] = [5.0, 7.0, None, 5.0]
    duty = Noted(act=lambda: RunAgain("result", wishes.pop(0) if wishes else None))
    app.add_duty(duty)
    seen = runs_of(app, duty, clock, 180)
    assert [5.0, 7.0, 54.0, 5.0, 54.0] == [later - earlier for earlier, later in pairwise(seen)][:5]


def test_what_it_returns_beside_is_its_result(app: Lowkiq) -> None:
    """And the next look says when it is due."""
    app.add_duty(Noted(act=lambda: RunAgain({"done": 1}, 5.0)))
    assert {"sweep": {"done": 1}} == run_due(app).results
    assert 5.0 == run_due(app).next_in


def test_a_wish_beyond_the_period_changes_nothing(app: Lowkiq, clock: ManualClock) -> None:
    """A duty is run in each period."""
    duty = Noted(act=lambda: RunAgain(None, 3_600.0))
    app.add_duty(duty)
    assert [0.0, 54.0] == runs_of(app, duty, clock, 60)


def test_a_run_that_fails_wishes_for_nothing(app: Lowkiq, clock: ManualClock) -> None:
    """What the run before had asked for is over."""

    def fail() -> None:
        raise ValueError("is broken")

    duty = Noted(act=lambda: RunAgain(None, 5.0))
    app.add_duty(duty)
    run_due(app)
    assert b"sweep:next" in record_of(app)
    duty.act = fail
    clock.advance(5.0)
    run_due(app)
    assert b"sweep:next" not in record_of(app)
    assert 60.0 == run_due(app).next_in


def test_another_process_learns_of_the_wish(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """It comes in time too: nobody depends on the process that ran it last."""
    apps = [with_queue(make_app(), queue_name) for _ in range(2)]
    duties = [Noted(act=lambda: RunAgain(None, 5.0)) for _ in apps]
    for app, duty in zip(apps, duties, strict=True):
        app.add_duty(duty)
    run_due(apps[0])
    assert 5.0 == run_due(apps[1]).next_in
    clock.advance(5.0)
    assert (["sweep"], []) == ([*run_due(apps[1]).results], [*run_due(apps[0]).results])
