"""Reads one list of a queue: ranges by a number or by the id, pages, and searches. Bounded however long the list is."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Generic, Literal, TypeVar, get_args

from lowkiq_lambda.jobs.job import NEVER_FAILED, JobView, MorgueJob
from lowkiq_lambda.operate.inspect.filtered_list import filtered_ids
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.id_ranges import (
    Bound,
    IdRange,
    ListName,
    ListPosition,
    Range,
    SearchableList,
    list_positions,
)
from lowkiq_lambda.operate.inspect.id_scan import IdScan, scan_ids
from lowkiq_lambda.operate.inspect.id_search import IdSearch, search_ids
from lowkiq_lambda.operate.inspect.jobs import JobList as StoredList
from lowkiq_lambda.operate.inspect.jobs import JobReader, JobReply, id_texts
from lowkiq_lambda.operate.inspect.paging import check_limit, position_after, probe_limit
from lowkiq_lambda.views.jobs import Page

Job = TypeVar("Job", JobView, MorgueJob)

SCAN_AT_MOST = 1_000_000


class PageTerms:
    """Which part of a list a page is: bounds of the value by which it is ordered, direction, cursor and size."""

    def __init__(
        self, least: float | str | None, most: float | str | None, limit: int, *, reverse: bool, after: str | None
    ) -> None:
        self.least = least
        self.most = most
        self.limit = limit
        self.reverse = reverse
        self.after = after

    def numbers(self) -> Range:
        """The range of numbers. Raises ValueError for a bad bound or cursor."""
        least, most = ("-inf" if self.least is None else self.least), ("+inf" if self.most is None else self.most)
        return Range(Bound.of(least), Bound.of(most), self.reverse, position_after(self.after))

    def ids(self) -> IdRange:
        """The range of ids. Raises ValueError for a bad cursor, JobError for a bound that is not an id."""
        least, most = ("-" if self.least is None else self.least), ("+" if self.most is None else self.most)
        return IdRange.of(least, most, position_after(self.after), reverse=self.reverse)


class JobListReader(Generic[Job]):
    """Reads jobs of one list. Each method raises BackendError if Redis cannot serve, ValueError for a bad limit."""

    def __init__(self, jobs: JobReader, stored: StoredList, view: Callable[[JobReply], Job]) -> None:
        self._jobs = jobs
        self._stored: StoredList = stored
        self._view: Callable[[JobReply], Job] = view
        self._shown: SearchableList = "morgue" if stored == "morgue" else "waiting"
        self.scan_at_most = SCAN_AT_MOST
        """The most ids that a scan reads; the page of a scan that ended there has `cut`."""

    def fetch(self, ids: Iterable[object]) -> list[Job]:
        """The jobs of these ids, in the order of the ids. Raises JobError for an invalid id."""
        texts = id_texts(ids)
        jobs = self._jobs.look_up(self._stored, texts, self._view, failures=True)
        return [jobs[job_id] for job_id in texts if job_id in jobs]

    def by_number(self, listed: ListName, terms: PageTerms) -> Page[Job]:
        """A page of the list in the order of its number."""
        return self.page(self._listed(listed, terms.numbers(), probe_limit(terms.limit)), terms.limit)

    def by_retry_count(self, terms: PageTerms) -> Page[Job]:
        """A page in the order of retry_count. Jobs that never failed have -1; only a scan finds these."""
        within, most = terms.numbers(), probe_limit(terms.limit)
        cut, positions = False, list[ListPosition]()
        if within.reverse:
            positions += self._listed("retry", within, most)
        if within.holds(NEVER_FAILED) and len(positions) < most:
            fresh, cut = self._fresh(within, most - len(positions))
            positions += fresh
        if not within.reverse and len(positions) < most:
            positions += self._listed("retry", within, most - len(positions))
        return self.page(positions, terms.limit, cut=cut)

    def by_id(self, listed: Literal["due", "morgue"], terms: PageTerms) -> Page[Job]:
        """A page in the order of the ids' bytes, found by a scan of all ids."""
        ids = terms.ids()
        scan = IdScan(listed, ids.holds, attrgetter("id"), ids.reverse, probe_limit(terms.limit))
        positions, cut = self._scan(scan)
        return self.page(positions, terms.limit, cut=cut)

    def filtered(self, id_filter: IdFilter, terms: PageTerms) -> Page[Job]:
        """A page of the jobs that the filter wants, in the order of their time."""
        ids = self._filtered(id_filter, terms.limit, reverse=terms.reverse, after=terms.after)
        return self._looked_up(ids)

    def search(self, prefix: str, text: str, fingerprint: str, limit: int, after: str | None) -> Page[Job]:
        """A page of a search; in no order without a fingerprint."""
        if fingerprint:
            id_filter = IdFilter(prefix=prefix, error=text, fingerprint=fingerprint)
            return self._looked_up(self._filtered(id_filter, limit, reverse=False, after=after))
        return self._looked_up(self.search_ids(prefix, text, limit, after))

    def search_ids(self, prefix: str, text: str, limit: int, after: str | None) -> Page[str]:
        """As `search` without a fingerprint, but the ids alone."""
        check_limit(limit)
        ids, following = search_ids(self._jobs.reader, IdSearch(self._shown, prefix, text), limit, after)
        return Page(ids, following)

    def page(self, positions: Sequence[ListPosition], limit: int, *, cut: bool = False) -> Page[Job]:
        """The jobs at the first `limit` positions; there is a next page if there are more."""
        positions_shown = positions[:limit]
        jobs = self._jobs.look_up(self._stored, [position.id for position in positions_shown], self._view)
        following = positions_shown[-1].cursor() if len(positions) > limit else None
        # A job that went away between the two reads is left out.
        return Page((jobs[position.id] for position in positions_shown if position.id in jobs), following, cut=cut)

    def _looked_up(self, ids: Page[str]) -> Page[Job]:
        jobs = self._jobs.look_up(self._stored, ids, self._view)
        return Page((jobs[job_id] for job_id in ids if job_id in jobs), ids.next, read=ids.read)

    def _filtered(self, id_filter: IdFilter, limit: int, *, reverse: bool, after: str | None) -> Page[str]:
        return filtered_ids(self._jobs, self._shown, id_filter, limit, reverse=reverse, after=after)

    def _listed(self, listed: ListName, within: Range, limit: int) -> list[ListPosition]:
        return list_positions(self._jobs.reader, listed, within, limit)

    def _fresh(self, within: Range, limit: int) -> tuple[list[ListPosition], bool]:
        after, reverse = within.after, within.reverse

        def wants(position: ListPosition) -> bool:
            return after is None or (position < after if reverse else position > after)

        return self._scan(IdScan("due", wants, lambda position: position, reverse, limit, NEVER_FAILED, fresh=True))

    def _scan(self, scan: IdScan) -> tuple[list[ListPosition], bool]:
        return scan_ids(self._jobs.reader, scan, self.scan_at_most)


def check_filtered(by: str, time: str, least: object, most: object) -> None:
    """Raises ValueError for another order than that by time, or bounds beside those of the filter."""
    if by != time or least is not None or most is not None:
        raise ValueError(f"With a filter a list is by {time}, and its bounds are `least` and `most` of the filter.")


def unknown_order(by: object, orders: object) -> ValueError:
    """Of a list that has no such order."""
    choices = ", ".join(map(repr, get_args(orders)))
    return ValueError(f"by must be one of {choices}, not {by!r}.")
