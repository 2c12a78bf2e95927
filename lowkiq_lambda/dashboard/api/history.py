"""The recent work of a queue, as its chart shows it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard.api.requests import QueueName, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.views.queues import QueueHistory, Span


class HistoryParams(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and how far to look back."""

    queue: QueueName
    span: Annotated[Span, Meta(description="How far the series reaches back.")] = "10m"


def history(context: RequestContext, params: HistoryParams) -> QueueHistory:
    """How many ids ended, and how many failed, in each step of the span, with rates and the times of batches.

    Ended is what was done, or refused.
    `took` and `waited` are of the last 30 to 60 minutes, whatever the span.
    """
    with context.app.operate.overview(params.span, worker_named(context, params.queue)) as overview:
        (queue,) = overview.queues
    return queue.history
