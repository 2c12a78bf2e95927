"""Which queues somebody has to look at: worst first, by shares and by what stands still, never by a count alone."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.views.queues import QueueOverview

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

Severity: TypeAlias = Literal["act", "look", "quiet"]

LATE: Final = 60.0
"""Seconds for which an id that is due may wait before somebody has to look."""
_STANDS_FOR: Final = 300.0
"""Seconds for which a queue with due ids may end none before somebody has to act."""
FAILING: Final = 0.25
"""The share of failures that is trouble, as `lowkiq doctor` has it, and of how many ids, at least:"""
FEWEST: Final = 20


class Trouble(NamedTuple):
    """How bad it is, and why, in words; "quiet" with no words where all is well."""

    severity: Severity
    words: str = ""

    @property
    def rank(self) -> int:
        """Smaller is worse."""
        return ("act", "look", "quiet").index(self.severity)


def trouble_of(queue: QueueOverview) -> Trouble:
    """The worst of a queue.

    A share of failures counts over the stretch of the overview. Due ids of a pause are trouble; a pause alone is not.
    """
    return min(_troubles(queue), key=lambda trouble: trouble.rank, default=Trouble("quiet"))


def troubles_of(queues: Sequence[QueueOverview], needs: "Sequence[Need]") -> dict[str, Trouble]:
    """The worst of each queue by its name, which is trouble, too, where `needs` (worst first) has the queue."""
    first = {need.queue: need for need in reversed(needs)}
    return {queue.name: _worse(trouble_of(queue), first.get(queue.name)) for queue in queues}


def _worse(trouble: Trouble, need: "Need | None") -> Trouble:
    if need is None:
        return trouble
    other = Trouble("act" if need.mark == "broken" else "look", trouble.words or need.check)
    return min(trouble, other, key=lambda either: either.rank)


def _troubles(queue: QueueOverview) -> Iterator[Trouble]:
    if queue.mismatch:
        # The counts are not those of the queue's jobs.
        yield Trouble("act", "declared otherwise")
        return
    now, series = queue.now, queue.history.series
    ended, failed = sum(series.ended), sum(series.failed)
    share = failed / (ended + failed) if failed else 0.0
    if now.blocked:
        yield Trouble("act", f"{exact(now.blocked)} blocked")
    if share > FAILING:
        yield Trouble("act" if ended + failed >= FEWEST else "look", f"{share:.0%} fail")
    if now.lag >= _STANDS_FOR and not ended:
        yield Trouble("act", f"stands still for {duration(now.lag)}")
    elif now.lag >= LATE:
        yield Trouble("look", f"late by {duration(now.lag)}")
    if now.paused_lag >= LATE:
        who = "paused" if now.paused else "a tenant paused"
        yield Trouble("look", f"{who}, with ids due for {duration(now.paused_lag)}")
    if now.limited_lag >= LATE:
        yield Trouble("look", f"limited, with ids due for {duration(now.limited_lag)}")
    if now.damaged:
        yield Trouble("look", f"{exact(now.damaged)} damaged records")
