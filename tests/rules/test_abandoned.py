"""A process that leaves while its handlers run gives their jobs back, and says so to who gets them next."""

from threading import Event, Thread

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.rules.support import Notes, declare, outlive


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
    worker.perform_async([{"id": "a"}])
    leaving = Thread(target=app.drain)
    leaving.start()
    begun.wait(30)
    app.drainer.abandon_all(0.5)
    notes.then = None
    leave.set()
    leaving.join(30)
    assert [False] == [job.repeated for job in notes.jobs[0]]

    outlive(app, clock, worker)
    assert {"recovered": 1, "done": 1} == app.drain()
    assert "a" == notes.last.id
    assert notes.last.repeated
    assert -1 == notes.last.retry_count
