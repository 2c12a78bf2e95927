"""Jobs: pages of those that wait, are in flight, or lie in the morgue, and one of them."""

import base64
import math
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, TypedDict, TypeVar

import msgspec

from lowkiq_lambda.dashboard.api.asked import ById, ByNumber, InFlight, OfJob, worker_named
from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.api.shown import Buried, Shown, Waiting, fitting, shower
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.dashboard.why import why
from lowkiq_lambda.store.ranges import Place
from lowkiq_lambda.views import Page

One = TypeVar("One", bound=Shown)


class _Way(TypedDict):
    reverse: bool
    after: str | None


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

    `why`: why it is not running, or that it is, in a sentence for people; `next_at`: when something is to be expected.
    """

    waiting: Waiting | None
    processing: Waiting | None
    morgue: Buried | None
    why: str
    next_at: float | None


def waiting_by_id(visit: Visit, asked: ById) -> WaitingJobs:
    """Jobs that wait, by the bytes of their ids; there is no index for it, so a search finds them."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).range_by_id(*_range(asked), **_way(asked))
    return WaitingJobs(**_part(found, map(shower(visit, worker).waiting, found), lambda _job: 0.0))


def waiting_by_perform_in(visit: Visit, asked: ByNumber) -> WaitingJobs:
    """Jobs that wait, by when they are due, in Unix seconds."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).range_by_perform_in(*_range(asked), **_way(asked))
    return WaitingJobs(**_part(found, map(shower(visit, worker).waiting, found), lambda job: job.perform_in))


def waiting_by_retry_count(visit: Visit, asked: ByNumber) -> WaitingJobs:
    """Jobs that wait, by how many retries of theirs are over; -1: they have not failed."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).range_by_retry_count(*_range(asked), **_way(asked))
    return WaitingJobs(**_part(found, map(shower(visit, worker).waiting, found), lambda job: job.retry_count))


def morgue_by_id(visit: Visit, asked: ById) -> BuriedJobs:
    """Jobs in the morgue, by the bytes of their ids; there is no index for it, so a search finds them."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).morgue_range_by_id(*_range(asked), **_way(asked))
    return BuriedJobs(**_part(found, map(shower(visit, worker).buried, found), lambda _job: 0.0))


def morgue_by_updated_at(visit: Visit, asked: ByNumber) -> BuriedJobs:
    """Jobs in the morgue, by when the last of their payloads came there, in Unix seconds."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).morgue_range_by_updated_at(*_range(asked), **_way(asked))
    return BuriedJobs(**_part(found, map(shower(visit, worker).buried, found), lambda job: job.updated_at))


def processing(visit: Visit, asked: InFlight) -> WaitingJobs:
    """Jobs in flight, by shard and id."""
    worker = worker_named(visit, asked.queue)
    found = visit.app.queries(worker).processing_page(asked.limit, after=_after(asked.cursor))
    return WaitingJobs(**_part(found, map(shower(visit, worker).waiting, found), lambda _job: 0.0))


def job(visit: Visit, asked: OfJob) -> Job:
    """One job, wherever it is."""
    worker = worker_named(visit, asked.queue)
    queries, shown = visit.app.queries(worker), shower(visit, worker)
    # In the order that a job goes, so that one on its way is seen at least once.
    waiting = [shown.waiting(one) for one in queries.fetch([asked.id])]
    in_flight = [shown.waiting(one) for one in queries.processing_fetch([asked.id])]
    buried = [shown.buried(one) for one in queries.morgue_fetch([asked.id])]
    if not (waiting or in_flight or buried):
        raise Refused(HTTPStatus.NOT_FOUND, "There is no job of that id: it is done, deleted, or never was.")
    reason = why(queries.situation(asked.id))
    return Job(
        waiting=next(iter(waiting), None),
        processing=next(iter(in_flight), None),
        morgue=next(iter(buried), None),
        why=reason.sentence,
        next_at=reason.next_at,
    )


def _range(asked: ById | ByNumber) -> tuple[str, str, int]:
    return asked.min, asked.max, asked.limit


def _way(asked: ById | ByNumber) -> _Way:
    return {"reverse": asked.order == "desc", "after": _after(asked.cursor)}


def _part(found: Page[Any], shown: Iterable[One], value: Callable[[One], float]) -> dict[str, Any]:
    jobs = fitting(shown)
    following = found.next
    if len(jobs) < len(found):
        last = jobs[-1]
        following = Place(value(last), last.shard, last.id).cursor()
    return {"jobs": jobs, "next": following and _as_cursor(following), "cut": found.cut}


def _as_cursor(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _after(cursor: str | msgspec.UnsetType) -> str | None:
    if isinstance(cursor, msgspec.UnsetType):
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        place = Place.of(text)
    except ValueError:
        place = None
    if place is None or not math.isfinite(place.value) or place.shard < 0:
        raise Refused(HTTPStatus.NOT_FOUND, "No page goes on from this cursor: give the `next` of one.")
    return place.cursor()
