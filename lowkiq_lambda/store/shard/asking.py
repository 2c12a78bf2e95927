"""One script, asked of several shards: the answer, or the error, of each."""

from collections.abc import Sequence

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply


def ask_each(
    backend: Backend, name: str, shards: Sequence[ShardRef], args: Sequence[Argument], retry_for: float
) -> dict[ShardRef, Reply | LowkiqError]:
    """The reply or the error of each shard; retried for `retry_for` seconds while the server cannot serve."""
    replies: dict[ShardRef, Reply | LowkiqError] = {}
    retry_until, attempt, left = backend.clock.monotonic() + retry_for, 0, list(shards)
    while left:
        replies |= zip(left, backend.run_each([(name, shard, args) for shard in left]), strict=True)
        left = [shard for shard in left if isinstance(replies[shard], BackendUnavailable)]
        if not (left and backend.wait_to_retry(attempt, retry_until)):
            break
        attempt += 1
    return replies
