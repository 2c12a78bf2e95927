"""Jobs: pages of those that wait, are in flight, or lie in the morgue, and one of them."""

import base64
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UnsetType

from lowkiq_lambda.dashboard.api.asked import ById, ByNumber, ByTime, InFlight, OfJob, Search, worker_named
from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.api.shown import Buried, Shower, Shown, Waiting, fitting
from lowkiq_lambda.dashboard.api.times import in_seconds
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.dashboard.why import why
from lowkiq_lambda.job import Failure, JobView, MorgueJob
from lowkiq_lambda.store.inspect.id_ranges import ListPosition
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.views import Page
from lowkiq_lambda.worker import Worker

Ranged: TypeAlias = ById | ByNumber | ByTime
One = TypeVar("One", bound=Shown)
Kept = TypeVar("Kept", bound=JobView | MorgueJob)

_NO_JOB: Final = "There is no job of that id: it is done, deleted, or never was."
_NO_CURSOR: Final = "No page goes on from this cursor: give the `next` of one."


class WaitingJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list.

    `next`: the cursor of what follows, null at the end. `cut`: a search ended before it had seen everything.
    """

    jobs: list[Waiting]
    next: str | None
    cut: bool = False


class BuriedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list; `next` and `cut` as of those that wait."""

    jobs: list[Buried]
    next: str | None
    cut: bool = False


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job is: it may be in several places at once, as new payloads come while others run or lie buried.

    `failures`: the last five since it was last done, newest first. `why`: why it is not running, or that it is, in a
    sentence for people; `next_at`: when something is to be expected.
    """

    waiting: Waiting | None
    processing: Waiting | None
    morgue: Buried | None
    failures: list[Failure]
    why: str
    next_at: float | None


def waiting_by_id(visit: Visit, asked: ById) -> WaitingJobs:
    """Jobs that wait, by the bytes of their ids; there is no index for it, so a search finds them."""
    return _waiting(visit, asked, Queries.range_by_id, lambda _job: 0.0)


def waiting_by_perform_in(visit: Visit, asked: ByTime) -> WaitingJobs:
    """Jobs that wait, by when they are due."""
    return _waiting(visit, _in_seconds(asked), Queries.range_by_perform_in, lambda job: job.perform_in)


def waiting_by_retry_count(visit: Visit, asked: ByNumber) -> WaitingJobs:
    """Jobs that wait, by how many retries of theirs are over; -1: they have not failed."""
    return _waiting(visit, asked, Queries.range_by_retry_count, lambda job: job.retry_count)


def waiting_search(visit: Visit, asked: Search) -> WaitingJobs:
    """Jobs that wait, by how their ids begin and what their last errors contain; in no order.

    A page may be empty and yet have a `next`: one call looks at a bounded number of jobs.
    """
    worker = worker_named(visit, asked.queue)
    return WaitingJobs(**_found(asked, visit.app.queries(worker).search, Shower(visit, worker).waiting))


def morgue_by_id(visit: Visit, asked: ById) -> BuriedJobs:
    """Jobs in the morgue, by the bytes of their ids; there is no index for it, so a search finds them."""
    return _buried(visit, asked, Queries.morgue_range_by_id, lambda _job: 0.0)


def morgue_by_updated_at(visit: Visit, asked: ByTime) -> BuriedJobs:
    """Jobs in the morgue, by when the last of their payloads came there."""
    return _buried(visit, _in_seconds(asked), Queries.morgue_range_by_updated_at, lambda job: job.updated_at)


def morgue_search(visit: Visit, asked: Search) -> BuriedJobs:
    """Jobs in the morgue, by how their ids begin and what their last errors contain; in no order.

    A page may be empty and yet have a `next`: one call looks at a bounded number of jobs.
    """
    worker = worker_named(visit, asked.queue)
    return BuriedJobs(**_found(asked, visit.app.queries(worker).morgue_search, Shower(visit, worker).buried))


def processing(visit: Visit, asked: InFlight) -> WaitingJobs:
    """Jobs in flight, by shard and id."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).processing_page(asked.limit, after=_after(asked.cursor))
    return WaitingJobs(**_part(found, map(Shower(visit, worker).waiting, found), lambda _job: 0.0))


def job(visit: Visit, asked: OfJob) -> Job:
    """One job, wherever it is."""
    worker = worker_named(visit, asked.queue)
    queries, shown = visit.app.queries(worker), Shower(visit, worker)
    # In the order that a job goes, so that one on its way is seen at least once.
    waiting, in_flight = queries.fetch([asked.id]), queries.processing_fetch([asked.id])
    buried = queries.morgue_fetch([asked.id])
    found: list[JobView | MorgueJob] = [*waiting, *in_flight, *buried]
    if not found:
        raise Refused(HTTPStatus.NOT_FOUND, "unknown_job", _NO_JOB)
    reason = why(queries.explain(asked.id))
    return Job(
        waiting=next(map(shown.waiting, waiting), None),
        processing=next(map(shown.waiting, in_flight), None),
        morgue=next(map(shown.buried, buried), None),
        failures=next((shown.failures(one) for one in found if one.failures), []),
        why=reason.sentence,
        next_at=reason.next_at,
    )


def _waiting(
    visit: Visit, asked: Ranged, read: Callable[..., Page[JobView]], value: Callable[[Waiting], float]
) -> WaitingJobs:
    worker = worker_named(visit, asked.queue)
    found = _read(visit, worker, asked, read)
    return WaitingJobs(**_part(found, map(Shower(visit, worker).waiting, found), value))


def _buried(
    visit: Visit,
    asked: Ranged,
    read: Callable[..., Page[MorgueJob]],
    value: Callable[[Buried], float],
) -> BuriedJobs:
    worker = worker_named(visit, asked.queue)
    found = _read(visit, worker, asked, read)
    return BuriedJobs(**_part(found, map(Shower(visit, worker).buried, found), value))


def _in_seconds(asked: ByTime) -> ByTime:
    return msgspec.structs.replace(asked, min=in_seconds(asked.min), max=in_seconds(asked.max))


def _read(visit: Visit, worker: type[Worker], asked: Ranged, read: Callable[..., Page[Kept]]) -> Page[Kept]:
    reverse, after = asked.order == "desc", _after(asked.cursor)
    return read(visit.app.queries(worker), asked.min, asked.max, asked.limit, reverse=reverse, after=after)


def _found(asked: Search, search: Callable[..., Page[Kept]], show: Callable[[Kept], One]) -> dict[str, Any]:
    """As many as an answer takes: the cursor of a search is known only behind the last that was asked for."""
    prefix, error = asked.prefix or "", asked.error or ""
    after, limit = _decoded(asked.cursor), asked.limit
    while True:
        try:
            found = search(prefix, error, limit, after=after)
        except ValueError as wrong:
            raise Refused(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR) from wrong
        jobs = fitting(map(show, found))
        if len(jobs) == len(found):
            return {"jobs": jobs, "next": found.next and _as_cursor(found.next)}
        limit = len(jobs)


def _part(found: Page[Any], shown: Iterable[One], value: Callable[[One], float]) -> dict[str, Any]:
    jobs = fitting(shown)
    following = found.next
    if len(jobs) < len(found):
        last = jobs[-1]
        following = ListPosition(value(last), last.shard, last.id).cursor()
    return {"jobs": jobs, "next": following and _as_cursor(following), "cut": found.cut}


def _as_cursor(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _decoded(cursor: str | UnsetType) -> str | None:
    if isinstance(cursor, UnsetType):
        return None
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR) from error


def _after(cursor: str | UnsetType) -> str | None:
    text = _decoded(cursor)
    if text is None:
        return None
    with suppress(ValueError):
        place = ListPosition.of(text)
        if math.isfinite(place.value) and place.shard >= 0:
            return place.cursor()
    raise Refused(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR)
