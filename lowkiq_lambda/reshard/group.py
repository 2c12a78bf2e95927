"""The move of one group of shards: from those that its ids leave to those that they move to.

Each step may be repeated, and any number of processes may be at it at once: what a step finds done, it leaves alone.
A process that dies leaves shards that tell the next one how far the group has come.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.jobs.job import tenant_of
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import Home, Layout
from lowkiq_lambda.store.shard.moving import (
    MARGIN,
    MOST_ARRIVALS,
    Cargo,
    DeathTerms,
    Floors,
    Load,
    MovingShards,
    Sealed,
    Told,
    bases_of,
)

STILL: Final = 30.0
"""Seconds for which no process takes a shard that is about to be closed. The ban ends by itself."""
PATIENCE: Final = 60.0
"""Seconds that a group waits for the holders of its shards, before another group has its turn."""
_LOOK_AGAIN: Final = 0.25
_ROWS_AT_ONCE: Final = 1_000
_FOR_ALL: Final = b""


Remaining: TypeAlias = Callable[[], float]


def endless() -> float:
    """The time that a command has."""
    return math.inf


class Moved(NamedTuple):
    """What was carried of a group: rows that were read, and for how many seconds its ids were not to be had."""

    rows: int
    seconds: float


class Postponed(NamedTuple):
    """The group cannot move yet: it is worth another try in so many seconds, because of that."""

    seconds: float
    reason: str


class QueueFacts(NamedTuple):
    """The queue of a worker: what it is declared with beside the number of its shards."""

    name: str
    merge: str
    by_tenant: bool
    features: tuple[str, ...]
    death_terms: DeathTerms
    prefix: str
    """Of the app's keys."""

    def shards(self, homes: Sequence[Home]) -> list[ShardRef]:
        """These shards."""
        return [
            ShardRef(self.name, home.shards_count, home.index, self.features, self.by_tenant, prefix=self.prefix)
            for home in homes
        ]

    def crc_of(self, job_id: str) -> int:
        """What says in which shard an id lies."""
        return crc32((tenant_of(job_id) if self.by_tenant else job_id).encode())


class GroupMove:
    """One group of a queue, on its way."""

    def __init__(self, shards: MovingShards, queue: QueueFacts, layout: Layout, group: int, clock: Clock) -> None:
        self._shards = shards
        self._queue = queue
        self._layout = layout
        self._group = group
        self._clock = clock
        self._sources = queue.shards(layout.sources(group))
        self._targets = queue.shards(layout.targets(group))
        self._at = {shard.index: shard for shard in self._targets}

    @property
    def targets(self) -> Sequence[ShardRef]:
        """The shards that it moves to."""
        return self._targets

    def check(self) -> None:
        """Before anything is changed: raises LowkiqError if the group cannot move, and BackendError."""
        if self._asked()[0].arrival >= MOST_ARRIVALS:
            raise LowkiqError(
                f"{self._would_not_fit} Nothing was changed. Perform or delete what waits and lies in the morgue, and "
                "try again."
            )

    @property
    def _would_not_fit(self) -> str:
        return f"Queue {self._queue.name!r} has moved to fewer shards too often: its arrival numbers would not fit."

    def run(self, remaining: Remaining = endless) -> Moved | Postponed:
        """Move it, while `remaining` (seconds) is more than 0.

        Raises Overtaken, BackendError, and LowkiqError if it cannot move at all.
        """
        if postponed := self._prepare():
            return postponed
        began = self._clock.monotonic()
        if not self._hold_still(self._shards.tell(self._sources, STILL), remaining):
            return Postponed(0.0, "its shards are held by batches that run long")
        # In this order, so that of a group whose first shard is not closed none is (Resharding.turn).
        sealed = [self._seal(shard) for shard in self._sources]
        # Pushes and operators may have come since the shards were asked.
        self._shards.prepare(self._targets, *self._asked(margin=0), self._group)
        rows = self._carry([one.floors for one in sealed], remaining)
        if rows is None:
            return Postponed(0.0, "its mover has no time left")
        self._open(sealed)
        seconds = self._clock.monotonic() - began
        self._shards.forget_counters(self._sources)
        return Moved(rows, seconds)

    def _prepare(self) -> Postponed | None:
        floors, settings = self._asked()
        if floors.arrival >= 2 * MOST_ARRIVALS - MARGIN:
            raise LowkiqError(f"{self._would_not_fit} Turn the move round (--abort).")
        seconds = self._shards.prepare(self._targets, floors, settings, self._group)
        reason = "its new shards were closed, or refused a push, less than two minutes ago"
        return Postponed(seconds, reason) if seconds else None

    def _asked(self, margin: int = MARGIN) -> tuple[Floors, Mapping[bytes, bytes]]:
        """The floors for later pushes, and the settings of operators: the latest of all shards."""
        answers = self._shards.tell(self._sources)
        settings: dict[bytes, bytes] = {}
        for one in answers:
            for name, value in one.settings.items():
                settings[name] = max(settings.get(name, value), value, key=float)
        return Floors.over([one.floors for one in answers], margin), settings

    def _hold_still(self, answers: Sequence[Told], remaining: Remaining) -> bool:
        """Wait until no shard that is to be closed has a holder; False if it takes too long, with no shard closed."""
        until = self._clock.monotonic() + PATIENCE
        while held := max((one.held for one in answers if not one.is_sealed), default=0.0):
            is_over = remaining() <= 0 or self._clock.monotonic() >= until
            if is_over and not any(one.is_sealed for one in answers):
                self._shards.reopen(self._sources)
                return False
            self._clock.sleep(min(held, _LOOK_AGAIN))
            answers = self._shards.tell(self._sources, STILL)
        return True

    def _seal(self, shard: ShardRef) -> Sealed:
        while True:
            if sealed := self._shards.seal(shard, self._queue.death_terms):
                return sealed
            # A drain took the shard after its stillness had run out, because this process was frozen.
            (answer,) = self._shards.tell([shard], STILL)
            self._clock.sleep(min(max(answer.held, 0.01), _LOOK_AGAIN))

    def _carry(self, floors: Sequence[Floors], remaining: Remaining) -> int | None:
        """Carry all rows of the closed shards; returns their number, or None if the time is over before."""
        left: list[tuple[ShardRef, int, Sequence[Load]]] = [
            (shard, base, ()) for shard, base in zip(self._sources, bases_of(floors), strict=True)
        ]
        rows = 0
        while left:
            if remaining() <= 0:
                return None
            cargos = self._shards.carry(left)
            for loads in self._by_target(cargos):
                self._shards.receive(loads)
            rows += sum(len(cargo.rows) for cargo in cargos)
            left = [
                (shard, base, cargo.rows)
                for (shard, base, _), cargo in zip(left, cargos, strict=True)
                if not cargo.is_empty
            ]
        return rows

    def _by_target(self, cargos: Sequence[Cargo]) -> Iterator[list[tuple[ShardRef, Sequence[Load]]]]:
        """What each shard receives, in the order of each source, in turns that one call may have."""
        loads: dict[int, list[Load]] = {shard.index: [] for shard in self._targets}
        for cargo in cargos:
            for row in cargo.rows:
                for index in self._indexes_of(row):
                    loads[index].append(row)
        while any(loads.values()):
            yield [(self._at[index], rows[:_ROWS_AT_ONCE]) for index, rows in loads.items() if rows]
            loads = {index: rows[_ROWS_AT_ONCE:] for index, rows in loads.items()}

    def _indexes_of(self, row: Load) -> Sequence[int]:
        is_of_all = row.name == _FOR_ALL or (row.kind == b"lane" and not self._queue.by_tenant)
        if is_of_all:
            return [shard.index for shard in self._targets]
        return [self._queue.crc_of(row.name.decode()) % self._layout.after]

    def _open(self, sealed: Sequence[Sealed]) -> None:
        """Open the shards; what the closed ones have counted is counted on in one of them each."""
        counts: list[list[bytes]] = [[] for _ in self._targets]
        for number, one in enumerate(sealed):
            counts[number % len(counts)] += one.counters
        bases = bases_of([one.floors for one in sealed])
        shifts = {
            f"{shard.index} of {shard.shards_count}": base for shard, base in zip(self._sources, bases, strict=True)
        }
        for shard, counters in zip(self._targets, counts, strict=True):
            self._shards.open(shard, counters, shifts)


Report = Callable[[int, int, Moved | Postponed], object]
"""Is told how many groups have moved, of how many, and what became of the last."""
