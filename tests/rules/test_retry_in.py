"""The forms of retry_in: with the count alone, or with the error; and KILL and DISCARD (L-38, LB-10, SK-5)."""

from functools import partial
from typing import Any

import pytest

from lowkiq_lambda import DISCARD, KILL, Batch, DeclarationError, Lowkiq, PastError, Worker
from lowkiq_lambda.base.error_text import say_error
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of


class CalledWithBoth:
    """A callable object that takes the error."""

    def __call__(self, _retry_count: int, error: object) -> float:
        """The delay."""
        return 7 if isinstance(error, Broken) else 1


class CalledWithCount:
    """A callable object that does not."""

    def __call__(self, _retry_count: int) -> float:
        """The delay."""
        return 7


def by_error(_retry_count: int, error: object) -> float:
    """A function of both."""
    return 7 if isinstance(error, Broken) else 1


def with_base(_base: float, _retry_count: int, error: object) -> float:
    """A function of both, behind something else."""
    return 7 if isinstance(error, Broken) else 1


class Mixin:
    """A class with a method of both."""

    def retry_in(self, _retry_count: int, error: object) -> float:
        """As above."""
        return 7 if isinstance(error, Broken) else 1

    @classmethod
    def of_class(cls, _retry_count: int, error: object) -> float:
        """As above."""
        return 7 if isinstance(error, Broken) else 1


FORMS: dict[str, Any] = {
    "the count": lambda _self, _retry_count: 7,
    "the count and the error": lambda _self, _retry_count, _error: 7,
    "an error with a default": lambda _self, _retry_count, error=None: 7 if isinstance(error, Broken) else 1,
    "something else with a default": lambda _self, _retry_count, base=7: base,
    "a keyword with a default": lambda _self, _retry_count, *, base=7: base,
    "any arguments": lambda _self, *arguments: 7 if isinstance(arguments[1], Broken) else 1,
    "a static method of both": staticmethod(by_error),
    "a static method of the count": staticmethod(lambda _retry_count: 7),
    "a static partial": staticmethod(partial(with_base, 3.0)),
    "another class's method": Mixin.retry_in,
    "a bound method": Mixin().retry_in,
    "a class method": vars(Mixin)["of_class"],
    "a callable object of both": CalledWithBoth(),
    "a callable object of the count": CalledWithCount(),
    "a static callable object": staticmethod(CalledWithBoth()),
}


@pytest.mark.parametrize("form", FORMS)
def test_l38_retry_in_may_take_the_error(app: Lowkiq, clock: ManualClock, queue_name: str, form: str) -> None:
    """L-38, SK-5: a second argument is for the error, but one with a default only if that is its name."""
    worker = declare(app, queue_name, raising(), retry_in=FORMS[form])
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 7 == waiting.due_at - clock.time()


OF_FUNCTIONS: dict[str, Any] = {
    "both": by_error,
    "the count": lambda _retry_count: 7,
    "a partial": partial(with_base, 3.0),
    "a callable object": CalledWithBoth(),
    "a bound method": Mixin().retry_in,
    "an error with a default": lambda _retry_count, error=None: 7 if error else 1,
}


@pytest.mark.parametrize("form", OF_FUNCTIONS)
def test_l38_retry_in_of_a_function(app: Lowkiq, clock: ManualClock, queue_name: str, form: str) -> None:
    """L-38: as an option, in the same forms."""

    @app.worker(queue_name=queue_name, shards_count=1, retry_in=OF_FUNCTIONS[form])
    def work(_batch: Batch) -> None:
        raise Broken

    work.push("a")
    app.drain()

    waiting = look(app, work.worker, "a")
    assert waiting is not None
    assert 7 == waiting.due_at - clock.time()


@pytest.mark.parametrize(
    "retry_in",
    [lambda _self: 7, lambda _self, _count, _error, _more: 7, lambda _self, _count, *, error: error],
    ids=["too few", "too many", "a keyword"],
)
def test_a_retry_in_of_neither_form_is_refused(app: Lowkiq, queue_name: str, retry_in: Any) -> None:
    """LB-10: it would fail each time."""
    with pytest.raises(
        DeclarationError, match=r"Noting.retry_in\(.*\) cannot be called as retry_in\(self, retry_count"
    ):
        declare(app, queue_name, Notes(), retry_in=retry_in)


@pytest.mark.parametrize(("answer", "counts"), [(KILL, {"dead": 1, "failed": 1}), (DISCARD, {"discarded": 1})])
def test_sk5_retry_in_kills_and_discards(app: Lowkiq, queue_name: str, answer: float, counts: dict[str, int]) -> None:
    """SK-5: by two constants, and nothing else; people see who decided."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, retry_in=lambda _self, _count, _error: answer)
    worker.push_many(jobs_of("a", payload="v"))

    drained = app.drain()

    assert counts == {name: drained[name] for name in counts}
    assert (1, {}) == (len(notes.batches), left_behind(app, worker))
    if answer is KILL:
        (job,) = app.operate(worker).morgue.fetch(["a"])
        assert ["retry_in: KILL"] == [failure.rule for failure in job.failures]
        assert ["rule"] == [dead.why for dead in notes.dead]
    else:
        (event,) = app.operate(worker).biography("a").events
        assert "retry_in: DISCARD" == event.rule


@pytest.mark.parametrize("answer", ["kill", "DISCARD", KILL + 1])
def test_e53_what_is_like_a_constant_is_none(
    app: Lowkiq, clock: ManualClock, queue_name: str, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    """E-53: it gets the default delay, and a line of the log."""
    worker = declare(app, queue_name, raising(), retry_in=lambda _self, _count, _error: answer)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 15 <= waiting.due_at - clock.time() < 45
    assert "Noting.retry_in returned" in caplog.text


def test_retry_in_sees_a_text_as_it_was_given(app: Lowkiq, queue_name: str) -> None:
    """Of `batch.fail(id, "text")`."""
    errors: list[object] = []

    def retry_in(_self: Worker, _count: int, error: object) -> float:
        errors.append(error)
        return 1

    worker = declare(app, queue_name, failing("a"), retry_in=retry_in)
    worker.push_many(jobs_of("a"))
    app.drain()

    assert ["a is broken"] == errors


@pytest.mark.parametrize("answer", [5.0, KILL, DISCARD])
def test_p7_retry_in_sees_a_past_error_of_what_did_not_run(
    make_app: MakeApp, clock: ManualClock, queue_name: str, answer: float
) -> None:
    """P7: its type and its text; what it says about killing and discarding does not count then."""
    app, errors = make_app(format_error=say_error), list[object]()

    def retry_in(_self: Worker, _count: int, error: object) -> float:
        errors.append(error)
        return answer if isinstance(error, PastError) else 1

    worker = declare(app, queue_name, raising(Broken("no luck")), batch_size=5, retry_in=retry_in)
    worker.push_many(jobs_of("abcde"))

    assert {"suspected": 5, "failed": 5, "retried": 5} == app.drain()
    past = [error for error in errors if isinstance(error, PastError)]
    assert [("Broken", True)] * 2 == [(each.type_name, "no luck" in each.text) for each in past]
    delays = [waiting.due_at - clock.time() for waiting in (look(app, worker, job_id) for job_id in "abcde") if waiting]
    assert [1, 1, 1] == delays[:3]
    assert all(delay == 5 if answer == 5.0 else 15 <= delay < 45 for delay in delays[3:])
