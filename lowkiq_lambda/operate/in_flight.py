"""The ids of a queue that are in flight, for operators."""

import heapq
from collections.abc import Iterable
from itertools import chain
from typing import Final, TypeAlias

from lowkiq_lambda.jobs.job import JobView
from lowkiq_lambda.operate.acts.shards import chosen_shard
from lowkiq_lambda.operate.inspect.id_ranges import IdsReply, ListPosition
from lowkiq_lambda.operate.inspect.job_list import JobListReader
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.operate.inspect.paging import position_after, probe_limit
from lowkiq_lambda.operate.inspect.shard_details import shard_details
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Reply, StatusReply
from lowkiq_lambda.views.queues import Page

Jobs: TypeAlias = list[JobView]


class InFlightIds:
    """`app.operate(worker).in_flight`: the ids that are in flight, at most one claim of each shard.

    Nothing changes a job in flight; its shard's holder is asked to let go, or refused. Limits, cursors and errors are
    as those of the waiting list.
    """

    def __init__(self, jobs: JobReader) -> None:
        self._jobs: Final = JobListReader(jobs, "flight", jobs.job)
        self._reader = jobs.reader

    def list(self, limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """A page, by shard and id."""
        begin, reader = position_after(after), self._reader
        in_flight = chain.from_iterable(reader.read("in_flight_ids", dict.fromkeys(reader.shards, ()), _in_flight))
        positions = heapq.nsmallest(
            probe_limit(limit), (position for position in in_flight if begin is None or position > begin)
        )
        return self._jobs.page(positions, limit)

    def fetch(self, ids: Iterable[object]) -> Jobs:
        """The jobs of these ids that are in flight, in the order of the ids."""
        return self._jobs.fetch(ids)

    def count(self) -> int:
        """How many ids are in flight."""
        return sum(shard.in_flight for shard in shard_details(self._reader))

    def evict_holder(self, shard: ShardRef | int, token: int) -> bool:
        """Refuse all further writes of the shard's holder, if it holds it under this token; whether it does.

        `shard` may be its number. The shard is free when the lease would have ended without a renewal, not before:
        until then a handler may still run. What is in flight counts as abandoned (docs/lease.md).
        """
        return self._to_holder("evict", shard, token)

    def quiet_holder(self, shard: ShardRef | int, token: int) -> bool:
        """Ask the shard's holder to let go of it, if it holds it under this token; whether it does.

        `shard` may be its number. What runs comes to its end, nothing more is begun, and jobs that were claimed and not
        begun go back as they were. Anybody may take the shard then, the same process too.
        """
        return self._to_holder("quiet", shard, token)

    def _to_holder(self, name: str, shard: ShardRef | int, token: int) -> bool:
        reader = self._reader
        reply = reader.backend.run(name, chosen_shard(reader.shards, shard), [str(token)], retry_for=reader.retry_for)
        return StatusReply.of(reply).status == b"OK"


def _in_flight(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    return [ListPosition(0.0, shard.number, job_id.decode()) for job_id in IdsReply.of(reply).ids]
