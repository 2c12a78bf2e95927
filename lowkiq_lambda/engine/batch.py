"""The batch that a handler gets: its ids with their payloads, and methods that set the outcome of each id."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from lowkiq_lambda.base.error_text import LONGEST_LOGGED, is_a, plain, shown
from lowkiq_lambda.base.errors import BatchClosed, LowkiqError, Rejected
from lowkiq_lambda.declare.pushable import P
from lowkiq_lambda.jobs.job import Delivery, ScoredPayload, score_of
from lowkiq_lambda.jobs.retry import Later

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration import Iteration
    from lowkiq_lambda.engine.lease import HandlerContext, LimitedRun
    from lowkiq_lambda.jobs.headers import Headers
    from lowkiq_lambda.jobs.progress import JobProgress

_NONE: Final = frozenset[str]()
T = TypeVar("T")
C = TypeVar("C")

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
MOST_ITEMS: Final = 2**53
"""The most items of a job: a larger number is not exact in systems whose numbers are doubles."""


class BatchJob(msgspec.Struct, Generic[P], frozen=True, eq=False):
    """One id of a batch. Scores and payloads are in order, oldest first.

    `repeated`: an earlier delivery of it may have run, wholly or in part, before its process died. True until its
    payloads end, whatever fails meanwhile.
    `headers`: those of the pushes of its payloads, eight of each payload at most.
    `cursor`: the last one that an earlier run yielded; None for a job that starts.
    """

    id: str
    payloads: Sequence[P]
    scores: Sequence[float]
    due_at: float
    retry_count: float
    error: str | None
    repeated: bool
    context: "HandlerContext"
    cursor: Any = None
    iteration: "Iteration | None" = None
    headers: "Sequence[Headers]" = ()
    notes: list[str] = []
    """The texts of `note` in this run."""
    batch: "Batch[P] | None" = None
    """The batch that has it; None of a job with a cursor that runs without a drain."""

    def __repr__(self) -> str:
        return f"BatchJob({', '.join(f'{name}={getattr(self, name)!r}' for name in _SHOWN)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchJob) and all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    __hash__ = None  # type: ignore[assignment]  # its payloads may be of any kind

    def done(self, payload: int) -> None:
        """As `Batch.done` with that payload."""
        if self.batch is None:
            from lowkiq_lambda.engine.partial import refuse_of_cursor  # noqa: PLC0415 - imported lazily: cold start

            refuse_of_cursor(self.id, payload)
        else:
            self.batch.done(self.id, payload=payload)

    def note(self, text: str) -> None:
        """As `Batch.note`."""
        self.notes.append(text)

    @property
    def progress(self) -> "JobProgress":
        """How far the job has come, over all of its runs, as of now. Only a job with a cursor has any."""
        from lowkiq_lambda.jobs.progress import JobProgress  # noqa: PLC0415 - imported lazily: cold start

        return JobProgress() if self.iteration is None else copy.copy(self.iteration.progress)

    def expect(self, total: int) -> None:
        """Set the number of items, so that people see a percentage. Raises ValueError if it is not a count."""
        number: object = total
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_ITEMS:
            raise ValueError(f"expect: the number of items must be a whole number from 0 to 2**53, not {total!r}")
        if self.iteration is not None:
            self.iteration.progress.total = total

    @property
    def is_first_run(self) -> bool:
        """Whether no run of the job has ended or saved its progress before, so that it may begin what it does once.

        A job that asks keeps its progress at each throttle, failure and stop, even without a cursor: so a beginning
        that may fail itself asks `job.cursor is None`, and yields a cursor. After a death before the first save the
        answer is True again. Only a job with a cursor has several runs: of others it is True.
        """
        return self.iteration is None or self.iteration.ask_first()

    def follow(self, loop: Iterable[tuple[T, C]]) -> Iterator[tuple[T, C]]:
        """The pairs of a loop of `lowkiq_lambda.iterate`, so that people see how far the job is, and how long it takes.

        The first run sets the number of items that the job expects, as `expect` does: of a query by one COUNT, unless
        the loop has `count=False`. For a loop with a size in bytes, `progress.fraction` is set.
        """
        return iter(loop) if self.iteration is None else self.iteration.follow(loop)

    @property
    def token(self) -> int:
        """As `Batch.token`."""
        return self.context.token

    @property
    def remaining(self) -> float:
        """As `Batch.remaining`."""
        return self.context.remaining()

    @property
    def stopping(self) -> bool:
        """As `Batch.stopping`, and whether an operator has cancelled this id."""
        return self.context.stopping() or self.context.requests.get(self.id) == "cancel"

    @property
    def scored_payloads(self) -> list[ScoredPayload]:
        """The payloads with their scores."""
        return [ScoredPayload(*pair) for pair in zip(self.payloads, self.scores, strict=True)]


_SHOWN: Final = ("id", "payloads", "scores", "due_at", "retry_count", "error", "repeated", "cursor", "headers")
_COMPARED: Final = (*_SHOWN, "context", "iteration")


class Batch(Mapping[str, list[P]], Generic[P]):
    """A mapping of id to payloads, by score from old to new; with marks for what is done and what failed.

    When the handler returns, ids that were not failed are done. When it raises, marked ids keep their marks.
    """

    # A batch is made for each call of a handler, and few of them are told more than payloads: what all of them begin
    # with belongs to the class, and `_own` makes the rest for those that need it.
    is_iterated = False
    """By a generator."""
    has_begun = False
    """Whether the handler was called."""
    tells_more = False
    """Whether anything else is to be told than that ids are done."""
    exited: BaseException | None = None
    """The exception that ended the handler without a failure, even if a middleware changed it."""
    now: Callable[[], float] | None = None
    """Unix seconds by the shard's server, if a payload of the batch expires. Raises LowkiqError."""
    limit: "LimitedRun | None" = None
    """Its context, if the run has a limit of its own."""
    run_of: Callable[[str], Any]
    """The drain's side of a job's run; only where jobs have cursors."""
    rejected_payloads: Mapping[str, dict[int, Rejected]] = _NOTHING
    """The payloads of an id that failed alone, by their position."""
    done_payloads: Mapping[str, set[int]] = _NOTHING
    """The payloads of an id that were marked as done, by their position."""
    notes: Mapping[str, list[str]] = _NOTHING
    iterations: "Mapping[str, Iteration]" = _NOTHING
    """Of the jobs with a cursor."""
    overdue: tuple[str, ...] = ()
    """The ids of which a payload expired, or that an operator has stopped, before `perform_job` was called: they go
    back."""
    _marks: Mapping[str, BaseException | str | None] = _NOTHING
    _returned: tuple[str, ...] = ()
    _closed = False

    def __init__(
        self,
        payloads: dict[str, list[P]],
        deliveries: Mapping[str, Delivery],
        context: "HandlerContext",
        read_error: Callable[[bytes], str],
        *,
        ordered: bool = True,
    ) -> None:
        self._payloads = payloads
        self._deliveries = deliveries
        self._context = context
        self._read_error = read_error
        self._ordered = ordered

    def __getitem__(self, job_id: str) -> list[P]:
        try:
            return self._payloads[job_id]
        except KeyError:
            raise _absent(job_id) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._payloads)

    def __len__(self) -> int:
        return len(self._payloads)

    def __repr__(self) -> str:
        return f"Batch({self._payloads!r})"

    @property
    def token(self) -> int:
        """The lease's fencing token: larger than that of every holder before, so a database can refuse the older."""
        return self._context.token

    @property
    def remaining(self) -> float:
        """Seconds until the drain wants to end, or `Worker.max_run_time` is over."""
        return self._context.remaining()

    @property
    def stopping(self) -> bool:
        """Whether the handler should come to an end.

        The process stops, the lease is lost, the queue is paused, or `Worker.max_run_time` is over.

        A pause that comes while a batch runs is seen within a third of `lease_ttl`, when the lease is renewed.
        """
        return self._context.stopping()

    @property
    def cancelled(self) -> frozenset[str]:
        """The ids of the batch that an operator has cancelled: they go, unless they are done.

        A cancel that comes while the batch runs is seen within a third of `lease_ttl`, in a daemon at once.
        """
        requests = self._context.requests
        return (
            frozenset([job_id for job_id in self._payloads if requests.get(job_id) == "cancel"]) if requests else _NONE
        )

    @property
    def failed(self) -> dict[str, BaseException | str]:
        """The ids that have failed by themselves so far, each with its error. Ids with a `Rejected` are left out."""
        with self._lock():
            marks = {**self._marks}
        no_failures = (Later, Rejected)
        return {job_id: mark for job_id, mark in marks.items() if mark is not None and not is_a(mark, no_failures)}

    def job(self, job_id: str) -> BatchJob[P]:
        """All that is known of one id of the batch. Raises KeyError for another."""
        if job_id not in self._deliveries:
            raise _absent(job_id)
        delivery = self._deliveries[job_id]
        iteration = self.iteration(job_id) if delivery.progress or self.iterations else None
        return BatchJob(
            id=job_id,
            payloads=self._payloads[job_id].copy(),
            scores=[score_of(entry) for entry in delivery.entries],
            due_at=delivery.due_at if iteration is None else iteration.progress.due_at,
            retry_count=delivery.retry_count,
            error=None if delivery.error is None else self._read_error(delivery.error),
            repeated=delivery.repeated,
            context=self._context,
            cursor=None if iteration is None else iteration.cursor,
            iteration=iteration,
            notes=self._own("notes").setdefault(job_id, []) if delivery.tracked else [],
            batch=self,
            headers=self.headers.get(job_id, ()) if delivery.headers else (),
        )

    @cached_property
    def headers(self) -> "dict[str, list[Headers]]":
        """The headers of each id that has any, of the pushes of its payloads: eight of each payload at most."""
        stored = {job_id: self._deliveries[job_id].headers for job_id in self._payloads}
        if not any(stored.values()):
            return {}
        from lowkiq_lambda.jobs.headers import read  # noqa: PLC0415 - imported lazily: cold start

        return {job_id: headers for job_id, own in stored.items() if (headers := read(own))}

    @property
    def headers_left_out(self) -> int:
        """How many pushed jobs had headers that are not told, as eight of their payload are."""
        if not self.headers:
            return 0
        from lowkiq_lambda.jobs.headers import pushes_of  # noqa: PLC0415 - imported lazily: cold start

        sent = sum(len(headers) for headers in self.headers.values())
        return max(0, sum(pushes_of(self._deliveries[job_id].headers) for job_id in self._payloads) - sent)

    def iteration(self, job_id: str) -> "Iteration":
        """The cursor of a job and what is counted with it: one for all runs in this batch."""
        if job_id not in self.iterations:
            from lowkiq_lambda.engine.iteration import Iteration  # noqa: PLC0415 - imported lazily: cold start

            self._own("iterations")[job_id] = Iteration.of(self._deliveries[job_id])
        return self.iterations[job_id]

    def done(self, job_id: str, *, payload: int | None = None) -> None:
        """Mark an id as done, so that it is done even if the handler raises after that.

        An id without a mark is done if the handler returns. A second call changes nothing.

        Args:
            job_id: an id of this batch, as text.
            payload: mark this payload alone, by its position in this call: 0 is the oldest. It is not handed over
                again if the id is retried.

        Raises:
            KeyError: the batch does not have the id.
            IndexError: the id has no such payload.
            ValueError: the id has failed already; an older payload is not done (unless `ordered = False`); or the job
                yields a cursor.

        Example:
            batch.done("17", payload=0)
        """
        if payload is None:
            self._mark(job_id, None)
            return
        from lowkiq_lambda.engine.partial import check_order, refuse_of_cursor  # noqa: PLC0415 - imported lazily: cold start

        self._check_payload(job_id, payload)
        if self.is_iterated:
            refuse_of_cursor(job_id, payload)
        with self._lock():
            if self._closed:
                raise BatchClosed
            marked: set[int] = self._own("done_payloads").setdefault(job_id, set())
            if self._ordered:
                check_order(job_id, payload, marked, self.rejected_payloads.get(job_id, {}))
            marked.add(payload)

    def note(self, job_id: str, text: str) -> None:
        """Tell people what the id's payloads, as items of a task, have come to.

        The text is written with the outcome of the id, and costs no call. 200 characters of it are kept, with the last
        40 messages of each item; nothing is, if no payload is an item of a task.
        """
        if job_id not in self._deliveries:
            raise _absent(job_id)
        if self._closed:
            raise BatchClosed
        if self._deliveries[job_id].tracked:
            self._own("notes").setdefault(job_id, []).append(text)

    def fail(
        self, job_id: str, error: BaseException | type[BaseException] | str, *, payload: int | None = None
    ) -> None:
        """Mark an id as failed: it is retried, and the other ids of the batch are not.

        Args:
            job_id: an id of this batch, as text.
            error: an exception, its class, or a text. `Rejected` ends the id without a retry, `Later` puts it off.
            payload: reject this payload alone, by its position in this call; only with `Rejected`.

        Raises:
            KeyError: the batch does not have the id.
            IndexError: the id has no such payload.
            ValueError: the id is marked as done already, or `payload` comes with another error than `Rejected`.

        Example:
            batch.fail("17", TimeoutError("the shop is slow"))
        """
        # A call of `fail` never counts as a success, even if `error` is None or a class.
        reason: object = error() if is_a(error, type) and issubclass(error, BaseException) else error
        if payload is not None:
            self._reject(job_id, reason, payload)
            return
        if is_a(reason, BaseException):
            self._mark(job_id, reason)
        else:
            self._mark(job_id, plain(reason) if is_a(reason, str) else shown(reason, LONGEST_LOGGED))

    def give_back(self, job_ids: Iterable[str]) -> None:
        """These ids, and no others, have not been performed to their end: they are returned as they were."""
        self._returned = tuple(job_ids)

    def put_off(self, job_id: str, later: Later) -> None:
        """The id goes on later, and has not failed."""
        self._mark(job_id, later)

    def delivered(self, job_id: str) -> int:
        """How many payloads of the id were delivered; its list is the handler's own, to take from as it likes."""
        return len(self._deliveries[job_id].entries)

    def reopen(self, job_id: str) -> bool:
        """Take a mark back because the job goes on; False if it is done."""
        with self._lock():
            if job_id in self._marks and self._marks[job_id] is None:
                return False
            self._own("_marks").pop(job_id, None)
            return True

    def jobs_to_run(self) -> Iterator[str]:
        """The ids for calls of `perform_job`, one after the other; those that do not come to their end go back."""
        job_ids = tuple(self._payloads)
        for position, job_id in enumerate(job_ids):
            # Noted before, so that a middleware that swallows what ends this early makes no job done that never ran.
            self._returned = job_ids[position:]
            if job_id in self._context.requests or self._is_overdue(job_id):
                if job_id not in self.overdue:
                    self.overdue, self.tells_more = (*self.overdue, job_id), True
                continue
            if self.limit is not None:
                self.limit.begin(job_id)
            if self.stopping:
                return
            yield job_id
        self._returned = ()

    def _is_overdue(self, job_id: str) -> bool:
        """Whether a payload of the job has expired since the batch began. Then it goes back, and runs without that."""
        if self.now is None or not self._deliveries[job_id].expiries:
            return False
        try:
            return min(self._deliveries[job_id].expiries) < self.now()
        except LowkiqError:
            # Nobody knows the time, so nobody knows that the job may run.
            return True

    @property
    def current(self) -> str:
        """The id that runs, of a `perform_job`; of a `perform` the first."""
        return (*self._returned, *self._payloads)[0]

    @property
    def is_closed(self) -> bool:
        """Whether the batch has ended."""
        return self._closed

    def close(self) -> tuple[Mapping[str, BaseException | str | None], tuple[str, ...]]:
        """End the batch: the marks, None for done, and what is returned. Later marks raise BatchClosed."""
        self._closed = True
        # A thread that marks makes the lock before it looks whether the batch is closed. So without a lock it will see
        # that, and with one it has either seen that or is waited for.
        if "_made_lock" in self.__dict__:
            with self._lock():
                return self._marks, self._returned
        return self._marks, self._returned

    def _lock(self) -> Lock:
        """Held by each thread that marks."""
        lock: Lock = self.__dict__.setdefault("_made_lock", Lock())
        return lock

    def _own(self, name: str) -> dict[str, Any]:
        """The mapping of this name, to be changed; the first time it is made."""
        self.tells_more = self.tells_more or name != "_marks"
        own: dict[str, Any] = self.__dict__.setdefault(name, {})
        return own

    def _reject(self, job_id: str, error: object, payload: int) -> None:
        if not isinstance(error, Rejected):
            raise ValueError("payload: an id fails as a whole, unless it is with Rejected")  # noqa: TRY004 - which argument
        self._check_payload(job_id, payload)
        with self._lock():
            if self._closed:
                raise BatchClosed
            self._own("rejected_payloads").setdefault(job_id, {})[payload] = error

    def _check_payload(self, job_id: str, payload: int) -> None:
        if job_id not in self._deliveries:
            raise _absent(job_id)
        if not 0 <= payload < self.delivered(job_id):
            raise IndexError(f"{job_id!r} has no payload {payload}: it has {self.delivered(job_id)}")

    def _mark(self, job_id: str, mark: BaseException | str | None) -> None:
        if job_id not in self._deliveries:
            raise _absent(job_id)
        with self._lock():
            if self._closed:
                raise BatchClosed
            if job_id in self._marks and (mark is None) != (self._marks[job_id] is None):
                before = "done" if self._marks[job_id] is None else "failed"
                raise ValueError(f"{job_id!r} is marked {before} already")
            self._own("_marks").setdefault(job_id, mark)
            self.tells_more = self.tells_more or mark is not None


def _absent(job_id: object) -> KeyError:
    """The error for an id that the batch does not have; ids that were pushed as numbers are texts in it."""
    if is_a(job_id, (int, UUID)):
        return KeyError(f"{job_id!r} is not in this batch: ids are texts, so write {str(job_id)!r}")
    name = repr(job_id) if is_a(job_id, str) else f"a {type(job_id).__name__}"
    return KeyError(f"{name} is not in this batch")


running: Final[ContextVar["tuple[str, Batch] | None"]] = ContextVar("lowkiq_running", default=None)
"""The batch, and the name of its queue, whose handler runs in this thread or coroutine, or ran here last."""
