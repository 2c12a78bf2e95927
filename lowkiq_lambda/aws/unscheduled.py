"""Shards that no schedule drains: after a move to more of them, or where `ShardIndexes` is shorter than the code's."""

import logging
from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.aws.tick import Tick

logger = logging.getLogger(__name__)

_REMEDY: Final = "Deploy with the ShardIndexes that `lowkiq drain-schedules indexes` prints, or with FanOut=true."
_SHOWN: Final = 10


def warn_of_unscheduled(tick: Tick) -> None:
    """Name them in the function's log. It is asked of a tick whose function is told which shards have a schedule."""
    for queue in tick.queues:
        name, indexes = queue.worker.queue_name, {shard.index for shard in queue.shards}
        missing = sorted(indexes - tick.settings.shards_with_schedules)
        if missing and tick.settings.drains(name):
            logger.warning("%s: %s. %s", name, naming(missing), _REMEDY)


def naming(indexes: Sequence[int]) -> str:
    """A sentence with their numbers."""
    many, more = len(indexes) > 1, len(indexes) - _SHOWN
    shown = ", ".join(map(str, indexes[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    return f"shard{'s' if many else ''} {shown} {'have' if many else 'has'} no schedule and FanOut is off"
