"""Endpoints for monitors: the health check, which is open to everybody, and metrics for Prometheus."""

import threading
from collections.abc import Callable, Iterator, Mapping
from platform import python_version
from typing import Final, Literal, NamedTuple

import msgspec
from starlette.responses import Response

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import BackendError, LowkiqError
from lowkiq_lambda.dashboard.api.server_metrics import WANTED_HOLDERS, escaped, of_gauges, of_servers, told
from lowkiq_lambda.dashboard.api.time_histograms import TimeHistograms
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.engine.heartbeat import VERSION
from lowkiq_lambda.operate.gauges import read_gauges
from lowkiq_lambda.operate.inspect.overview import overview
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics

CACHE_SECONDS: Final = 1.0
"""A result is served for so long, so that strangers cannot load Redis with requests."""

Part = Literal["ok", "unreachable", "unknown"]

_OF_QUEUES: Final = "lowkiq_queue"
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The status of each part; `unknown` if the check stopped before it."""

    status: Literal["ok", "unreachable"]
    app: Part
    redis: Part


class HealthCheck:
    """Checks the parts, and caches the result."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._health: Health | None = None
        self._checked_at = 0.0

    def __call__(self, context: RequestContext) -> Response:
        """200, or 503 with the unreachable part."""
        with self._lock:
            if self._health is None or not 0 <= self._now() - self._checked_at < CACHE_SECONDS:
                self._health, self._checked_at = check(context), self._now()
            health = self._health
        status = 200 if health.status == "ok" else 503
        return Response(msgspec.json.encode(health), status, media_type="application/json")


def check(context: RequestContext) -> Health:
    """Sends one PING to each node of Redis."""
    try:
        app = context.app
    except Exception:  # noqa: BLE001 - an app's module may raise anything
        return Health(status="unreachable", app="unreachable", redis="unknown")
    if _answers(app):
        return Health(status="ok", app="ok", redis="ok")
    return Health(status="unreachable", app="ok", redis="unreachable")


def _answers(app: Lowkiq) -> bool:
    try:
        reader = ShardReader(app.core.backend, retry_for=0.0)
        shards = [shard for queue in app.core.queues.values() for shard in queue.shards]
        pings = [(node, ("PING",)) for node in reader.nodes(shards).values()]
        with reader.replies("shard_state", [], pings) as (answers, _):
            return not any(isinstance(answer, Exception) for answer in answers)
    except LowkiqError:
        return False


class MetricFamily(NamedTuple):
    """A metric; `field`: of a queue's numbers, empty where it is none of them."""

    name: str
    kind: str
    field: str
    help: str


UP: Final = MetricFamily("up", "gauge", "", "1 if Redis answered with the metrics of the queues.")
BUILD_INFO: Final = MetricFamily(
    "build_info", "gauge", "", "1, with the version of the library that the dashboard runs."
)
MISMATCHED: Final = MetricFamily(
    "mismatched", "gauge", "", "1 if the queue's declaration in Redis differs from the app's."
)
METRIC_FAMILIES: Final = (
    MetricFamily("lag_seconds", "gauge", "lag", "Wait of the oldest due id, including ids in flight."),
    MetricFamily("oldest_due_age_seconds", "gauge", "oldest_due_age", "Wait of the oldest due id that no holder has."),
    MetricFamily("length", "gauge", "length", "Waiting ids."),
    MetricFamily("fresh", "gauge", "fresh", "Waiting ids that have not failed."),
    MetricFamily("retries", "gauge", "retries", "Waiting ids that have failed."),
    MetricFamily("started", "gauge", "started", "Waiting ids that go on from a cursor."),
    MetricFamily("blocked", "gauge", "blocked", "Waiting ids whose head is blocked: an operator has to unblock them."),
    MetricFamily("in_flight", "gauge", "in_flight", "Ids in flight."),
    MetricFamily("morgue_length", "gauge", "morgue_length", "Ids in the morgue."),
    MetricFamily("paused_shards", "gauge", "paused", "Paused shards."),
    MetricFamily("paused_lag_seconds", "gauge", "paused_lag", "The lag of paused shards and tenants."),
    MetricFamily(
        "limited_lag_seconds",
        "gauge",
        "limited_lag",
        "The lag of ids that limits keep back.",
    ),
    MetricFamily("holders", "gauge", "holders", "Shards that a process holds."),
    MetricFamily("wanted_holders", "gauge", "wanted_holders", "Shards that are held, or have due work that may begin."),
    MetricFamily("done_total", "counter", "done", "Ids that succeeded since the queue was created."),
    MetricFamily("failed_total", "counter", "failed", "Counted failures of ids."),
    MetricFamily("dead_total", "counter", "dead", "Ids that died."),
    MetricFamily("rejected_total", "counter", "rejected", "Ids that ended with Rejected, or were discarded."),
    MetricFamily("discarded_total", "counter", "discarded", "Ids of which a rule of the worker discarded a payload."),
    MetricFamily("expired_total", "counter", "expired", "Payloads whose time was over."),
    MetricFamily("cancelled_total", "counter", "cancelled", "Ids that an operator has stopped for good."),
    MetricFamily("checkpointed_total", "counter", "checkpointed", "Runs that came further and ended before their job."),
    MetricFamily("payloads_total", "counter", "payloads", "Payloads that the handler performed."),
    MetricFamily("superseded_total", "counter", "superseded", "Payloads that a newer one of their id replaced."),
    MetricFamily("trimmed_total", "counter", "trimmed", "Payloads that a bound of the morgue removed."),
    MetricFamily("damaged_total", "counter", "damaged", "Unreadable records that were set aside."),
    MetricFamily("calls_total", "counter", "calls", "Calls of the handler that ended."),
    MetricFamily("busy_seconds_total", "counter", "busy", "Seconds that calls of the handler took."),
    MetricFamily("computing_seconds_total", "counter", "computing", "Seconds of these in which a processor worked."),
    MetricFamily("held_seconds_total", "counter", "held", "Seconds for which shards were held."),
)


class MetricsPage:
    """The metrics of all queues; without Redis only that it is away."""

    def __init__(self) -> None:
        self._times = TimeHistograms()

    def __call__(self, context: RequestContext) -> Response:
        """The text."""
        try:
            measured = [*_measured(context.app, self._times)]
        except BackendError:
            measured = []
        text = "".join(f"{line}\n" for line in (*_of_app(is_up=bool(measured)), *measured))
        return Response(text, media_type=MEDIA_TYPE)


def _of_app(*, is_up: bool) -> Iterator[str]:
    yield from _head("lowkiq", UP)
    yield f"lowkiq_up {int(is_up)}"
    yield from _head("lowkiq", BUILD_INFO)
    yield f'lowkiq_build_info{{version="{VERSION}",python="{python_version()}"}} 1'


def lines(queues: Mapping[str, Metrics | None]) -> Iterator[str]:
    """The lines of the text format; None stands for a queue with another declaration in Redis."""
    labels = {name: f'{{queue="{escaped(name)}"}}' for name in queues}
    yield from _head(_OF_QUEUES, MISMATCHED)
    for queue, metrics in queues.items():
        yield f"{_OF_QUEUES}_mismatched{labels[queue]} {int(metrics is None)}"
    for family in METRIC_FAMILIES:
        yield from _head(_OF_QUEUES, family)
        for queue, metrics in queues.items():
            if metrics is not None:
                yield f"{_OF_QUEUES}_{family.name}{labels[queue]} {getattr(metrics, family.field)!r}"


def _measured(app: Lowkiq, times: TimeHistograms) -> Iterator[str]:
    """A mismatched queue must not hide the others.

    Redis is asked once: a scrape that waits for it ends without an answer, so that no alarm could tell that it is away.
    """
    with overview(ShardReader(app.core.backend, 0.0), app.core.queues, "10m") as look:
        queues = [*look.queues]
        yield from lines({queue.name: None if queue.mismatch else queue.now for queue in queues})
        sound = [queue for queue in queues if not queue.mismatch]
        yield from told(WANTED_HOLDERS, [((), sum(queue.now.wanted_holders for queue in sound))])
        yield from times.lines(sound)
        yield from of_servers(look.servers)
        now = look.at
    yield from of_gauges(read_gauges(app.operate, [queue.name for queue in sound if queue.now.limited]), now)


def _head(prefix: str, family: MetricFamily) -> Iterator[str]:
    yield f"# HELP {prefix}_{family.name} {family.help}"
    yield f"# TYPE {prefix}_{family.name} {family.kind}"
