"""What programs of operators may do to whole lists, or to what is found in them.

It is done in steps: an answer that is not the last has a `next`, which the next call is given back. What has come
since the first call is left alone, whenever the others come.
"""

import time
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.asked import FoundMorgue, FoundWaiting, QueueName, filter_of, worker_named
from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.sweeping import go_on
from lowkiq_lambda.dashboard.tickets import Ticket, packed, unpacked
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.actions import ActionName
from lowkiq_lambda.store.inspect.bulk_actions import prepare
from lowkiq_lambda.store.inspect.id_filter import IdFilter

PATIENCE: Final = 5.0
"""Seconds after which an answer is given, done or not."""


class WholeList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All jobs of a list; or, with the `next` of an answer, those that are left.

    All calls of one action have the same queue and filter.
    """

    queue: QueueName
    next: Annotated[str, Meta(description="Of the answer before.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="After about how many jobs an answer is given.")] = (
        10_000
    )


class WaitingList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs that wait: all, or those that the filter finds."""

    filter: FoundWaiting | UnsetType = UNSET


class MorgueList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs in the morgue: all, or those that the filter finds."""

    filter: FoundMorgue | UnsetType = UNSET


class FoundList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs that wait and that the filter finds; it has to say something."""

    filter: Annotated[FoundWaiting, Meta(extra_json_schema={"minProperties": 1})]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is: of about `total` ids `handled` were looked at and `changed` changed, by all calls so far.

    `next`: to be sent with the next call; null where all is done.
    """

    total: int
    handled: int
    changed: int
    next: str | None


def expedite_all(visit: Visit, asked: WaitingList) -> Step:
    """Make jobs that wait for a later time due now, in their order."""
    return _step(visit, asked, "expedite", filter_of(asked.filter))


def kill_all_failed(visit: Visit, asked: WaitingList) -> Step:
    """Send jobs that wait and have failed to the morgue."""
    return _step(visit, asked, "kill", filter_of(asked.filter))


def delete_all_failed(visit: Visit, asked: WaitingList) -> Step:
    """Delete jobs that wait and have failed."""
    return _step(visit, asked, "delete_failed", filter_of(asked.filter))


def delete_found(visit: Visit, asked: FoundList) -> Step:
    """Delete jobs that wait and that the filter finds, whether they have failed or not."""
    if asked.filter == FoundWaiting():
        raise Refused(
            HTTPStatus.BAD_REQUEST, "empty_filter", "The filter says nothing: nobody deletes a whole list by that."
        )
    return _step(visit, asked, "delete", filter_of(asked.filter))


def requeue_all(visit: Visit, asked: MorgueList) -> Step:
    """Put jobs from the morgue back among those that wait, due now."""
    return _step(visit, asked, "requeue", filter_of(asked.filter))


def delete_all_buried(visit: Visit, asked: MorgueList) -> Step:
    """Delete jobs from the morgue."""
    return _step(visit, asked, "delete_buried", filter_of(asked.filter))


def _step(visit: Visit, asked: WholeList, act: ActionName, wanted: IdFilter) -> Step:
    actions = visit.app.actions(worker_named(visit, asked.queue))
    before = _ticket(asked, act, wanted) or Ticket(queue=asked.queue, sweep=prepare(actions, act, filter=wanted))
    most, ends_at = before.sweep.handled + asked.limit, time.monotonic() + PATIENCE
    try:
        after, trouble = go_on(
            visit, actions, before, lambda sweep: sweep.handled >= most or time.monotonic() >= ends_at
        )
    except ValueError as error:
        raise Refused(HTTPStatus.CONFLICT, "shards_changed", str(error)) from error
    sweep = after.sweep
    if trouble and sweep is before.sweep:
        raise trouble
    following = None if sweep.is_done else packed(after)
    return Step(total=sweep.total, handled=sweep.handled, changed=sweep.changed, next=following)


def _ticket(asked: WholeList, act: ActionName, wanted: IdFilter) -> Ticket | None:
    if isinstance(asked.next, UnsetType):
        return None
    with suppress(ValueError):
        ticket = unpacked(asked.next, Ticket)
        if (ticket.queue, ticket.sweep.act, ticket.sweep.filter) == (asked.queue, act, wanted):
            return ticket
    raise Refused(
        HTTPStatus.BAD_REQUEST,
        "bad_next",
        "There is no such action to go on with: give the `next` of its answer, and the same queue and filter.",
    )
