"""A course: a queue is pushed to faster than its shards carry it, twice, and each time it gets twice as many.

`python -m tests.chaos.growing.course` is one of full size, and tells what was expected of each move and what came.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.operate.auto.duty import WHO
from lowkiq_lambda.operate.auto.kept import read_kept
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.views.activity import NOTED
from tests.chaos.growing import app as growing
from tests.chaos.growing.app import ARROWS, FIRST, growing_worker
from tests.chaos.moving.processes import MovingDaemons
from tests.kit.apps import close_app, closing_app
from tests.kit.looks import all_of, dead_numbers
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, Verdict, check

APP: Final = "tests.chaos.growing.app:app"
TTL: Final = 2.0
DAY: Final = 86_400.0
SETTLING: Final = 5
"""Leases within which a failure is durable, if no harm is done."""
MINUTE: Final = 60.0
PATIENCE: Final = 900.0
HIGH: Final = 0.95
GROWTHS: Final[tuple[tuple[int, tuple[int, ...]], ...]] = ((4, (2,)), (8, (2, 4)))
"""Shards that a queue gets, and the loads of the minutes that the line of it is by: what so many could not carry."""


class Growth(NamedTuple):
    """How large a course is: seconds of a minute and of a call, jobs that are due in a day, deaths in each move.

    `excess`: by so much more is pushed than the shards carry. `measured`: seconds for which waits are measured.
    """

    minute: float = 10.0
    call: float = 0.1
    ids: int = 10_000
    sleepers: int = 1_000
    kills: int = 3
    excess: float = 1.06
    measured: float = 100.0


class Pusher:
    """Pushes payloads at random moments, so many a second, from a thread; payloads of each id are 1, 2, 3 and so on."""

    def __init__(self, app: Lowkiq, history: Recorder, ids: int, rng: random.Random) -> None:
        self._worker, self._history, self._ids, self._rng = app.workers[0], history, ids, rng
        self._last: dict[str, int] = {}
        self._over = threading.Event()
        self.rate = 0.0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        """It pushes no more. AssertionError where a push has failed."""
        self._over.set()
        self._thread.join()
        assert self.error is None, self.error

    def _run(self) -> None:
        at = time.monotonic()
        try:
            while not self._over.is_set():
                rate = self.rate
                if not rate:
                    at = time.monotonic() + 0.01
                elif (at := at + self._rng.expovariate(rate)) <= time.monotonic() or not self._over.wait(
                    at - time.monotonic()
                ):
                    self._push()
                    continue
                self._over.wait(0.01)
        except BaseException as error:  # noqa: BLE001 - told by the thread that ends this one
            self.error = error

    def _push(self) -> None:
        job_id = f"id-{self._rng.randrange(self._ids)}"
        number = self._last[job_id] = self._last.get(job_id, 0) + 1
        self._history.write("push-begin", job_id, [number])
        self._worker.push(job_id, number, score=number)
        self._history.write("push-end", job_id, [number], outcome="ok")


class GrowthCourse:
    """The queue with two daemons and a pusher. `folder`: for what all of them write."""

    def __init__(self, server: Server, queue_name: str, folder: Path, size: Growth, seed: int) -> None:
        self._size, self._folder, self._rng = size, folder, random.Random(seed)
        self._history = Recorder(folder / "history")
        self.deaths = folder / "deaths"
        self.deaths.mkdir()
        environment = {
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_LEASE_TTL": str(TTL),
            "LOWKIQ_POLL_INTERVAL": "0.2",
            "LOWKIQ_THREADS_PER_NODE": "8",
            "LOWKIQ_AUTO": "act",
            growing.QUEUE_VARIABLE: queue_name,
            growing.HISTORY_VARIABLE: str(folder / "history"),
            growing.DEATHS_VARIABLE: str(self.deaths),
            growing.MINUTE_VARIABLE: str(size.minute),
            growing.CALL_VARIABLE: str(size.call),
        }
        self.app = Lowkiq(Config(redis_url=server.url, lease_ttl=TTL))
        self.worker = growing_worker(self.app, queue_name, self._history, size.call)
        self._push_sleepers()
        self.daemons = MovingDaemons(2, environment, folder, self._history, APP)
        self._pusher = Pusher(self.app, self._history, size.ids, self._rng)

    @property
    def shards(self) -> int:
        """That the queue has; as many as before while it moves."""
        layout = self.app.operate(self.worker).resharding().layout
        return layout.before if layout.is_moving else layout.after

    @property
    def lag(self) -> float:
        """Seconds for which the oldest due id has waited."""
        return self.app.operate.metrics()[self.worker.queue_name].lag

    @property
    def lines(self) -> list[str]:
        """What housekeeping has told of its moves, the newest first."""
        acts = read_activity(self.app.core.backend, 1.0, [self.worker.queue_name], 100)
        return [act.target for act in acts if act.who == WHO and act.action != NOTED]

    def expected(self, shards: int) -> tuple[float, float]:
        """The 95th percentiles of waits that were simulated at a move to so many: with half of them, and then."""
        memory = read_kept(self.app.core.backend, self.worker.queue_name, 1.0).memory
        p95s = dict(memory.forecasts)
        return p95s[shards // 2], p95s[shards]

    def push(self, shards: int, *, whole_minutes: bool = False) -> None:
        """So many a second that this many shards cannot carry them; from the next minute of history on."""
        if whole_minutes:
            threading.Event().wait(MINUTE - time.time() % MINUTE)
        self._pusher.rate = self._rate(shards)

    def grow(self, to: int) -> None:
        """Wait until the queue has so many shards, while those who make them die."""
        for arrow in [FIRST, *self._rng.sample(sorted(ARROWS.keys() - {FIRST}), self._size.kills - 1)]:
            (self.deaths / arrow).touch()
        eventually(lambda: self._has(to), timeout=PATIENCE, what=f"{to} shards")

    def _has(self, shards: int) -> bool:
        self.daemons.replace_dead()
        return self.shards == shards

    def settle(self) -> None:
        """Wait until the backlog is worked off."""
        eventually(lambda: self.lag < 1.0, timeout=PATIENCE, what="the end of the backlog")

    def measure(self, *loads: int) -> float:
        """Push what so many shards cannot carry, one load after the other; the 95th percentile of the waits (s)."""
        began_at = time.monotonic()
        for shards in loads:
            self._pusher.rate = self._rate(shards)
            threading.Event().wait(self._size.measured)
        ended_at = time.monotonic()
        self.settle()
        waits = sorted(self._waits(began_at, ended_at))
        return waits[int(HIGH * len(waits))]

    def _rate(self, shards: int) -> float:
        return self._size.excess * shards / self._size.call

    def _waits(self, since: float, until: float) -> list[float]:
        """From each push of that time to the first call that had it."""
        pushed: dict[tuple[str, int], float] = {}
        waits = []
        for event in self._history.read():
            if event.what == "push-end" and since <= event.at < until:
                pushed |= {(event.id, number): event.at for number in event.numbers}
            elif event.what == "begin":
                waits += [event.at - at for number in event.numbers if (at := pushed.pop((event.id, number), None))]
        return waits

    def finish(self) -> None:
        """Push no more, and wait until all is handled that is due."""
        self._pusher.end()
        length = self._size.sleepers
        eventually(lambda: self._left() == length, timeout=PATIENCE, what="the end of all that is due")

    def _left(self) -> int:
        metrics = self.app.operate.metrics()[self.worker.queue_name]
        return metrics.length + metrics.in_flight

    def judge(self) -> Verdict:
        """What the history shows, with what is left, as somebody sees it who has just come."""
        with closing_app(Lowkiq(self.app.config)) as app:
            worker = growing_worker(app, self.worker.queue_name, self._history, self._size.call)
            for job_id, numbers in dead_numbers(app, worker).items():
                self._history.write("left", job_id, numbers, outcome="dead")
            for asleep in all_of(partial(app.operate(worker).waiting.list, "id")):
                numbers = [int(score) if payload == score else -1 for payload, score in asleep.payloads]
                self._history.write("left", asleep.id, numbers, outcome="waiting", due=asleep.due_at)
        return check(self._history.read(), Terms(looked=True, settling=SETTLING * TTL, acknowledged=True))

    def _push_sleepers(self) -> None:
        """Jobs that nobody performs while the course lasts."""
        jobs = [{"id": f"sleeper-{n}", "payload": n, "score": n, "delay": DAY} for n in range(self._size.sleepers)]
        for number, one in enumerate(self.worker.push_many(jobs)):
            self._history.write("push-begin", one.id, [number], due=one.due_at)
            self._history.write("push-end", one.id, [number], outcome="ok")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pusher.end()
        self.daemons.close()
        close_app(self.app)
        self._history.close()


def main() -> None:
    """Run one, and tell what was found."""
    parser = argparse.ArgumentParser("python -m tests.chaos.growing.course", description=__doc__)
    for name, default in Growth()._asdict().items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = vars(parser.parse_args())
    seed, size = options.pop("seed"), Growth(**options)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        with GrowthCourse(server, "growing", Path(folder), size, seed) as course:
            say = [f"{size}, seed {seed}"]
            for shards, past in GROWTHS:
                course.push(shards // 2, whole_minutes=True)
                course.grow(shards)
                before, after = course.expected(shards)
                course.settle()
                came = course.measure(*past)
                say.append(f"{shards} shards: expected {before:.3f} s → {after:.3f} s, came {came:.3f} s")
            course.finish()
            found, lines = course.judge().words, course.lines
        say += [*lines, f"{course.daemons.killed} deaths, {len(found)} faults", *found[:20]]
        sys.stdout.write("\n".join(say) + "\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
