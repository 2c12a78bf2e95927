"""How ids come back: in which order, and how many in a second."""

from typing import Annotated, Final, Literal, Self, TypeAlias, TypedDict, get_args

import msgspec

from lowkiq_lambda.store.shard.scripts import Argument

RequeueOrder: TypeAlias = Literal["score", "unless_newer", "last"]
"""`score`: each payload comes where its score belongs. `unless_newer`: as that, but one stays dead where a newer
payload of its id waits or is in flight. `last`: it comes behind all payloads of its id."""
ORDERS: Final[tuple[RequeueOrder, ...]] = get_args(RequeueOrder)
AT_ONCE: Final[tuple[Argument, ...]] = ("score", "", 0)
"""What requeue.lua is told of ids that are all due now, each payload where its score belongs."""
Rate: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]


class RequeueOptions(TypedDict, total=False):
    """What may be said of a requeue: by default score, all at once (`rate` None), and now."""

    order: RequeueOrder
    rate: float | None
    start: float | None


class RequeueTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first id is due at `start` (Unix seconds), and `rate` in each second from then on; None: all at once."""

    order: RequeueOrder
    start: float
    rate: Rate | None

    @property
    def step(self) -> float:
        """Seconds from one id to the next."""
        return 0.0 if self.rate is None else 1.0 / self.rate

    def due_at(self, position: int) -> float:
        """When the id is due that so many come before."""
        return self.start + position * self.step

    def after(self, at: float) -> Self:
        """The same, but the first is due a step after then or later: the same act again finds each id at its turn."""
        return msgspec.structs.replace(self, start=max(self.start, at + self.step))

    def arguments(self, position: int) -> list[Argument]:
        """What requeue.lua and preview_requeue.lua are told of ids from that position on."""
        return [self.order, *self.times(position)]

    def times(self, position: int) -> list[Argument]:
        """When the id at that position is due, and the seconds between two: for requeue_waiting.lua and run_now.lua."""
        return [repr(self.due_at(position)), repr(self.step)]
