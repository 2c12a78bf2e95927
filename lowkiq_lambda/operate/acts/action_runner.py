"""Runs the scripts of operators' actions: bounded calls, each safe to send twice, which leave later arrivals alone."""

import secrets
from collections.abc import Callable, Sequence

from lowkiq_lambda.base.error_text import text_to_bytes
from lowkiq_lambda.base.errors import ShardClosed, ShardMoving
from lowkiq_lambda.operate.acts.action_scripts import (
    ActionName,
    ActionProgress,
    ShardSnapshot,
    SnapshotReply,
    action_scripts,
)
from lowkiq_lambda.operate.inspect.id_ranges import at_once
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.store.shard.action_replies import BYTES_AT_ONCE, PAYLOADS_AT_ONCE, ActionReply
from lowkiq_lambda.store.shard.keys import UNDO, ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply


class ActionRunner:
    """Runs the calls of actions on one queue. Each method raises BackendError if Redis cannot serve.

    A call leaves jobs in flight alone, and payloads that were pushed after its snapshot.
    """

    def __init__(
        self,
        jobs: JobReader,
        merge: str,
        morgue_limits: tuple[int, int, float],
        dump_error: Callable[[str], bytes] = text_to_bytes,
    ) -> None:
        self.jobs = jobs
        self.reader = jobs.reader
        self.merge = merge
        self.errors = jobs.errors
        self.dump_error = dump_error
        self._scripts = action_scripts(morgue_limits)

    def snapshots(self, shards: Sequence[ShardRef] | None = None) -> list[ShardSnapshot]:
        """The shards (None: all of the queue) before the first change."""
        refs = self.reader.shards if shards is None else shards
        return self.reader.read("snapshot", dict.fromkeys(refs, ()), self._snapshot)

    def call_once(  # noqa: PLR0913 - what a call has, and what the action has
        self,
        act: ActionName,
        snapshot: ShardSnapshot,
        ids: Sequence[str],
        changed: int,
        resume: bytes = b"",
        *more: Argument,
        action_id: str = "",
    ) -> ActionProgress:
        """One call for ids of the snapshot's shard, after `changed` changes there; it may not reach the last id.

        `more`: the arguments of this action alone, if its script takes any. With an `action_id` (16 hex digits) the
        action can be undone.
        """
        script, shard, token = self._scripts[act], snapshot.shard, secrets.token_bytes(12)
        if action_id:
            shard, token = shard.using((*shard.features, UNDO)), token + f"{action_id}{act}".encode()
        args: list[Argument] = [token, self.merge, snapshot.arrival]
        args += [PAYLOADS_AT_ONCE, BYTES_AT_ONCE, resume, *script.details(snapshot, changed), *more, *at_once(ids)]
        try:
            reply = self.reader.backend.run(script.script, shard, args, retry_for=self.reader.retry_for)
        except ShardClosed as error:
            if error.floors is None:
                raise
            raise ShardMoving from None
        done = ActionReply.of(reply)
        if done.is_sooner:
            self.reader.backend.publish(shard.channel, str(shard.number))
        return ActionProgress(done.changed, done.finished, done.resume, done.undoable, done.skipped, done.by_id())

    def _snapshot(self, shard: ShardRef, reply: Reply) -> ShardSnapshot:
        shape = SnapshotReply.of(reply)
        counts = shape.waiting, shape.failed, shape.dead
        return ShardSnapshot(shard, self.reader.backend.now(shard), int(shape.arrival), float(shape.seen_at), *counts)
