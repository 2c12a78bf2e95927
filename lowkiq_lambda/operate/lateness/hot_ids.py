"""Whether more shards would help at all: how the due ids of late shards would fall into twice as many."""

from collections import Counter
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
    """The share of its load that the busiest shard would keep, and the id with the most payloads in it."""

    share: float
    hottest: str


def read_hot(reader: ShardReader, shards: Sequence[ShardRef], now: float) -> Hot | None:
    """As `hot_of`, of these shards of one count, in one round trip. Raises BackendError."""
    replies = reader.ask_each("due_sizes", [(shard, (now, LOOKED_AT)) for shard in shards])
    each = [DueSizesReply.of(reply).sizes for reply in replies]
    sizes = [dict(zip(_texts(flat[::2]), map(int, flat[1::2]), strict=True)) for flat in each]
    return hot_of(sizes, 2 * shards[0].shards_count, by_tenant=shards[0].by_tenant)


def hot_of(sizes: Sequence[Mapping[str, int]], count: int, *, by_tenant: bool = False) -> Hot | None:
    """How much the busiest of these shards would keep with `count` shards; None where nothing is due.

    `sizes`: of each shard, by id, how many payloads wait. A payload stands for as much work as any other.
    """
    place = digest_of_tenant if by_tenant else digest
    present = max((sum(own.values()) for own in sizes), default=0)
    if not present:
        return None
    loads: Counter[int] = Counter()
    for own in sizes:
        for job_id, size in own.items():
            loads[place(job_id) % count] += size
    number, load = loads.most_common(1)[0]
    in_it = {job_id: size for own in sizes for job_id, size in own.items() if place(job_id) % count == number}
    return Hot(load / present, max(in_it, key=in_it.__getitem__))


def _texts(ids: Sequence[bytes | int]) -> list[str]:
    return [job_id.decode(errors="replace") for job_id in ids if isinstance(job_id, bytes)]
