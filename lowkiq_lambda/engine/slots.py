"""Where the batches of a visit run side by side: what threads and the event loop have in common."""

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Protocol, TypeAlias

import msgspec

from lowkiq_lambda.engine.perform import BatchResult, DrainContext
from lowkiq_lambda.job import Delivery


class Ended(msgspec.Struct, frozen=True):
    """What came of a batch, and when it began and ended (monotonic)."""

    result: BatchResult
    began_at: float
    ended_at: float


OnEnd: TypeAlias = Callable[[Ended | BaseException], object]
"""Called in the slot, once, when the batch has ended: with what came of it, or with a fault of the library."""


class Slots(Protocol):
    """Performs batches without waiting for their end. Used by one thread for each visit."""

    def check(self) -> None:
        """Raises RuntimeError where the thread that calls would wait for itself."""
        ...

    def begin(
        self, deliveries: Sequence[Delivery], context: DrainContext, variables: Context, on_end: OnEnd
    ) -> Callable[[], object]:
        """Perform the batch with these context variables; what is returned asks for its cancellation."""
        ...
