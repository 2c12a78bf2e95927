"""How much one call of an action's script changes, and what it answers."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.store.shard.scripts import ReplyShape

PAYLOADS_AT_ONCE: Final = 1_000
"""How many payloads one call touches."""
BYTES_AT_ONCE: Final = 4 * 1024 * 1024


class ActionReply(ReplyShape, frozen=True):
    """The reply of the scripts of actions, by include/action.lua."""

    scripts = (
        *("delete", "delete_morgue", "run_now", "kill", "unblock"),
        *("requeue", "requeue_waiting", "task_cancel"),
        *("cancel", "pause_jobs", "resume_jobs"),
    )
    status: bytes
    changed: int
    finished: int
    resume: bytes
    is_sooner: int
    words: Sequence[bytes] = ()
    """Ids, each with the word of the action for it behind it."""
