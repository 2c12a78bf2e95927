"""Limited queues, as drains keep their limits: visits at once, and ids that begin in any time."""

import math
from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Rate, Worker
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.store.shard.admitting import Admitted, Full, PermitSession, VisitsRunning, visits_running
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of

NOBODY = VisitsRunning(0, 0.0)


def running(app: Lowkiq, worker: type[Worker]) -> VisitsRunning:
    """The visits to its queue that have permits."""
    return visits_running(app.core.backend, worker.queue_name, 0.0)


def visit(app: Lowkiq, worker: type[Worker], shard: int = 0, patience: float = 0.0) -> VisitResult:
    """One visit to a shard."""
    budget = Budget(app.core.drains.drainer.clock)
    budget.patience = patience
    return app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[shard], budget)


def drain(app: Lowkiq, seconds: float = 60.0) -> Loop:
    """What a function does in one invocation, but for its waits."""
    return Loop(app.core.drains.drainer, app.core.drains.drainer.shards).run(
        Budget(app.core.drains.drainer.clock, seconds)
    )


class BeginTimes:
    """Notes when ids begin; a batch takes `takes` seconds."""

    def __init__(self, clock: ManualClock, takes: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.takes = takes
        self.at: list[float] = []

    def __call__(self, batch: Batch) -> None:
        """The handler."""
        self.at += [self.clock.monotonic()] * len(batch)
        self.clock.advance(self.takes())

    def fullest(self, per: float) -> int:
        """How many began in that window of so many seconds in which most did."""
        return max((sum(start <= at < start + per for at in self.at) for start in self.at), default=0)


def test_x30_no_more_visits_run_than_the_queue_allows(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A drain that finds all permits taken performs nothing and says why; when one is free it goes on."""
    apps = [make_app() for _ in range(3)]
    inside: list[int] = []
    told: list[VisitResult] = []

    def nest(_batch: Batch) -> None:
        inside.append(1)
        if len(inside) < len(apps):
            told.append(visit(apps[len(inside)], worker, len(inside)))

    worker = declare(apps[0], queue_name, nest, shards_count=3, max_running=2)
    for app in apps[1:]:
        declare(app, queue_name, nest, shards_count=3, max_running=2)
    worker.push_many(jobs_of("abcdefghi"))
    visit(apps[0], worker)

    reasons = [result.reason for result in told]
    assert ["limited", "empty"] == reasons
    assert clock.time() < (told[0].until or 0) <= clock.time() + apps[0].config.lease_ttl
    assert NOBODY == running(apps[0], worker)
    apps[2].drain()
    assert {} == left_behind(apps[0], worker)


@pytest.mark.parametrize(("takes", "per"), [(0.0, 2.0), (0.03, 2.0), (0.4, 2.0), (0.0, 60.0), (0.4, 60.0), (7.0, 60.0)])
def test_no_window_has_more_begins_than_the_rate(
    app: Lowkiq, clock: ManualClock, queue_name: str, takes: float, per: float
) -> None:
    """At most 20 ids begin in any such time, however long batches take; where there is work 85 % of that do."""
    begun = BeginTimes(clock, lambda: takes)
    worker = declare(app, queue_name, begun, shards_count=3, batch_size=3, rate=Rate(20, per=per))
    worker.push_many(jobs_of([str(number) for number in range(300)]))
    began_at = clock.monotonic()
    while clock.monotonic() < began_at + 10 * per and len(begun.at) < 300:
        drain(app, began_at + 10 * per - clock.monotonic())
        clock.advance(per / 50)
    possible = min(300, 10 * 20, 10 * per / takes * 3 if takes else math.inf)

    assert 0 < begun.fullest(per) <= 20
    assert len(begun.at) >= 0.85 * possible
    assert NOBODY == running(app, worker)


def test_ticks_once_a_minute_use_a_rate_for_the_minute(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A drain waits for the few seconds in which what began a minute ago still counts, and each tick is worth it."""
    begun = BeginTimes(clock)
    worker = declare(app, queue_name, begun, batch_size=10, rate=Rate(100, per=60))
    worker.push_many(jobs_of([str(number) for number in range(2_000)]))
    began_at = clock.monotonic()
    for tick in range(10):
        clock.advance(began_at + 60 * tick - clock.monotonic())
        drain(app, 50.0)

    assert 800 <= len(begun.at) <= 1_000
    assert 100 == begun.fullest(60.0)


def test_one_refusal_leaves_out_all_shards_of_the_queue(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain asks once for a queue whose permits are taken, not once for each shard, and drains the others."""
    app, other = make_app(), make_app()
    asked, drained, notes = list[int](), list[Loop](), Notes()
    enter = PermitSession.enter

    def note(permit: PermitSession, *args: Any) -> Admitted | Full:
        asked.append(permit.shard.index)
        return enter(permit, *args)

    def hold_the_permit(_batch: Batch) -> None:
        asked.clear()
        drained.append(drain(app))

    monkeypatch.setattr(PermitSession, "enter", note)
    worker = declare(other, queue_name, hold_the_permit, shards_count=12, max_running=1)
    declare(app, queue_name, Notes(), shards_count=12, max_running=1)
    free = declare(app, f"{queue_name}-free", notes)
    worker.push_many(jobs_of([str(number) for number in range(100)]))
    free.push_many(jobs_of("a"))
    visit(other, worker)

    assert 1 == len(asked)
    assert [["a"]] == notes.ids
    assert ("limited", 12 - 1) == (drained[0].reason, list(drained[0].reasons.values()).count("limited"))


def test_a_visit_makes_way_for_a_shard_that_waits(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """After a quarter of a second it claims no more, and who was before it on the wait list comes first."""
    app, other = make_app(), make_app()
    told: list[VisitResult] = []

    def ask(_batch: Batch) -> None:
        clock.advance(0.2)
        if not told:
            told.append(visit(other, worker, 1, patience=math.inf))

    worker = declare(app, queue_name, ask, shards_count=2, max_running=1, rate=Rate(10**6, per=1.0))
    declare(other, queue_name, Notes(), shards_count=2, max_running=1, rate=Rate(10**6, per=1.0))
    worker.push_many(jobs_of([str(number) for number in range(50)]))
    results = [visit(app, worker), visit(app, worker, patience=math.inf), visit(other, worker, 1), visit(app, worker)]

    assert ["limited"] == [result.reason for result in told]
    assert ["turn over", "limited", "empty", "empty"] == [result.reason for result in results]


def test_ids_that_run_side_by_side_count_each(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A visit with several batches at once begins no more than the rate allows, and waits for more while it runs."""
    begun, lock = BeginTimes(clock), Lock()

    def note(batch: Batch) -> None:
        with lock:
            begun(batch)

    worker = declare(app, queue_name, note, concurrency=4, batch_size=2, rate=Rate(10, per=2.0))
    worker.push_many(jobs_of([str(number) for number in range(25)]))
    drain(app)

    assert {} == left_behind(app, worker)
    assert 25 == len(begun.at)
    assert begun.fullest(2.0) <= 10


def test_retries_count_for_the_rate(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What is tried again begins again."""
    begun = BeginTimes(clock)

    def fail(batch: Batch) -> None:
        begun(batch)
        raise Broken

    worker = declare(app, queue_name, fail, rate=Rate(3, per=100.0), retry_in=lambda _self, _count: 0.0)
    worker.push_many(jobs_of("ab"))
    drain(app, 90.0)

    assert 3 == len(begun.at)


@pytest.mark.parametrize("call", ["enter", "acquire", "settle", "leave"])
def test_a_process_that_dies_frees_its_permit_by_itself(
    make_app: MakeApp, clock: ManualClock, queue_name: str, call: str
) -> None:
    """Wherever it dies, its permit ends with its lease, and the queue drains to the end."""
    app, other, notes = make_app(), make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=2, max_running=1)
    declare(other, queue_name, notes, shards_count=2, max_running=1)
    worker.push_many(jobs_of("abcdef"))
    mortal = Mortal(app)
    mortal.die_before(call)
    assert mortal.drain() is None
    outlive(other, clock, worker)
    drain(other)

    assert {} == left_behind(app, worker)
    assert NOBODY == running(app, worker)


def test_a_handler_whose_permit_is_lost_is_told_to_stop(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was frozen for longer than its permit lasts begins nothing more, and another has the permit."""
    late, other = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    stopping: list[bool] = []
    told: list[VisitResult] = []

    def oversleep(batch: Batch) -> None:
        clock.advance(late.config.lease_ttl + 1)
        told.append(visit(other, worker, 1))
        stopping.append(batch.stopping)

    worker = declare(late, queue_name, oversleep, shards_count=2, max_running=1)
    declare(other, queue_name, Notes(), shards_count=2, max_running=1)
    worker.push_many(jobs_of("abcdefgh"))
    result = visit(late, worker)

    assert ([True], "empty") == (stopping, told[0].reason)
    assert result.reason in {"lease lost", "limited"}
    assert 1 == result.counts["done"]


def test_limits_fail_closed(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the queue's node is away and the shard's is not, a visit ends soon, and what has not begun goes back."""
    app, seen = make_app(), list[bool]()
    stop_renewing(app, monkeypatch)

    def lose_the_node(batch: Batch) -> None:
        monkeypatch.setattr(PermitSession, "_ask", unreachable)
        clock.advance(1.0)
        seen.append(batch.stopping)

    def unreachable(*_args: object, **_options: object) -> Reply:
        raise BackendUnavailable

    worker = declare(app, queue_name, lose_the_node, max_running=1, batch_size=1)
    worker.push_many(jobs_of("ab"))
    result = visit(app, worker)

    assert ([False], "limited", {"done": 1}) == (seen, result.reason, dict(result.counts))
    assert 1 == left_behind(app, worker)["due"]
    with pytest.raises(BackendUnavailable):
        visit(app, worker)


@pytest.mark.parametrize("how", ["paused", "evicted", "asked to let go"])
def test_operators_end_visits_with_their_permits(app: Lowkiq, queue_name: str, how: str) -> None:
    """Whoever ends a visit, its permit is free when it has ended."""
    during: list[VisitsRunning] = []

    def steer(batch: Batch) -> None:
        during.append(running(app, worker))
        if how == "paused":
            app.operate(worker).pause(60.0)
        else:
            end = (
                app.operate(worker).in_flight.evict_holder
                if how == "evicted"
                else app.operate(worker).in_flight.quiet_holder
            )
            end(0, batch.token)

    worker = declare(app, queue_name, steer, max_running=1, batch_size=1)
    worker.push_many(jobs_of("ab"))
    visit(app, worker)

    assert [1] == [running.running for running in during]
    assert NOBODY == running(app, worker)


def test_a_process_that_abandons_its_jobs_soon_frees_its_permit(app: Lowkiq, queue_name: str) -> None:
    """What has to leave handlers running keeps its permit for as long as the lease, a fraction of a second."""
    during: list[VisitsRunning] = []

    def leave_it(_batch: Batch) -> None:
        app.core.drains.drainer.abandon_all(0.5)
        during.append(running(app, worker))

    worker = declare(app, queue_name, leave_it, max_running=1)
    worker.push_many(jobs_of("a"))
    visit(app, worker)

    assert [(1, 0.5)] == during


def test_a_permit_that_was_taken_without_an_answer_is_left_at_once(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-30: no time passes until others may have it, though nobody knows whether the call was applied."""
    worker = declare(app, queue_name, Notes(), max_running=1, shards_count=2)
    worker.push_many(jobs_of("abcdef"))
    enter, answers = PermitSession.enter, list[Admitted | Full]()

    def unanswered(session: PermitSession, want: int, patience: float, retry_for: float) -> Admitted | Full:
        answers.append(enter(session, want, patience, retry_for))
        # As where no answer came.
        session._calls = -1
        raise BackendUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(PermitSession, "enter", unanswered)
        with pytest.raises(BackendUnavailable, match="away"):
            visit(app, worker)
    assert [Admitted] == [type(answer) for answer in answers]
    assert NOBODY == running(app, worker)

    assert ["empty", "empty"] == [visit(app, worker, shard).reason for shard in (0, 1)]
