"""Errors in groups, and the activity: what people did."""

from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueName, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE, read_activity
from lowkiq_lambda.operate.presentation.errors import ErrorsView, errors_view
from lowkiq_lambda.views.activity import ActivityView
from lowkiq_lambda.views.errors import ErrorGrouping


class ErrorsParams(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of a queue, or of all."""

    queue: QueueName | UnsetType = UNSET
    by: Annotated[
        ErrorGrouping,
        Meta(
            description="`fingerprint`: errors are alike by their first line without the values that differ each time, "
            "such as numbers; `line`: by all of it; `type`: by their type."
        ),
    ] = "fingerprint"
    limit: Annotated[int, Meta(ge=1, le=1_000, description="The largest number of groups.")] = 100
    cursor: Annotated[str, Meta(description="The `next` of the part before.")] | UnsetType = UNSET


class ActivityParams(msgspec.Struct, frozen=True, kw_only=True):
    """The activity of a queue, or of all."""

    queue: QueueName | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000, description="The largest number of actions.")] = 100


def errors(context: RequestContext, params: ErrorsParams) -> ErrorsView:
    """Last errors of jobs that are retried or dead, in groups over their queues.

    One call reads some 50,000 errors. While `next` is not null, a further call with it as `cursor` counts others; the
    counts of a group are to be added up. `fingerprint` in a filter is exactly the jobs of a group.
    """
    worker = None if isinstance(params.queue, UnsetType) else worker_named(context, params.queue)
    after = None if isinstance(params.cursor, UnsetType) else params.cursor
    try:
        groups = context.app.operate.errors(worker, by=params.by, limit=params.limit, after=after)
    except ValueError as error:
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "bad_cursor", "The cursor is invalid: send the `next` of a part."
        ) from error
    return errors_view(groups, context.app.operate.releases())


def activity(context: RequestContext, params: ActivityParams) -> ActivityView:
    """What people changed by the dashboard and its API, as far as it is kept: of each queue the last 500 actions."""
    app = context.app
    if isinstance(params.queue, UnsetType):
        names = [*(worker.queue_name for worker in app.workers), OF_NO_QUEUE]
    else:
        names = [worker_named(context, params.queue).queue_name]
    return ActivityView(activity=read_activity(app.core.backend, app.config.redis_retry_for, names, params.limit))
