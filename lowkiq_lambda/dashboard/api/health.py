"""The health check: whether the app loads and Redis answers. It is open to everybody, so it reveals no more."""

import threading
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from starlette.responses import Response

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.store.shard.reader import ShardReader

CACHE_SECONDS: Final = 1.0
"""A result is served for so long, so that strangers cannot load Redis with requests."""

Part = Literal["ok", "unreachable", "unknown"]


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
