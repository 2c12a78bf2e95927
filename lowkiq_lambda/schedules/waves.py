"""Decides planned times in Redis, wave by wave, and notifies drains of the pushed jobs."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from lowkiq_lambda.base.errors import LowkiqError, ShardClosed, is_of_move
from lowkiq_lambda.schedules.agenda import Candidate, Problems
from lowkiq_lambda.schedules.misfire import MOST_MISSED
from lowkiq_lambda.store.shard.keys import notification_channel
from lowkiq_lambda.store.shard.timetables import PUBLISHED, FireReply, Firing, fire

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.store.shard.keys import ShardRef
    from lowkiq_lambda.store.shard.waking import Waker


logger = logging.getLogger(__name__)

LOOK_AGAIN: Final = 0.05
"""Seconds after which a time is tried again that the shard took to be early: its clock was asked through a network."""


@dataclass(slots=True)
class EntryPlan:
    """The planned times of one entry that are to be decided now, in order.

    The first of them drops earlier ones: `missed`, because no tick ran in time, and `replaced` by the first. `next_at`:
    the first planned time after those.
    """

    candidate: Candidate
    now: float
    left: list[Firing]
    missed: int
    replaced: int
    next_at: float | None
    has_failed: bool = False

    @property
    def next_in(self) -> float | None:
        """Seconds until there is more to decide; None if it is unknown, or Redis takes no pushes now."""
        if self.next_at is None or (self.has_failed and self.next_at <= self.now):
            return None
        return self.next_at - self.now


class Fired(NamedTuple):
    """A planned time (Unix seconds) that a tick decided. `outcome`: pushed, merged, or busy: nothing was pushed."""

    queue_name: str
    name: str
    planned: float
    outcome: str


@dataclass(slots=True)
class Ticked:
    """The result of a tick: planned times that it fired, how many it dropped, and problems of entries.

    `missed`: no tick ran for them in time; `replaced`: a newer time of the entry came before the tick, and fired in
    their place. Of one entry no more than 100 are counted. `late`: seconds by which the latest of those fired was late.
    `next_in`: seconds until the next planned time; None if there is none. Times that another process decided are not
    among them.
    """

    fired: list[Fired] = field(default_factory=list)
    missed: int = 0
    replaced: int = 0
    late: float = 0.0
    next_in: float | None = None
    problems: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """It in brief, as JSON."""
        return {
            "fired": len(self.fired),
            "missed": self.missed,
            "replaced": self.replaced,
            "late": round(self.late, 3),
            "problems": self.problems,
        }

    def wait_at_most(self, seconds: float) -> None:
        """Something is to be decided in so many seconds."""
        self.next_in = max(0.0, seconds if self.next_in is None else min(self.next_in, seconds))


class Waves:
    """The firings of one tick, at most one of an entry in a wave.

    Of two, if the server had forgotten the script, the first would be sent again behind the second, and be refused.
    """

    def __init__(self, core: "Core", ticked: Ticked, problems: Problems) -> None:
        self._core = core
        self._ticked = ticked
        self._problems = problems
        self._written: set[ShardRef] = set()
        self._sooner: set[ShardRef] = set()
        self._unheard: defaultdict[str, set[int]] = defaultdict(set)

    def fire(self, plans: Sequence[EntryPlan]) -> None:
        """Decide the first time of each plan; the rest of a plan is dropped if its entry did not get on."""
        firings = [plan.left.pop(0) for plan in plans]
        for plan, firing, reply in zip(plans, firings, self._fired(plans, firings), strict=True):
            if is_of_move(reply):
                # The next look finds the entry where it is by then.
                self._ticked.wait_at_most(LOOK_AGAIN)
                plan.left.clear()
            elif isinstance(reply, LowkiqError):
                self._problems.note(plan.candidate.label, reply)
                plan.has_failed = True
                plan.left.clear()
            elif reply.status == b"FIRED":
                self._note(plan, firing, reply)
            elif reply.status == b"EARLY":
                self._ticked.wait_at_most(LOOK_AGAIN)
                plan.left.clear()
            elif reply.status != b"ALREADY":
                plan.left.clear()
            plan.missed = plan.replaced = 0

    def tell(self, waker: "Waker | None") -> None:
        """Tell drains which shards have work sooner, as a push does."""
        for queue_name, indexes in self._unheard.items():
            self._core.backend.publish(
                notification_channel(queue_name, self._core.backend.prefix), ",".join(map(str, sorted(indexes)))
            )
        if waker and self._written:
            waker.pushed(sorted(self._written, key=lambda shard: shard.keys[0]), self._sooner)

    def _fired(self, plans: Sequence[EntryPlan], firings: Sequence[Firing]) -> list[FireReply | LowkiqError]:
        """An answer for each; shards that were flushed are opened, and asked again."""
        replies = fire(self._core.backend, firings)
        closed = [number for number, reply in enumerate(replies) if isinstance(reply, ShardClosed)]
        for number in closed:
            plans[number].candidate.queue.doubt_for(firings[number].shard)
        closed = [number for number in closed if not is_of_move(replies[number])]
        for queue in {id(plans[number].candidate.queue): plans[number].candidate.queue for number in closed}.values():
            try:
                queue.declare_anew(self._core.backend, 0.0)
            except LowkiqError:
                logger.info("queue %r is not open to its schedule entries", queue.worker.queue_name)
        if closed:
            again = fire(self._core.backend, [firings[number] for number in closed])
            for number, reply in zip(closed, again, strict=True):
                replies[number] = reply
        return replies

    def _note(self, plan: EntryPlan, firing: Firing, reply: FireReply) -> None:
        entry, outcome = plan.candidate.entry, reply.outcome.decode()
        self._ticked.replaced += plan.replaced
        if plan.missed:
            self._ticked.missed += plan.missed
            logger.warning(
                "no process looked at %s in time; planned times that were missed: %s%s",
                plan.candidate.label,
                plan.missed,
                " or more" if plan.missed == MOST_MISSED else "",
                extra={"queue": entry.queue_name, "entry": entry.name, "missed": plan.missed},
            )
        if firing.job is None:
            return
        self._ticked.fired.append(Fired(entry.queue_name, entry.name, firing.planned, outcome))
        self._ticked.late = max(self._ticked.late, plan.now - firing.planned)
        if outcome in {"pushed", "merged"}:
            self._written.add(firing.shard)
        if reply.sooner:
            self._sooner.add(firing.shard)
        if reply.sooner and reply.sooner != PUBLISHED:
            self._unheard[firing.shard.queue_name].add(firing.shard.number)
