"""Slots, in which the batches of a visit run side by side: the common part of threads and the event loop."""

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, Protocol, TypeAlias

import msgspec

from lowkiq_lambda.engine.perform import BatchContext, BatchResult
from lowkiq_lambda.jobs.job import Delivery


class Ended(msgspec.Struct, frozen=True):
    """The result of a batch, and when it began and ended (monotonic).

    `computed`: for how many seconds a processor worked for it, where a thread of its own tells that.
    """

    result: BatchResult
    began_at: float
    ended_at: float
    computed: float | None = None

    @property
    def is_bad(self) -> bool:
        """Whether others are to begin once it is looked at: an exit, or an error of which no id is known."""
        return self.result.exit is not None or self.result.error is not None


class NoSlot(RuntimeError):
    """The system has no further thread."""


class LoopEnded(RuntimeError):
    """The event loop of handlers has ended under them: what they did not end may go on if it is run again."""


class SlotCall(Protocol):
    """A batch that was begun in a slot."""

    def cancel(self) -> None:
        """Ask it to end, if it can be asked."""
        ...

    def fault(self) -> str | None:
        """The reason why it may never end, or None. A visit waits for it only without such a reason."""
        ...


class SlotBatch(BatchContext, Protocol):
    """A batch of a slot, as the context of its handler, and as it is known to who may withdraw it."""

    deliveries: Sequence[Delivery]
    call: SlotCall | None
    """Set before anything of the batch may run."""

    @property
    def cancelled(self) -> object:
        """Why it is cancelled, or None."""
        ...

    def begin(self) -> bool:
        """In the slot, before all else: whether to perform it. False if it was withdrawn."""
        ...


OnEnd: TypeAlias = Callable[[Any, Ended | BaseException], SlotBatch | None]
"""Called in the slot, once, when a batch that began has ended: with what came of it, or a fault of the library.

Returns the batch that is to follow in the slot; None: the slot is free.
"""


class Slots(Protocol):
    """Performs batches without waiting for their end. Used by one thread for each visit."""

    def check(self) -> None:
        """Raises RuntimeError if the thread that calls would wait for itself."""
        ...

    def begin(self, batches: Sequence[SlotBatch], variables: Context, on_end: OnEnd) -> None:
        """Perform each in a slot of its own, with a copy of these context variables, and then what follows it there.

        Raises NoSlot before any part of a batch runs that has no `call` then: neither it nor those behind it begin.
        """
        ...
