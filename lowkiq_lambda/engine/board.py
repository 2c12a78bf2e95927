"""The state of shards, and which of them is visited next: the one place for lag, turns and back-off.

Probes, notifications of pushes and visits update it, and the clock. The latest update wins, except that a shard whose
last visit failed is skipped until its back-off ends.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from threading import Condition, Lock
from typing import TYPE_CHECKING, Final, Self

from lowkiq_lambda.base.clock import Clock, at_most
from lowkiq_lambda.engine.budget import VisitResult
from lowkiq_lambda.engine.shard_queue import CHECKS, Rests, ShardEntry, ShardQueue, ShardView, at
from lowkiq_lambda.settings.protocols import Scheduler
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.notifications import Heard

TURN: Final = 0.25
"""Seconds after which a visit ends if another shard has work."""
RISK_PUT_OFF: Final = 60.0
"""Seconds for which shards whose next job may end the process wait for others, at most; or half of a drain's time."""
_NOT_KEPT: Final = ("held", "lease lost")
"""Why a visit that got the shard let it go, though it has work: so it may end at once again."""
UNCHOSEN: Final = 0.1
"""Seconds until a scheduler that chose none of the shards with work is asked again."""


class ShardBoard:
    """The shards of one thread, or of several that share them. Safe to use from any thread."""

    def __init__(
        self, shards: Iterable[ShardRef], clock: Clock, poll_interval: float, rests: Rests, rng: Random | None = None
    ) -> None:
        """With `rng`, rests are up to a quarter shorter, so that many processes do not come at once."""
        self._shards = [*dict.fromkeys(shards)]
        self._entries = {shard: ShardEntry(shard, position) for position, shard in enumerate(self._shards)}
        """The entries of shards that were dealt before, too: a visit to one may be under way."""
        self._weights: Mapping[str, float] = {}
        self._clock = clock
        self._check_interval = poll_interval / CHECKS
        self._rests = rests
        self._rng = rng
        self._risks_from = -math.inf
        self._limited: set[str] = set()
        """Queues of which shards are left out, as their limits let nothing begin."""
        self._changed = Condition(Lock())
        self._events = 0
        self._is_closed = False
        self._queue = ShardQueue()

    @property
    def shards(self) -> Sequence[ShardRef]:
        """The shards, in the order in which they were dealt."""
        return list(self._shards)

    @property
    def events(self) -> int:
        """How much has happened; to be noted before a probe is sent."""
        return self._events

    @property
    def is_closed(self) -> bool:
        """Whether nothing is taken any more."""
        return self._is_closed

    def put_off_risk(self, seconds: float) -> None:
        """A drain of so many seconds begins: what may end the process waits until nothing else has work, or longest."""
        self._risks_from = self._clock.monotonic() + min(RISK_PUT_OFF, seconds / 2)

    def weigh(self, weights: Mapping[str, float]) -> None:
        """Before anything is taken: how much lag counts for the shards of these queues, by name; 1 for all others."""
        with self._changed:
            self._weights = weights
            for entry in self._entries.values():
                entry.weight = weights.get(entry.ref.queue_name, 1.0)

    def deal_as(self, other: Self) -> None:
        """From now on the board has the shards of that one, which is new."""
        self.deal_anew(other.shards)

    def deal_anew(self, shards: Iterable[ShardRef]) -> None:
        """From now on the board has these shards. Visits to others come to their ends."""
        with self._changed:
            self._shards = [*dict.fromkeys(shards)]
            former = self._entries.keys() - set(self._shards)
            self._put_aside(former)
            for position, shard in enumerate(self._shards):
                entry = self._entries.setdefault(shard, ShardEntry(shard, position))
                entry.ref, entry.position = shard, position
                entry.weight = self._weights.get(shard.queue_name, 1.0)
                if entry.rests_until == math.inf:
                    entry.rests_until = -math.inf
                    self._queue.put(entry)
            self._changed.notify_all()

    def next(self, scheduler: Scheduler | None = None, *, beside: bool = False) -> ShardRef | None:
        """The shard to visit now, the most urgent if no scheduler chooses; None if none has work.

        `beside`: others are being visited, so that a shard that may end the process waits for them, and shards after it
        wait too. Call `visited` or `failed` when the visit is over.
        """
        if scheduler is not None:
            # Outside the lock: a scheduler may be the user's code, and threads that notify must not wait for it.
            ref = scheduler.next(self.views())
            return None if ref is None else self._take(self._entries[ref.ref])
        with self._changed:
            entry = self._queue.first(self._clock.monotonic())
            return None if entry is None or (beside and entry.risky) else self._taken(entry)

    def take(self, scheduler: Scheduler | None = None) -> ShardRef | None:
        """As `next`, but waits for a shard with work; None once the board is closed."""
        while not self._is_closed:
            events = self._events
            shard = self.next(scheduler)
            if shard is not None:
                return shard
            with self._changed:
                if events == self._events and not self._is_closed:
                    self._changed.wait(at_most(self._pause(scheduler)))
        return None

    def wait_until(self, among: Iterable[ShardRef] | None = None) -> float:
        """When one of the shards may be visited next, as far as is known: monotonic; infinity: not by time alone."""
        entries = self._entries.values() if among is None else (self._entries[shard] for shard in among)
        return min((entry.free_at for entry in entries), default=math.inf)

    def views(self) -> list[ShardView]:
        """All shards, as dealt, with what they look like now."""
        now = self._clock.monotonic()
        return [self._entries[shard].view(now) for shard in self._shards]

    def others_have_work(self) -> bool:
        """Whether a shard without a visit waits for its turn."""
        with self._changed:
            return self._queue.first(self._clock.monotonic()) is not None

    def may_go_beside(self, shard: ShardRef) -> bool:
        """Whether another has work now that can be visited at the same time: neither may end the process."""
        with self._changed:
            entry = self._queue.first(self._clock.monotonic())
            return entry is not None and not (entry.risky or self._entries[shard].risky)

    def more_ready_at(self) -> float:
        """When a shard that has no work now may be visited, as far as is known (monotonic)."""
        with self._changed:
            self._queue.first(self._clock.monotonic())
            return self._queue.next_at()

    def is_resting(self, shard: ShardRef) -> bool:
        """Whether the shard is left alone for now."""
        return self._entries[shard].rests_until > self._clock.monotonic()

    def turn(self) -> Callable[[], bool]:
        """A visit begins: asked whether its turn is over."""
        over_at = self._clock.monotonic() + TURN
        return lambda: self._clock.monotonic() >= over_at and self.others_have_work()

    def note_claim(self, shard: ShardRef) -> None:
        """The visit to the shard is about to claim, or to end: the server has what this board was notified of."""
        self._entries[shard].claimed = self._events

    def notify(self, shards: Iterable[ShardRef]) -> None:
        """These have work now, or sooner than was known. Others than the board's are passed over."""
        with self._changed:
            self._events += 1
            now = self._clock.monotonic()
            for entry in filter(None, map(self._entries.get, shards)):
                entry.notified = entry.updated = self._events
                entry.ready_at = min(entry.ready_at, now)
                entry.limited_until = -math.inf
                self._queue.put(entry)
                self._changed.notify()

    def offer(self, shards: Iterable[ShardRef]) -> None:
        """The limited queue of these shards has a permit for them: wake those that this board has on the wait list.

        An offer is not a sign of work. If the shards of all boards woke, all but one would find the permit taken and
        be on the wait list again, so a shard without work would be woken for ever.
        """
        with self._changed:
            self._events += 1
            now = self._clock.monotonic()
            for entry in filter(None, map(self._entries.get, shards)):
                entry.offered = self._events
                entry.limited_until = -math.inf
                if entry.in_line:
                    entry.ready_at = min(entry.ready_at, now)
                self._queue.put(entry)
                self._changed.notify()

    def hear(self, message: "Heard") -> None:
        """Take in a notification."""
        (self.offer if message.is_offer else self.notify)(message.shards)

    def update(self, results: Iterable[ProbeResult], asked_event: int) -> None:
        """A probe that was sent at event `asked_event` brought this; what happened since is newer.

        Shards of other boards are passed over.
        """
        with self._changed:
            self._events += 1
            now = self._clock.monotonic()
            entries = [(entry, result) for result in results if (entry := self._entries.get(result.ref))]
            event, risks_from = self._events, self._risks_from
            changed = sum([entry.probed(result, now, event, asked_event, risks_from) for entry, result in entries])
            if changed or self._queue:
                self._queue.fill(self._entries.values(), now)
            self._changed.notify(changed)

    def visited(self, shard: ShardRef, result: VisitResult, ready_in: float | None) -> None:
        """A visit came to its end; in so many seconds the shard has work (below 0: since then), if that is known."""
        with self._changed:
            before = self._entries[shard].ready_at
            entry, now = self._back(shard), self._clock.monotonic()
            entry.failures = 0
            entry.in_line = result.reason == "limited" and result.token is None
            entry.behind_from = self._risks_from if entry.risky else -math.inf
            if ready_in is None and result.reason != "empty":
                ready_in = self._check_interval
            entry.ready_at = at(now, ready_in)
            if entry.notified > (entry.claimed if result.reason == "empty" else entry.taken):
                # The visit's last claim may have come before that push.
                entry.ready_at = min(entry.ready_at, now)
            if result.exit is not None:
                # Not longer each time: an id that exits is bounded by itself, and its shard has others. After its turn
                # the backlog comes first: what exited waits behind it.
                entry.put_back(now, 0.0 if result.reason == "turn over" else self._rests.first)
            elif result.reason == "limited":
                # It has work as before.
                entry.ready_at = now if result.token else min(before, now)
            elif result.token is None or result.reason in _NOT_KEPT:
                entry.rests_until = max(entry.rests_until, now + self._rests.not_acquired)
            self._queue.put(entry)
            if result.reason == "limited":
                self._leave_out(entry, now + min(ready_in or 0.0, self._rests.limited))
            elif shard.queue_name in self._limited:
                self._let_in(shard.queue_name)

    def visit_alone(self, shard: ShardRef) -> None:
        """The visit that has just ended made way for a suspect of another shard: the next has no other beside it."""
        with self._changed:
            entry = self._entries[shard]
            entry.risky, entry.behind_from = True, self._risks_from
            if entry.rests_until < math.inf:
                entry.ready_at = entry.rests_until = self._clock.monotonic()
            self._queue.put(entry)

    def failed(self, shard: ShardRef, error: BaseException) -> None:
        """A visit, or a probe, of the shard raised. It rests, twice as long each time, and queues behind the others.

        However late it is, it is not the first again.
        """
        with self._changed:
            entry = self._back(shard)
            rest = self._rests.after(error, entry.failures)
            entry.failures += 1
            entry.put_back(self._clock.monotonic(), rest * (self._rng.uniform(0.75, 1.0) if self._rng else 1.0))
            self._queue.put(entry)

    def exclude(self, shards: Iterable[ShardRef]) -> None:
        """These are not visited any more."""
        with self._changed:
            self._put_aside(shards)

    def close(self) -> None:
        """Nothing is taken any more; a thread that waits returns."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _put_aside(self, shards: Iterable[ShardRef]) -> None:
        for entry in map(self._entries.__getitem__, shards):
            entry.rests_until = math.inf
            self._queue.put(entry)

    def _leave_out(self, refused: ShardEntry, until: float) -> None:
        """The limits of the queue let nothing begin: its other shards need not ask. Those rung meanwhile do."""
        self._limited.add(refused.ref.queue_name)
        for entry in self._of_queue(refused.ref.queue_name):
            if max(entry.notified, entry.offered) <= refused.taken:
                entry.limited_until = until
                self._queue.put(entry)

    def _let_in(self, queue_name: str) -> None:
        """A visit to the queue has ended: there may be a permit, and one that asks for it is on the wait list."""
        self._limited.discard(queue_name)
        for entry in self._of_queue(queue_name):
            entry.limited_until = -math.inf
            self._queue.put(entry)
        self._changed.notify()

    def _of_queue(self, queue_name: str) -> list[ShardEntry]:
        return [entry for entry in self._entries.values() if entry.ref.queue_name == queue_name]

    def _take(self, entry: ShardEntry) -> ShardRef | None:
        with self._changed:
            # Since the scheduler looked another thread may have been there.
            is_free = not entry.is_taken and entry.free_at <= self._clock.monotonic()
            return self._taken(entry) if is_free else None

    def _taken(self, entry: ShardEntry) -> ShardRef:
        self._events += 1
        entry.is_taken, entry.taken = True, self._events
        entry.claimed = entry.taken
        self._queue.put(entry)
        if self._queue:
            # Another thread watches the clock from now on.
            self._changed.notify()
        return entry.ref

    def _back(self, shard: ShardRef) -> ShardEntry:
        self._events += 1
        entry = self._entries[shard]
        entry.is_taken, entry.updated = False, self._events
        return entry

    def _pause(self, scheduler: Scheduler | None) -> float:
        """Seconds until it is worth asking again."""
        now = self._clock.monotonic()
        if self._queue.first(now) is None:
            return self._queue.next_at() - now
        return 0.0 if scheduler is None else UNCHOSEN
