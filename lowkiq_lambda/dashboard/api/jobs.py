"""Pages of waiting jobs, jobs in flight and jobs in the morgue; and one job."""

import base64
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UnsetType

from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import (
    IdRangeParams,
    JobParams,
    NumberRangeParams,
    PageParams,
    SearchParams,
    TimeRangeParams,
    filter_of,
    in_seconds,
    worker_named,
)
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.scanning import scanning
from lowkiq_lambda.jobs.job import JobView, MorgueJob
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.id_ranges import ListPosition
from lowkiq_lambda.operate.morgue import MorgueIds, MorgueOrder
from lowkiq_lambda.operate.presentation.jobs import (
    DeadJob,
    DeadJobs,
    JobDetails,
    JobResponse,
    WaitingJob,
    WaitingJobs,
    job_details,
    no_job,
    serializer_for,
    why,
)
from lowkiq_lambda.operate.presentation.pages import fitting
from lowkiq_lambda.operate.waiting import WaitingIds, WaitingOrder
from lowkiq_lambda.views.jobs import Page

Ranged: TypeAlias = IdRangeParams | NumberRangeParams | TimeRangeParams
Serialized = TypeVar("Serialized", bound=JobResponse)
View = TypeVar("View", bound=JobView | MorgueJob)

_NO_CURSOR: Final = "The cursor is invalid: send the `next` of a page."


def waiting_by_id(context: RequestContext, params: IdRangeParams) -> WaitingJobs:
    """Waiting jobs by the bytes of their ids. Redis has no index for it, so the operation scans the list."""
    return _waiting(context, params, "id", lambda _job: 0.0)


def waiting_by_due_at(context: RequestContext, params: TimeRangeParams) -> WaitingJobs:
    """Waiting jobs by due time."""
    return _waiting(context, _in_seconds(params), "due_at", lambda job: job.due_at)


def waiting_by_retry_count(context: RequestContext, params: NumberRangeParams) -> WaitingJobs:
    """Waiting jobs by the number of retries; -1 before the first failure."""
    return _waiting(context, params, "retry_count", lambda job: job.retry_count)


def waiting_search(context: RequestContext, params: SearchParams) -> WaitingJobs:
    """Waiting jobs by a prefix of the id, a text in the last error, its fingerprint, and conditions on payloads.

    In no order; by time with a fingerprint or a payload. One call examines a bounded number of jobs, so an empty page
    may have a `next`.
    """
    worker = worker_named(context, params.queue)
    listed = context.app.operate(worker).waiting
    return WaitingJobs(**_search_page(context, params, listed, serializer_for(worker, context.mask).waiting))


def morgue_by_id(context: RequestContext, params: IdRangeParams) -> DeadJobs:
    """Jobs in the morgue by the bytes of their ids. Redis has no index for it, so the operation scans the list."""
    return _dead(context, params, "id", lambda _job: 0.0)


def morgue_by_updated_at(context: RequestContext, params: TimeRangeParams) -> DeadJobs:
    """Jobs in the morgue by the time of their last death."""
    return _dead(context, _in_seconds(params), "updated_at", lambda job: job.updated_at)


def morgue_search(context: RequestContext, params: SearchParams) -> DeadJobs:
    """Jobs in the morgue by a prefix of the id, a text in the last error, its fingerprint, and conditions on payloads.

    In no order; by time with a fingerprint or a payload. One call examines a bounded number of jobs, so an empty page
    may have a `next`.
    """
    worker = worker_named(context, params.queue)
    listed = context.app.operate(worker).morgue
    return DeadJobs(**_search_page(context, params, listed, serializer_for(worker, context.mask).dead))


def processing(context: RequestContext, params: PageParams) -> WaitingJobs:
    """Jobs in flight by shard and id."""
    worker = worker_named(context, params.queue)
    page = context.app.operate(worker).in_flight.list(params.limit, after=_after(params.cursor))
    return WaitingJobs(**_part(page, map(serializer_for(worker, context.mask).waiting, page), lambda _job: 0.0))


def job(context: RequestContext, params: JobParams) -> JobDetails:
    """Serialized job, wherever it is."""
    worker = worker_named(context, params.queue)
    serializer = serializer_for(worker, context.mask)
    details = job_details(context.app.operate(worker), serializer, params.id, partial(why, context.app.operate, worker))
    if details is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_job", no_job(context.app.operate(worker), params.id))
    return details


def _waiting(
    context: RequestContext, params: Ranged, by: WaitingOrder, value: Callable[[WaitingJob], float]
) -> WaitingJobs:
    worker = worker_named(context, params.queue)
    with scanning(is_scan=by == "id"):
        page = context.app.operate(worker).waiting.list(by, **_range(params))
    return WaitingJobs(**_part(page, map(serializer_for(worker, context.mask).waiting, page), value))


def _dead(
    context: RequestContext,
    params: Ranged,
    by: MorgueOrder,
    value: Callable[[DeadJob], float],
) -> DeadJobs:
    worker = worker_named(context, params.queue)
    with scanning(is_scan=by == "id"):
        page = context.app.operate(worker).morgue.list(by, **_range(params))
    return DeadJobs(**_part(page, map(serializer_for(worker, context.mask).dead, page), value))


def _in_seconds(params: TimeRangeParams) -> TimeRangeParams:
    return msgspec.structs.replace(params, min=in_seconds(params.min), max=in_seconds(params.max))


def _range(params: Ranged) -> dict[str, Any]:
    return {
        "min": params.min,
        "max": params.max,
        "limit": params.limit,
        "reverse": params.order == "desc",
        "after": _after(params.cursor),
    }


def _search_page(
    context: RequestContext,
    params: SearchParams,
    listed: WaitingIds | MorgueIds,
    show: Callable[[Any], Serialized],
) -> dict[str, Any]:
    """A page that fits into one response.

    A search has a cursor only at the end of its page, so a page that is too large is read again with a smaller limit.
    """
    searched = filter_of(context, params)
    after, limit = _decoded(params.cursor), params.limit
    while True:
        try:
            with scanning():
                page = _found(listed, searched, limit, after)
        except ValueError as error_of_cursor:
            raise ApiError(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR) from error_of_cursor
        jobs = fitting(map(show, page))
        if len(jobs) == len(page):
            return {"jobs": jobs, "next": page.next and _as_cursor(page.next)}
        limit = len(jobs)


def _found(listed: WaitingIds | MorgueIds, searched: IdFilter, limit: int, after: str | None) -> Page[Any]:
    if searched.payload:
        return listed.list(limit=limit, filter=searched, after=after)
    return listed.search(
        searched.error, prefix=searched.prefix, fingerprint=searched.fingerprint, limit=limit, after=after
    )


def _part(page: Page[Any], serialized: Iterable[Serialized], value: Callable[[Serialized], float]) -> dict[str, Any]:
    jobs = fitting(serialized)
    following = page.next
    if len(jobs) < len(page):
        last = jobs[-1]
        following = ListPosition(value(last), last.shard, last.id).cursor()
    return {"jobs": jobs, "next": following and _as_cursor(following), "cut": page.cut}


def _as_cursor(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _decoded(cursor: str | UnsetType) -> str | None:
    if isinstance(cursor, UnsetType):
        return None
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR) from error


def _after(cursor: str | UnsetType) -> str | None:
    text = _decoded(cursor)
    if text is None:
        return None
    with suppress(ValueError):
        place = ListPosition.of(text)
        if math.isfinite(place.value) and place.shard >= 0:
            return place.cursor()
    raise ApiError(HTTPStatus.BAD_REQUEST, "bad_cursor", _NO_CURSOR)
