"""Lowkiq newer than its first description (LN-1 to LN-13).

LN-6 is advice, LN-12 stands with the honest numbers (P9), LN-3 with the attributes (L-14).
"""

import zlib
from collections.abc import Callable
from typing import Any

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.deaths import Mortal, outlive
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import look


def test_ln1_workers_are_an_explicit_list(app: Lowkiq, queue_name: str) -> None:
    """LN-1: the workers of an app are those declared on it, in order of declaration."""
    declared = [declare(app, f"{queue_name}-{n}", Notes()) for n in (2, 1, 3)]

    assert declared == app.workers


def test_ln2_client_middlewares_wrap_the_push(app: Lowkiq, queue_name: str) -> None:
    """LN-2: the first is outermost; each sees worker and jobs, may change the result, and may veto."""
    notes: list[object] = []

    def outer(worker: Any, jobs: list[Any], call_next: Callable[[], Any]) -> Any:
        notes.append(("outer", worker.queue_name, [job["id"] for job in jobs]))
        return call_next()

    def inner(_worker: Any, _jobs: list[Any], call_next: Callable[[], Any]) -> Any:
        notes.append("inner")
        return call_next()

    worker = declare(app, queue_name, Notes())
    worker.perform_async(jobs_of("a"))
    app.client_middlewares += [outer, inner]
    (pushed,) = worker.perform_async(jobs_of("b"))
    app.client_middlewares.insert(0, lambda _worker, _jobs, _call_next: [])

    assert ([], "b") == (worker.perform_async(jobs_of("c")), pushed.id)
    assert [("outer", queue_name, ["b"]), "inner"] == notes
    assert {"done": 2} == app.drain()


def test_ln4_errors_have_a_codec_of_their_own(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LN-4: the recipe that compresses full traces works, and reads what was stored before it."""

    def load_error(dumped: bytes) -> str:
        try:
            return zlib.decompress(dumped).decode()
        except zlib.error:
            return dumped.decode()

    before = make_app()
    after = make_app(
        format_error=lambda error: f"<{error}>",
        dump_error=lambda text: zlib.compress(text.encode()),
        load_error=load_error,
    )
    notes = Notes(raising())
    for app in (before, after):
        declare(app, queue_name, notes, max_retry_count=2).perform_async(jobs_of("a"))

    for app in (before, after, after):
        app.drain()
        clock.advance(20)

    assert [None, "broken", "<broken>"] == [job.error for (job,) in notes.jobs]
    assert ["<broken>"] == [job.error for job in notes.buried]


def test_ln5_retries_exhausted_is_told_once_and_only_of_burials(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """LN-5: the hook is called after the burial with id, payload, score and error, and never with nobody."""
    notes = Notes(failing("a", "c"))
    worker = declare(app, queue_name, notes, batch_size=3, max_retry_count=0)
    worker.perform_async(jobs_of("abc", payload={"v": 1}, score=5))

    app.drain()

    (jobs,) = notes.exhausted
    assert [("a", [({"v": 1}, 5.0)], "a is broken"), ("c", [({"v": 1}, 5.0)], "c is broken")] == [
        (job.id, [tuple(one) for one in job.payloads], job.error) for job in jobs
    ]
    assert {clock.time()} == {job.updated_at for job in jobs}


def test_ln7_due_ids_come_by_time_up_to_batch_size(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-7: a batch has the due ids with the earliest times, in that order, at most batch_size of them."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)
    now = clock.time()
    times = {"e": 0.0, "a": -3.0, "d": -1.0, "b": -2.0, "later": 0.5}

    worker.perform_async({"id": job_id, "perform_in": now + at} for job_id, at in times.items())
    app.drain()

    assert [["a", "b"], ["d", "e"]] == notes.ids


def test_ln8_newer_payload_waits_behind_the_older_in_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-8: while an older payload waits for its retry, a newer one of its id waits too, and other ids pass."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    worker.perform_async([{"id": "a", "payload": "old"}])
    app.drain()
    notes.clear()
    notes.then = None

    worker.perform_async([{"id": "a", "payload": "new"}, {"id": "b"}])
    app.drain()
    assert [{"b": [""]}] == notes.batches
    clock.advance(10)
    app.drain()

    assert {"a": ["old", "new"]} == notes.batches[-1]


def test_ln9_an_earlier_time_brings_nothing_forward(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-9, L-27: a push with an earlier time onto a waiting id leaves the id's time as it was."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = clock.time() + 60
    worker.perform_async([{"id": "a", "perform_in": at}])

    (pushed,) = worker.perform_async([{"id": "a", "payload": 2, "perform_in": clock.time()}])
    app.drain()

    assert (at, True, []) == (pushed.perform_in, pushed.merged, notes.batches)


def test_ln10_payload_pushed_while_its_id_runs_comes_after(app: Lowkiq, queue_name: str) -> None:
    """LN-10: it stays queued, is performed after the running one, and is never lost."""

    def push_once(_batch: Batch) -> None:
        notes.then = None
        worker.perform_async([{"id": "a", "payload": "during"}])

    notes = Notes(push_once)
    worker = declare(app, queue_name, notes)
    worker.perform_async([{"id": "a", "payload": "before"}])

    app.drain()

    assert [{"a": ["before"]}, {"a": ["during"]}] == notes.batches


def test_ln11_error_stays_until_success(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-11: an id keeps its last error through retries, and loses it with success."""
    notes = Notes(raising(Broken("one")))
    worker = declare(app, queue_name, notes)
    worker.perform_async(jobs_of("a"))
    app.drain()
    notes.then = raising(Broken("two"))
    clock.advance(10)
    app.drain()
    notes.then = None
    clock.advance(20)
    app.drain()
    worker.perform_async(jobs_of("a"))
    app.drain()

    assert [None, "one", "two", None] == [job.error for (job,) in notes.jobs]


def test_ln11_error_goes_to_the_morgue_and_stays_with_the_rest(app: Lowkiq, queue_name: str) -> None:
    """LN-11: the buried payload has the error, and so has what remains of its id."""
    notes = Notes(raising(Broken("why")))
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.perform_async([{"id": "a", "payload": n} for n in range(2)])

    app.drain()

    assert ([None, "why"], ["why", "why"]) == (
        [job.error for (job,) in notes.jobs],
        [job.error for job in notes.buried],
    )


def test_ln13_recovery_keeps_time_and_retry_count(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-13: what a dead process had in flight comes back with time, retry_count and error unchanged."""
    mortal = Mortal(app)
    notes = Notes(raising(Broken("first")))
    worker = declare(app, queue_name, notes)
    worker.perform_async(jobs_of("a"))
    app.drain()
    clock.advance(10)
    at = clock.time()
    notes.then = mortal.die
    mortal.drain()
    assert look(app, worker, "a") is None
    notes.then = None

    outlive(app, clock, worker)
    app.drain()

    assert (0.0, at, "first", True) == (
        notes.last.retry_count,
        notes.last.perform_in,
        notes.last.error,
        notes.last.repeated,
    )
