"""Duties that note their runs, and apps that have them."""

from collections.abc import Callable
from typing import Any, cast

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.duties.runner import DutiesRun, DutyRunner
from lowkiq_lambda.store.shard.duty_claims import DutyKey
from lowkiq_lambda.testing import ManualClock

ENOUGH = 1_000.0


class Noted:
    """A duty that notes when it ran and how many seconds it had; `act`, if any, is what it does then."""

    def __init__(self, name: str = "sweep", every: float = 60.0, act: Callable[[], object] | None = None) -> None:
        self.name = name
        self.every = every
        self.act = act
        self.runs: list[float] = []
        self.remaining: Callable[[], float] = lambda: ENOUGH
        """How many seconds the present run has left."""

    def run(self, remaining: Callable[[], float]) -> Any:
        """Note it, and act."""
        self.remaining = remaining
        self.runs.append(remaining())
        return self.act() if self.act else len(self.runs)


def with_queue(app: Lowkiq, queue_name: str) -> Lowkiq:
    """The app, with a queue of this name: its duties are those of all apps that have the same."""
    app.worker(queue_name=queue_name, shards_count=1)(print)
    return app


def run_due(app: Lowkiq, remaining: Callable[[], float] = lambda: ENOUGH) -> DutiesRun:
    """Run what is due in an app."""
    return DutyRunner(app.core, [*app.core.housekeeping.duties.values()], app.core.backend.clock).run_due(remaining)


def runs_of(app: Lowkiq, duty: Noted, clock: ManualClock, seconds: int) -> list[float]:
    """At which seconds from now on the duty runs, where it is looked for each second."""
    began_at, seen = clock.time(), list[float]()
    for _ in range(seconds):
        before = len(duty.runs)
        run_due(app)
        seen += [clock.time() - began_at] * (len(duty.runs) - before)
        clock.advance(1.0)
    return seen


def record_of(app: Lowkiq) -> dict[bytes, bytes]:
    """What Redis has of an app's duties."""
    return cast("dict[bytes, bytes]", app.core.backend.client.hgetall(DutyKey.of(app.core.queues).keys[0]))
