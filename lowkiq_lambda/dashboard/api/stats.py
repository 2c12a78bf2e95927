"""Metrics of queues and shards, and the recent work of a queue."""

from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard.api.operations import ApiError, NoParams
from lowkiq_lambda.dashboard.api.requests import Moment, QueueName, QueueParams, in_seconds, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import auto_of
from lowkiq_lambda.operate.presentation.queues import Queues, queue_stats
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.views.auto import AutoState
from lowkiq_lambda.views.lateness import HourOfQueue, Lateness
from lowkiq_lambda.views.queues import Between, QueueHistory, Scale, Span, Stats
from lowkiq_lambda.views.shards import ShardDetails
from lowkiq_lambda.views.verification import Verified


class ShardStats(ShardDetails, frozen=True, kw_only=True):
    """Metrics of a shard and its holder at the time `at`. Times are Unix seconds by the server's clock.

    `suspects`: ids that run first, alone or together. `started`: waiting ids that go on from a cursor. `due_at`:
    the earliest due time of the waiting ids. `owner`, `acquired_at`, `token`: of the current or the last holder.
    `held_until`: the end of the lease; 0 after a release. `gave_up`: Redis rejects the holder's writes, because an
    operator evicted it or its process is about to exit. `paused_until`: the end of the current or the last pause; null
    without a pause or for one without an end. `woken_until`: a drain was started, and has to acquire the shard before
    this time. `role`: while the queue is resharded, a shard may be `closed` or `receiving`; nobody acquires it.
    """

    paused: Annotated[
        bool, Meta(description="Whether the shard is paused; without a `paused_until` the pause has no end.")
    ]


class Shards(msgspec.Struct, frozen=True):
    """The shards of a queue by number, and their holders."""

    shards: list[ShardStats]


def stats(context: RequestContext, params: NoParams) -> Stats:  # noqa: ARG001 - every operation has parameters
    """Length, morgue length and lag, in total and by queue, in Lowkiq's format."""
    return context.app.operate.stats()


def scale(context: RequestContext, params: NoParams) -> Scale:  # noqa: ARG001 - every operation has parameters
    """Get how many holders the queues could use now, to scale threads by; read once a second at most."""
    return context.site.scale(context.app.operate.scale)


def queues(context: RequestContext, params: NoParams) -> Queues:  # noqa: ARG001 - every operation has parameters
    """Metrics of all queues."""
    all_metrics = context.app.operate.metrics()
    queues = [queue_stats(name, len(metrics.shards), metrics) for name, metrics in all_metrics.items()]
    return Queues(queues, all_metrics.skipped)


def shards(context: RequestContext, params: QueueParams) -> Shards:
    """Metrics of a queue's shards, and their holders."""
    details = context.app.operate(worker_named(context, params.queue)).shards()
    return Shards([ShardStats(**msgspec.structs.asdict(shard), paused=shard.is_paused) for shard in details])


class HistoryParams(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and how far to look back; or from when, and until when, which may be now."""

    queue: QueueName
    span: Annotated[Span, Meta(description="How far the series reaches back; for nothing with a `since`.")] = "10m"
    since: Moment | UnsetType = UNSET
    until: Moment | UnsetType = UNSET


def history(context: RequestContext, params: HistoryParams) -> QueueHistory:
    """How many ids ended, and how many failed, in each step of the span or range, with rates and the times of batches.

    Ended is what was done, or refused.
    `took` and `waited` are of the last 30 to 60 minutes, whatever the span; `of_days` has those of kept days.
    """
    span: Span | Between = params.span
    if params.since is not UNSET:
        until = context.site.now() if params.until is UNSET else float(in_seconds(params.until))
        span = Between(float(in_seconds(params.since)), until)
    elif params.until is not UNSET:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", "A range needs its beginning, `since`.")
    worker = worker_named(context, params.queue)
    try:
        with context.app.operate.overview(span, worker) as overview:
            (queue,) = overview.queues
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"The history cannot be read: {error}") from None
    return queue.history


class LateParams(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and from which lag on it is late."""

    queue: QueueName
    limit: Annotated[float, Meta(gt=0, description="Seconds of lag from which the queue is late.")] = LATE


def why_late(context: RequestContext, params: LateParams) -> Lateness:
    """Get whether a queue is late, and why: the cause, a sentence, the numbers behind it, and what helps."""
    return context.app.operate(worker_named(context, params.queue)).why_late(params.limit)


def auto(context: RequestContext, params: QueueParams) -> AutoState:
    """Get how many shards a queue needs that leaves their number to the library, as housekeeping has decided last."""
    worker = worker_named(context, params.queue)
    if auto_of(worker) is None:
        sentence = f"The code declares the number of shards of {params.queue!r}."
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", sentence)
    return context.app.operate(worker).auto.state()


class Hours(msgspec.Struct, frozen=True):
    """The hours of a queue that are over, the oldest first, of 35 days, as far as it was watched."""

    hours: list[HourOfQueue]


def hours(context: RequestContext, params: QueueParams) -> Hours:
    """Get a digest of each hour of a queue of the last 35 days, as far as the app watches its queues."""
    kept = context.app.operate(worker_named(context, params.queue)).hours()
    return Hours([HourOfQueue(**msgspec.structs.asdict(hour)) for hour in kept])


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The verification of a queue by housekeeping; null in `verified` if it has not begun, as the app asks for none."""

    queue: str
    verified: Verified | None


def verified(context: RequestContext, params: QueueParams) -> Verification:
    """Get what housekeeping has verified of a queue in the last day, and violations that nobody has acknowledged."""
    worker = worker_named(context, params.queue)
    return Verification(queue=params.queue, verified=context.app.operate(worker).verified())
