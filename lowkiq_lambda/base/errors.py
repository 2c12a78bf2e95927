"""The exceptions that an app meets, and the base of all others; the docstring of a class is its default message."""

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any


class LowkiqError(Exception):
    """lowkiq_lambda could not do what it was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join(cleandoc(self.__doc__ or "").split()))


class ConfigError(LowkiqError):
    """A setting has a value that cannot work: correct it and start again."""

    def __init__(self, message: str | None = None, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class ForDevelopment(ConfigError):
    """The setting is for development, and this process is a deployment."""


class AppNotFound(LowkiqError):
    """The app could not be loaded: name it as MODULE:APP, from the folder that the module is imported from."""


class DeclarationError(LowkiqError):
    """A worker or a schedule entry is declared in a way that cannot work: correct the declaration."""


class NoSuchQueue(LowkiqError, LookupError):
    """Nobody has made the queue on this server yet: declare its worker, or push once the program has that does."""


class NoSuchEntry(LowkiqError, LookupError):
    """The queue has no schedule entry of that name."""


class NoSuchTask(LowkiqError, LookupError):
    """There is no task of that id: it was forgotten, or it never was."""


class TaskClosed(LowkiqError):
    """The task takes no more pushes, but from its own running items until it is complete; nothing was written."""


class SplitInterrupted(LowkiqError):
    """`task.split` broke off, for the error in its cause: call it again with `skip=error.rows_done`.

    Some rows behind these may have been pushed. With a Conflict in its cause, `rows_done` counts the jobs of that call,
    also those that were dropped: they are items that are `merged`.
    """

    def __init__(self, message: str | None = None, *, rows_done: int = 0) -> None:
        super().__init__(message)
        self.rows_done = rows_done


class JobError(LowkiqError, ValueError):
    """A job of the call cannot be queued, so no job of the call was written."""

    def __init__(self, message: str | None = None, *, position: int | None = None, field: str | None = None) -> None:
        where = "" if position is None else f"job {position}: "
        what = "" if field is None else f"{field}: "
        super().__init__(f"{where}{what}{message}" if message else None)
        self.reason = message
        self.position = position
        self.field = field

    def at(self, position: int) -> "JobError":
        """The same error, naming the job's place in the call."""
        return type(self)(self.reason, position=position, field=self.field)


class Conflict(LowkiqError):
    """Jobs of the push were dropped, as their ids have work; the other jobs of the call are written.

    `positions`: of the jobs that were dropped and ask to raise. `written`: those of the jobs that were not dropped.
    `results`: a `Pushed` for each job of the call.
    """

    def __init__(
        self, message: str | None = None, *, positions: Iterable[int] = (), results: Iterable[Any] = ()
    ) -> None:
        super().__init__(message)
        self.positions = [*positions]
        self.results = [*results]
        self.written = [position for position, pushed in enumerate(self.results) if not pushed.dropped]


class QueueMismatch(LowkiqError):
    """The queue was made with another declaration: restore it, or drain the queue and move it over."""

    def __init__(
        self,
        message: str | None = None,
        *,
        queue_name: str | None = None,
        declared: str | None = None,
        stored: str | None = None,
    ) -> None:
        super().__init__(message)
        self.queue_name = queue_name
        self.declared = declared
        self.stored = stored

    def advised(self, advice: str | None) -> "QueueMismatch":
        """The same error, with another way out at its end."""
        text = f"{str(self).removesuffix('.')}; or, {advice}." if advice else str(self)
        return type(self)(text, queue_name=self.queue_name, declared=self.declared, stored=self.stored)


class ShardClosed(QueueMismatch):
    """The shard is not open to this declaration: the queue was declared anew, or is being so."""

    floors: bytes | None = None
    """The numbers to pass to the shard that its jobs have moved to, if a move closed this one (docs/resharding.md)."""


class LeaseLost(LowkiqError):
    """The lease of the shard ended or passed to another holder: stop, the jobs will be performed again."""


class BatchClosed(LowkiqError):
    """The batch has ended: call `done` and `fail` before the handler returns."""


class HandlerError(LowkiqError):
    """The handler did not run to its end: each middleware must call `call_next`, the handler must be sync."""


class Rejected(LowkiqError):
    """The job cannot succeed, and a retry would not help: it ends."""

    keep: bool = False

    def __init__(self, message: str | None = None, *, keep: bool = False) -> None:
        """With `keep` its payloads go to the morgue, the list of dead jobs, so that an operator can requeue them."""
        super().__init__(message)
        self.keep = keep


class PastError(LowkiqError):
    """An error of another id, which is charged to this one without running it: `retry_in` gets it in place of its own.

    `type_name`: that of the other error, "" if its text does not begin with one. `text`: the text that is kept of it.
    """

    def __init__(self, message: str | None = None, *, type_name: str = "") -> None:
        super().__init__(message)
        self.type_name = type_name
        self.text = message or ""


class CursorError(LowkiqError, ValueError):
    """The cursor cannot be used: it was not made here, its data have changed, or JSON cannot hold it."""


class LimitExceeded(LowkiqError):
    """The limiter has no room now: ask again `retry_after` seconds later, or let `acquire` wait."""

    def __init__(self, message: str | None = None, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BackendError(LowkiqError):
    """Redis refused the call or could not be reached: its own words are in the cause."""


class BackendUnavailable(BackendError):
    """Redis cannot serve now: it may be restarting or failing over, so try again a little later."""


class ShardMoving(BackendUnavailable):
    """The jobs of the shard are on their way from other shards: it opens when all have come, so try again then."""


class PoolExhausted(BackendUnavailable):
    """No connection became free within `pool_timeout`: raise `client_pool_size`, or use fewer threads."""


class NotReplicated(BackendUnavailable):
    """The primary has what was written, but too few replicas do: a failover now may lose it, so write it again."""


class BufferFull(BackendUnavailable):
    """Redis cannot be reached, and the buffer of this process is full: try again later, or raise `Buffer(jobs=...)`."""


class NotFlushed(BackendUnavailable):
    """Jobs are still in the buffer of this process, as Redis could not be reached: they may be lost with it."""

    def __init__(self, message: str | None = None, *, jobs: int = 0) -> None:
        super().__init__(message)
        self.jobs = jobs


class BackendFull(BackendError):
    """Redis has reached its memory limit: drain or delete jobs, or raise `maxmemory`, then push again."""


class QueueFull(BackendError):
    """As many ids wait in a shard of the queue as its `max_waiting` allows: push again when some are done."""

    def __init__(self, message: str | None = None, *, queue_name: str = "", waiting: int = 0) -> None:
        super().__init__(message)
        self.queue_name = queue_name
        self.waiting = waiting


class BackendDenied(BackendError):
    """Redis refused the user or password, or its ACL forbids a command or key: correct the rights."""


class RequestsFull(LowkiqError):
    """A shard has as many requests for single ids as it may have: wait until runs have ended, or end pauses."""


class ShardDamaged(BackendError):
    """A shard holds what no script wrote, and it could not be set aside: docs/operations.md says what to do."""


class PushInterrupted(BackendError):
    """The push broke off: push `not_written` again, and `unknown` too if a repeat does no harm."""

    def __init__(
        self,
        message: str | None = None,
        *,
        written: Iterable[int] = (),
        not_written: Iterable[int] = (),
        unknown: Iterable[int] = (),
    ) -> None:
        super().__init__(message)
        self.written = list(written)
        self.not_written = list(not_written)
        self.unknown = list(unknown)


class EmbeddedServerError(LowkiqError):
    """The embedded server cannot be started or reached: set LOWKIQ_REDIS_URL to use another server."""


def is_of_move(error: object) -> bool:
    """Whether it says only that the queue is being resharded: the jobs of the shard have left it, or not come yet."""
    return isinstance(error, ShardMoving) or (isinstance(error, ShardClosed) and error.floors is not None)
