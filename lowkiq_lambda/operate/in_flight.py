"""The ids of a queue that are in flight, for operators."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from lowkiq_lambda.jobs.job import JobView
from lowkiq_lambda.operate.acts.chosen_ids import chosen
from lowkiq_lambda.operate.acts.shards import chosen_shard
from lowkiq_lambda.operate.inspect.id_filter import ALL, IdFilter, Wanted, filter_by, filter_ids
from lowkiq_lambda.operate.inspect.id_ranges import IdsReply, ListPosition, at_once
from lowkiq_lambda.operate.inspect.job_list import JobListReader
from lowkiq_lambda.operate.inspect.jobs import JobReader, id_texts
from lowkiq_lambda.operate.inspect.paging import position_after, probe_limit
from lowkiq_lambda.operate.inspect.shard_details import shard_details
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Reply, StatusReply
from lowkiq_lambda.views.jobs import Page

Jobs: TypeAlias = list[JobView]
Positions: TypeAlias = list[ListPosition]


class InFlightIds:
    """`app.operate(worker).in_flight`: the ids that are in flight, at most one claim of each shard.

    Nothing changes a job in flight; its shard's holder is asked to let go, or refused. Limits, cursors and errors are
    as those of the waiting list. A filter has `least_id`, `most_id`, `prefix`, `error`, `fingerprint` and `payload`.
    """

    def __init__(self, jobs: JobReader) -> None:
        self._jobs: Final = JobListReader(jobs, "flight", jobs.job)
        self._reader = jobs.reader
        self._all = jobs

    def list(
        self,
        limit: int = 100,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        after: str | None = None,
    ) -> Page[JobView]:
        """A page, by shard and id."""
        begin, most = position_after(after), probe_limit(limit)
        positions = self._found(ALL if filter is None else _checked(filter))
        return self._jobs.page(heapq.nsmallest(most, (one for one in positions if begin is None or one > begin)), limit)

    def fetch(self, ids: Iterable[object]) -> Jobs:
        """The jobs of these ids that are in flight, in the order of the ids."""
        return self._jobs.fetch(ids)

    def search(
        self, text: str = "", *, prefix: str = "", fingerprint: str = "", limit: int = 100, after: str | None = None
    ) -> Page[JobView]:
        """As that of the waiting list, by shard and id."""
        return self.list(limit, filter=IdFilter(prefix=prefix, error=text, fingerprint=fingerprint), after=after)

    def count(self, filter: Wanted | None = None) -> int:  # noqa: A002 - it is one
        """How many ids are in flight; with a filter those that it wants."""
        if filter is not None:
            return len(self._found(_checked(filter)))
        return sum(shard.in_flight for shard in shard_details(self._reader))

    def evict(
        self,
        ids: Iterable[object] | None = None,
        *,
        filter: Wanted | None = None,  # noqa: A002 - it is one
        everything: bool = False,
    ) -> int:
        """Evict the holders of these ids, each with all that it has in flight; returns how many were evicted.

        See `evict_holder`. Takes `ids`, those that match a `filter`, or `everything=True`.
        """
        choice = chosen(ids, filter, everything=everything)
        # Before the look at the ids: a holder that comes in between has another token, and is left alone.
        tokens = [shard.token for shard in shard_details(self._reader)]
        positions = self._found(_checked(choice.filter))
        if choice.ids is not None:
            chosen_ids = {*id_texts(choice.ids)}
            positions = [position for position in positions if position.id in chosen_ids]
        return sum(self.evict_holder(shard, tokens[shard]) for shard in sorted({one.shard for one in positions}))

    def shards_with(self, criteria: Wanted) -> Sequence[int]:
        """The numbers of the shards that have ids in flight that the filter wants; private."""
        return sorted({one.shard for one in self._found(_checked(criteria))})

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

    def _found(self, id_filter: IdFilter) -> Positions:
        reader = self._reader
        matches = Positions()
        for positions in reader.read("in_flight_ids", dict.fromkeys(reader.shards, ()), _in_flight):
            by_id = {position.id: position for position in positions}
            ids, start = [*by_id], 0
            while part := at_once(ids, start):
                start += len(part)
                of_shard = {reader.shards[by_id[part[0]].shard]: part}
                matches += [by_id[one] for one in filter_ids(self._all, "flight", id_filter, of_shard)]
        return matches

    def _to_holder(self, name: str, shard: ShardRef | int, token: int) -> bool:
        reader = self._reader
        reply = reader.backend.run(name, chosen_shard(reader.shards, shard), [str(token)], retry_for=reader.retry_for)
        return StatusReply.of(reply).status == b"OK"


def _checked(criteria: Wanted) -> IdFilter:
    """The filter. Raises ValueError for one by a time or a retry_count, which an id in flight has not."""
    checked = filter_by(criteria)
    rest = msgspec.structs.replace(checked, least_id="", most_id="", prefix="", error="", fingerprint="", payload="")
    if rest != ALL:
        raise ValueError(
            "A filter of ids in flight has least_id, most_id, prefix, error, fingerprint and payload, and no bounds."
        )
    return checked


def _in_flight(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    return [ListPosition(0.0, shard.number, job_id.decode()) for job_id in IdsReply.of(reply).ids]
