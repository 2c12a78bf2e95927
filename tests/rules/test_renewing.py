"""Leases that are renewed while batches take long: each for as long as its visit, and no longer."""

import threading
from collections.abc import Callable

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of


def without_renewers(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    """Begin any thread but one that renews leases, as a process does that has as many threads as it may have."""

    def begin(thread: threading.Thread) -> None:
        if thread.name == "lowkiq-renewer":
            raise RuntimeError("can't start new thread")
        start(thread)

    return begin


@pytest.mark.parametrize("concurrency", [1, 4])
def test_e2_a_visit_that_cannot_renew_its_lease_leaves_no_lease_behind(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    """E-2: no handler ran, so the shard is free at once, and nobody renews its lease from then on."""
    notes = Notes()
    worker = declare(app, queue_name, notes, concurrency=concurrency)
    worker.perform_async(jobs_of("a"))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", without_renewers(threading.Thread.start))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            app.drain()
    assert [] == notes.ids
    assert app.drainer._renewer.renew_due() is None

    clock.advance(1)
    eventually(lambda: "done" in app.drain())
    assert [["a"]] == notes.ids
