"""How much shards write into their journals."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument
from lowkiq_lambda.views.journal import LONGEST

JournalLevel: TypeAlias = Literal["trouble", "all"]


def set_journal_level(reader: ShardReader, level: JournalLevel, seconds: float, shards: Sequence[ShardRef]) -> None:
    """Set the level of the shards, "all" for so many seconds. Raises ValueError, BackendError."""
    if level not in get_args(JournalLevel):
        raise ValueError(f"The level of a journal is trouble or all, not {level!r}.")
    if not is_number(seconds) or not 0 < seconds <= LONGEST:
        raise ValueError(f"seconds must be more than 0 and at most {LONGEST:.0f}, not {seconds!r}.")

    def until(shard: ShardRef) -> list[Argument]:
        return [reader.backend.now(shard) + seconds if level == "all" else ""]

    for _ in order_each(reader, "set_journal", shards, until):
        pass
