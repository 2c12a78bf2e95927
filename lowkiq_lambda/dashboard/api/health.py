"""Whether the app can be loaded and its Redis reached. Open to everybody, so it tells nothing else."""

import threading
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from starlette.responses import Response

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.store.shard.reader import ShardReader

KEPT: Final = 1.0
"""Seconds for which an answer serves all who ask: strangers can have Redis asked no oftener than that."""

Part = Literal["ok", "out of reach", "unknown"]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What works, part by part; `unknown` where a part before it does not."""

    status: Literal["ok", "out of reach"]
    app: Part
    redis: Part


class Pulse:
    """Looks, and keeps what it saw for a while."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._seen: Health | None = None
        self._seen_at = 0.0

    def __call__(self, visit: Visit) -> Response:
        """200 or 503, and which part is out of reach."""
        with self._lock:
            if self._seen is None or not 0 <= self._now() - self._seen_at < KEPT:
                self._seen, self._seen_at = look(visit), self._now()
            seen = self._seen
        status = 200 if seen.status == "ok" else 503
        return Response(msgspec.json.encode(seen), status, media_type="application/json")


def look(visit: Visit) -> Health:
    """Asks each node of Redis once."""
    try:
        app = visit.app
    except Exception:  # noqa: BLE001 - whatever an app's module raises, it is out of reach
        return Health(status="out of reach", app="out of reach", redis="unknown")
    if _answers(app):
        return Health(status="ok", app="ok", redis="ok")
    return Health(status="out of reach", app="ok", redis="out of reach")


def _answers(app: Lowkiq) -> bool:
    try:
        reader = ShardReader(app.backend, patience=0.0)
        shards = [shard for queue in app.queues.values() for shard in queue.shards]
        pings = [(node, ("PING",)) for node in reader.nodes(shards).values()]
        with reader.replies("shard_state", [], pings) as (answers, _):
            return not any(isinstance(answer, Exception) for answer in answers)
    except LowkiqError:
        return False
