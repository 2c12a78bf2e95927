"""A course: a queue is pushed to and drained while it moves from one number of shards to the next.

`python -m tests.chaos.moving.course --rate 6000 --ids 300 --kills 6` is one of full size.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.lease_replies import Acquired, StoredClaim
from tests.chaos.moving import app as moving
from tests.chaos.moving.app import BAD, RETRIES, moving_worker
from tests.chaos.moving.processes import Movers, MovingDaemons, ProducerProcess
from tests.chaos.repeating import repeating
from tests.kit.apps import close_app, closing_app
from tests.kit.holders import Holder, Holders
from tests.kit.looks import all_of, dead_numbers
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, Verdict, check

TTL: Final = 2.0
DAY: Final = 86_400.0
ABORTS: Final = 2
COUNTS: Final = (5, 12, 3)
SETTLING: Final = 5
"""Leases within which a failure is durable, if no harm is done."""
_AGE: Final = """
for _, meta in ipairs(KEYS) do
  if redis.call('HEXISTS', meta, 'closed_at') == 1 then
    redis.call('HINCRBYFLOAT', meta, 'closed_at', -120)
    redis.call('HDEL', meta, 'refused_at')
  end
end
"""


class Size(NamedTuple):
    """How large a course is: payloads a second, ids, jobs that are due in a day, deaths of movers in each move."""

    rate: float
    ids: int
    sleepers: int
    kills: int


class Course:
    """A queue with its processes. One producer is frozen while the queue moves, so that it knows of no move."""

    def __init__(self, server: Server, queue_name: str, folder: Path, size: Size, seed: int) -> None:
        self._url, self._admin = server.url, server.admin
        self._history = Recorder(folder / "history")
        self._size = size
        self._rng = random.Random(seed)
        self._count = COUNTS[0]
        environment = {
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_LEASE_TTL": str(TTL),
            "LOWKIQ_POLL_INTERVAL": "0.2",
            "LOWKIQ_THREADS_PER_NODE": "3",
            moving.QUEUE_VARIABLE: queue_name,
            moving.HISTORY_VARIABLE: str(folder / "history"),
            moving.SHARDS_VARIABLE: str(COUNTS[0]),
        }
        self.app = Lowkiq(Config(redis_url=server.url, lease_ttl=TTL))
        self.worker = moving_worker(self.app, queue_name, self._history, COUNTS[0])
        self._push_sleepers()
        self.movers = Movers(queue_name, environment, folder, self._rng)
        self.daemons = MovingDaemons(2, environment, folder, self._history)
        self._producers = [
            ProducerProcess("live", size.ids - size.ids // 10, size.rate, environment, folder),
            ProducerProcess("stale", size.ids // 10, size.rate / 10, environment, folder),
        ]
        self._live, self._stale = self._producers

    def _push_sleepers(self) -> None:
        """Jobs that nobody performs while the course lasts."""
        jobs = [{"id": f"sleeper-{n}", "payload": n, "score": n, "delay": DAY} for n in range(self._size.sleepers)]
        for number, one in enumerate(self.worker.push_many(jobs)):
            self._history.write("push-begin", one.id, [number], due=one.due_at)
            self._history.write("push-end", one.id, [number], outcome="ok")

    def move(self, to: int) -> None:
        """Run the command, with deaths of movers and daemons on the way, while one producer is frozen."""
        with self._one_frozen(), self._dying_daemons(), self._minutes_going_by(to):
            for number in range(self._size.kills):
                # The first one dies around the closing of shards, the others wherever they are.
                self.movers.kill_one("--to", str(to), when=self._one_closes if number == 0 else self._pushes_go_on())
            self.movers.run("--to", str(to), at_once=2)
        self._count = to

    def turn_round(self, to: int) -> None:
        """Begin a move that cannot come to its end; its mover dies when something has moved, and two walk back."""
        first, *_, last = self._shards()
        with self._one_frozen():
            with self._held(last):
                self.movers.kill_one("--to", str(to), when=lambda: self._is_closed(first))
            with self._minutes_going_by(self._count):
                self.movers.run("--abort", at_once=ABORTS)

    @contextmanager
    def _minutes_going_by(self, count: int) -> Iterator[None]:
        """Two at a time, as far as these shards know: one that was closed, or refused a push, may be opened again."""
        metas = [shard.key("meta") for shard in self._shards(count)]
        with repeating(lambda: self._admin.eval(_AGE, len(metas), *metas), lambda: 0.1):
            yield

    @contextmanager
    def _held(self, shard: ShardRef) -> Iterator[None]:
        """Nobody else has the shard, and its jobs wait."""
        with Holders(self._url, shard, ttl=DAY) as holders:
            taken = eventually(lambda: _taken(holders), what="a lease")
            assert taken
            holder, claim = taken
            yield
            holder.give_back(delivery.id for delivery in claim.deliveries)

    @contextmanager
    def _one_frozen(self) -> Iterator[None]:
        for producer in self._producers:
            producer.await_more()
        self._stale.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._stale.send(signal.SIGCONT)
        for producer in self._producers:
            producer.await_more()

    def _one_closes(self) -> bool:
        return any(self._is_closed(shard) for shard in self._shards())

    def _is_closed(self, shard: ShardRef) -> bool:
        return bool(self._admin.hexists(shard.key("meta"), "closed"))

    def _pushes_go_on(self) -> Callable[[], bool]:
        goal = self._live.pushes + 10
        return lambda: self._live.pushes >= goal

    def _shards(self, count: int | None = None) -> list[ShardRef]:
        """Those of a count; of the present one where none is given."""
        count = count or self._count
        return [ShardRef(self.worker.queue_name, count, index) for index in range(count)]

    @contextmanager
    def _dying_daemons(self) -> Iterator[None]:
        with repeating(lambda: self.daemons.kill(self._rng.randrange(2)), lambda: self._rng.uniform(1.0, 2.0)):
            yield

    def finish(self) -> None:
        """Push no more, and wait until all is handled that is due."""
        for producer in self._producers:
            producer.end()
        eventually(self._is_drained, timeout=120.0, what="the end of all that is due")

    def _is_drained(self) -> bool:
        """At one moment, as a job that fails goes to and fro."""
        look = self._admin.pipeline(transaction=True)
        for shard in self._shards():
            look.zcard(shard.key("due"))
        for shard in self._shards():
            look.exists(shard.key("flight"))
        found = look.execute()
        return sum(found[: self._count]) == self._size.sleepers and not any(found[self._count :])

    def judge(self) -> Verdict:
        """What the history shows, with what is left, as somebody sees it who has just come."""
        with closing_app(Lowkiq(self.app.config)) as app:
            worker = moving_worker(app, self.worker.queue_name, self._history, COUNTS[0])
            for job_id, numbers in dead_numbers(app, worker).items():
                self._history.write("left", job_id, numbers, outcome="dead")
            for asleep in all_of(partial(app.operate(worker).waiting.list, "id")):
                # Sleepers have their numbers as scores: one that has another was pushed by nobody.
                numbers = [int(score) if payload == score else -1 for payload, score in asleep.payloads]
                self._history.write("left", asleep.id, numbers, outcome="waiting", due=asleep.due_at)
        terms = Terms(looked=True, settling=SETTLING * TTL, acknowledged=True, failing=BAD, retries=RETRIES)
        return check(self._history.read(), terms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for producer in self._producers:
            producer.close()
        self.daemons.close()
        close_app(self.app)
        self._history.close()


def _taken(holders: Holders) -> tuple[Holder, StoredClaim] | None:
    holder = holders.new()
    found = holder.take()
    return (holder, found.claim) if isinstance(found, Acquired) and found.claim else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one, and tell what was found."""
    parser = argparse.ArgumentParser("python -m tests.chaos.moving.course", description=__doc__)
    parser.add_argument("--rate", type=float, default=600.0)
    parser.add_argument("--ids", type=int, default=60)
    parser.add_argument("--sleepers", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args(arguments)
    size = Size(given.rate, given.ids, given.sleepers, given.kills)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        with Course(server, "moving", Path(folder), size, given.seed) as course:
            began = time.monotonic()
            for shards in COUNTS[1:]:
                course.move(shards)
            seconds = time.monotonic() - began
            course.finish()
            verdict = course.judge()
        found, pushed = verdict.words, verdict.payloads
        told = f"{pushed:,} payloads, {pushed / seconds:,.0f} in each of the {seconds:.1f} s of the moves"
        sys.stdout.write("\n".join([f"{given}: {told}, {len(found)} faults", *found[:20]]) + "\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
