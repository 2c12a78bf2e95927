"""A queue played by hand on a real server: minutes of pushes and drains, a heartbeat, and the duty behind each."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.operate.lateness.causes import LOOKED
from lowkiq_lambda.operate.lateness.duty import WatchDuty
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.lateness import Lateness
from lowkiq_lambda.views.processes import Doing, Process
from tests.kit.workers import declare

MINUTE: Final = 60.0
LONG_AGO: Final = 86_400.0


class Played:
    """A queue whose handler takes `seconds` of the clock moved by hand for each payload, and fails for some ids."""

    def __init__(self, app: Lowkiq, clock: ManualClock, name: str, **fields: Any) -> None:
        self.app, self.clock = app, clock
        self.seconds = 1.0
        self.failing: Callable[[str], bool] = lambda _id: False
        self.within: list[Callable[[], object]] = []
        """Called in the next handler, while its shard is held; each once."""
        self.cpu = 0.3
        self.threads = 5
        """Of the daemon that tells that it lives; 0: none does."""
        self.worker: type[Worker] = declare(app, name, self._handle, **{"batch_size": 1, **fields})

    def _handle(self, batch: Batch) -> None:
        while self.within:
            self.within.pop()()
        self.clock.advance(self.seconds * sum(map(len, batch.values())))
        for job_id in batch:
            if self.failing(job_id):
                batch.fail(job_id, "broken")

    def push(self, ids: Iterable[object], payloads: int = 1, waited: float = 0.0) -> None:
        """Jobs of these ids with so many payloads each, which have been due for so long."""
        due_at = self.clock.time() - waited
        jobs = [{"id": i, "payload": number, "perform_in": due_at} for i in ids for number in range(payloads)]
        self.worker.push_many(jobs)

    def minute(self, *, drains: bool = True) -> None:
        """A minute: shards are drained in turn until it is over, a process tells of itself, and the duty runs."""
        ends_at = self.clock.monotonic() + MINUTE
        if drains:
            for shard in self.app.core.drains.drainer.shards():
                left = ends_at - self.clock.monotonic()
                self.app.core.drains.drainer.visit(shard, Budget(self.clock, left))
        self.clock.advance(max(0.0, ends_at - self.clock.monotonic()))
        if self.threads:
            tell_of_daemon(self.app, self.worker.queue_name, self.threads, self.cpu)
        WatchDuty(self.app.core).run(lambda: MINUTE)

    def minutes(self, count: int = LOOKED + 1, *, drains: bool = True) -> Lateness:
        """So many of them; what is told then."""
        for _ in range(count):
            self.minute(drains=drains)
        return self.late()

    def late(self) -> Lateness:
        """What is told now."""
        return self.app.operate(self.worker).why_late()


def tell_of_daemon(app: Lowkiq, queue_name: str, threads: int, cpu: float) -> None:
    """A daemon that began long ago tells that it lives, and drains the queue."""
    now = app.core.backend.clock.time()
    doing = Doing(queue=queue_name, shard=0, since=now, count=1, ids=("1",))
    HeartbeatSender(app.core.backend, "web-1:1").send(
        Process(
            host="web-1",
            pid=1,
            kind="daemon",
            version="1",
            since=now - LONG_AGO,
            threads=threads,
            state="running",
            doing=(doing,),
            cpu=cpu,
            cores=1.0,
        )
    )
