"""The parts of a rule by error: its condition, its delay, its bound, and what it makes of groups (SK-5, D-4)."""

import logging
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from lowkiq_lambda import KILL, Lowkiq, discard_on, kill_on, retry_on
from lowkiq_lambda.testing import AppUnderTest, ManualClock
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


def no_such(error: Any) -> object:
    """What no error has."""
    return error.no_such


class LostParcel(Broken):
    """A special one."""


def test_sk5_a_when_that_raises_does_not_decide(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SK-5: it is logged with its rule, and the next rule is asked."""

    class Liar:
        """What has no truth."""

        def __bool__(self) -> bool:
            raise KeyError("neither")

    rules = (
        discard_on(Broken, when=no_such),
        kill_on(Broken, when=lambda _error: Liar()),
        retry_on(Broken, delay=3),
    )
    worker = declare(app, queue_name, raising(), on_error=rules)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 3 == waiting.due_at - clock.time()
    lines = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert [
        "Noting: when of discard_on(Broken, when=no_such) raised: the rule does not decide",
        "Noting: when of kill_on(Broken, when=...) raised: the rule does not decide",
    ] == lines


DELAYS: dict[str, tuple[Any, float | None]] = {
    "seconds": (8, 8),
    "parts of a second": (8.5, 8.5),
    "a timedelta": (timedelta(minutes=2), 120),
    "a function of the count": (lambda retry_count: 4 + retry_count, 4),
    "a function of both": (lambda retry_count, error: retry_count + len(error.args), 1),
    "a function with a timedelta": (lambda _retry_count: timedelta(hours=1), 3_600),
    "a function with a keyword": (lambda _retry_count, *, base=6: base, 6),
    "a partial": (partial(lambda base, _retry_count: base, 9), 9),
    "none: retry_in": (None, 10),
    "no delay": (lambda _retry_count: "soon", None),
    "a constant": (lambda _retry_count: KILL, None),
    "one that raises": (lambda _retry_count, error: error.no_such, None),
}


@pytest.mark.parametrize("form", DELAYS)
def test_sk5_forms_of_a_delay(app: Lowkiq, clock: ManualClock, queue_name: str, form: str) -> None:
    """SK-5: seconds, a timedelta or a function; without one, or where it breaks, what there is without a rule."""
    delay, seconds = DELAYS[form]
    worker = declare(app, queue_name, raising(), on_error=(retry_on(Broken, delay=delay),))
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    waits = waiting.due_at - clock.time()
    assert waits == pytest.approx(seconds) if seconds else 15 <= waits < 45


@pytest.mark.parametrize(
    ("most", "max_retry_count", "ends"), [(0, 25, (1, "rule")), (2, 25, (3, "rule")), (2, 1, (2, "retries"))]
)
def test_sk5_the_smaller_number_of_retries_counts(
    lowkiq: AppUnderTest, most: int, max_retry_count: int, ends: tuple[int, str]
) -> None:
    """SK-5, D-4: `most` of a rule, or that of the worker."""
    notes = Notes(raising())
    rules = (retry_on(Broken, delay=1, most=most),)
    worker = declare(lowkiq.app, "orders", notes, on_error=rules, max_retry_count=max_retry_count)
    worker.push_many(jobs_of("a"))

    for _ in range(5):
        lowkiq.drain(raises=False)
        lowkiq.advance(seconds=1)

    runs, why = ends
    assert (runs, [why]) == (len(notes.batches), [dead.why for dead in notes.dead])


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (ExceptionGroup("of one kind", [LostParcel(), LostParcel()]), "dead"),
        (ExceptionGroup("nested", [LostParcel(), ExceptionGroup("inner", [LostParcel()])]), "dead"),
        (ExceptionGroup("of two rules", [LostParcel(), KeyError("a")]), "retried"),
        (ExceptionGroup("with another", [LostParcel(), ValueError("no")]), "retried"),
        (ExceptionGroup("of the last rule", [KeyError("a"), IndexError("b")]), "rejected"),
        (BaseExceptionGroup("not only errors", [KeyError("a"), GeneratorExit()]), "retried"),
    ],
)
def test_sk5_all_leaves_of_a_group_must_fit_the_same_rule(
    app: Lowkiq, queue_name: str, error: BaseException, fate: str
) -> None:
    """SK-5: else no rule decides."""
    rules = (kill_on(LostParcel), discard_on(KeyError, IndexError))
    worker = declare(app, queue_name, lambda batch: batch.fail("a", error), on_error=rules)
    worker.push_many(jobs_of("a"))

    assert 1 == app.drain()[fate]


def test_a_rule_may_be_of_the_group_itself(app: Lowkiq, queue_name: str) -> None:
    """Then its leaves are nothing to it; `when` sees the group."""
    rules = (kill_on(ExceptionGroup, when=lambda group: len(group.exceptions) == 2),)
    worker = declare(app, queue_name, raising(ExceptionGroup("two", [LostParcel(), KeyError("a")])), on_error=rules)
    worker.push_many(jobs_of("a"))

    assert 1 == app.drain()["dead"]


def test_a_rule_has_a_name_of_bounded_length() -> None:
    """Redis keeps it with each failure."""
    many = [type(f"Error{n}", (Exception,), {}) for n in range(50)]

    assert len(kill_on(*many).name) <= 100
    assert "retry_on(Broken, when=has_arguments, most=3)" == repr(retry_on(Broken, when=has_arguments, most=3))


def has_arguments(error: Broken) -> bool:
    """A condition with a name."""
    return bool(error.args)
