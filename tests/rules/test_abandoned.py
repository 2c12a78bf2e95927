"""A process that leaves while its handlers run gives their jobs back, and says so to who gets them next."""

from threading import Event, Thread

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.base.errors import LowkiqError, QueueMismatch, ShardClosed
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def test_s12_what_was_abandoned_is_repeated_elsewhere_and_says_so(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """S-12: the job runs again, in place and uncounted, once the shard is free; its batch knows of the first run."""
    begun, leave = Event(), Event()

    def hang(_batch: Batch) -> None:
        begun.set()
        leave.wait(30)

    notes = Notes(hang)
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a"}])
    leaving = Thread(target=app.drain)
    leaving.start()
    begun.wait(30)
    app.core.drains.drainer.abandon_all(0.5)
    notes.then = None
    leave.set()
    leaving.join(30)
    assert [False] == [job.repeated for job in notes.jobs[0]]

    outlive(app, clock, worker)
    assert {"recovered": 1, "done": 1} == app.drain()
    assert "a" == notes.last.id
    assert notes.last.repeated
    assert -1 == notes.last.retry_count


@pytest.mark.parametrize("error", [ShardClosed("closed"), QueueMismatch("a newer version")])
def test_s12_a_shard_that_refuses_keeps_no_other_from_being_given_back(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, error: LowkiqError
) -> None:
    """S-12: whatever the call for one visit comes to, the process makes it for all of them."""
    tried: list[str] = []

    def refuse(holding: LeaseSession, _seconds: float, retry_for: float) -> None:  # noqa: ARG001 - as it is called
        tried.append(holding.shard.queue_name)
        raise error

    def drain_the_other(_batch: Batch) -> None:
        app.drain()

    def leave(_batch: Batch) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(LeaseSession, "abandon", refuse)
            app.core.drains.drainer.abandon_all(0.5)

    queues = {f"{queue_name}-first": drain_the_other, queue_name: leave}
    for name, handler in queues.items():
        declare(app, name, handler).push_many(jobs_of("a"))

    assert {"done": 1} == app.drain()
    assert queues.keys() == set(tried)
    assert 2 == len(tried)
