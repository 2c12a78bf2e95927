"""Operations that change all jobs of a list, or all that match a filter.

They run in steps: a response has a `next` until the action is done, and the next call sends it back. Jobs that were
pushed after the first call do not change.
"""

import time
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import MorgueFilter, QueueName, WaitingFilter, filter_of, worker_named
from lowkiq_lambda.dashboard.bulk_action import BulkActionState, key_of, pack, run_steps, unpack
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.scanning import for_seconds, scanning
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_actions import WholeListError, count, prepare
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.acts.requeue_terms import Rate
from lowkiq_lambda.operate.acts.requeueing import timed
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.views.activity import Reason, need_reason

SECONDS_AT_ONCE: Final = 5.0
"""Seconds of work before a response."""


class WholeList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All jobs of a list. With the `next` of the last response the action continues.

    All calls of one action must have the same queue and filter.
    """

    queue: QueueName
    next: Annotated[str, Meta(description="The `next` of the last response.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="About how many jobs one call examines.")] = 10_000
    reason: Annotated[
        Reason, Meta(description="Why, for the activity log; the first call has it. More than 100 jobs need one.")
    ] = ""


class WaitingList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waiting jobs; with a filter those that match it."""

    filter: WaitingFilter | UnsetType = UNSET


class RunNowList(WaitingList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waiting jobs, and how many of them are due in a second."""

    rate: (
        Annotated[Rate, Meta(description="So many a second; else all at once. The first call has it.")] | UnsetType
    ) = UNSET
    dry_run: Annotated[
        bool,
        Meta(
            description="Change nothing: `changed` is how many wait for a later time, as far as 5 s of counting reach, "
            "and `last_due` by when the last would be due."
        ),
    ] = False


class MorgueList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs in the morgue; with a filter those that match it."""

    filter: MorgueFilter | UnsetType = UNSET


class FilteredWaitingList(WholeList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waiting jobs that match the filter, which must not be empty."""

    filter: Annotated[WaitingFilter, Meta(extra_json_schema={"minProperties": 1})]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Progress: all calls so far examined `handled` of about `total` ids and changed `changed`.

    `next`: the value for the next call; null when the action is done. `action_id`: POST actions/{id}/undo takes the
    action back, for ten minutes, for `undoable` of the ids; null if it cannot. `paused`: ids that did not change,
    as they are paused. `last_due`: with a rate, by when the last of those changed is due (Unix seconds).
    """

    total: int
    handled: int
    changed: int
    next: str | None
    action_id: str | None
    undoable: int
    paused: int
    last_due: float | None = None


def run_now_all(context: RequestContext, params: RunNowList) -> Step:
    """Make waiting jobs due now, in their order, or so many in a second."""
    id_filter = filter_of(context, params.filter)
    rate = None if isinstance(params.rate, UnsetType) else params.rate
    if not params.dry_run:
        return _step(context, params, "run_now", id_filter, rate)
    runner = context.app.operate(worker_named(context, params.queue)).runner
    action = _paced(runner, prepare(runner, "run_now", filter=id_filter), rate)
    with scanning():
        number, _ = count(runner, action, for_seconds(SECONDS_AT_ONCE))
    return Step(
        total=action.total,
        handled=0,
        changed=number,
        next=None,
        action_id=None,
        undoable=0,
        paused=0,
        last_due=action.last_due(number),
    )


def kill_all(context: RequestContext, params: WaitingList) -> Step:
    """Kill waiting jobs that have failed."""
    return _step(context, params, "kill", filter_of(context, params.filter))


def delete_all_failed(context: RequestContext, params: WaitingList) -> Step:
    """Delete waiting jobs that have failed."""
    return _step(context, params, "delete_failed", filter_of(context, params.filter))


def delete_found(context: RequestContext, params: FilteredWaitingList) -> Step:
    """Delete waiting jobs that match the filter, also those that have not failed."""
    try:
        return _step(context, params, "delete", filter_of(context, params.filter))
    except WholeListError as error:
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "empty_filter", "The filter is empty: this operation does not delete a whole list."
        ) from error


def requeue_all(context: RequestContext, params: MorgueList) -> Step:
    """Requeue jobs from the morgue, due now."""
    return _step(context, params, "requeue", filter_of(context, params.filter))


def delete_all_dead(context: RequestContext, params: MorgueList) -> Step:
    """Delete jobs from the morgue."""
    return _step(context, params, "delete_dead", filter_of(context, params.filter))


def _step(
    context: RequestContext, params: WholeList, act: ActionName, id_filter: IdFilter, rate: float | None = None
) -> Step:
    runner, key = context.app.operate(worker_named(context, params.queue)).runner, key_of(context)
    before = _state(key, params, act, id_filter) or _begun(runner, params, act, id_filter)
    if rate is not None and not before.action.begun:
        before = msgspec.structs.replace(before, action=_paced(runner, before.action, rate))
    most, ends_at = before.action.handled + params.limit, time.monotonic() + SECONDS_AT_ONCE
    try:
        after, failure = run_steps(
            context, runner, before, lambda action: action.handled >= most or time.monotonic() >= ends_at
        )
    except ValueError as error:
        raise ApiError(HTTPStatus.CONFLICT, "shards_changed", str(error)) from error
    action = after.action
    if failure and action is before.action:
        raise failure
    following = None if action.is_done else pack(key, after)
    result = action.result
    return Step(
        total=action.total,
        handled=action.handled,
        changed=action.changed,
        next=following,
        action_id=result.action_id or None,
        undoable=result.undoable,
        paused=result.paused,
        last_due=result.last_due,
    )


def _paced(runner: ActionRunner, action: BulkAction, rate: float | None) -> BulkAction:
    try:
        return timed(runner, action, {"rate": rate})
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_body", str(error)) from error


def _begun(runner: ActionRunner, params: WholeList, act: ActionName, id_filter: IdFilter) -> BulkActionState:
    action = prepare(runner, act, filter=id_filter)
    if not params.reason.strip():
        with scanning():
            number, is_all = count(runner, action, for_seconds(SECONDS_AT_ONCE))
        need_reason(params.reason, number, is_all=is_all)
    return BulkActionState(queue=params.queue, action=action, reason=params.reason.strip())


def _state(key: bytes, params: WholeList, act: ActionName, id_filter: IdFilter) -> BulkActionState | None:
    if isinstance(params.next, UnsetType):
        return None
    with suppress(ValueError):
        state = unpack(key, params.next, BulkActionState)
        if (state.queue, state.action.act, state.action.filter) == (params.queue, act, id_filter):
            return state
    raise ApiError(
        HTTPStatus.BAD_REQUEST,
        "bad_next",
        "The action cannot continue: send the `next` of its last response, with the same queue and filter.",
    )


class WaitingCountParams(WaitingFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a waiting job of the queue; all must hold."""

    queue: QueueName


class MorgueCountParams(MorgueFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions on a job in the morgue of the queue; all must hold."""

    queue: QueueName


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The number of ids; if not `is_all`, counting them all would have taken too long, and there may be more."""

    count: int
    is_all: bool


def count_waiting(context: RequestContext, params: WaitingCountParams) -> Counted:
    """How many waiting jobs match the conditions. With none: how many wait."""
    return _counted(context, params, "delete")


def count_dead(context: RequestContext, params: MorgueCountParams) -> Counted:
    """How many jobs in the morgue match the conditions. With none: how many are there."""
    return _counted(context, params, "delete_dead")


def _counted(context: RequestContext, params: WaitingCountParams | MorgueCountParams, act: ActionName) -> Counted:
    runner = context.app.operate(worker_named(context, params.queue)).runner
    # Nothing is deleted: it is the action that finds every job.
    state = prepare(runner, act, filter=filter_of(context, params), whole_list=True)
    with scanning():
        number, is_all = count(runner, state, for_seconds(SECONDS_AT_ONCE))
    return Counted(count=number, is_all=is_all)
