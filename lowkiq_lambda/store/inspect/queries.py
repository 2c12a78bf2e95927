"""The jobs of a queue, for people: read only, bounded whatever the queue holds."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple, Self

from lowkiq_lambda.job import NEVER_FAILED, JobView, MorgueJob, id_text
from lowkiq_lambda.store.inspect.damaged_records import damaged_records
from lowkiq_lambda.store.inspect.id_ranges import Bound, ListName, ListPosition, Range, list_positions
from lowkiq_lambda.store.inspect.id_scan import IdScan, scan_ids
from lowkiq_lambda.store.inspect.id_search import IdSearch, SearchableList, search_ids
from lowkiq_lambda.store.inspect.jobs import JobReader, JobReply, View, Where, id_texts
from lowkiq_lambda.store.inspect.shard_details import explain_job, shard_details
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.views import DamagedRecord, JobExplanation, Page, ShardDetails

LARGEST_PAGE: Final = 10_000


class IdBound(NamedTuple):
    """One end of a range of ids."""

    id: str
    exclusive: bool = False

    @classmethod
    def of(cls, given: object) -> Self:
        """As in Redis: an id, behind "[" if it begins with a sign; behind "(" to leave it out."""
        text = id_text(given)
        return cls(text.removeprefix("[") if text[:1] != "(" else text[1:], text[:1] == "(")


class Queries:
    """What `app.queries(worker)` returns. Each method raises BackendError where Redis cannot serve.

    Lists go by a value, then by shard, then by id. Bounds are as in Redis: a value, or "(" and a value to leave that
    one out; "-inf" and "+inf", or "-" and "+" where the value is the id (a bound's id that begins with a sign itself
    is written behind "["). A page has `limit` jobs, 10,000 at most; its `next`, given as `after`, goes on behind it.
    A bad bound, limit or cursor is a ValueError.
    """

    def __init__(self, viewer: JobReader) -> None:
        self._viewer = viewer
        self.scan_at_most = 1_000_000
        """How many ids a search without an index looks at; a page that was cut for it says so."""

    def fetch(self, ids: Iterable[object]) -> list[JobView]:
        """Those of the ids that wait, in the order given. Raises JobError for what can be no id."""
        return self._fetch("waiting", ids, self._viewer.job)

    def morgue_fetch(self, ids: Iterable[object]) -> list[MorgueJob]:
        """Those of the ids that are in the morgue, in the order given. Raises JobError for what can be no id."""
        return self._fetch("morgue", ids, self._viewer.morgue_job)

    def processing(self) -> list[JobView]:
        """What is in flight in all shards, by perform_in: at most a claim's worth of each."""
        return sorted(self._viewer.in_flight(), key=lambda job: (job.perform_in, job.id))

    def range_by_perform_in(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by when they are due."""
        within = Range(Bound.of(min), Bound.of(max), reverse, _place(after))
        return self._page("waiting", self._list("due", within, _and_one(limit)), limit, self._viewer.job)

    def range_by_retry_count(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by retry_count; -1 are those that have not failed, which a search has to find."""
        within = Range(Bound.of(min), Bound.of(max), reverse, _place(after))
        most, cut, places = _and_one(limit), False, list[ListPosition]()
        if reverse:
            places += self._list("retry", within, most)
        if within.holds(NEVER_FAILED) and len(places) < most:
            fresh, cut = self._fresh(within, most - len(places))
            places += fresh
        if not reverse and len(places) < most:
            places += self._list("retry", within, most - len(places))
        return self._page("waiting", places, limit, self._viewer.job, cut=cut)

    def morgue_range_by_updated_at(
        self,
        min: float | str = "-inf",  # noqa: A002 - as Redis calls it
        max: float | str = "+inf",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[MorgueJob]:
        """Jobs in the morgue, by when they came there."""
        within = Range(Bound.of(min), Bound.of(max), reverse, _place(after))
        return self._page("morgue", self._list("morgue", within, _and_one(limit)), limit, self._viewer.morgue_job)

    def range_by_id(
        self,
        min: str | int = "-",  # noqa: A002 - as Redis calls it
        max: str | int = "+",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[JobView]:
        """Jobs that wait, by the bytes of their ids; a search has to find them among all."""
        wants = _between(min, max, _place(after), reverse=reverse)
        places, cut = self._by_id("due", wants, limit, reverse=reverse)
        return self._page("waiting", places, limit, self._viewer.job, cut=cut)

    def morgue_range_by_id(
        self,
        min: str | int = "-",  # noqa: A002 - as Redis calls it
        max: str | int = "+",  # noqa: A002 - as above
        limit: int = 100,
        *,
        reverse: bool = False,
        after: str | None = None,
    ) -> Page[MorgueJob]:
        """Jobs in the morgue, by the bytes of their ids; a search has to find them among all."""
        wants = _between(min, max, _place(after), reverse=reverse)
        places, cut = self._by_id("morgue", wants, limit, reverse=reverse)
        return self._page("morgue", places, limit, self._viewer.morgue_job, cut=cut)

    def processing_page(self, limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """What is in flight, by shard and id."""
        behind, shards = _place(after), self._viewer.reader.shards
        in_flight = chain.from_iterable(
            self._viewer.reader.read("in_flight_ids", dict.fromkeys(shards, ()), _in_flight)
        )
        places = heapq.nsmallest(_and_one(limit), (place for place in in_flight if behind is None or place > behind))
        return self._page("flight", places, limit, self._viewer.job)

    def processing_fetch(self, ids: Iterable[object]) -> list[JobView]:
        """Those of the ids that are in flight, in the order given. Raises JobError for what can be no id."""
        return self._fetch("flight", ids, self._viewer.job)

    def search(self, prefix: str = "", text: str = "", limit: int = 100, *, after: str | None = None) -> Page[JobView]:
        """Jobs that wait, whose ids begin with `prefix`, and whose last errors as stored hold `text` in any case.

        In no order. A step of it looks at a bounded number of ids, so a page may be empty and yet have a `next`.
        """
        places, following = search_ids(
            self._viewer.reader, IdSearch("waiting", prefix, text), _and_one(limit) - 1, after
        )
        return self._found("waiting", places, following, self._viewer.job)

    def morgue_search(
        self, prefix: str = "", text: str = "", limit: int = 100, *, after: str | None = None
    ) -> Page[MorgueJob]:
        """As `search`, jobs in the morgue."""
        places, following = search_ids(
            self._viewer.reader, IdSearch("morgue", prefix, text), _and_one(limit) - 1, after
        )
        return self._found("morgue", places, following, self._viewer.morgue_job)

    def search_ids(
        self, where: SearchableList, prefix: str = "", text: str = "", limit: int = 100, *, after: str | None = None
    ) -> Page[str]:
        """As `search`, only the ids."""
        ids, following = search_ids(self._viewer.reader, IdSearch(where, prefix, text), _and_one(limit) - 1, after)
        return Page(ids, following)

    def shards(self) -> list[ShardDetails]:
        """The shards, and who holds them."""
        return shard_details(self._viewer.reader)

    def explain(self, job_id: object) -> JobExplanation:
        """What decides when the id runs. Raises JobError for what can be no id."""
        return explain_job(self._viewer.reader, id_text(job_id))

    def damaged(self, largest: int = 64 * 1024) -> list[DamagedRecord]:
        """What was set aside, as nobody could read it, by shard, the oldest first: of each record `largest` bytes."""
        return damaged_records(self._viewer.reader, largest)

    def glimpse(self) -> "Queries":
        """The same, for lists: of each job only the first payload is shown, and that only where it is small."""
        return Queries(self._viewer.glimpse())

    def _found(
        self, where: Where, ids: Sequence[str], following: str | None, view: Callable[[JobReply], View]
    ) -> Page[View]:
        found = self._viewer.look_up(where, ids, view)
        return Page((found[job_id] for job_id in ids if job_id in found), following)

    def _fetch(self, where: Where, ids: Iterable[object], view: Callable[[JobReply], View]) -> list[View]:
        asked = id_texts(ids)
        found = self._viewer.look_up(where, asked, view, failures=True)
        return [found[job_id] for job_id in asked if job_id in found]

    def _list(self, listed: ListName, within: Range, limit: int) -> list[ListPosition]:
        return list_positions(self._viewer.reader, listed, within, limit)

    def _by_id(
        self, listed: Literal["due", "morgue"], wants: Callable[[ListPosition], bool], limit: int, *, reverse: bool
    ) -> tuple[list[ListPosition], bool]:
        return self._scan(IdScan(listed, wants, lambda place: place.id, reverse, _and_one(limit)))

    def _fresh(self, within: Range, limit: int) -> tuple[list[ListPosition], bool]:
        after, reverse = within.after, within.reverse

        def wants(place: ListPosition) -> bool:
            return after is None or (place < after if reverse else place > after)

        return self._scan(IdScan("due", wants, lambda place: place, reverse, limit, NEVER_FAILED, fresh=True))

    def _scan(self, search: IdScan) -> tuple[list[ListPosition], bool]:
        return scan_ids(self._viewer.reader, search, self.scan_at_most)

    def _page(
        self,
        where: Where,
        places: Sequence[ListPosition],
        limit: int,
        view: Callable[[JobReply], View],
        *,
        cut: bool = False,
    ) -> Page[View]:
        chosen = places[:limit]
        found = self._viewer.look_up(where, [place.id for place in chosen], view)
        following = chosen[-1].cursor() if len(places) > limit else None
        # What went away between the two looks is left out.
        return Page((found[place.id] for place in chosen if place.id in found), following, cut=cut)


def _in_flight(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    return [ListPosition(0.0, shard.index, job_id.decode()) for job_id in reply]


def _and_one(limit: int) -> int:
    """The limit, and one more to know whether there is a next page."""
    given: object = limit
    if not isinstance(given, int) or not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE:,}, not {limit!r}.")
    return limit + 1


def _place(after: str | None) -> ListPosition | None:
    if after is None:
        return None
    try:
        return ListPosition.of(after)
    except ValueError as error:
        raise ValueError(f"after={after!r} is not the `next` of a page.") from error


def _between(
    least: object, most: object, after: ListPosition | None, *, reverse: bool
) -> Callable[[ListPosition], bool]:
    """Whether a place's id lies within the bounds, and behind the place."""
    low, high = None if least == "-" else IdBound.of(least), None if most == "+" else IdBound.of(most)

    def wants(place: ListPosition) -> bool:
        job_id = place.id
        if low and (job_id < low.id or (low.exclusive and job_id == low.id)):
            return False
        if high and (job_id > high.id or (high.exclusive and job_id == high.id)):
            return False
        return after is None or (job_id < after.id if reverse else job_id > after.id)

    # Nothing comes before "+" but everything does, and so for "-".
    return (lambda _place: False) if least == "+" or most == "-" else wants
