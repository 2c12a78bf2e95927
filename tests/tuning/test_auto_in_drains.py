"""Numbers that holders find, with handlers that wait, compute and fail, on a real server in real time."""

from collections.abc import Callable, Iterator
from threading import Event
from time import thread_time
from typing import Any

import pytest

from lowkiq_lambda import Auto, Batch, Config, DeclarationError, Lowkiq, Worker
from lowkiq_lambda.cli import main
from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.operate.inspect.tuned import Tuned, calls_now, read_tuned
from tests.kit.apps import close_app, closing_app
from tests.kit.workers import declare, jobs_of

NEVER = Event()
WAIT = 0.01
"""Seconds of a handler that waits."""


@pytest.fixture
def app(server_url: str) -> Iterator[Lowkiq]:
    """An app in real time."""
    app = Lowkiq(Config(redis_url=server_url))
    yield app
    close_app(app)


def waits(_batch: Batch) -> None:
    """As for a service."""
    NEVER.wait(WAIT)


def computes(_batch: Batch) -> None:
    """As long, and a processor works."""
    ends_at = thread_time() + WAIT
    while thread_time() < ends_at:
        pass


def drained(app: Lowkiq, name: str, handler: Callable[[Batch], object], count: int, **fields: Any) -> type[Worker]:
    """A worker whose queue had so many ids, and has none."""
    worker = declare(app, name, handler, **fields)
    worker.push_many(jobs_of([str(number) for number in range(count)]))
    app.drain()
    return worker


def tuned(app: Lowkiq, worker: type[Worker]) -> Tuned:
    """What its holders have found."""
    return read_tuned(app.operate(worker).reader, worker)


def test_waiting_handlers_come_to_more_calls_and_an_outage_halves_them(app: Lowkiq, queue_name: str) -> None:
    """One more after each look, and the other half at once where most fails; the next process goes on from there."""
    is_down = Event()

    def handle(batch: Batch) -> None:
        waits(batch)
        if is_down.is_set():
            raise ConnectionError("the service is down")

    worker = drained(app, queue_name, handle, 150, concurrency=Auto(most=20), max_retry_count=0)
    risen = tuned(app, worker).calls
    assert risen is not None
    assert 4 <= risen <= 20
    assert risen == calls_now(app.operate(worker).reader, worker)
    is_down.set()
    # On a machine that is busy the first may have halved them in this minute, as calls became slower.
    with closing_app(Lowkiq(app.config)) as other:
        drained(other, queue_name, handle, 40, concurrency=Auto(most=20), max_retry_count=0)

    assert risen // 2 == tuned(app, worker).calls


def test_computing_handlers_do_not_come_to_more_calls(app: Lowkiq, queue_name: str) -> None:
    """Threads of one process would only wait for each other; a second one is tried where others use the machine."""
    worker = drained(app, queue_name, computes, 100, concurrency="auto")

    assert (tuned(app, worker).calls or 0) <= 2


def test_calls_with_much_fixed_time_get_more_ids(app: Lowkiq, queue_name: str) -> None:
    """One look: calls of one size tell nothing, and two ids are tried."""
    sizes = list[int]()

    def handle(batch: Batch) -> None:
        sizes.append(len(batch))
        waits(batch)

    worker = drained(app, queue_name, handle, 200, batch_size=Auto(most=10))
    numbers = tuned(app, worker)

    assert None is numbers.calls
    assert numbers.ids is not None
    assert 2 <= numbers.ids <= 10
    assert 1 == sizes[0]
    assert max(sizes) <= 10


def test_stats_tell_the_number(
    app: Lowkiq, queue_name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what else there is to say of the queue."""
    drained(app, queue_name, waits, 1, concurrency=Auto(least=7, most=20))
    monkeypatch.setattr("lowkiq_lambda.cli.stats.app_of", lambda _: app)

    assert 0 == main(["stats"])
    assert "concurrency 7 (auto)" in capsys.readouterr().out


def test_no_more_calls_than_pools_are_made_for(server_url: str, queue_name: str) -> None:
    """`calls_at_once` is of a process, so of all of its threads."""
    app = Lowkiq(Config(redis_url=server_url, calls_at_once=10, threads_per_node=5))
    try:
        worker = drained(app, queue_name, waits, 60, concurrency=Auto(most=20))
        assert 2 >= (tuned(app, worker).calls or 20)
    finally:
        close_app(app)


def test_the_numbers_lie_with_the_mean_time() -> None:
    """Two more, with hindrances and without them; nothing where the worker says both."""
    timing = BatchTiming(0.5, 1.0, 0.5, 10.0)
    plain = timing.dump()
    timing.calls, timing.ids = 7, 40
    hindered = BatchTiming.of(timing.dump())
    hindered.hinder().note_stall(3.0, 20.0)

    assert f"{plain} 7 40" == timing.dump()
    again = BatchTiming.of(hindered.dump())
    assert (7, 40, hindered.hindrances) == (again.calls, again.ids, again.hindrances)
    assert 4 == len(plain.split())


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"concurrency": "many"}, "concurrency must be a whole number from 1 to 1,000, not 'many'"),
        ({"concurrency": Auto(most=100), "batch_size": Auto(most=100)}, "must be at most 1,000, not 10,000"),
        ({"concurrency": "auto", "tenants": "home"}, "needs concurrency = 1"),
    ],
)
def test_what_cannot_work_is_refused(app: Lowkiq, queue_name: str, fields: dict[str, Any], error: str) -> None:
    """By the upper bound, as the holder may come to it."""
    with pytest.raises(DeclarationError, match=error):
        declare(app, queue_name, waits, **fields)
