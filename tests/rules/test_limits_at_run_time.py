"""Limits that are set while drains run, and queues that wait for others."""

from contextlib import ExitStack
from threading import Barrier, Event, Lock, Thread
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Rate
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.store.shard.admitting import Admitted, Full
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.permits import come, visit_permit
from tests.kit.workers import declare, jobs_of
from tests.rules.together import in_threads


def visit(app: Lowkiq, worker: Any, shard: int = 0) -> VisitResult:
    """One visit to a shard."""
    return app.core.drains.drainer.visit(
        app.core.queues.agreed(worker).shards[shard], Budget(app.core.drains.drainer.clock)
    )


def drain(app: Lowkiq, seconds: float = 60.0) -> Loop:
    """What a function does in one invocation, but for its waits."""
    return Loop(app.core.drains.drainer, app.core.drains.drainer.shards).run(
        Budget(app.core.drains.drainer.clock, seconds)
    )


def test_x30_a_visitor_without_limits_in_its_code_obeys_those_that_are_set(app: Lowkiq, queue_name: str) -> None:
    """X-30: it is told by the shard, asks for a permit, and goes on as one that has limits; a reset ends that."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=3, batch_size=10)
    worker.push_many(jobs_of("abcdefghi"))
    app.operate(worker).limits.set(max_running=1)
    permit = visit_permit(app, worker, 2)
    permit.enter(1, 0.0, 0.0)

    refused = [visit(app, worker, shard) for shard in range(2)]

    assert (["limited", "limited"], []) == ([result.reason for result in refused], notes.batches)
    assert all(result.until is not None for result in refused)
    permit.leave(0.0, 0.0)
    assert "empty" == visit(app, worker).reason
    come(app, worker, 2)
    app.operate(worker).limits.reset()
    app.drain()
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("fields", [{"batch_size": 1}, {"batch_size": 1, "concurrency": 2}])
def test_x30_who_visits_a_shard_when_limits_are_set_asks_for_a_permit(
    app: Lowkiq, clock: ManualClock, queue_name: str, fields: dict[str, int]
) -> None:
    """X-30: it claims no more than it had claimed, and the rate counts from the next claim on."""
    begun: list[float] = []
    lock = Lock()

    def handle(_batch: Batch) -> None:
        with lock:
            begun.append(clock.monotonic())
            if len(begun) == 5:
                app.operate(worker).limits.set(rate=Rate(7, per=60))

    worker = declare(app, queue_name, handle, **fields)
    worker.push_many(jobs_of([str(number) for number in range(2_000)]))
    counts = drain(app, 50.0).counts

    # A claim has a thousand ids at most, and one may be under way.
    assert 7 < counts["done"] <= 2_000 - 900
    clock.advance(100.0)
    first = len(begun)
    drain(app, 50.0)
    assert 7 == len(begun) - first
    app.operate(worker).limits.reset()
    drain(app)
    assert {} == left_behind(app, worker)


class Watched:
    """Counts the handlers that run at once: of the first visits, which wait for each other, and of all later ones."""

    def __init__(self, visits: int) -> None:
        self.all_run = Barrier(visits + 1, timeout=30.0)
        self.may_go = Event()
        self.most = 0
        self._first: set[int] = set()
        self._later = 0
        self._lock = Lock()

    def __call__(self, batch: Batch) -> None:
        """The handler."""
        with self._lock:
            is_first = not self.may_go.is_set() or batch.token in self._first
            self._first.update([batch.token] if is_first else [])
            self._later += not is_first
            self.most = max(self.most, self._later)
        if not self.may_go.is_set():
            self.all_run.wait()
            self.may_go.wait(30.0)
        with self._lock:
            self._later -= not is_first


def test_x30_lowered_limits_count_under_load(server_url: str, queue_name: str) -> None:
    """X-30: five visits run when limits are set; of those that begin later never more than two run at once."""
    handler = Watched(5)
    with ExitStack() as stack:
        apps = [stack.enter_context(closing_app(Lowkiq(Config(redis_url=server_url)))) for _ in range(5)]
        workers = [declare(app, queue_name, handler, shards_count=5) for app in apps]
        workers[0].push_many(jobs_of([str(number) for number in range(2_000)]))
        drains = Thread(target=in_threads, args=apps)
        drains.start()
        handler.all_run.wait()
        apps[0].operate(workers[0]).limits.set(max_running=2)
        handler.may_go.set()
        drains.join()
        apps[0].drain()

        assert {} == left_behind(apps[0], workers[0])
        assert 1 <= handler.most <= 2


def test_x30_a_limit_below_those_who_run_makes_them_go(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-30: a visit above a limit that became smaller ends at its next claim, though nobody is on the wait list."""
    ran: list[str] = []

    def handle(batch: Batch) -> None:
        ran.extend(batch)
        if len(ran) == 1:
            come(app, worker, 1, 2)
            app.operate(worker).limits.set(max_running=2)
        clock.advance(2.0)

    worker = declare(app, queue_name, handle, shards_count=3, max_running=3)
    worker.push_many(jobs_of([str(number) for number in range(30)]))
    result = visit(app, worker)

    assert "turn over" == result.reason
    assert 1 <= result.counts["done"] <= 3
    assert "limited" == visit(app, worker).reason


@pytest.mark.parametrize("order", ["the waiting one first", "the waiting one last"])
def test_x32_nothing_begins_while_the_queue_before_it_is_visited(app: Lowkiq, queue_name: str, order: str) -> None:
    """X-32: whichever is declared first; other queues are drained meanwhile, and when nobody visits it, it begins."""
    seen: dict[str, list[str]] = {"imports": [], "reports": [], "mails": []}

    def importing(batch: Batch) -> None:
        seen["imports"] += batch
        before = len(seen["reports"])
        reports = visit(app, workers["reports"])
        told.append((reports.reason, len(seen["reports"]) - before))
        visit(app, workers["mails"])

    told: list[tuple[str, int]] = []
    fields: dict[str, Any] = {
        "imports": (importing, {}),
        "reports": (seen["reports"].extend, {"waits_for": (f"{queue_name}-imports",)}),
        "mails": (seen["mails"].extend, {}),
    }
    names = [*fields] if order == "the waiting one last" else [*reversed(fields)]
    workers = {name: declare(app, f"{queue_name}-{name}", fields[name][0], **fields[name][1]) for name in names}
    for worker in workers.values():
        worker.push_many(jobs_of("abc"))
    visit(app, workers["imports"])
    drain(app)

    assert {("limited", 0)} == {*told}
    assert {"imports": ["a", "b", "c"], "reports": ["a", "b", "c"], "mails": ["a", "b", "c"]} == {
        name: sorted(ids) for name, ids in seen.items()
    }


@pytest.mark.parametrize("order", ["the blocking one first", "the blocking one last"])
def test_x32_all_queues_but_its_exceptions_wait_for_one_that_blocks(app: Lowkiq, queue_name: str, order: str) -> None:
    """X-32: whichever is declared first; what is excepted runs meanwhile, and the others when nobody visits it."""
    seen: dict[str, list[str]] = {"payments": [], "alerts": [], "mails": []}
    told: list[tuple[str, str, list[str]]] = []

    def paying(batch: Batch) -> None:
        seen["payments"] += batch
        told.extend((name, visit(app, workers[name]).reason, [*seen[name]]) for name in ("alerts", "mails"))

    fields: dict[str, Any] = {
        "payments": (paying, {"block_except": (f"{queue_name}-alerts",), "shards_count": 1, "batch_size": 3}),
        "alerts": (seen["alerts"].extend, {"shards_count": 1, "batch_size": 3}),
        "mails": (seen["mails"].extend, {"shards_count": 1, "batch_size": 3}),
    }
    names = [*fields] if order == "the blocking one first" else [*reversed(fields)]
    workers = {name: declare(app, f"{queue_name}-{name}", fields[name][0], **fields[name][1]) for name in names}
    for worker in workers.values():
        worker.push_many(jobs_of("abc"))
    visit(app, workers["payments"])
    views = {name: app.operate(worker).limits.explain() for name, worker in workers.items()}
    waits = {name: [wait.queue_name for wait in view.waits_for] for name, view in views.items()}
    drain(app)

    (alerts, mails) = told
    assert ("alerts", ["a", "b", "c"]) == (alerts[0], sorted(alerts[2]))
    assert ("mails", "limited", []) == mails
    assert {"payments": [], "alerts": [], "mails": [f"{queue_name}-payments"]} == waits
    assert {name: ["a", "b", "c"] for name in fields} == {name: sorted(ids) for name, ids in seen.items()}


@pytest.mark.parametrize("concurrency", [1, 2])
def test_x32_a_visit_that_runs_makes_way_for_the_queue_before_it(
    app: Lowkiq, clock: ManualClock, queue_name: str, concurrency: int
) -> None:
    """X-32: it looks about once a second, and begins nothing more; the queue before it does not wait for it."""
    ran: list[str] = []
    lock = Lock()

    def report(batch: Batch) -> None:
        with lock:
            ran.extend(batch)
            if len(ran) == 2:
                told.extend(come(app, imports, 0))
        clock.advance(0.4)

    told: list[Admitted | Full] = []
    imports = declare(app, queue_name, Notes())
    reports = declare(app, f"{queue_name}-reports", report, waits_for=(queue_name,), concurrency=concurrency)
    reports.push_many(jobs_of([str(number) for number in range(40)]))
    result = visit(app, reports)

    assert "limited" == result.reason
    assert 2 <= len(ran) <= 6 * concurrency
    assert 40 - len(ran) == app.operate.stats()["by_worker"][reports.queue_name]["length"]
    assert [Admitted] == [type(one) for one in told]
    clock.advance(31.0)
    drain(app)
    assert {} == left_behind(app, reports)
