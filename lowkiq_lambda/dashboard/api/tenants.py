"""Operations on the tenants of a queue."""

from http import HTTPStatus
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard import activity, durations
from lowkiq_lambda.dashboard.api.actions import Pause
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.queues import Paused
from lowkiq_lambda.operate.presentation.tenants import TenantsFound, tenants_response
from lowkiq_lambda.views.shards import TenantOrder

TenantName: TypeAlias = Annotated[
    str,
    Meta(
        pattern="^[^:]*$",
        max_length=1_000,
        description="What stands before the first colon of the tenant's ids; empty: ids without a colon.",
    ),
]


class TenantsParams(QueueParams, frozen=True, kw_only=True):
    """The first tenants of a queue, or one of them."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="The largest number of tenants.")] = 100
    order: Annotated[
        TenantOrder, Meta(description="`fair`: those first that are served first; `waiting`: those with the most ids.")
    ] = "fair"
    tenant: TenantName | UnsetType = UNSET


class TenantPause(Pause, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pause of a tenant; without `seconds` it has no end."""

    tenant: TenantName


class OneTenant(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant of a queue."""

    tenant: TenantName


def tenants(context: RequestContext, params: TenantsParams) -> TenantsFound:
    """The tenants of a queue, in their fair order."""
    worker = _worker_with_tenants(context, params.queue)
    name = None if isinstance(params.tenant, UnsetType) else params.tenant
    page = context.app.operate(worker).tenants(params.limit, order=params.order, tenant=name)
    return tenants_response(page)


def pause(context: RequestContext, params: TenantPause) -> Paused:
    """Pause a tenant for a time or until it is resumed. Drains claim none of its ids; clients can still push."""
    worker = _worker_with_tenants(context, params.queue)
    seconds = None if isinstance(params.seconds, msgspec.UnsetType) else params.seconds
    until = context.app.operate(worker).pause(seconds, tenant=params.tenant)
    activity.note(context, "pause tenant", params.queue, f"{params.tenant!r} {durations.in_words(seconds)}", 1)
    return Paused(paused=True, until=None if seconds is None else until)


def resume(context: RequestContext, params: OneTenant) -> Paused:
    """Resume a tenant if it is paused."""
    worker = _worker_with_tenants(context, params.queue)
    context.app.operate(worker).resume(tenant=params.tenant)
    activity.note(context, "resume tenant", params.queue, repr(params.tenant), 1)
    return Paused(paused=False, until=None)


def _worker_with_tenants(context: RequestContext, queue: str) -> type[Worker[Any]]:
    worker = worker_named(context, queue)
    if worker.tenants is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "no_tenants", "The worker of the queue declares no tenants.")
    return worker
