"""Moves a queue to another number of shards, group by group; a call that broke off is gone on with by the next."""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LowkiqError, QueueMismatch
from lowkiq_lambda.declare.declaring import MAX_SHARDS
from lowkiq_lambda.reshard.group import GroupMove, Moved, Postponed, QueueFacts, Remaining, Report, endless
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import Registered, next_generation, read_registered, replace_registered
from lowkiq_lambda.store.shard.keys import ShardRef, notification_channel
from lowkiq_lambda.store.shard.layout import Home, Layout, settled
from lowkiq_lambda.store.shard.moving import MovingShards, Overtaken
from lowkiq_lambda.store.shard.replicas import Replicas

LONGEST_REST: Final = 5.0
"""Seconds until a group that could not move has its turn again."""
_SHORTEST_REST: Final = 0.1
_TRIES: Final = 20


class Resharding:
    """The moves of one queue. Two at once do no harm: each finds done what the other has done."""

    def __init__(  # noqa: PLR0913 - two of them are said by name
        self,
        backend: Backend,
        queue: QueueFacts,
        retry_for: float,
        clock: Clock,
        *,
        unreplicated: bool = False,
        declared: int | None = None,
    ) -> None:
        """`declared`: the number of shards that code declares; None: it leaves that to the queue."""
        self._backend = backend
        self._replicas = None if unreplicated else Replicas(backend)
        self._queue = queue
        self._retry_for = retry_for
        self._clock = clock
        self._declared = declared
        self.has_begun = False
        """Whether this began the move, and no other process did."""

    @property
    def layout(self) -> Layout:
        """Where the queue's ids are now. Raises QueueMismatch, BackendError."""
        return _layout_of(self._there())

    def still_for(self) -> float:
        """For how many seconds the layout has been as it is. Raises QueueMismatch, BackendError."""
        layout = self.layout
        return self._backend.now(self._first(layout)) - layout.at

    def begin(self, to: int, *, epoch: int | None = None) -> Layout:
        """Begin a move to so many shards, or find the one that is under way there; the layout.

        `epoch`: of the layout for which it was decided. Raises LowkiqError if the queue has another one, if another
        change of it is under way, or if its arrival numbers would not fit; ValueError for an invalid number of shards,
        and BackendError. After an error the queue is unchanged.
        """
        _check_count(to)
        # Converted to Python's own class, as stored values have no other.
        to = int.__int__(to)
        while True:
            there = self._there()
            layout = _layout_of(there)
            if there.is_auto and to == self._declared and not (there.is_moving or there.changing):
                # Code and a command name the same number: the queue has no count of its own any more.
                self._swap(replace(there, is_auto=False), layout, before=there)
                continue
            if epoch not in {None, layout.epoch}:
                raise LowkiqError(f"Queue {self._queue.name!r} has moved since it was looked at: decide again.")
            if layout.after == to:
                return layout
            self._refuse_second(there)
            epoch = next_generation(self._backend, self._first(layout), there.generation)
            begun = layout.begun(to, max(epoch, layout.epoch + 1))
            self._check(begun)
            if self._swap(there, begun):
                self.has_begun = True
                return self.layout

    def ids_by_group(self, to: int) -> list[int]:
        """How many ids wait or are dead in each group of a move to so many shards. Raises BackendError."""
        layout = self.layout
        move = layout if layout.is_moving else layout.begun(to, 0)
        client, counts = self._backend.client, []
        for group in range(move.groups):
            keys = [shard.key(name) for shard in self._queue.shards(move.sources(group)) for name in ("due", "morgue")]
            counts.append(sum(self._backend.retrying(self._retry_for, partial(client.zcard, key)) for key in keys))
        return counts

    def accept(self, count: int, *, is_accepted: bool = True) -> Layout:
        """Let code declare so many shards beside those that the queue has, or end that; the layout.

        Raises ValueError for an invalid number of shards, and LowkiqError for an attempt to end the count that the
        queue has or will have.
        """
        _check_count(count)
        while True:
            there = self._there()
            layout = _layout_of(there)
            if not is_accepted and count in {layout.before, layout.after}:
                raise LowkiqError(
                    f"Queue {self._queue.name!r} has {count} shards: code has to be able to declare that."
                )
            if (count in layout.accepts) == is_accepted or self._swap(there, layout.accepting(count, is_accepted)):
                return self.layout

    def abort(self, report: Report, remaining: Remaining = endless) -> Layout:
        """Turn the move round, so that moved ids go back; the layout. Only a move forward is turned.

        Groups that are half-way are brought to their end before, while `remaining` (seconds) is more than 0.
        """
        while (there := self._there()).is_moving and not _layout_of(there).is_returning:
            with suppress(Overtaken):
                if self._turn(there, Layout.turned_back, report, remaining) or remaining() <= 0:
                    break
        return self.layout

    def go_on(self, report: Report, remaining: Remaining = endless) -> bool:
        """Move the remaining groups while `remaining` (seconds) is more than 0; whether all have arrived.

        Raises LowkiqError if a group cannot move at all, and BackendError.
        """
        in_vain = 0
        while (there := self._there()).is_moving:
            layout = _layout_of(there)
            if not layout.left:
                self._arrive(there)
                continue
            rests: list[float] = []
            for group in layout.left:
                if remaining() <= 0:
                    return False
                try:
                    outcome = self._move(layout, group, remaining)
                except Overtaken:
                    in_vain += 1
                    self._after_overtaken(there, in_vain, report)
                    break
                self._tell(report, layout, outcome)
                if isinstance(outcome, Postponed):
                    rests.append(outcome.seconds)
            if rests and len(rests) == len(layout.left):
                self._clock.sleep(min(max(min(rests), _SHORTEST_REST), LONGEST_REST))
        return True

    def _check(self, begun: Layout) -> None:
        """Nothing is written of a move that cannot go on."""
        shards = self._shards(begun.epoch)
        # A shard with other orders is the mover's to judge.
        with suppress(Overtaken):
            for group in range(begun.groups):
                GroupMove(shards, self._queue, begun, group, self._clock).check()

    def _turn(
        self,
        there: Registered,
        changed: Callable[[Layout, int], Layout],
        report: Report,
        remaining: Remaining = endless,
    ) -> bool:
        """Give the move another epoch; whether no other process came between.

        The closed shards of a group finish under the old epoch. In any other group, the first shard can no longer be
        closed under an earlier epoch, and so no other shard can. The layout that is written next is true of it.
        """
        layout = _layout_of(there)
        epoch = max(next_generation(self._backend, self._first(layout), there.generation), layout.epoch + 1)
        for group in layout.left:
            shards = self._queue.shards(layout.sources(group))
            try:
                self._shards(epoch).reopen(shards[:1])
            except Overtaken:
                self._tell(report, layout, self._move(layout, group, remaining))
                return False
        return self._swap(there, changed(layout, epoch))

    def _after_overtaken(self, there: Registered, in_vain: int, report: Report) -> None:
        """Another process has moved on, or it began to turn the move round and died, so that the move stands still."""
        if in_vain > _TRIES:
            raise LowkiqError(f"Queue {self._queue.name!r} cannot move: its shards have had other orders since.")
        self._clock.sleep(_SHORTEST_REST * in_vain)
        now = self._there()
        if now == there:
            with suppress(Overtaken):
                self._turn(now, Layout.renewed, report)

    def _move(self, layout: Layout, group: int, remaining: Remaining = endless) -> Moved | Postponed:
        move = GroupMove(self._shards(layout.epoch), self._queue, layout, group, self._clock)
        outcome = move.run(remaining)
        if isinstance(outcome, Moved):
            self._note_moved(layout.epoch, group)
            self._ring(layout, move.targets)
        return outcome

    def _note_moved(self, epoch: int, group: int) -> None:
        while True:
            there = self._there()
            layout = _layout_of(there)
            if layout.epoch != epoch or group not in layout.left or self._swap(there, layout.with_moved(group)):
                return

    def _ring(self, layout: Layout, targets: Sequence[ShardRef]) -> None:
        numbers = ",".join(str(layout.before + shard.index) for shard in targets)
        self._backend.publish(notification_channel(self._queue.name, self._backend.prefix), numbers)

    def _tell(self, report: Report, layout: Layout, outcome: Moved | Postponed) -> None:
        report(layout.groups - len(self.layout.left), layout.groups, outcome)

    def _first(self, layout: Layout) -> ShardRef:
        """The shard whose node's clock counts."""
        return self._queue.shards([Home(layout.before, 0)])[0]

    def _shards(self, epoch: int) -> MovingShards:
        return MovingShards(self._backend, epoch, self._queue.merge, self._retry_for, self._replicas)

    def _there(self) -> Registered:
        there = read_registered(self._backend, self._queue.name, self._retry_for)
        if there is None or not there.is_readable:
            raise QueueMismatch(
                f"Queue {self._queue.name!r} cannot move: it has no declaration that can be read. "
                "A push, or a drain, declares it."
            )
        return there

    def _arrive(self, there: Registered) -> None:
        layout = _layout_of(there)
        made_with = {**there.made_with, "shards_count": layout.after}
        self._swap(replace(there, made_with=made_with, generation=layout.epoch), layout.ended(), before=there)

    def _swap(self, after: Registered, layout: Layout, before: Registered | None = None) -> bool:
        """Write the layout, and what else is changed, unless another process has written since."""
        layout_noted = layout.noted(self._backend.now(self._first(layout)), f"{socket.gethostname()}:{os.getpid()}")
        new = Registered(after.made_with, after.generation, after.changing, layout=layout_noted, is_auto=after.is_auto)
        return replace_registered(self._backend, self._queue.name, before or after, new, self._retry_for)

    def _refuse_second(self, there: Registered) -> None:
        if there.layout is not None and there.layout.is_moving:
            raise LowkiqError(
                f"Queue {self._queue.name!r} is on its way from {there.layout.before} to {there.layout.after} "
                "shards: let that arrive, or turn it round (--abort), before another move."
            )
        if there.changing:
            raise LowkiqError(f"Queue {self._queue.name!r} is being declared anew: finish that first.")


def _check_count(count: object) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"The number of shards is a whole number from 1 to {MAX_SHARDS:,}, not {count!r}.")


def _layout_of(there: Registered) -> Layout:
    return there.layout or settled(there.made_with["shards_count"])
