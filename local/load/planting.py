"""Plants the load: what has happened within the last hour, by a clock that begins then, through the engine itself."""

import time
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import Any, Final, TypeAlias
from uuid import uuid4

import msgspec

from local.load.app import (
    AFTER,
    BLOCKING,
    FAILING,
    FAILS,
    FOLLOWED,
    HANGING,
    KEEPING,
    KINDS,
    LEFT,
    LIMITED,
    MOVING,
    NAMES,
    PLANNED,
    REFUSED,
    WITH_TENANTS,
    new_app,
)
from local.load.troubles import GONE, HUNG, TROUBLES
from lowkiq_lambda import Config, Worker
from lowkiq_lambda.declare.duty import MOVES
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.engine.heartbeat import VERSION
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.operate.lateness.duty import watch_runner
from lowkiq_lambda.reshard.duty import resharding_of
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.shard.entries import EntryStore
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession, LeaseSettings
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.tasks.duty import task_runner
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Doing, Process

JOBS: Final = 300_000
FAILURES: Final = 20_000
AGO: Final = 2_280.0
"""Seconds before now at which the load begins: what its drains count is of the last hour."""
_ITEMS: Final = 5_000
"""Of the task."""
_AT_ONCE: Final = 1_000
_DAY: Final = 86_400.0
_HELD: Final = 6 * 3_600.0
"""Seconds for which the hung handler has its shard: nobody has to renew the lease meanwhile."""
_PATIENCE: Final = 10.0
_TERMS: Final = LeaseSettings(_HELD, "min", MorgueLimits(), b"crashed")
_BROKEN: Final = {
    "impossible": {"kind": "cron", "text": "0 0 31 2 *", "tz": "UTC", "id": "report"},
    "unreadable": {"kind": "moon", "text": "full", "tz": "UTC", "id": "report"},
}
_ONE: Final = ClaimLimits(1, 100, 100_000)

Show: TypeAlias = Callable[[str, int, int], object]
"""Told of each step: what is planted, how much of it is there, and how much there will be."""
Job: TypeAlias = dict[str, Any]


class Load:
    """A load on the server of the config, whose time goes on only as `plant` and `attend` say."""

    def __init__(self, config: Config, size: float = 1.0, seed: int = 1, without: Collection[str] = ()) -> None:
        """`size`: 1 for the whole load. `without`: names of troubles that are left out."""
        self.planted = [name for name in TROUBLES if name not in without]
        self.jobs, self.failures = int(JOBS * size), int(FAILURES * size)
        self._items = max(50, int(_ITEMS * size))
        self._clock = ManualClock(time.time() - AGO)
        self.app = new_app(config, self._clock)
        self._workers: dict[str, type[Worker[Any]]] = {worker.queue_name: worker for worker in self.app.workers}
        self._random = Random(seed)  # noqa: S311 - protects nothing
        self._hung_since = 0.0

    def plant(self, show: Show = lambda *_: None) -> None:
        """Plant everything, up to now. Raises LowkiqError."""
        steps: list[tuple[float, Callable[[Show], object]]] = [
            (0.0, self._push_later),
            (600.0, self._drain_some),
            (0.0, self._run_kept),
            (0.0, self._follow),
            (0.0, self._limit),
            (0.0, self._fail),
            (300.0, self._pause_tenant),
            (60.0, self._block),
            (60.0, self._move),
            (60.0, self._hang),
            (480.0, self._die),
            (60.0, self._break_entries),
        ]
        for seconds, step in steps:
            self._clock.advance(seconds)
            step(show)
            self.app.schedules.tick()
        self.attend()

    def attend(self) -> None:
        """Do now what the daemons of the load would do: send their heartbeats, do their duties, drain what is due."""
        self._clock.advance(max(0.0, time.time() - self._clock.time()))
        self.app.schedules.duty_runner(self._clock).run_due(lambda: _PATIENCE)
        DutyRunner(self.app.core, [_NoMove()], self._clock, name=MOVES).run_due(lambda: _PATIENCE)
        for runner_of in (task_runner, watch_runner):
            runner_of(self.app.core, self._clock).run_due(lambda: _PATIENCE)
        self.app.drain()
        self._send_heartbeat("packer-3:2201")
        if "hung-handler" in self.planted:
            self._send_heartbeat(HUNG, self._doing(HANGING, "catalogue-1", self._hung_since))

    def _push_later(self, show: Show) -> None:
        """What waits: due within a month, and not before tomorrow."""
        for worker in self._workers.values():
            self.app.core.queues.agreed(worker)
        count = self.jobs - (self.failures if "failures" in self.planted else 0)
        weights = [self._random.paretovariate(1.2) for _ in NAMES]
        names = self._random.choices(NAMES, weights, k=count)
        later = {name: names.count(name) for name in NAMES}
        pushed = 0
        for name, number in later.items():
            for jobs in _parts([self._later(each) for each in range(number)]):
                self._workers[name].push_many(jobs)
                pushed += len(jobs)
                show("jobs that wait", pushed, count)

    def _later(self, number: int) -> Job:
        tenant = self._random.choice(("acme", "globex", "initech"))
        due_at = self._clock.time() + self._random.uniform(_DAY, 30 * _DAY)
        return {"id": f"{tenant}:{number}", "payload": {"number": number}, "due_at": due_at}

    def _drain_some(self, _show: Show) -> None:
        """What is done: each queue has some, so that it is known how long its batches take."""
        for worker in self._workers.values():
            worker.push_many([{"id": f"globex:done-{number}"} for number in range(20)])
        self.app.drain()

    def _run_kept(self, _show: Show) -> None:
        """What ran, some of it with an error; and an id with two versions, which waits."""
        worker = self._workers[KEEPING]
        ids = [*(f"order-{number}" for number in range(40)), *(f"{FAILS}{kind}-0" for kind in range(len(KINDS)))]
        worker.push_many([{"id": job_id, "payload": {"total": number}} for number, job_id in enumerate(ids)])
        self.app.drain()
        for total in (10, 12):
            worker.push("4711", {"customer": {"id": 17}, "total": total}, delay=_DAY)

    def _follow(self, _show: Show) -> None:
        """A task that is not over, some items of which have failed."""
        ids = [f"{REFUSED if number % 7 == 0 else ''}product-{number}" for number in range(self._items)]
        with self.app.task("Publish the feed") as task:
            for part in _parts([{"id": job_id, "item": f"row {row}"} for row, job_id in enumerate(ids)]):
                task.push_many(self._workers[FOLLOWED], part)
            task.push(self._workers[FOLLOWED], "product-last", item="the last row", delay=_DAY)
        self.app.drain()

    def _limit(self, _show: Show) -> None:
        if "limit" in self.planted:
            self._workers[LIMITED].push_many([{"id": f"price-{number}"} for number in range(40)])

    def _fail(self, show: Show) -> None:
        # Of a healthy load some fail, too.
        count = self.failures if "failures" in self.planted else len(FAILING)
        for done, numbers in enumerate(_parts([*range(count)])):
            jobs: dict[str, list[Job]] = {name: [] for name in FAILING}
            for number in numbers:
                kind = 0 if self._random.random() < 0.3 else number % len(KINDS)  # noqa: PLR2004 - as a rate limit does
                jobs[FAILING[number % len(FAILING)]].append({"id": f"{FAILS}{kind}-{number}", "payload": number})
            for name, own in jobs.items():
                self._workers[name].push_many(own)
            self.app.drain()
            show("failures", done * _AT_ONCE + len(numbers), count)

    def _pause_tenant(self, _show: Show) -> None:
        worker = self._workers[WITH_TENANTS]
        if "paused-tenant" in self.planted:
            self.app.operate(worker).pause(tenant="acme")
        worker.push_many([{"id": f"acme:order-{number}"} for number in range(40)])
        self.app.drain()

    def _block(self, _show: Show) -> None:
        if "blocked-ids" in self.planted:
            self._workers[BLOCKING].push_many([{"id": f"{FAILS}7-{number}"} for number in range(12)])
            self.app.drain()

    def _move(self, _show: Show) -> None:
        """Half of the groups, as by a mover that was killed then."""
        if "move" not in self.planted:
            return
        resharding = resharding_of(self.app.core, self._workers[MOVING])
        layout = resharding.begin(AFTER)
        resharding.go_on(lambda *_: None, lambda: len(resharding.layout.left) - layout.groups // 2)

    def _hang(self, _show: Show) -> None:
        if "hung-handler" in self.planted:
            self._hung_since = self._clock.time()
            self._hold(HANGING, "catalogue-1", _TERMS)

    def _die(self, _show: Show) -> None:
        """What it had in flight, the others have by now."""
        if "dead-process" in self.planted:
            self._hold(LEFT, "label-1", msgspec.structs.replace(_TERMS, ttl=30.0))
            self._send_heartbeat(GONE, self._doing(LEFT, "label-1", self._clock.time()))

    def _break_entries(self, _show: Show) -> None:
        worker, core = self._workers[PLANNED], self.app.core
        (shard,) = with_timetable([core.queues.current(worker).shards.home_of("report")])
        store = EntryStore(core.backend, _PATIENCE)
        for name, definition in _BROKEN.items():
            # As another version of the code would: this one refuses to make them.
            if f"entry-{name}" in self.planted:
                store.put(shard, name, msgspec.json.encode(definition), "0" * 16, "report", switch="")
        if "entry-off" in self.planted:
            self.app.schedules.put("off", worker, id="report", every=900)
            self.app.schedules.disable(worker, "off")

    def _hold(self, name: str, job_id: str, terms: LeaseSettings) -> None:
        """Push the job, and take it, as a process does that begins with it."""
        self._workers[name].push_many([{"id": job_id}])
        worker = self._workers[name]
        shard = self.app.core.queues.agreed(worker).shards[shard_for(job_id, count_of(worker))]
        LeaseSession(self.app.core.backend, shard, uuid4().hex, terms).acquire(HUNG, _ONE, _PATIENCE)

    def _doing(self, name: str, job_id: str, since: float) -> Doing:
        shard = shard_for(job_id, count_of(self._workers[name]))
        return Doing(queue=name, shard=shard, since=since, count=1, ids=(job_id,))

    def _send_heartbeat(self, process_id: str, *doing: Doing) -> None:
        host, _, pid = process_id.partition(":")
        began_at = self._clock.time() - _DAY
        process = Process(
            host=host,
            pid=int(pid),
            kind="daemon",
            version=VERSION,
            since=began_at,
            threads=5,
            state="running",
            doing=doing,
        )
        HeartbeatSender(self.app.core.backend, process_id).send(process)


class _NoMove:
    """Stands for the duty that goes on with moves: here a move is to stand still, and its duty not to be late."""

    name: Final = MOVES
    every: Final = 60.0

    def run(self, remaining: Callable[[], float]) -> None:
        """Do nothing."""
        del remaining


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
