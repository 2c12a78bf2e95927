"""Which shards a queue has, and in which of them an id is, also while they are being replaced by others.

The remainders of one number by N and by M both fix its remainder by their greatest common divisor g. So the N old
shards and the M new ones fall into g *groups* that no id leaves, and a queue moves group by group: `moved` says which
are through. The layout is a hint, which may be stale: what counts is the role that a shard has in its own meta.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from math import gcd
from typing import Annotated, Final

import msgspec

from lowkiq_lambda.jobs.job import digest, digest_of_tenant
from lowkiq_lambda.store.shard.keys import ShardRef

COUNTS_KEPT: Final = 10
"""Of how many earlier counts of shards the layout tells: logs of closed shards are read in these."""

CHUNK_RECORDS: Final = 1_000
"""Records of an old shard that are on their way to new ones at once."""

Count = Annotated[int, msgspec.Meta(ge=1)]


class Home(msgspec.Struct, frozen=True):
    """The shard of an id: which one of how many."""

    shards_count: int
    index: int


_NAMES: Final = {"before": "from", "after": "to"}


class Layout(msgspec.Struct, frozen=True, kw_only=True, dict=True, omit_defaults=True, rename=_NAMES):
    """The counts of a queue's shards; a queue that never moved has none stored, and one count.

    `before`, `after`: the old count and the new one, the same while no move is on. `epoch`: the generation of the last
    move. `moved`: ranges of groups, both ends in them. `accepts`: the counts that code may declare. `counts`: those
    that the queue has had, the newest last. `at`, `by`: when (Unix seconds) and by whom the layout was written.
    `is_returning`: the move was turned round.
    """

    before: Count
    after: Count
    epoch: int = 0
    moved: tuple[tuple[int, int], ...] = ()
    accepts: tuple[Count, ...] = ()
    counts: tuple[Count, ...] = ()
    at: float = 0.0
    by: str = ""
    is_returning: bool = False

    @property
    def is_moving(self) -> bool:
        """Whether ids are on their way from the shards of one count to those of another."""
        return self.before != self.after

    @property
    def most(self) -> int:
        """The largest count that the queue has, or that code may declare."""
        return max(self.before, self.after, *self.accepts)

    @property
    def groups(self) -> int:
        """How many groups of shards there are that no id leaves."""
        return gcd(self.before, self.after)

    @cached_property
    def moved_groups(self) -> frozenset[int]:
        """The groups whose ids are in the new shards."""
        return frozenset(group for first, last in self.moved for group in range(first, last + 1))

    @property
    def homes(self) -> list[Home]:
        """All shards, each at the position that is its number: the old ones, and while the queue moves the new ones."""
        old = [Home(self.before, index) for index in range(self.before)]
        return [*old, *(Home(self.after, index) for index in range(self.after))] if self.is_moving else old

    def home(self, digest: int) -> int:
        """The number of the shard that an id with this crc32 is in."""
        if self.is_moving and digest % self.groups in self.moved_groups:
            return self.before + digest % self.after
        return digest % self.before

    def other_home(self, digest: int) -> int:
        """The number of the shard that the id is in if this layout is a step behind, or ahead."""
        if not self.is_moving:
            return self.home(digest)
        is_new = digest % self.groups in self.moved_groups
        return digest % self.before if is_new else self.before + digest % self.after

    def sources(self, group: int) -> list[Home]:
        """The old shards of a group, in the order of their indexes."""
        return [Home(self.before, index) for index in range(group, self.before, self.groups)]

    def targets(self, group: int) -> list[Home]:
        """The new shards of a group, in the order of their indexes."""
        return [Home(self.after, index) for index in range(group, self.after, self.groups)]

    @property
    def live(self) -> list[int]:
        """The numbers of the shards that ids are in: all, but for those that have not got theirs or are left behind."""
        if not self.is_moving:
            return [*range(self.before)]
        groups = self.moved_groups
        old = (index for index in range(self.before) if index % self.groups not in groups)
        new = (self.before + index for index in range(self.after) if index % self.groups in groups)
        return [*old, *new]

    @property
    def left(self) -> list[int]:
        """The groups that have not moved."""
        return [group for group in range(self.groups) if group not in self.moved_groups] if self.is_moving else []

    @property
    def shape(self) -> str:
        """Counters of the queue that were read under another shape are not those of the same shards."""
        return f"{self.before} {self.after} {len(self.left)} {self.epoch}"

    @property
    def twice_at_most(self) -> int:
        """How many records may lie in an old shard and in a new one, so that sums count them twice."""
        return CHUNK_RECORDS * sum(len(self.sources(group)) for group in self.left)

    def begun(self, after: int, epoch: int) -> "Layout":
        """The beginning of a move to another count."""
        return msgspec.structs.replace(
            self, after=after, epoch=epoch, moved=(), accepts=_united(self.accepts, self.before, after)
        )

    def with_moved(self, group: int) -> "Layout":
        """The group is through."""
        return msgspec.structs.replace(self, moved=_ranges([*self.moved_groups, group]))

    def accepting(self, count: int, is_accepted: bool) -> "Layout":  # noqa: FBT001 - what it is told
        """Code may declare so many shards, or may not any more."""
        others = tuple(one for one in self.accepts if one != count)
        return msgspec.structs.replace(self, accepts=_united(others, count) if is_accepted else others)

    def renewed(self, epoch: int) -> "Layout":
        """The same move, under another epoch."""
        return msgspec.structs.replace(self, epoch=epoch)

    def noted(self, at: float, by: str) -> "Layout":
        """The same, written at that time by that process."""
        return msgspec.structs.replace(self, at=at, by=by)

    def turned_back(self, epoch: int) -> "Layout":
        """The way back, as a move of its own: the groups that had not moved are in their places already."""
        return msgspec.structs.replace(
            self, before=self.after, after=self.before, epoch=epoch, moved=_ranges(self.left), is_returning=True
        )

    def ended(self) -> "Layout":
        """All groups are through: what is left is the new count."""
        counts = (*(count for count in (self.counts or (self.before,)) if count != self.after), self.after)
        return msgspec.structs.replace(
            self, before=self.after, moved=(), is_returning=False, counts=counts[-COUNTS_KEPT:]
        )


def settled(shards_count: int) -> Layout:
    """The layout of a queue that never moved."""
    return Layout(before=shards_count, after=shards_count)


def _united(counts: tuple[int, ...], *more: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*counts, *more)))


def _ranges(groups: Iterable[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for group in sorted(set(groups)):
        if ranges and ranges[-1][1] == group - 1:
            ranges[-1] = (ranges[-1][0], group)
        else:
            ranges.append((group, group))
    return tuple(ranges)


class QueueShards(list[ShardRef]):
    """All shards of a queue, each at the place of its number, and which of them has an id."""

    def __init__(self, shards: Iterable[ShardRef], layout: Layout) -> None:
        super().__init__(shards)
        self.layout: Final = layout
        self._digest: Final = digest_of_tenant if self and self[0].by_tenant else digest

    @cached_property
    def without_ids(self) -> frozenset[ShardRef]:
        """Those whose ids have moved away, or not come yet, as far as the layout tells."""
        return frozenset(self).difference(self[number] for number in self.layout.live)

    def number_for(self, job_id: str) -> int:
        """The number of the shard that has the id, as far as the layout tells."""
        return self.layout.home(self._digest(job_id))

    def home_of(self, job_id: str) -> ShardRef:
        """The shard that has the id, as far as the layout tells."""
        return self[self.number_for(job_id)]

    def other_home_of(self, job_id: str) -> ShardRef:
        """The shard that has the id if its group has moved since, or has not moved yet."""
        return self[self.layout.other_home(self._digest(job_id))]

    def with_features(self, features: Sequence[str]) -> "QueueShards":
        """The same shards, which use these features too."""
        return QueueShards([replace(shard, features=(*shard.features, *features)) for shard in self], self.layout)

    def with_left(self) -> list[ShardRef]:
        """The shards of earlier counts, which have journals and no jobs, and then all that there are."""
        return [*(self._left(count, index) for count in self._earlier() for index in range(count)), *self]

    def homes_ever(self, job_id: str) -> list[ShardRef]:
        """The shards that the id may have been in, the one that has it last."""
        home, number = self.home_of(job_id), self._digest(job_id)
        counts = dict.fromkeys((*self._earlier(), self.layout.before, self.layout.after))
        return [*(self._left(count, number % count) for count in counts if count != home.shards_count), home]

    def _earlier(self) -> list[int]:
        return [count for count in self.layout.counts if count not in {self.layout.before, self.layout.after}]

    def _left(self, shards_count: int, index: int) -> ShardRef:
        return replace(self[0], shards_count=shards_count, index=index, number=index)


def only(shard: ShardRef) -> QueueShards:
    """That shard alone, for callers that read no others."""
    return QueueShards([shard], settled(1))


NO_SHARDS: Final = QueueShards((), settled(1))
"""Those of a reader that is of no queue."""
