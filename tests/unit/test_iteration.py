"""Jobs with a cursor, run without Redis: what is kept of what they yield, and how they are stopped."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import wraps
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import BatchJob, CursorError, HandlerError, Later, Worker
from lowkiq_lambda.engine.iteration import MAX_CURSOR_BYTES, Iteration, iterate
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.jobs.progress import JobProgress, load_progress
from lowkiq_lambda.jobs.retry import MAX_DELAY
from lowkiq_lambda.store.shard.lease_replies import NO_REQUESTS, Requests


class Context:
    """A handler's time and lease: there is enough of both."""

    token = 1
    requests: Requests = NO_REQUESTS

    def remaining(self) -> float:
        """Seconds that are left."""
        return 60.0

    def stopping(self) -> bool:
        """Never."""
        return False


def job_of(iteration: Iteration) -> BatchJob:
    """A job as its handler gets it."""
    return BatchJob("a", [], [], 0.0, -1.0, None, repeated=False, context=Context(), iteration=iteration)


def run(
    yielded: Callable[[BatchJob], Iterator[Any]],
    progress: JobProgress | None = None,
    *,
    stop_after: int | None = None,
    **fields: Any,
) -> tuple[JobProgress, str | None]:
    """The progress of a job that was run once, and why it was stopped."""
    worker = type("Yielding", (Worker,), {"perform_job": lambda _self, job: yielded(job), **fields})()
    iteration, items = Iteration(progress or JobProgress()), []

    def after_item(iteration: Iteration) -> str | None:
        items.append(iteration)
        return "enough" if len(items) == stop_after else None

    iteration.upgrade(worker)
    reason = iterate(worker, job_of(iteration), iteration, after_item)
    return iteration.progress, reason


def test_a_cursor_is_kept_as_it_was_yielded() -> None:
    """What is changed after the yield changes nothing; tuples come back as lists."""
    cursor: dict[str, Any] = {"at": (1, 2)}

    def yielding(_job: BatchJob) -> Iterator[Any]:
        yield cursor
        cursor["at"] = "elsewhere"

    progress, reason = run(yielding)

    assert ({"at": [1, 2]}, 1, None) == (Iteration(progress).cursor, progress.items, reason)


def test_only_another_cursor_counts_as_an_item() -> None:
    """A bare yield, and one of the same cursor, may stop the job, but are no movement."""
    stops: list[int] = []

    def yielding(_job: BatchJob) -> Iterator[Any]:
        for number, cursor in enumerate([None, "a", None, "a", "b"]):
            stops.append(number)
            yield cursor

    progress, _ = run(yielding)

    assert (b'"b"', 2, 5) == (progress.cursor, progress.items, len(stops))


def too_deep() -> list[object]:
    """A list in a list, and so on."""
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        (timedelta(1), "JSON has no form for timedelta"),
        ([1, {"at": {2}}], r"at \[1\]\.at: JSON has no form for set"),
        (float("nan"), "JSON has no form for nan"),
        ({1: "a"}, "the key 1 is not a text"),
        (bytearray(b"bytes"), "JSON has no form for bytearray"),
        (too_deep(), "it is nested too deeply"),
        ("x" * MAX_CURSOR_BYTES, r"it has 65,538 bytes; at most 65,536 are allowed"),
    ],
)
def test_a_cursor_that_cannot_be_kept_fails_the_job(cursor: object, why: str) -> None:
    """J-6: exact types, the path named, 64 KiB; the job is closed, and the cursor before it stands."""
    closed = []
    kept = JobProgress()

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            yield "good"
            yield cursor
        finally:
            closed.append("closed")

    with pytest.raises(CursorError, match=rf"The cursor cannot be kept: {why}"):
        run(yielding, kept)

    assert (b'"good"', ["closed"]) == (kept.cursor, closed)


@pytest.mark.parametrize("cursor", [0, "", [], {}, False, 1.5, "ü", [[1, None], {"a": True}]])
def test_any_json_is_a_cursor(cursor: object) -> None:
    """J-6: also what is false; only None is none."""
    progress, _ = run(lambda _job: iter_of([cursor]))

    assert cursor == Iteration(load_progress(progress.dump())).cursor


def iter_of(cursors: list[Any]) -> Iterator[Any]:
    """A generator of these."""
    yield from cursors


def test_a_stopped_job_is_closed() -> None:
    """`with` and `finally` run; what comes after the yield does not."""
    ran: list[object] = []

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            for number in range(5):
                yield number
                ran.append(number)
        finally:
            ran.append("closed")

    progress, reason = run(yielding, stop_after=2)

    assert ("enough", b"1", [0, "closed"]) == (reason, progress.cursor, ran)


def test_cleanup_that_raises_is_a_failure() -> None:
    """The cursor stays."""
    kept = JobProgress()

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            yield 1
        finally:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run(yielding, kept, stop_after=1)

    assert b"1" == kept.cursor


@pytest.mark.parametrize("cursor", [1, {1, 2}], ids=["stopped", "failed"])
def test_a_process_that_cleanup_forks_ends_with_it(cursor: object) -> None:
    """Whatever closed the job, what follows is its parent's."""
    parent, codes = os.getpid(), list[int]()

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            yield cursor
        finally:
            if child := os.fork():
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with suppress(CursorError):
        run(yielding, stop_after=1)
    if os.getpid() != parent:
        os._exit(9)

    assert [0] == codes


def test_a_job_that_goes_on_when_it_is_closed_fails() -> None:
    """Python's own words say why."""

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        run(yielding, stop_after=1)


def test_a_job_that_returns_when_it_is_closed_was_stopped() -> None:
    """It is not done."""

    def yielding(_job: BatchJob) -> Iterator[Any]:
        try:
            yield 1
        except GeneratorExit:
            return

    _, reason = run(yielding, stop_after=1)

    assert "enough" == reason


def test_a_decorator_must_hand_the_generator_on() -> None:
    """What returns something else has not run the job."""
    with pytest.raises(HandlerError, match="what it is decorated with returned a list"):
        run(lambda job: list(iter_of([job.id])))  # type: ignore[arg-type,return-value]  # that is the point


def test_a_decorated_generator_is_one() -> None:
    """A decorator that keeps the name of what it wraps may return the generator."""

    @wraps(iter_of)
    def decorated(_job: BatchJob) -> Iterator[Any]:
        return iter_of([1, 2])

    assert 2 == run(decorated)[0].items


def test_a_cursor_of_another_version_is_upgraded() -> None:
    """It is given with its version, and kept with the new one."""
    upgraded = []

    def upgrade(_self: Worker, cursor: Any, version: int) -> Any:
        upgraded.append((cursor, version))
        return {"row": cursor}

    progress, _ = run(
        lambda _job: iter_of([]), JobProgress(b"7", version=1, items=7), cursor_version=3, upgrade_cursor=upgrade
    )

    assert [(7, 1)] == upgraded
    assert (b'{"row":7}', 3, 7) == (progress.cursor, progress.version, progress.items)


@pytest.mark.parametrize("moved", [False, True])
def test_an_upgrade_is_no_movement(*, moved: bool) -> None:
    """P7: the same place in another form: failures there go on counting."""
    kept = JobProgress(b"7", version=1, items=7)
    if not moved:
        kept.note()

    progress, _ = run(
        lambda _job: iter_of([]), kept, cursor_version=2, upgrade_cursor=lambda _self, cursor, _version: [cursor]
    )

    assert (b"[7]", moved) == (progress.cursor, progress.has_moved)


def test_moved_is_another_cursor() -> None:
    """P7: however often the cursor changed in between."""
    progress = JobProgress()
    seen = [progress.has_moved]
    for cursors in ([1, 2], [0, 2], [3]):
        run(lambda _job, cursors=cursors: iter_of(cursors), progress)  # type: ignore[misc]  # a value of the loop
        seen.append(progress.has_moved)
        progress.note()
        progress = load_progress(progress.dump())

    assert ([False, True, False, True], 5) == (seen, progress.items)


def test_upgrading_to_none_starts_anew() -> None:
    """What was counted stays."""
    progress, _ = run(
        lambda _job: iter_of([]),
        JobProgress(b"7", version=1, items=7),
        cursor_version=2,
        upgrade_cursor=lambda _self, _cursor, _version: None,
    )

    assert (None, 7) == (progress.cursor, progress.items)


def test_a_cursor_that_nobody_upgrades_fails_the_job() -> None:
    """J-17: never silently from the start; the cursor stays as it is."""
    kept = JobProgress(b"7", version=1)

    with pytest.raises(CursorError, match=r"of version 1, and Yielding\.cursor_version is 2: define upgrade"):
        run(lambda _job: iter_of([1]), kept, cursor_version=2)

    assert (b"7", 1) == (kept.cursor, kept.version)


def test_a_job_may_say_how_many_items_it_expects() -> None:
    """For a percentage; it may change its mind."""

    def yielding(job: BatchJob) -> Iterator[Any]:
        job.expect(10)
        yield 1
        seen.append((job.progress.items, job.progress.total))
        job.progress.items = 100
        job.expect(20)

    seen: list[tuple[int, int | None]] = []
    progress, _ = run(yielding)

    assert ([(1, 10)], 20, 1) == (seen, progress.total, progress.items)


@pytest.mark.parametrize("total", [-1, 1.5, "10", None, True, 2**53 + 1])
def test_what_is_no_count_is_not_expected(total: object) -> None:
    """The sentence shows the value."""
    job = job_of(Iteration(JobProgress()))

    with pytest.raises(ValueError, match=r"expect: the number of items must be a whole number from 0 to 2\*\*53, not"):
        job.expect(total)  # type: ignore[arg-type]  # that is the point


def test_a_job_without_a_cursor_has_no_progress() -> None:
    """It may be asked for all the same."""
    job = BatchJob("a", [], [], 0.0, -1.0, None, repeated=False, context=Context())

    job.expect(5)

    assert JobProgress() == job.progress


def test_progress_of_an_older_version_is_read() -> None:
    """What it lacks has its default."""
    assert JobProgress(b"7", 2, 3) == load_progress(msgspec.msgpack.encode([b"7", 2, 3]))


def test_progress_that_cannot_be_read_fails_its_job() -> None:
    """J-17: it is not started anew."""
    with pytest.raises(CursorError, match="The cursor of the job cannot be read"):
        Iteration.of(Delivery("a", [], 0.0, -1.0, progress=b"\xc1"))


@pytest.mark.parametrize(("delay", "seconds"), [(30, 30.0), (0, 0.0), (1.5, 1.5), (timedelta(minutes=2), 120.0)])
def test_later_takes_seconds_or_a_timedelta(delay: float | timedelta, seconds: float) -> None:
    """With a reason, or without."""
    later = Later(delay, "the database is behind")

    assert (seconds, "the database is behind", "the database is behind") == (later.seconds, later.reason, str(later))
    assert ("", "The job asked to go on later.") == (Later(delay).reason, str(Later(delay)))


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), MAX_DELAY * 2, "30", True, timedelta(seconds=-1)])
def test_later_refuses_what_is_no_delay(delay: Any) -> None:
    """The sentence shows the value."""
    with pytest.raises(ValueError, match="Later: the delay must be from 0 to"):
        Later(delay)
