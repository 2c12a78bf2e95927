"""What an operator may do to shards that a test reads by itself."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from lowkiq_lambda import Config, MorgueLimits
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.operate.queue_parts import StoredQueue
from lowkiq_lambda.store.shard.reader import ShardReader
from tests.kit.holders import RETRY_FOR

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core


def operator_of(
    reader: ShardReader,
    merge: str = "min",
    morgue_limits: tuple[int, int, float] = (100, 100_000, 1_000.0),
    retry_for: float = RETRY_FOR,
) -> QueueOperations:
    """That of the reader's shards; `morgue_limits`: ids, bytes and seconds that the morgue keeps."""
    config = Config(morgue=MorgueLimits(*morgue_limits))
    core = cast("Core", SimpleNamespace(backend=reader.backend, config=config))
    return QueueOperations(core, None, lambda: StoredQueue(reader.shards, merge), retry_for=retry_for)
