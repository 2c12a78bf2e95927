"""The jobs of a queue, for people: read only, and bounded however large the queue is."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Literal

from lowkiq_lambda.jobs.job import NEVER_FAILED, JobView, MorgueJob, id_text
from lowkiq_lambda.operate.inspect.biography import biography
from lowkiq_lambda.operate.inspect.damaged_records import damaged_records
from lowkiq_lambda.operate.inspect.filtered_list import filtered_ids
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.id_ranges import (
    Bound,
    IdRange,
    IdsReply,
    ListName,
    ListPosition,
    Range,
    SearchableList,
    list_positions,
)
from lowkiq_lambda.operate.inspect.id_scan import IdScan, scan_ids
from lowkiq_lambda.operate.inspect.id_search import IdSearch, search_ids
from lowkiq_lambda.operate.inspect.jobs import JobList, JobReader, JobReply, View, id_texts
from lowkiq_lambda.operate.inspect.paging import check_limit, position_after, probe_limit
from lowkiq_lambda.operate.inspect.shard_details import explain_job, shard_details
from lowkiq_lambda.operate.inspect.tenants import tenants_of
from lowkiq_lambda.operate.inspect.whereabouts import whereabouts
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.views.journal import Biography
from lowkiq_lambda.views.queues import DamagedRecord, JobExplanation, Page, ShardDetails, TenantOrder, Tenants


class Queries:
    """What `app.operate.queries(worker)` returns. Each method raises BackendError where Redis cannot serve.

    Lists go by a value, then by shard, then by id. Bounds are as in Redis: a value, or "(" and a value to leave that
    one out; "-inf" and "+inf", or "-" and "+" where the value is the id (an id that begins with a sign itself is
    written after "["). A page has `limit` jobs, 10,000 at most; its `next`, given as `after`, continues after it.
    A bad bound, limit or cursor is a ValueError.
    """

    def __init__(self, jobs: JobReader) -> None:
        self._jobs = jobs
        self.scan_at_most = 1_000_000
        """The most ids that a scan reads; a page of a scan that ended there says so (`cut`)."""

    def fetch(self, ids: Iterable[object]) -> list[JobView]:
        """The jobs of these ids that wait, in the order of the ids. Raises JobError for an invalid id."""
        return self._fetch("waiting", ids, self._jobs.job)

    def morgue_fetch(self, ids: Iterable[object]) -> list[MorgueJob]:
        """The jobs of these ids that are in the morgue, in the order of the ids. Raises JobError for an invalid id."""
        return self._fetch("morgue", ids, self._jobs.morgue_job)

    def processing(self) -> list[JobView]:
        """The jobs in flight in all shards, by due_at: at most one claim of each shard."""
        return sorted(self._jobs.in_flight(), key=lambda job: (job.due_at, job.id))

    def range_by_due_at(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by when they are due."""
        within = Range(Bound.of(min), Bound.of(max), reverse, position_after(after))
        return self._page("waiting", self._list("due", within, probe_limit(limit)), limit, self._jobs.job)

    def held(self, limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """Jobs whose head is held (`Worker.dead_head`), by shard and id: `actions(worker).release` lets them go on."""
        return self.range_by_due_at(FAR, limit=limit, after=after)

    def range_by_retry_count(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by retry_count; -1 of jobs that never failed, which only a scan finds."""
        within = Range(Bound.of(min), Bound.of(max), reverse, position_after(after))
        most, cut, positions = probe_limit(limit), False, list[ListPosition]()
        if reverse:
            positions += self._list("retry", within, most)
        if within.holds(NEVER_FAILED) and len(positions) < most:
            fresh, cut = self._fresh(within, most - len(positions))
            positions += fresh
        if not reverse and len(positions) < most:
            positions += self._list("retry", within, most - len(positions))
        return self._page("waiting", positions, limit, self._jobs.job, cut=cut)

    def morgue_range_by_updated_at(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[MorgueJob]:
        """Jobs in the morgue, by the time of their burial."""
        within = Range(Bound.of(min), Bound.of(max), reverse, position_after(after))
        return self._page("morgue", self._list("morgue", within, probe_limit(limit)), limit, self._jobs.morgue_job)

    def range_by_id(
        self,
        min: str | int = "-",  # noqa: A002 - as Redis calls it
        max: str | int = "+",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by the bytes of their ids; a scan of all ids finds them."""
        ids = IdRange.of(min, max, position_after(after), reverse=reverse)
        positions, cut = self._by_id("due", ids, limit)
        return self._page("waiting", positions, limit, self._jobs.job, cut=cut)

    def morgue_range_by_id(
        self,
        min: str | int = "-",  # noqa: A002 - as Redis calls it
        max: str | int = "+",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[MorgueJob]:
        """Jobs in the morgue, by the bytes of their ids; a scan of all ids finds them."""
        ids = IdRange.of(min, max, position_after(after), reverse=reverse)
        positions, cut = self._by_id("morgue", ids, limit)
        return self._page("morgue", positions, limit, self._jobs.morgue_job, cut=cut)

    def processing_page(self, limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """Jobs in flight, by shard and id."""
        begin, reader = position_after(after), self._jobs.reader
        in_flight = chain.from_iterable(reader.read("in_flight_ids", dict.fromkeys(reader.shards, ()), _in_flight))
        positions = heapq.nsmallest(
            probe_limit(limit), (position for position in in_flight if begin is None or position > begin)
        )
        return self._page("flight", positions, limit, self._jobs.job)

    def processing_fetch(self, ids: Iterable[object]) -> list[JobView]:
        """The jobs of these ids that are in flight, in the order of the ids. Raises JobError for an invalid id."""
        return self._fetch("flight", ids, self._jobs.job)

    def search(
        self, prefix: str = "", text: str = "", limit: int = 100, *, fingerprint: str = "", after: str | None = None
    ) -> Page[JobView]:
        """Jobs that wait, whose ids begin with `prefix`, and whose last errors as stored hold `text` in any case.

        With a `fingerprint`, that of a group of `app.errors`, only those of the group, by when they are due; without in
        no order. One call reads a bounded number of ids, so a page may be empty and yet have a `next`.
        """
        ids = self._searched("waiting", IdFilter(prefix=prefix, error=text, fingerprint=fingerprint), limit, after)
        return self._looked_up("waiting", ids, self._jobs.job)

    def morgue_search(
        self, prefix: str = "", text: str = "", limit: int = 100, *, fingerprint: str = "", after: str | None = None
    ) -> Page[MorgueJob]:
        """As `search`, jobs in the morgue; with a `fingerprint` by their burial."""
        ids = self._searched("morgue", IdFilter(prefix=prefix, error=text, fingerprint=fingerprint), limit, after)
        return self._looked_up("morgue", ids, self._jobs.morgue_job)

    def filtered(
        self,
        where: SearchableList,
        wanted: IdFilter,
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView] | Page[MorgueJob]:
        """Jobs of a list that the filter wants, by when they are due, or by their burial.

        One call reads a bounded number of ids, so a page may be empty and yet have a `next`.
        """
        ids = filtered_ids(self._jobs.reader, self._jobs.errors, where, wanted, limit, reverse=reverse, after=after)
        if where == "morgue":
            return self._looked_up(where, ids, self._jobs.morgue_job)
        return self._looked_up(where, ids, self._jobs.job)

    def search_ids(
        self, where: SearchableList, prefix: str = "", text: str = "", limit: int = 100, *, after: str | None = None
    ) -> Page[str]:
        """As `search`, only the ids."""
        check_limit(limit)
        ids, following = search_ids(self._jobs.reader, IdSearch(where, prefix, text), limit, after)
        return Page(ids, following)

    def shards(self) -> list[ShardDetails]:
        """The shards and their holders."""
        return shard_details(self._jobs.reader)

    def tenants(self, limit: int = 100, *, order: TenantOrder = "turn", tenant: str | None = None) -> Tenants:
        """Tenants of which ids wait, or of which something is remembered, those first whose turn comes first.

        With `order="waiting"` those with the most ids: each shard counts the ids of all its tenants for that, and names
        so many of them. With `tenant`: that one alone, if it is there. Empty where the worker declares no tenants.
        Raises ValueError for a limit below 1 or above 1,000, and for an unknown order.
        """
        return tenants_of(self._jobs.reader, limit, order, tenant)

    def explain(self, job_id: object) -> JobExplanation:
        """Why the id runs, or does not run yet. Raises JobError for an invalid id."""
        return explain_job(self._jobs.reader, id_text(job_id), self._jobs.errors.text)

    def biography(self, job_id: object) -> Biography:
        """What is known of an id: its pushes, claims and ends, as far as the journal has them, and where it is now.

        Raises JobError for an invalid id.
        """
        text, reader = id_text(job_id), self._jobs.reader
        jobs: list[JobView | MorgueJob] = [*self.processing_fetch([text]), *self.fetch([text])]
        jobs += self.morgue_fetch([text])
        failures = next((job.failures for job in jobs if job.failures), ())
        (now,) = whereabouts(reader, [text]).values()
        return biography(reader, reader.shards.homes_ever(text), text, now, failures)

    def damaged(self, largest: int = 64 * 1024) -> list[DamagedRecord]:
        """Records that were set aside as unreadable, by shard, the oldest first: `largest` bytes of each."""
        return damaged_records(self._jobs.reader, largest)

    def glimpse(self) -> "Queries":
        """The same queries for lists: a job has its first payload only, and none if that is large."""
        return Queries(self._jobs.glimpse())

    def _searched(self, where: SearchableList, wanted: IdFilter, limit: int, after: str | None) -> Page[str]:
        if wanted.fingerprint:
            return filtered_ids(self._jobs.reader, self._jobs.errors, where, wanted, limit, reverse=False, after=after)
        return self.search_ids(where, wanted.prefix, wanted.error, limit, after=after)

    def _looked_up(self, where: JobList, ids: Page[str], view: Callable[[JobReply], View]) -> Page[View]:
        jobs = self._jobs.look_up(where, ids, view)
        return Page((jobs[job_id] for job_id in ids if job_id in jobs), ids.next)

    def _fetch(self, where: JobList, ids: Iterable[object], view: Callable[[JobReply], View]) -> list[View]:
        texts = id_texts(ids)
        jobs = self._jobs.look_up(where, texts, view, failures=True)
        return [jobs[job_id] for job_id in texts if job_id in jobs]

    def _list(self, listed: ListName, within: Range, limit: int) -> list[ListPosition]:
        return list_positions(self._jobs.reader, listed, within, limit)

    def _by_id(self, listed: Literal["due", "morgue"], ids: IdRange, limit: int) -> tuple[list[ListPosition], bool]:
        return self._scan(IdScan(listed, ids.holds, attrgetter("id"), ids.reverse, probe_limit(limit)))

    def _fresh(self, within: Range, limit: int) -> tuple[list[ListPosition], bool]:
        after, reverse = within.after, within.reverse

        def wants(position: ListPosition) -> bool:
            return after is None or (position < after if reverse else position > after)

        return self._scan(IdScan("due", wants, lambda position: position, reverse, limit, NEVER_FAILED, fresh=True))

    def _scan(self, search: IdScan) -> tuple[list[ListPosition], bool]:
        return scan_ids(self._jobs.reader, search, self.scan_at_most)

    def _page(
        self,
        where: JobList,
        positions: Sequence[ListPosition],
        limit: int,
        view: Callable[[JobReply], View],
        *,
        cut: bool = False,
    ) -> Page[View]:
        shown = positions[:limit]
        jobs = self._jobs.look_up(where, [position.id for position in shown], view)
        following = shown[-1].cursor() if len(positions) > limit else None
        # A job that went away between the two reads is left out.
        return Page((jobs[position.id] for position in shown if position.id in jobs), following, cut=cut)


def _in_flight(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    return [ListPosition(0.0, shard.number, job_id.decode()) for job_id in IdsReply.of(reply).ids]
