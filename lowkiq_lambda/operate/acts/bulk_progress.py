"""An action of an operator on many ids, as it is between two steps: what it is for, and how far it has come."""

import secrets
from collections.abc import Sequence
from typing import Annotated, Final, Self, TypeAlias

import msgspec

from lowkiq_lambda.operate.acts.action_scripts import UNDOABLE_IDS, ActionName, ShardSnapshot
from lowkiq_lambda.operate.acts.requeue_terms import RequeueTerms
from lowkiq_lambda.operate.inspect.id_filter import ALL, IdFilter
from lowkiq_lambda.store.shard.keys import ShardRef

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]

OF_MORGUE: Final = frozenset({"requeue", "delete_dead"})
OF_FAILED: Final = frozenset({"kill", "delete_failed"})


class Changed(int):
    """How many ids an action has changed.

    `undo(action_id)` takes the action back, for ten minutes; `undoable` of its ids can be. Both are empty if none can.
    `paused`: how many more it has left as they are, because somebody has paused them (`pause_jobs`).
    `last_due`: with a rate, by when the last of them is due (Unix seconds); else None.
    """

    action_id: str
    undoable: int
    paused: int
    last_due: float | None

    def __new__(
        cls, changed: int, action_id: str = "", undoable: int = 0, paused: int = 0, last_due: float | None = None
    ) -> Self:
        """So many, of the action with this id."""
        self = super().__new__(cls, changed)
        self.action_id = action_id if undoable else ""
        self.undoable = undoable
        self.paused = paused
        self.last_due = last_due
        return self


class SavedSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A look at a shard, as `ShardSnapshot` has it."""

    index: Count
    at: float
    arrival: Count
    seen_at: float
    waiting: Count
    failed: Count
    dead: Count

    @classmethod
    def of(cls, snapshot: ShardSnapshot) -> Self:
        """To be kept."""
        return cls(
            snapshot.shard.number,
            snapshot.at,
            snapshot.arrival,
            snapshot.seen_at,
            snapshot.waiting,
            snapshot.failed,
            snapshot.dead,
        )

    def snapshot(self, shards: Sequence[ShardRef]) -> ShardSnapshot:
        """As it was."""
        shard = shards[self.index]
        return ShardSnapshot(shard, self.at, self.arrival, self.seen_at, self.waiting, self.failed, self.dead)


class BulkAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on the ids that were `chosen`, or, if that is None, on those of the queue that the filter wants.

    `total`: about how many ids will be looked at; `handled`: how many were; `changed`: how many it has changed;
    `paused`: how many it has left, as they are paused; `sooner`: as they are due by their turn in any case.
    """

    act: ActionName
    shards_count: Count
    snapshots: list[SavedSnapshot]
    """Of the shards that are not done; it is at the first."""
    total: Count
    filter: IdFilter = ALL
    chosen: list[str] | None = None
    after: str | None = None
    """After which position of the shard's list it goes on; None at its beginning."""
    pending: list[str] = []
    """Ids of the shard that come first."""
    resume: bytes = b""
    """Where in the payloads of the first of them."""
    changed_here: Count = 0
    handled: Count = 0
    changed: Count = 0
    paused: Count = 0
    sooner: Count = 0
    begun: bool = False
    layout: tuple[int, ...] = ()
    """Of a queue that is or has been resharded: the last move, and the groups that had moved."""
    terms: RequeueTerms | None = None
    """Of requeueing and `run_now`: in which order, and how fast; None: as they were, and all at once."""
    error: bytes = b""
    """Of `kill_delayed`: the error that ids get in the morgue, as it is stored."""
    action_id: str = ""
    """By which it can be undone, 16 hex digits; empty if it cannot be."""
    undoable: Count = 0
    """How many ids can be undone, of those that it has changed in shards that are done."""
    undoable_here: Count = 0
    """As `undoable`, of the shard that it is at."""

    @property
    def is_done(self) -> bool:
        """Whether the action has no step left."""
        return not self.snapshots

    @property
    def result(self) -> Changed:
        """How many ids it has changed, and how many of them can be undone."""
        undoable = self.undoable + self.undoable_here
        last_due = self.last_due(self.turns) if self.changed else None
        return Changed(self.changed, self.action_id, undoable, self.paused, last_due)

    @property
    def turns(self) -> int:
        """How many ids have had their turn at its rate."""
        return self.changed + self.sooner

    def last_due(self, turns: int) -> float | None:
        """By when the last of so many is due, if it has a rate."""
        paced = self.terms if turns and self.terms and self.terms.rate is not None else None
        return None if paced is None else paced.due_at(turns - 1)

    def paced_after(self, at: float) -> Self:
        """The same action; with a rate, the first turn is a step after then or later."""
        return self if self.terms is None else msgspec.structs.replace(self, terms=self.terms.after(at))

    @property
    def beyond_undo(self) -> bool:
        """Whether it may change more ids of a shard than can be undone."""
        counts = [listed(self.act, snapshot) for snapshot in self.snapshots]
        return bool(self.action_id) and self.total > UNDOABLE_IDS and max(counts, default=0) > UNDOABLE_IDS


def new_action_id() -> str:
    """The id of an action: 16 hex digits at random."""
    return secrets.token_hex(8)


def listed(act: ActionName, snapshot: ShardSnapshot | SavedSnapshot) -> int:
    """About how many ids of the shard the action looks at."""
    if act in OF_MORGUE:
        return snapshot.dead
    return snapshot.failed if act in OF_FAILED else snapshot.waiting
