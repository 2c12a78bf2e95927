"""A queue that leaves its shards to the library, played by hand on a real server with the duty behind each minute."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lowkiq_lambda import Auto, LowkiqError
from lowkiq_lambda.operate.auto.duty import WHO, AutoDuty
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.activity import ActivityEntry
from lowkiq_lambda.views.auto import AutoDecision, AutoState
from tests.kit.apps import MakeApp
from tests.kit.playing import MINUTE, Played

WAITED: Final = 600.0
"""Seconds for which the ids have been due already."""
ONE: Final = Auto(least=1, unreplicated=True)
"""Bounds of a queue that begins with one shard, on a server without replicas."""
SECONDS: Final = 3.0
"""Of a call: few calls, so that a minute is played quickly."""
MANY: Final = range(500)
"""Ids, more than the minutes that are played take."""


class NotedSchedules:
    """Schedules that are only noted, or can neither be made nor deleted."""

    whose: Final = "own"

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []
        self.deleted: list[tuple[str, Mapping[str, int]]] = []
        self.fails = False

    def before(self, queue_name: str, to: int) -> None:
        """Note them."""
        if self.fails:
            raise LowkiqError("no rights")
        self.made.append((queue_name, to))

    def after(self, queue_name: str, counts: Mapping[str, int]) -> None:
        """Note them."""
        if self.fails:
            raise LowkiqError("no rights")
        self.deleted.append((queue_name, counts))


def ignore(*_: object) -> None:
    """Ignore the report of a move."""


class Sized(Played):
    """A queue with the duty `auto` behind each minute."""

    def __init__(self, make_app: MakeApp, clock: ManualClock, name: str, mode: str = "act", **fields: Any) -> None:
        super().__init__(make_app(namespace=name, auto=mode), clock, name, **{"shards_count": ONE, **fields})
        self.duty = AutoDuty(self.app.core)
        self.threads, self.seconds = 40, SECONDS

    def arrive_late(self, ids: Iterable[object] = MANY) -> None:
        """Ids that are late already."""
        self.push(ids, waited=WAITED)

    def sized(self, count: int = 9, *, drains: bool = True) -> AutoDecision:
        """So many minutes with the duty behind each; the last decision."""
        for _ in range(count):
            self.minute(drains=drains)
            self.look()
        return self.decision

    def look(self, seconds: float = MINUTE) -> None:
        """The duty, which has so many seconds."""
        ends_at = self.clock.monotonic() + seconds
        self.duty.run(lambda: ends_at - self.clock.monotonic())

    @property
    def state(self) -> AutoState:
        """What is kept of it."""
        return self.app.operate(self.worker).auto.state()

    @property
    def decision(self) -> AutoDecision:
        """The last decision."""
        decision = self.state.decision
        assert decision is not None
        return decision

    @property
    def length(self) -> int:
        """Ids that wait."""
        return self.app.operate.stats()["by_worker"][self.worker.queue_name]["length"]

    @property
    def done(self) -> int:
        """Ids that were done."""
        with self.app.operate.overview("10m", self.worker) as overview:
            (queue,) = overview.queues
            return queue.now.done

    @property
    def shards(self) -> int:
        """That it has."""
        return self.app.operate(self.worker).resharding().layout.after

    @property
    def lines(self) -> list[ActivityEntry]:
        """The lines of the activity that the duty wrote, the newest first."""
        acts = read_activity(self.app.core.backend, 1.0, [self.worker.queue_name], 100)
        return [act for act in acts if act.who == WHO]
