"""Metrics of pushes, batches and queues."""

import logging

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint

from lowkiq_lambda import Batch, JobError, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.collecting import Collected
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of


def test_pushes_are_counted_and_what_of_them_merged(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """By queue; a push that is refused counts under its error."""
    collected.instrument(app)
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("aab"))
    with pytest.raises(JobError):
        worker.push_many([{}])

    sent = "messaging.client.sent.messages"
    assert {None: 3, "JobError": 1} == collected.values(sent, "error.type")
    assert {queue_name: 1} == collected.values("lowkiq.merged", "messaging.destination.name")


def test_what_is_settled_is_counted_by_outcome(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """From the event of the settling, so that only what Redis has acknowledged counts."""
    collected.instrument(app)
    declare(app, queue_name, failing("b"), batch_size=3).push_many(jobs_of("abc"))
    app.drain()
    assert {"done": 2, "retried": 1} == collected.values("messaging.client.consumed.messages", "lowkiq.outcome")


def test_an_id_that_was_cancelled_has_an_outcome_of_its_own(app: Lowkiq, collected: Collected, queue_name: str) -> None:
    """One that ends well all the same is done."""
    collected.instrument(app)

    def perform(batch: Batch) -> None:
        app.operate(worker).cancel([*batch])
        batch.fail("b", "broken")

    worker = declare(app, queue_name, perform, batch_size=2)
    worker.push_many(jobs_of("ab"))
    app.drain()
    assert {"done": 1, "cancelled": 1} == collected.values("messaging.client.consumed.messages", "lowkiq.outcome")


def test_batches_are_measured(app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str) -> None:
    """In seconds, by queue and shard."""
    collected.instrument(app)

    def perform(_batch: Batch) -> None:
        clock.advance(2.0)

    declare(app, queue_name, perform).push_many(jobs_of("ab"))
    app.drain()

    (point,) = collected.points("messaging.process.duration")
    assert isinstance(point, HistogramDataPoint)
    assert (2, 4.0, "0") == (point.count, point.sum, (point.attributes or {})["messaging.destination.partition.id"])
    assert 10.0 == point.explicit_bounds[-1]


def test_what_a_dead_holder_left_was_not_delivered_here(
    app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str
) -> None:
    """It counts when it runs again."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = None
    collected.instrument(app)
    app.drain()
    assert {"done": 1} == collected.values("messaging.client.consumed.messages", "lowkiq.outcome")


def test_queues_are_read_when_metrics_are_collected(
    app: Lowkiq, collected: Collected, clock: ManualClock, queue_name: str
) -> None:
    """Lag, length and morgue by queue; of a second or less ago."""
    collected.instrument(app)
    worker = declare(app, queue_name, failing("a"), max_retry_count=0)
    worker.push_many(jobs_of("a"))
    app.drain()
    worker.push_many(jobs_of("bc"))
    clock.advance(30.0)

    queue = "messaging.destination.name"
    assert {queue_name: 30.0} == collected.values("lowkiq.lag", queue)
    assert {queue_name: 2} == collected.values("lowkiq.length", queue)
    assert {queue_name: 1} == collected.values("lowkiq.morgue", queue)
    worker.push_many(jobs_of("d"))
    clock.advance(2.0)
    assert {queue_name: 3} == collected.values("lowkiq.length", queue)


@pytest.mark.parametrize(("function", "asked", "is_read"), [("", None, True), ("f", None, False), ("f", True, True)])
def test_a_function_reads_no_queues_unless_it_is_asked_to(  # noqa: PLR0913, PLR0917 - what is asked, and fixtures
    app: Lowkiq,
    collected: Collected,
    monkeypatch: pytest.MonkeyPatch,
    queue_name: str,
    function: str,
    asked: bool | None,  # noqa: FBT001 - a case
    is_read: bool,  # noqa: FBT001 - as above
) -> None:
    """Its ticks publish them, and each drain would pay a round trip for it."""
    if function:
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", function)
    declare(app, queue_name, Notes())
    collected.instrument(app, gauges=asked)
    assert is_read == bool(collected.points("lowkiq.length"))


def test_a_server_that_is_away_costs_gauges_and_no_more(
    make_app: MakeApp, make_server: MakeServer, collected: Collected, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The other metrics are collected, and the log says why those are missing."""
    server = make_server()
    app = make_app(redis_url=server.url)
    collected.instrument(app)
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    server.kill()
    with caplog.at_level(logging.WARNING):
        assert {} == collected.values("lowkiq.length", "messaging.destination.name")
    assert {queue_name: 1} == collected.values("messaging.client.sent.messages", "messaging.destination.name")
    assert "the queues cannot be observed" in caplog.text
