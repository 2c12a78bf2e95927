"""A process that ticks, a hundred seconds in one, until it dies in the middle of a tick."""

import os
import signal
import sys
import time
from typing import Any

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.store.server import pipelines
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.testing import ManualClock
from tests.kit.firing import NOON

SPEED = 100.0
PERIOD = 1.0


class FastClock(ManualClock):
    """Goes on by itself, from noon; the same in all processes of this machine that have the same beginning."""

    def __init__(self, began_at: float) -> None:
        super().__init__()
        self._began_at = began_at

    def time(self) -> float:
        """Unix seconds."""
        return NOON + (time.monotonic() - self._began_at) * SPEED

    def monotonic(self) -> float:
        """Seconds since noon."""
        return self.time() - NOON


def ticking_app(url: str, queue_name: str, began_at: float) -> tuple[Lowkiq, type[Worker]]:
    """An app whose entry fires each second."""
    app = Lowkiq(Config(redis_url=url), clock=FastClock(began_at))
    body = {"queue_name": queue_name, "shards_count": 1, "merge": "never", "perform": print}
    worker = app.worker(type("Ticking", (Worker,), body))
    app.every(PERIOD, worker, id="poll", missed="all", grace=86_400.0)
    return app, worker


def die_at(number: int, *, answered: bool) -> None:
    """Have the process killed at this message to Redis: before it is sent, or when its answer has come."""
    send, sent = pipelines.send_each, 0

    def counting(*args: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == number and not answered:
            os.kill(os.getpid(), signal.SIGKILL)
        replies = send(*args)
        if sent == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return replies

    backend.send_each = counting  # type: ignore[attr-defined,assignment]  # what sends all messages


def main(url: str, queue_name: str, began_at: str, number: str, answered: str) -> None:
    """Tick until the end."""
    app, _ = ticking_app(url, queue_name, float(began_at))
    die_at(int(number), answered=answered == "answered")
    while True:
        app.schedules.tick()


if __name__ == "__main__":
    main(*sys.argv[1:])
