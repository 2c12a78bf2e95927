"""Operations on the processes that drain."""

from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard.api.operations import ApiError, NoParams
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.process_orders import NO_PROCESS, give
from lowkiq_lambda.views.processes import Process


class ProcessParams(msgspec.Struct, frozen=True, kw_only=True):
    """One process."""

    id: Annotated[str, Meta(min_length=1, max_length=1_000, description="The id of a process, as listed.")]


class ProcessesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Those that live first, by host and age, then those that are gone. Times are Unix seconds."""

    processes: list[Process]


class OrderedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The order was noted; the process hears it with its next beat."""

    order: Literal["quiet", "stop"]


def processes(context: RequestContext, params: NoParams) -> ProcessesResponse:
    """Get the daemons and invocations that drain, each as of its last beat. Those of other apps are among them."""
    del params
    return ProcessesResponse(processes=[*context.app.operate.processes()])


def quiet(context: RequestContext, params: ProcessParams) -> OrderedResponse:
    """Have a process begin nothing new: a daemon stays until it is stopped, an invocation ends."""
    return _ordered(context, params, "quiet")


def stop(context: RequestContext, params: ProcessParams) -> OrderedResponse:
    """Have a process end; what it runs comes to its end."""
    return _ordered(context, params, "stop")


def _ordered(context: RequestContext, params: ProcessParams, order: Literal["quiet", "stop"]) -> OrderedResponse:
    if not give(context, params.id, order):
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_process", NO_PROCESS)
    return OrderedResponse(order=order)
