"""Holders that die when their time has come, in one process and without waiting: a clock is moved by hand.

A dead one sends nothing more to the server, not even that it gives something back. Its lease runs out, and the next
holder comes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from lowkiq_lambda import Batch, Config, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.budget import Budget
from lowkiq_lambda.job import ScoredPayload
from lowkiq_lambda.testing import ManualClock

TTL = 30.0
WINDOW = 20
CALL_TIME = 0.002
"""Seconds that a call to the server takes: half of them before it is applied."""

Lifetimes: TypeAlias = Iterator[float]
Execution: TypeAlias = tuple[str, tuple[object, ...], float]
"""Id, payloads and retry_count."""


class Died(BaseException):
    """The process is gone."""


class Simulation:
    """A queue of one shard, drained by one holder after the other in windows of 20 ids.

    `lifetimes`: how long each holder lives, in seconds. `work`: how long a payload takes. `deadly`: asked about each
    payload, whether it kills its holder.
    """

    def __init__(
        self,
        url: str,
        queue_name: str,
        lifetimes: Lifetimes,
        work: Callable[[], float],
        deadly: Callable[[str, object], bool] = lambda _id, _payload: False,
    ) -> None:
        self._clock = ManualClock()
        self._lifetimes, self._work, self._deadly = lifetimes, work, deadly
        self.app = Lowkiq(Config(redis_url=url, lease_ttl=TTL, ack_interval=0.0), clock=self._clock)
        # No thread renews: here a lease outlasts any window, and time does not pass by itself.
        self.app.drainer._keeper.beat = lambda: TTL  # type: ignore[method-assign]  # a fault is injected
        self._backend = self.app.drainer._backend
        self._really_run = self._backend.run
        self._backend.run = self._run  # type: ignore[method-assign]  # a fault is injected
        fields = {
            "queue_name": queue_name,
            "shards_count": 1,
            "batch_size": WINDOW,
            "perform": lambda _self, batch: self._perform(batch),
            "retries_exhausted": lambda _self, jobs: self.buried.extend(jobs),
        }
        self.worker: type[Worker] = self.app.worker(type("Simulated", (Worker,), fields))
        self.shard = self.app.drainer.shards()[0]
        self.begun: list[Execution] = []
        self.ended: list[Execution] = []
        self.buried: list[MorgueJob] = []
        self.deaths = 0

    def run(self, jobs: Sequence[Mapping[str, Any]], most_deaths: int) -> None:
        """Push the jobs and let holders come until one finds nothing left."""
        self.worker.perform_async(jobs)
        while not self._lives_to_the_end():
            self.deaths += 1
            assert self.deaths <= most_deaths, "the holders come to no end"
            self._clock.advance(TTL)
            self.app.backend.client.delete(self.shard.key("lease"))

    def left(self) -> tuple[int, int]:
        """Ids that wait and ids in flight."""
        numbers = self.app.metrics()[self.worker.queue_name]
        return numbers.length, numbers.busy

    def morgue(self) -> dict[str, tuple[list[ScoredPayload], str | None]]:
        """Payloads and error of each id there."""
        found = self.app.queries(self.worker).morgue_range_by_id("-", "+")
        return {job.id: (list(job.payloads), job.error) for job in found}

    def close(self) -> None:
        """Close the connections."""
        self.app.backend.client.close()
        self._backend.client.close()

    def _lives_to_the_end(self) -> bool:
        self._dead = False
        self._dies_at = self._clock.monotonic() + next(self._lifetimes)
        try:
            result = self.app.drainer.visit(self.shard, Budget(self._clock))
        except Died:
            return False
        assert "empty" == result.reason
        return True

    def _pass(self, seconds: float) -> None:
        if self._dead or self._clock.monotonic() + seconds >= self._dies_at:
            self._dead = True
            raise Died
        self._clock.advance(seconds)

    def _run(self, *args: Any, **options: Any) -> Any:
        self._pass(CALL_TIME / 2)
        answer = self._really_run(*args, **options)
        self._pass(CALL_TIME / 2)
        return answer

    def _perform(self, batch: Batch) -> None:
        for job_id, payloads in batch.items():
            execution = job_id, tuple(payloads), batch.job(job_id).retry_count
            self.begun.append(execution)
            for payload in payloads:
                self._pass(self._work())
                if self._deadly(job_id, payload):
                    self._dead = True
                    raise Died
            self.ended.append(execution)
