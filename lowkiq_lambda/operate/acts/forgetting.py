"""Deletes records of pushes, of done jobs and of runs in a queue."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.operate.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.operate.inspect.journal import asked
from lowkiq_lambda.operate.inspect.run_reader import run_shards
from lowkiq_lambda.store.shard.chunks import id_digest, key_digest
from lowkiq_lambda.store.shard.keys import MARKS, RECEIPTS, RUNS, ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, ReplyShape

FORGET_KEYS: Final = "forget keys"
ALL_KEYS: Final = "all keys"
"""The act in the activity, and its target if it is on the whole queue."""
AT_ONCE: Final = 1_000
"""Names in one call."""


class ForgottenReply(ReplyShape, frozen=True):
    """The reply of forget_keys.lua and forget_marks.lua."""

    scripts = ("forget_keys", "forget_marks")
    status: bytes
    forgotten: int
    cursor: bytes = b"0"
    """Where the next step of a look for ids goes on; 0 behind the last."""


def forget_keys(reader: ShardReader, pushed: Iterable[tuple[object, str]]) -> int:
    """Forget that jobs with these ids and keys were pushed; how many were remembered.

    Raises JobError, TypeError, BackendError.
    """
    digests: dict[ShardRef, list[Argument]] = {}
    for id_of_job, key in _pairs(pushed):
        job_id = id_text(id_of_job)
        shard = reader.shards.home_of(job_id)
        digests.setdefault(shard.using((RECEIPTS,)), []).append(key_digest(job_id, key))
    return _forget(reader, "forget_keys", digests, "")


def forget_keys_of(reader: ShardReader, ids: Iterable[object]) -> int:
    """Forget all keys of these ids; how many were remembered. Raises JobError, BackendError."""
    return sum(
        _forget_of(reader, shard.using((RECEIPTS,)), [id_digest(job_id) for job_id in listed[start : start + AT_ONCE]])
        for shard, listed in by_shard(id_texts(ids), reader.shards).items()
        for start in range(0, len(listed), AT_ONCE)
    )


def _forget_of(reader: ShardReader, shard: ShardRef, digests: Sequence[Argument]) -> int:
    forgotten, cursor = 0, b""
    while cursor != b"0":
        reply = _call(reader, "forget_keys", shard, [cursor or b"0", *digests])
        forgotten, cursor = forgotten + reply.forgotten, reply.cursor
    return forgotten


def _pairs(pushed: Any) -> list[tuple[object, str]]:  # noqa: ANN401 - any argument
    listed = [*pushed] if isinstance(pushed, Iterable) and not isinstance(pushed, str | bytes) else [pushed]
    for one in listed:
        if not (isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], str)):  # noqa: PLR2004 - a pair
            raise TypeError(f"forget_keys takes pairs of an id and a key, not {one!r}.")
    return listed


def forget_all_keys(reader: ShardReader) -> int:
    """Forget all keys of the queue; how many were remembered. Raises BackendError."""
    return sum(_call(reader, "forget_keys", shard.using((RECEIPTS,)), [""]).forgotten for shard in reader.shards)


def forget(reader: ShardReader, ids: Sequence[str], key: str) -> int:
    """Forget all keys of the queue; of these ids, if there are any; or this one of each. How many were remembered."""
    if not ids:
        return forget_all_keys(reader)
    return forget_keys(reader, [(job_id, key) for job_id in ids]) if key else forget_keys_of(reader, ids)


def forget_marks(reader: ShardReader, ids: Iterable[object]) -> int:
    """Forget up to which score these ids were done; how many had been. Raises JobError, ValueError, BackendError."""
    if MARKS not in reader.shards[0].features:
        raise ValueError('Only a worker with merge = "latest" has marks.')
    return _forget(reader, "forget_marks", by_shard(id_texts(ids), reader.shards))


def forget_runs(reader: ShardReader) -> None:
    """Forget all runs that the queue has kept. Raises BackendError."""
    asked(reader, [(shard, ("UNLINK", shard.key(RUNS))) for shard in run_shards(reader.shards.with_left())])


def _forget(reader: ShardReader, script: str, names: Mapping[ShardRef, Sequence[Argument]], *before: Argument) -> int:
    return sum(
        _call(reader, script, shard, [*before, *listed[start : start + AT_ONCE]]).forgotten
        for shard, listed in names.items()
        for start in range(0, len(listed), AT_ONCE)
    )


def _call(reader: ShardReader, script: str, shard: ShardRef, arguments: Sequence[Argument]) -> ForgottenReply:
    return ForgottenReply.of(reader.backend.run(script, shard, arguments, retry_for=reader.retry_for))
