"""How many jobs a filter finds: nothing is changed."""

import msgspec

from lowkiq_lambda.dashboard.api.bulk_actions import SECONDS_AT_ONCE
from lowkiq_lambda.dashboard.api.requests import MorgueFilter, QueueName, WaitingFilter, filter_of, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.scanning import for_seconds, scanning
from lowkiq_lambda.operate.inspect.action_scripts import ActionName
from lowkiq_lambda.operate.inspect.bulk_actions import count, prepare


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


def count_buried(context: RequestContext, params: MorgueCountParams) -> Counted:
    """How many jobs in the morgue match the conditions. With none: how many are there."""
    return _counted(context, params, "delete_buried")


def _counted(context: RequestContext, params: WaitingCountParams | MorgueCountParams, act: ActionName) -> Counted:
    actions = context.app.operate.actions(worker_named(context, params.queue))
    # Nothing is deleted: it is the action that finds every job.
    counted = prepare(actions, act, filter=filter_of(params), whole_list=True)
    with scanning():
        number, is_all = count(actions, counted, for_seconds(SECONDS_AT_ONCE))
    return Counted(count=number, is_all=is_all)
