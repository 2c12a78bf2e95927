"""Runs a `perform_job` that is a generator, item by item, and keeps what it yields: its cursor. Needs no Redis."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.base.error_text import cut
from lowkiq_lambda.base.errors import CursorError, HandlerError, JobError
from lowkiq_lambda.base.forks import InParentAlone, end_child_of, this_process
from lowkiq_lambda.declare.worker import in_seconds
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.jobs.progress import JobProgress, load_progress
from lowkiq_lambda.jobs.retry import SHORTEST_DELAY, Later
from lowkiq_lambda.store.shard.codec import dump_json, load_json

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Worker
    from lowkiq_lambda.engine.batch import Batch, BatchJob

T = TypeVar("T")
C = TypeVar("C")

MAX_CURSOR_BYTES: Final = 65_536
"""Of a cursor as JSON: it is written again and again."""
LONGEST_REASON: Final = 200
"""Characters of a reason that are kept."""
_END: Final = object()
_MARKED: Final = b'"~"'
"""What the JSON of a cursor has that holds a value of a type that JSON lacks."""
_ENDS_OF_TURNS: Final = ("turn over", "run time over", "run items over")


class Iteration:
    """One job with a cursor, in all runs that its batch gives it: it goes on, and does not go back."""

    def __init__(self, progress: JobProgress) -> None:
        self.progress = progress
        self.is_kept = progress.cursor is not None
        """Whether the store has a cursor of it already."""
        self._began_at = progress.cursor
        self.has_moved = False
        """Whether the cursor had changed since that was last taken note of, when this run ended before the job."""
        self.is_stopped = False
        """Whether it was stopped at an item, and not by itself."""
        self.is_resumed = False
        """Whether an earlier delivery of it has left its progress."""
        self.is_first = True
        """Whether no progress of an earlier run was kept, and no run has ended in this batch."""
        self._keeps_start = False
        """Whether its progress is kept even without a cursor."""
        self.items_before = progress.items
        """Those of earlier deliveries."""

    @classmethod
    def of(cls, delivery: Delivery) -> "Iteration":
        """As it was kept. Raises CursorError if that cannot be read."""
        try:
            progress = load_progress(delivery.progress)
        except msgspec.MsgspecError as error:
            raise CursorError(f"The cursor of the job cannot be read: {error}.") from error
        iteration = cls(progress)
        if delivery.progress:
            iteration.is_resumed = iteration.is_kept = True
            iteration.is_first = False
        else:
            progress.due_at = delivery.due_at
        return iteration

    def ask_first(self) -> bool:
        """Whether this is the first run; then it will be known that it was."""
        self._keeps_start = True
        return self.is_first

    def follow(self, loop: Iterable[tuple[T, C]]) -> Iterator[tuple[T, C]]:
        """The pairs of the loop; before each it is noted how much is done."""
        progress = self.progress
        if progress.total is None and (total := getattr(loop, "total", None)) is not None:
            progress.total = progress.items + total - getattr(loop, "position", 0)
        pairs = iter(loop)
        while True:
            if progress.total is None:
                progress.measured = getattr(loop, "fraction", None)
            try:
                pair = next(pairs)
            except StopIteration:
                return
            yield pair

    @property
    def cursor(self) -> Any:  # noqa: ANN401 - any JSON
        """As it was yielded last; a value of its own each time."""
        return None if self.progress.cursor is None else load_cursor(self.progress.cursor)

    @property
    def has_progress(self) -> bool:
        """Whether there is something to save: a cursor, or once that it has begun."""
        return self.progress.cursor is not None or (self._keeps_start and not self.is_kept)

    @property
    def has_advanced(self) -> bool:
        """Whether the cursor is another one than at the beginning of this batch."""
        return self.progress.cursor != self._began_at

    def upgrade(self, worker: "Worker") -> None:
        """Make the cursor one of the worker's `cursor_version`. Raises CursorError if the worker cannot."""
        progress, version = self.progress, worker.cursor_version
        if progress.cursor is not None and progress.version != version:
            upgrade: Callable[[Any, int], Any] | None = getattr(worker, "upgrade_cursor", None)
            if upgrade is None:
                raise CursorError(
                    f"The cursor is of version {progress.version}, and {type(worker).__name__}.cursor_version is "
                    f"{version}: define upgrade_cursor(self, cursor, version), or bring back what can read it."
                )
            upgraded, had_moved = upgrade(self.cursor, progress.version), progress.has_moved
            self._began_at = progress.cursor = None if upgraded is None else dump_cursor(upgraded)
            if not had_moved:
                # The same place in another form.
                progress.note()
        progress.version = version

    def take(self, yielded: object) -> None:
        """Note what was yielded. Raises CursorError for what cannot be kept."""
        if yielded is None:
            return
        dumped = dump_cursor(yielded)
        if dumped != self.progress.cursor:
            self.progress.cursor = dumped
            self.progress.items += 1

    def unfinished(self, reason: str, *, failed: bool, returned: bool) -> bytes | None:
        """Note that the job has to go on another time. The progress to be kept; None for a job that has no cursor."""
        progress = self.progress
        self.has_moved = progress.has_moved
        if not returned:
            progress.note()
        if failed:
            progress.failures += 1
        else:
            progress.interruptions += 1
            # A lone surrogate, such as a file's name has, cannot be stored.
            progress.reason = cut(reason.encode(errors="backslashreplace").decode(), LONGEST_REASON)
        return progress.dump() if self.is_kept or self.has_progress else None


AfterItem: TypeAlias = Callable[[Iteration], str | None]
"""Asked at each yield: why to stop there, or None."""


class Run(Protocol):
    """The drain's side of one run of a job: it keeps the progress, and decides when the run stops."""

    def begin(self, iteration: Iteration) -> bool:
        """Whether the run may begin."""
        ...

    def after_item(self, iteration: Iteration) -> str | None:
        """Why to stop here, or None. Raises only what is the job's own failure."""
        ...

    def end(self, iteration: Iteration) -> None:
        """The run has ended, in whatever way; never raises."""
        ...


def iterate(worker: "Worker", job: "BatchJob", iteration: Iteration, after_item: AfterItem) -> str | None:
    """Run the job on from its cursor until it ends, then None, or until `after_item` says why to stop.

    If it is stopped it is closed, so its `with` and `finally` run. Raises what the job raises, then and before, and
    CursorError for a cursor that cannot be kept.
    """
    perform_job: Callable[[Any], object] = worker.perform_job  # type: ignore[attr-defined]  # checked at declaration
    pid = this_process.pid
    with InParentAlone():
        items = perform_job(job)
    if items is None:
        return None
    if not isinstance(items, Generator):
        kind = type(items).__name__
        raise HandlerError(f"perform_job is a generator, but what it is decorated with returned a {kind}.")
    try:
        while (yielded := next(items, _END)) is not _END:
            end_child_of(pid)
            iteration.take(yielded)
            if reason := after_item(iteration):
                return reason
    except BaseException as error:
        end_child_of(pid, error)
        raise
    else:
        end_child_of(pid)
        return None
    finally:
        # A generator that has ended is closed already.
        with InParentAlone():
            items.close()


def perform_iteration(run_of: Callable[[str], Run], worker: "Worker", batch: "Batch", job_id: str) -> None:
    """Run one job of a batch in a drain. Raises what it raises, and Later if it was stopped before its end."""
    if not batch.reopen(job_id):
        return
    batch.is_iterated = True
    iteration, run = batch.iteration(job_id), run_of(job_id)
    if not run.begin(iteration):
        raise Later(0, iteration.progress.reason)
    iteration.is_stopped, ran_before = False, iteration.progress.seconds
    try:
        iteration.upgrade(worker)
        reason = iterate(worker, batch.job(job_id), iteration, run.after_item)
    finally:
        run.end(iteration)
        iteration.is_first = False
    if reason:
        iteration.is_stopped = True
        # Without waiting jobs it would begin anew at once, as often as a turn ends before its cursor has moved.
        is_idle = reason in _ENDS_OF_TURNS and not iteration.has_advanced
        rest = SHORTEST_DELAY + ran_before - iteration.progress.seconds if is_idle else 0.0
        raise Later(max(in_seconds(worker.resume_in), rest), reason)


def load_cursor(dumped: bytes) -> Any:  # noqa: ANN401 - any JSON, and types that it lacks
    """The cursor that was dumped."""
    cursor = load_json(dumped)
    if _MARKED not in dumped:
        return cursor
    from lowkiq_lambda.jobs.cursor_values import typed  # noqa: PLC0415 - few cursors have such values

    return typed(cursor)


def dump_cursor(cursor: object) -> bytes:
    """As it is kept. Raises CursorError, naming the path, for what has no form, or what is too long."""
    try:
        dumped = dump_json(cursor)
    except JobError:
        dumped = b""
    if not dumped or _MARKED in dumped:
        dumped = _dump_typed(cursor)
    if len(dumped) > MAX_CURSOR_BYTES:
        raise CursorError(
            f"The cursor cannot be kept: it has {len(dumped):,} bytes; at most {MAX_CURSOR_BYTES:,} are allowed."
        )
    return dumped


def _dump_typed(cursor: object) -> bytes:
    from lowkiq_lambda.jobs.cursor_values import plain  # noqa: PLC0415 - few cursors have such values

    try:
        return dump_json(plain(cursor))
    except JobError as error:
        reason = str(error.reason)
        subject = "it " * reason.startswith(("is ", "cannot "))
        raise CursorError(f"The cursor cannot be kept: {subject}{reason}.") from None
    except RecursionError:
        raise CursorError("The cursor cannot be kept: it is nested too deeply.") from None
