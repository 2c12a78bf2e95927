"""The scripts of an operator's actions on ids, and their arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, ReplyShape

TICK: Final = 2.0**-21
"""Seconds between times that differ only to keep an order: floats of this century are exact down to this."""

ActionName: TypeAlias = Literal[
    "run_now",
    "kill",
    "kill_delayed",
    "delete_failed",
    "delete",
    "requeue",
    "requeue_waiting",
    "delete_dead",
    "unblock",
    "unblock_skipping",
    "undo",
    "undo_edit",
    "edit",
    "cancel",
    "kill_cancelled",
    "pause_jobs",
    "resume_jobs",
]
"""`run_now`: waiting ids become due. `kill`: waiting ids that have failed go to the morgue. `kill_delayed`: ids that
are not due yet go there. `delete_failed`: waiting ids that have failed are deleted. `delete`: waiting ids are deleted.
`requeue`: dead ids wait again. `requeue_waiting`: ids that are due wait for a later time. `delete_dead`: dead ids are
deleted. `unblock`: blocked ids are due, with their heads; `unblock_skipping`: without them. `undo`: takes back one of
those; in place of ids it takes the numbers of its rows. `edit`: another payload takes the place of one.
`cancel`, `pause_jobs`, `resume_jobs`: requests for single ids, in flight too; `kill_cancelled`: a cancel that sends
payloads to the morgue."""

UNDOABLE: Final[frozenset[ActionName]] = frozenset(
    {
        *("run_now", "kill", "kill_delayed", "delete_failed", "delete", "requeue", "delete_dead"),
        *("unblock", "unblock_skipping", "undo", "edit", "cancel", "kill_cancelled"),
    }
)
"""Actions that can be undone for `UNDO_SECONDS`."""
UNDO_SECONDS: Final = 600.0
UNDOABLE_IDS: Final = 27_000
"""About so many ids of a shard can be undone: 4 MB of rows of short payloads."""


@dataclass(frozen=True, slots=True)
class ShardSnapshot:
    """A shard when the action began. Later pushes have larger arrival numbers.

    `seen_at`: the latest time that a client gave the shard, which may be a little ahead of `at`.
    """

    shard: ShardRef
    at: float
    arrival: int
    seen_at: float
    waiting: int
    failed: int
    dead: int

    @property
    def newest_death(self) -> float:
        """The latest time of a death that the snapshot can include."""
        return max(self.at, self.seen_at)


@dataclass(frozen=True, slots=True)
class ActionScript:
    """A script, and the arguments that only this script takes.

    `details` gives them from the snapshot and the number of ids of its shard that were changed before; those of
    `kill_delayed`, `undo`, `run_now` and of the two of requeueing end with what the action itself says.
    """

    script: str
    details: Callable[[ShardSnapshot, int], Sequence[Argument]]


class ActionProgress(NamedTuple):
    """The effect of one call: ids changed, ids finished of those given, and where the next call goes on.

    `undoable`: how many ids the action has changed in this shard that can be undone; `skipped`: why an undo skipped.
    """

    changed: int
    finished: int
    resume: bytes
    undoable: int = 0
    skipped: tuple[bytes, ...] = ()
    words: Mapping[str, str] = {}
    """What the action says of ids: `paused` of one that it left, as it is paused; of requests their effects."""


class SnapshotReply(ReplyShape, frozen=True):
    """The reply of snapshot.lua."""

    scripts = ("snapshot",)
    arrival: bytes
    seen_at: bytes
    waiting: int
    failed: int
    dead: int


class PauseReply(ReplyShape, frozen=True):
    """The reply of pause.lua and pause_tenant.lua."""

    scripts = ("pause", "pause_tenant")
    status: bytes
    due_at: bytes


def action_scripts(morgue_limits: tuple[int, int, float]) -> Mapping[ActionName, ActionScript]:
    """The script of each action; `morgue_limits`: ids, bytes and seconds that the morgue keeps."""
    return {
        "run_now": ActionScript("run_now", lambda _snapshot, _changed: ()),
        "kill": ActionScript("kill", lambda _snapshot, _changed: [*morgue_limits, "failed", ""]),
        "kill_delayed": ActionScript("kill", lambda _snapshot, _changed: [*morgue_limits, "later"]),
        "unblock": ActionScript("unblock", lambda _snapshot, _changed: ["retry", *morgue_limits]),
        "unblock_skipping": ActionScript("unblock", lambda _snapshot, _changed: ["skip", *morgue_limits]),
        "delete_failed": ActionScript("delete", lambda _snapshot, _changed: ["failed"]),
        "delete": ActionScript("delete", lambda _snapshot, _changed: [""]),
        "requeue": ActionScript("requeue", lambda snapshot, _changed: [snapshot.newest_death]),
        "requeue_waiting": ActionScript("requeue_waiting", lambda snapshot, _changed: [snapshot.at]),
        "undo": ActionScript("undo", lambda _snapshot, _changed: morgue_limits),
        "edit": ActionScript("edit", lambda _snapshot, _changed: ()),
        "delete_dead": ActionScript("delete_morgue", lambda snapshot, _changed: [snapshot.newest_death]),
        "cancel": ActionScript("cancel", lambda _snapshot, _changed: [*morgue_limits]),
        "kill_cancelled": ActionScript("cancel", lambda _snapshot, _changed: [*morgue_limits]),
        "pause_jobs": ActionScript("pause_jobs", lambda _snapshot, _changed: ()),
        "resume_jobs": ActionScript("resume_jobs", lambda _snapshot, _changed: ()),
    }
