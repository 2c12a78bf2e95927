"""A process of a shop that dies by SIGKILL at one step: `python -m tests.contrib.dying POINT REDIS DATABASE QUEUE`."""

import os
import signal
import sys
from typing import Any, Final

from sqlalchemy import event

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.settings.protocols import Jobs
from lowkiq_lambda.testing import ManualClock
from tests.contrib.shop import OrderShop, engine_for

REQUEST: Final = ("insert", "commit", "wake")
"""Steps of a request that pushes; it dies behind the one that is named."""
RELAY: Final = ("read", "push", "delete", "commit of delete")
"""Steps of the relay."""
JOBS: Final = ({"id": "a", "payload": 1}, {"id": "b", "payload": 2}, {"id": "a", "payload": 3})


class Steps:
    """Ends the process behind a step."""

    def __init__(self, last: str) -> None:
        self._last = last

    def reach(self, step: str) -> None:
        """The step is done."""
        if step == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def die_at_pushes(app: Lowkiq, steps: Steps) -> None:
    """Reach the steps around a push of the relay, and behind a wake-up."""
    push = app.core.pushes.push_past_middlewares

    def pushing(worker: type[Worker], jobs: Jobs) -> list[Pushed]:
        is_relay = worker.queue_name.startswith("outbox-")
        if not is_relay:
            steps.reach("read")
        pushed = push(worker, jobs)
        steps.reach("wake" if is_relay else "push")
        return pushed

    app.core.pushes.push_past_middlewares = pushing  # type: ignore[method-assign]  # as said above


def main(point: str, redis_url: str, database_url: str, queue_name: str) -> None:
    """Push, or relay, until the point."""
    steps, clock = Steps(point), ManualClock()
    app = Lowkiq(Config(redis_url=redis_url), clock=clock)
    die_at_pushes(app, steps)
    shop = OrderShop(app, engine_for(database_url), queue_name, clock)

    def executed(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        steps.reach(statement.split(maxsplit=1)[0].lower())

    event.listen(shop.engine, "after_cursor_execute", executed)
    what = "commit" if point in REQUEST else "commit of delete"
    event.listen(shop.sessions, "after_commit", lambda _session: steps.reach(what))
    if point in REQUEST:
        shop.push(*JOBS)
    else:
        app.drain()


if __name__ == "__main__":
    main(*sys.argv[1:])
