"""Payloads whose time is over when their batch is about to begin: no handler gets them."""

import logging
from collections import deque
from typing import TYPE_CHECKING

from lowkiq_lambda.engine.deciding import Fate
from lowkiq_lambda.engine.expiring import EXPIRED, expired_at, last_failure
from lowkiq_lambda.engine.failure import Death
from lowkiq_lambda.engine.partial import arrival_of, without
from lowkiq_lambda.engine.perform import about
from lowkiq_lambda.jobs.job import Delivery

if TYPE_CHECKING:
    from lowkiq_lambda.engine.leased_shard import LeasedShard

logger = logging.getLogger(__name__)


def drop_expired(left: deque[list[Delivery]], shard: "LeasedShard") -> list[Delivery]:
    """Note what is over of the next batch, and of those behind it as long as nothing is left of one.

    Returns the ids of which nothing is left.
    """
    now, ended = shard.now(), list[Delivery]()
    while left:
        rest = [_unexpired(delivery, now, shard, ended) for delivery in left[0]]
        if batch := [delivery for delivery in rest if delivery is not None]:
            left[0] = batch
            break
        left.popleft()
    if ended:
        logger.info("jobs expired before they ran", extra=about(shard.settings.worker, [one.id for one in ended]))
        if shard.runs is not None:
            shard.runs.note(now, 0.0, ended)
    return ended


def _unexpired(delivery: Delivery, now: float, shard: "LeasedShard", ended: list[Delivery]) -> Delivery | None:
    """The delivery without payloads that are over; None, and it is one of those that `ended`, if all are."""
    over = {position for position, time in enumerate(delivery.expiries) if time < now}
    if not over:
        return delivery
    texts, worker = shard.settings.texts, shard.settings.worker
    if 0 in over and delivery.retry_count >= 0 and worker.expired == "kill":
        # As if it had come to its failure in time: what follows a dead head does not hang on when the shard is drained.
        shard.pending.kill_expired(delivery, last_failure(texts, delivery), Fate("kill", rule=EXPIRED, why=EXPIRED))
        ended.append(delivery)
        return None
    error = texts.dump(f"{expired_at(min(delivery.expiries))} before it ran") if worker.expired == "kill" else ""
    entries = [delivery.entries[position] for position in sorted(over)]
    is_whole = len(entries) == len(delivery.entries)
    word = EXPIRED if is_whole else "some_expired"
    deaths = [Death(delivery.id, entry, error, EXPIRED) for entry in entries if isinstance(error, bytes)]
    shard.pending.expire((delivery.id, word, error, "", *map(arrival_of, entries)), deaths, is_whole=is_whole)
    if is_whole:
        ended.append(delivery)
        return None
    return without(delivery, over)
