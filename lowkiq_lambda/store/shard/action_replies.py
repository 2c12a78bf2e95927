"""How much one call of an action's script changes, and what it answers."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.store.shard.scripts import ReplyShape

PAYLOADS_AT_ONCE: Final = 1_000
"""How many payloads one call touches."""
BYTES_AT_ONCE: Final = 4 * 1024 * 1024


class ActionReply(ReplyShape, frozen=True):
    """The reply of the scripts of actions, by include/action.lua; its last parts where the action has them."""

    scripts = (
        *("delete", "delete_morgue", "run_now", "kill", "unblock"),
        *("requeue", "requeue_waiting", "task_cancel", "undo", "edit"),
        *("cancel", "pause_jobs", "resume_jobs"),
    )
    status: bytes
    changed: int
    finished: int
    resume: bytes
    is_sooner: int
    undoable: int = 0
    """Of an action that can be undone: how many ids of the shard can be, by now."""
    skipped: tuple[bytes, ...] = ()
    """Of an undo: why rows were skipped."""
    words: Sequence[bytes] = ()
    """Ids, each with the word of the action for it behind it."""

    def by_id(self) -> dict[str, str]:
        """The word of each id that has one."""
        return {job_id.decode(): word.decode() for job_id, word in zip(self.words[::2], self.words[1::2], strict=True)}
