"""What a move goes by of the queue that moves."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from lowkiq_lambda.jobs.job import tenant_of
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import Home
from lowkiq_lambda.store.shard.moving import Burials


class QueueFacts(NamedTuple):
    """The queue of a worker: what it is declared with beside the number of its shards."""

    name: str
    merge: str
    by_tenant: bool
    features: tuple[str, ...]
    burials: Burials

    def shards(self, homes: Sequence[Home]) -> list[ShardRef]:
        """These shards."""
        return [ShardRef(self.name, home.shards_count, home.index, self.features, self.by_tenant) for home in homes]

    def crc_of(self, job_id: str) -> int:
        """What says in which shard an id lies."""
        return crc32((tenant_of(job_id) if self.by_tenant else job_id).encode())
