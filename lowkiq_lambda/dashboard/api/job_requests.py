"""Operations that cancel, pause and resume single jobs in any state; and the requests that are kept."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.base.errors import RequestsFull
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import JobIds, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.operate.presentation.formatting import selected
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.views.activity import need_reason
from lowkiq_lambda.views.requests import JobRequest, Requested


class Cancel(JobIds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue. `kill`: their payloads go to the morgue. `forget_keys`: their keys are forgotten."""

    kill: bool = False
    forget_keys: bool = False


class PausedJobs(JobIds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue; without `seconds` the pause has no end."""

    seconds: Annotated[float, Meta(gt=0, le=1e9)] | msgspec.UnsetType = msgspec.UNSET


class JobRequests(msgspec.Struct, frozen=True, kw_only=True):
    """The requests that the queue keeps, the oldest first. Times are Unix seconds."""

    requests: list[JobRequest]


def cancel(context: RequestContext, params: Cancel) -> Requested:
    """Stop jobs for good, in flight too. Payloads that are pushed later stay."""
    queue = _queue(context, params.queue)
    terms = {"kill": params.kill, "forget_keys": params.forget_keys}
    return _noted(context, params, "cancel", lambda: queue.cancel(params.ids, **terms, by=context.visitor_name))


def pause(context: RequestContext, params: PausedJobs) -> Requested:
    """Pause jobs, each by itself. One that runs is put back when its run ends and is not done."""
    seconds = None if isinstance(params.seconds, msgspec.UnsetType) else params.seconds
    queue = _queue(context, params.queue)
    return _noted(context, params, "pause_job", lambda: queue.pause_jobs(params.ids, seconds, by=context.visitor_name))


def resume(context: RequestContext, params: JobIds) -> Requested:
    """End the pauses of jobs."""
    queue = _queue(context, params.queue)
    return _noted(context, params, "resume_job", lambda: queue.resume_jobs(params.ids))


def requests(context: RequestContext, params: QueueParams) -> JobRequests:
    """Get what operators want of single jobs: cancels of jobs that run, and pauses."""
    return JobRequests(requests=_queue(context, params.queue).requests())


def _queue(context: RequestContext, name: str) -> QueueOperations:
    return context.app.operate(worker_named(context, name))


def _noted(
    context: RequestContext,
    params: JobIds,
    action: Literal["cancel", "pause_job", "resume_job"],
    act: Callable[[], Requested],
) -> Requested:
    need_reason(params.reason, len(params.ids))
    try:
        answer = act()
    except RequestsFull as error:
        raise ApiError(HTTPStatus.CONFLICT, "requests_full", str(error)) from error
    changed = len(answer.at_once) + len(answer.in_flight)
    activity.note(context, action, params.queue, selected(params.ids), changed, action_id=answer.action_id)
    return answer
