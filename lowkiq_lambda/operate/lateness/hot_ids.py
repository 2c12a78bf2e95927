"""Whether more shards would help at all: how the due ids of late shards would fall into twice as many."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.jobs.job import digest, digest_of_tenant
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape

LOOKED_AT: Final = 1_000
"""Due ids of a shard: the first of them, as they come next."""


class DueSizesReply(ReplyShape, frozen=True):
    """The reply of due_sizes.lua: ids, each followed by how many payloads wait under it."""

    scripts = ("due_sizes",)
    sizes: list[bytes | int]


class Hot(NamedTuple):
    """The share of its load that the busiest shard would keep, and the id with the most payloads in it.

    `part`: that this id has of what is due in its present shard.
    """

    share: float
    hottest: str
    part: float


def read_hot(reader: ShardReader, shards: Sequence[ShardRef], now: float, *, counts: bool = False) -> Hot | None:
    """As `hot_of`, of these shards of one count, in one round trip. Raises BackendError.

    `counts`: drains count the frequent ids, so that these weigh as they did in this hour and the last: a round trip.
    """
    replies = reader.ask_each("due_sizes", [(shard, (now, LOOKED_AT)) for shard in shards])
    each = [DueSizesReply.of(reply).sizes for reply in replies]
    sizes = [dict(zip(_texts(flat[::2]), map(float, flat[1::2]), strict=True)) for flat in each]
    first = shards[0]
    if counts:
        from lowkiq_lambda.engine.skew import HOUR, read_shares  # noqa: PLC0415 - few queues count

        shares = read_shares(reader.backend, first.queue_name, [now - HOUR, now], reader.retry_for)
        weigh(sizes, [shard.number for shard in shards], first, shares or {})
    return hot_of(sizes, 2 * first.shards_count, by_tenant=first.by_tenant)


def weigh(
    sizes: Sequence[dict[str, float]], numbers: Sequence[int], one: ShardRef, shares: Mapping[str, float]
) -> None:
    """Let frequent ids stand for their share of the queue's payloads, due or not, and all others for the rest of it.

    `numbers`: of the shards, of which there are as many in all as `one` says.
    """
    place = digest_of_tenant if one.by_tenant else digest
    for own in sizes:
        for job_id in shares.keys() & own:
            del own[job_id]
    rest = (1.0 - sum(shares.values())) * len(numbers) / one.shards_count
    unit = sum(sum(own.values()) for own in sizes) / rest if rest > 0 else 0.0
    for job_id, share in shares.items():
        if (number := place(job_id) % one.shards_count) in numbers:
            sizes[numbers.index(number)][job_id] = share * (unit or 1.0)


def hot_of(sizes: Sequence[Mapping[str, float]], count: int, *, by_tenant: bool = False) -> Hot | None:
    """How much the busiest of these shards would keep with `count` shards; None where nothing is due.

    `sizes`: of each shard, by id, how many payloads wait. A payload stands for as much work as any other.
    """
    place = digest_of_tenant if by_tenant else digest
    present = max((sum(own.values()) for own in sizes), default=0)
    if not present:
        return None
    loads: dict[int, float] = {}
    for own in sizes:
        for job_id, size in own.items():
            number = place(job_id) % count
            loads[number] = loads.get(number, 0.0) + size
    number = max(loads, key=loads.__getitem__)
    in_it = (
        (size, job_id, size / sum(own.values()))
        for own in sizes
        for job_id, size in own.items()
        if place(job_id) % count == number
    )
    _, hottest, part = max(in_it)
    return Hot(loads[number] / present, hottest, part)


def _texts(ids: Sequence[bytes | int]) -> list[str]:
    return [job_id.decode(errors="replace") for job_id in ids if isinstance(job_id, bytes)]
