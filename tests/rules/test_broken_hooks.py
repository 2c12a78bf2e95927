"""Hooks and texts that break (LB-10, E-18, E-52, E-53): the bookkeeping never does."""

import asyncio
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.base.error_text import say_error
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.looks import counters, look
from tests.kit.workers import declare, jobs_of


class Unspeakable(Exception):
    """An error that cannot be put into words."""

    def __init__(self, kind: type[BaseException] = RuntimeError) -> None:
        self.kind = kind

    def __str__(self) -> str:
        raise self.kind


def interrupt(*_arguments: object) -> Any:
    """Raises what Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("answer", [-1, -0.001, math.nan, math.inf, -math.inf, 1e300, None, "15", True, [], 1j])
def test_e53_a_bad_retry_in_gets_the_default(
    app: Lowkiq, clock: ManualClock, queue_name: str, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    """E-53: what is no sensible delay is replaced by the default one, and logged."""
    worker = declare(app, queue_name, raising(), retry_in=lambda _self, _count: answer)
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 15 <= waiting.due_at - clock.time() < 45
    assert "Noting.retry_in returned" in caplog.text


@pytest.mark.parametrize("kind", [Broken, SystemExit, KeyboardInterrupt])
def test_lb10_a_retry_in_that_raises_gets_the_default(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """LB-10, E-53: the job is retried, the others of its batch are settled, the drain goes on."""

    def retry_in(_self: object, _count: int) -> float:
        raise kind

    worker = declare(app, queue_name, failing("a"), retry_in=retry_in, batch_size=2)
    worker.push_many(jobs_of("abc"))

    assert {"done": 2, "failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert 15 <= waiting.due_at - clock.time() < 45
    assert "Noting.retry_in raised: the default delay is taken" in caplog.text


@pytest.mark.parametrize("kind", [Broken, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_lb10_retries_exhausted_that_raises_changes_nothing(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """LB-10, E-18: the job is in the morgue already, the error is logged, the drain goes on."""

    def retries_exhausted(_self: object, jobs: list[Any]) -> None:
        told.extend(job.id for job in jobs)
        raise kind("in the hook")

    told: list[str] = []
    worker = declare(app, queue_name, failing("a"), max_retry_count=0, retries_exhausted=retries_exhausted)
    worker.push_many(jobs_of("ab"))

    assert {"done": 1, "failed": 1, "dead": 1} == app.drain()
    assert (["a"], None) == (told, look(app, worker, "a"))
    assert "Noting.retries_exhausted raised" in caplog.text
    assert {} == app.drain()


def test_retries_exhausted_comes_after_the_settling(app: Lowkiq, queue_name: str) -> None:
    """E-18: when the hook is called the death has been written, and what it pushes is queued."""

    def retries_exhausted(_self: object, _jobs: object) -> None:
        shard = app.core.queues.agreed(worker).shards[0]
        seen.append(app.core.backend.client.zcard(shard.key("morgue")))
        worker.push_many(jobs_of(["after"]))

    seen: list[object] = []
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, max_retry_count=0, retries_exhausted=retries_exhausted)
    worker.push_many(jobs_of("a"))

    app.drain()

    assert ([1], [["a"], ["after"]]) == (seen, notes.ids)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("by_name", [True, False])
def test_e52_an_error_that_cannot_be_formatted_is_its_type(
    make_app: MakeApp, queue_name: str, kind: type[BaseException], *, by_name: bool
) -> None:
    """E-52, LB-10, P6: an error whose text raises, whatever it raises, counts, and is kept by its type."""

    def fail(batch: Batch) -> None:
        if not by_name:
            raise Unspeakable(kind)
        batch.fail("a", Unspeakable(kind))

    app = make_app(format_error=say_error)
    worker = declare(app, queue_name, fail)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert f"Unspeakable (its message raised {kind.__name__})" == str(waiting.error).splitlines()[0]


def test_an_interruption_while_an_error_is_formatted_is_one(make_app: MakeApp, queue_name: str) -> None:
    """What comes from outside, and not out of the formatter, ends the drain, and the job counts no failure."""
    calls: list[BaseException] = []

    def format_error(error: BaseException) -> str:
        calls.append(error)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return "broken"

    app = make_app(format_error=format_error)
    worker = declare(app, queue_name, raising())
    worker.push_many(jobs_of("a"))

    with pytest.raises(KeyboardInterrupt):
        app.drain()
    assert 0 == counters(app, worker).get("retried", 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"format_error": lambda _error: 1 / 0}, "Broken: broken"),
        ({"format_error": lambda _error: None}, "None"),
        ({"format_error": lambda _error: sys.exit()}, "Broken: broken"),
        ({"format_error": interrupt}, "Broken: broken"),
        ({"dump_error": lambda _text: 1 / 0}, "broken"),
        ({"dump_error": lambda _text: "no bytes"}, "broken"),
        ({"dump_error": lambda _text: sys.exit()}, "broken"),
        ({"dump_error": interrupt}, "broken"),
    ],
)
def test_lb10_error_callables_that_break_are_passed_over(
    make_app: MakeApp, queue_name: str, settings: dict[str, Any], expected: str
) -> None:
    """LB-10: format_error and dump_error may raise or return anything: the failure is counted, with a text."""
    app = make_app(**settings)
    worker = declare(app, queue_name, raising())
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert expected == waiting.error


def test_lb10_load_error_that_raises_harms_nobody(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-10: an error's text that cannot be read does not keep a job from being performed or dead."""

    def load_error(_dumped: bytes) -> str:
        raise Broken("load_error")

    app = make_app(load_error=load_error)
    ran: list[str] = []

    def ask_and_fail(batch: Batch) -> None:
        ran.append(str(batch.job("a").error))
        raise Broken

    exhausted: list[object] = []
    worker = declare(
        app, queue_name, ask_and_fail, max_retry_count=1, retries_exhausted=lambda _self, jobs: exhausted.extend(jobs)
    )
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(10)

    assert {"failed": 1, "dead": 1} == app.drain()
    assert (2, 1) == (len(ran), len(exhausted))


@pytest.mark.parametrize("load_error", [lambda _dumped: None, lambda dumped: dumped], ids=["nothing", "bytes"])
def test_p6_lb10_load_error_that_returns_no_text_stops_no_shard(
    make_app: MakeApp, queue_name: str, load_error: Callable[[bytes], Any]
) -> None:
    """LB-10: the failure that a group of suspects shares is counted for all of them, whatever can be read of it."""
    app, ten = make_app(load_error=load_error), "abcdefghij"
    worker = declare(app, queue_name, raising(Broken("the database is down")), batch_size=10)
    worker.push_many(jobs_of(ten))

    assert {"suspected": 10, "failed": 10, "retried": 10} == app.drain()


def test_e52_error_texts_are_cut(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-52, LB-23: of an endless message the beginning and the end are kept, so many characters in all."""
    monkeypatch.setattr("lowkiq_lambda.engine.failure.LONGEST_TEXT", 100)
    worker = declare(app, queue_name, raising(Broken("день" * 1_000_000 + " at last")))
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert "день" * 9 + " [of 4,000,008 characters] " + "ь" + "день" * 7 + " at last" == waiting.error


@pytest.mark.parametrize("text", ["\ud800 lone", "\x00", "", "a\nb"])
def test_e52_error_texts_of_any_characters(app: Lowkiq, queue_name: str, text: str) -> None:
    """E-52: lone surrogates, NUL or nothing at all are no reason to lose a failure."""
    worker = declare(app, queue_name, lambda batch: batch.fail("a", text))
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()


def test_a_worker_that_cannot_be_made_fails_its_batches(app: Lowkiq, queue_name: str) -> None:
    """A constructor that raises is a failure of the batch, not of the drain."""

    def broken_init(_self: object) -> None:
        raise Broken("no worker")

    worker = declare(app, queue_name, Notes(), __init__=broken_init)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
