"""What jobs cost in calls of Redis: a budget, so that a change that makes them dearer is noticed.

A bound is what is used today. Lower one that has become too large; think twice before one is raised.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import redis

from lowkiq_lambda import Batch, Config, Lowkiq, Worker, discard_on
from lowkiq_lambda.aws.ticking import ticked
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.local.invoke import LocalContext
from lowkiq_lambda.operate.lateness.duty import WatchDuty
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import LIMITS
from lowkiq_lambda.store.shard.replicas import Waits
from lowkiq_lambda.store.shard.scripts import evalsha, script
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.servers import Server
from tests.kit.servers.monitor import Asked, Monitor
from tests.kit.tracking import TaskOfTests

JOBS = 1_000


class Cost:
    """What the server was asked: round trips, commands (those inside scripts too), and calls of scripts."""

    def __init__(self, round_trips: int, commands: Counter[str]) -> None:
        self.round_trips = round_trips
        self.commands = commands
        self.scripts = commands["evalsha"] + commands["eval"]


CostOf = Callable[[Callable[[], object]], Cost]


@pytest.fixture
def cost_of(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> CostOf:
    """Tells what the server is asked while something is called."""
    sent = []
    send = redis.Connection.send_packed_command

    def noting(connection: redis.Connection, *args: Any, **kwargs: Any) -> Any:
        sent.append(connection)
        return send(connection, *args, **kwargs)  # type: ignore[no-untyped-call]  # redis-py has no types

    def measure(call: Callable[[], object]) -> Cost:
        own_server.admin.config_resetstat()
        sent.clear()
        call()
        return Cost(len(sent), _commands(own_server.admin))

    monkeypatch.setattr(redis.Connection, "send_packed_command", noting)
    return measure


@pytest.fixture
def clock() -> ManualClock:
    """Stands still, so that a handler takes no time unless it moves the clock."""
    return ManualClock()


@pytest.fixture
def app(own_server: Server, clock: ManualClock) -> Iterator[Lowkiq]:
    """An app with default settings."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    yield app
    close_app(app)


def warm_worker(
    app: Lowkiq, handler: Callable[[Batch], object], queue_name: str = "queue", **options: Any
) -> FunctionWorker:
    """A worker whose queue is declared, with scripts loaded, connections made and a pace that is known."""

    def handle(batch: Batch) -> object:
        return handler(batch)

    worker = app.worker(queue_name=queue_name, **options)(handle)
    worker.push_many(jobs(10 * count_of(worker.worker)))
    app.drain()
    return worker


def jobs(count: int = JOBS, start: int = 0) -> list[dict[str, Any]]:
    """So many jobs, each of its own id."""
    return [{"id": number, "payload": str(number)} for number in range(start, start + count)]


def nothing(_batch: Batch) -> None:
    """A handler for blank jobs."""


def visit(app: Lowkiq, clock: ManualClock) -> VisitResult:
    """A visit to the first shard."""
    return app.core.drains.drainer.visit(app.core.drains.drainer.shards()[0], Budget(clock))


@pytest.mark.parametrize("batch_size", [1, 10, 100])
def test_p8_fast_jobs_are_drained_a_thousand_at_a_time(
    app: Lowkiq, clock: ManualClock, cost_of: CostOf, batch_size: int
) -> None:
    """P8: one call takes the lease and the first thousand, one settles them and lets go, whatever the batch size."""
    worker = warm_worker(app, nothing, shards_count=1, batch_size=batch_size)
    worker.push_many(jobs())

    cost = cost_of(lambda: visit(app, clock))

    assert (2, 2) == (cost.round_trips, cost.scripts)
    assert cost.commands.total() <= 46


def test_p8_an_outage_costs_few_calls(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """P8: a few batches are tried as suspects; of all others the outcomes go in calls of a hundred."""
    failing: list[bool] = []

    def handle(_batch: Batch) -> None:
        if failing:
            raise ConnectionError

    worker = warm_worker(app, handle, shards_count=1, batch_size=10)
    worker.push_many(jobs())
    failing.append(True)

    cost = cost_of(lambda: visit(app, clock))

    assert (26, 26) == (cost.round_trips, cost.scripts)


def test_p8_a_claim_in_the_steady_state_is_one_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """P8: settling, renewing and claiming are one call, so five claims more are five calls more."""
    worker = warm_worker(app, nothing, shards_count=1, batch_size=100)
    worker.push_many(jobs(6 * JOBS))

    cost = cost_of(lambda: visit(app, clock))

    assert (1 + 6, 1 + 6) == (cost.round_trips, cost.scripts)
    assert cost.commands.total() <= 196


def test_p8_slow_batches_cost_one_round_trip_each(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """P8: where a batch takes longer than the interval of acknowledging, each has its own, and no call more."""
    worker = warm_worker(app, lambda _batch: clock.advance(1.0), shards_count=1, batch_size=10)
    worker.push_many(jobs(100))

    cost = cost_of(lambda: visit(app, clock))

    assert (1 + 10, 1 + 10) == (cost.round_trips, cost.scripts)


def test_p8_a_wait_for_replicas_costs_no_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """P8: it travels behind the push, the acquisition and the settling; each waits once, for a write of its own."""
    worker = warm_worker(app, nothing, shards_count=1, batch_size=100)

    def push_and_visit() -> Cost:
        return cost_of(lambda: (worker.push_many(jobs()), visit(app, clock)))

    without = push_and_visit()
    for backend in app.core.connections.opened:
        # The server has no replica, and none is enough.
        backend.replicated = Waits(backend, 0, 1.0).send
    push_and_visit()
    waiting = push_and_visit()

    assert without.round_trips == waiting.round_trips == 3
    assert {"eval": 3, "del": 3, "set": 3, "wait": 3} == {**(waiting.commands - without.commands)}


def test_an_id_in_retry_makes_its_neighbours_little_dearer(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """A shard in which some id has failed still settles and claims the others with a handful of commands."""

    def fail_first(batch: Batch) -> None:
        if "0" in batch:
            batch.fail("0", "broken")

    worker = warm_worker(app, fail_first, shards_count=1, batch_size=100)
    worker.push_many(jobs(JOBS, start=1))

    cost = cost_of(lambda: visit(app, clock))

    assert (2, 2) == (cost.round_trips, cost.scripts)
    assert cost.commands.total() <= 52


def test_rules_by_error_cost_no_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """They decide in the process: a drop travels in the call that is made anyway, and rules alone cost nothing."""
    gone = {"0"}

    def drop(batch: Batch) -> None:
        for job_id in gone & {*batch}:
            batch.fail(job_id, KeyError("gone"))

    worker = warm_worker(app, drop, shards_count=1, batch_size=100)

    def push_and_visit() -> Cost:
        worker.push_many(jobs())
        return cost_of(lambda: visit(app, clock))

    worker.worker.on_error, gone = (discard_on(KeyError),), {"no such id"}
    declared, gone = push_and_visit(), {"0"}
    dropped = push_and_visit()
    worker.worker.on_error, gone = (), {"no such id"}
    without = push_and_visit()

    assert without.commands == declared.commands
    assert (2, 2) == (declared.round_trips, dropped.round_trips)
    assert dropped.commands.total() - declared.commands.total() <= 8


def test_headers_cost_no_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """They travel with calls that are made anyway; a queue whose jobs have none costs nothing for them."""
    worker = warm_worker(app, nothing, shards_count=1, batch_size=100)

    def push_and_visit(**fields: Any) -> Cost:
        def call() -> None:
            worker.push_many([{**job, **fields} for job in jobs()])
            visit(app, clock)

        return cost_of(call)

    before, headers = push_and_visit(), {"traceparent": "00-1-2-01"}
    # Clients learn at their first call that the shard uses headers by now, and the server has other scripts to load.
    push_and_visit(headers=headers)
    after = push_and_visit(headers=headers)

    assert (before.round_trips, before.scripts) == (after.round_trips, after.scripts)
    assert after.commands.total() - before.commands.total() <= 19


def test_expiry_costs_no_round_trip_and_others_nothing(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """Times come with claims, and what is over leaves with a settling; a queue without them asks what it asked."""
    workers = [warm_worker(app, nothing, name, shards_count=1, batch_size=100) for name in ("expiring", "other")]

    def push_and_visit(late: float = 0.0, number: int = 0, **fields: Any) -> Cost:
        def call() -> None:
            workers[number].push_many([{**job, **fields} for job in jobs()])
            clock.advance(late)
            app.core.drains.drainer.visit(app.core.drains.drainer.shards()[number], Budget(clock))

        return cost_of(call)

    before = push_and_visit()
    push_and_visit(expires_in=60)
    in_time = push_and_visit(expires_in=60)
    other = push_and_visit(number=1)
    over = push_and_visit(70.0, expires_in=60)

    assert before.commands == other.commands
    assert (before.round_trips, before.scripts) == (in_time.round_trips, in_time.scripts)
    assert in_time.commands.total() - before.commands.total() <= 8
    # A thousand outcomes have names, and no call has more than a hundred of them.
    assert before.round_trips + 9 == over.round_trips


def test_requests_cost_those_that_have_some_no_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """A queue without requests asks what it asked; one with a request looks within its calls, once a fresh id."""
    workers = [warm_worker(app, nothing, name, shards_count=1, batch_size=100) for name in ("requested", "other")]

    def push_and_visit(number: int = 0) -> Cost:
        def call() -> None:
            workers[number].push_many(jobs())
            app.core.drains.drainer.visit(app.core.drains.drainer.shards()[number], Budget(clock))

        return cost_of(call)

    before = push_and_visit()
    app.operate(workers[0]).pause_jobs(["paused"])
    push_and_visit()
    after, other = push_and_visit(), push_and_visit(1)

    assert before.commands == other.commands
    assert (before.round_trips, before.scripts) == (after.round_trips, after.scripts)
    assert after.commands.total() - before.commands.total() <= 1_050


@pytest.mark.parametrize("fails", [False, True])
def test_p8_marks_of_payloads_cost_no_call(app: Lowkiq, clock: ManualClock, cost_of: CostOf, *, fails: bool) -> None:
    """P8: nothing if ids end well; two reads and a write for each id that fails, within the call that there is."""

    def handle(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            if marks and len(payloads) > 1:
                batch.done(job_id, payload=0)
            if fails:
                batch.fail(job_id, "broken")

    marks = False
    worker = warm_worker(app, handle, shards_count=1, batch_size=100, retry_in=lambda _count: 3_600.0)

    def push_and_visit(start: int) -> Cost:
        worker.push_many({"id": id_, "payload": n} for id_ in range(start, start + 50) for n in range(3))
        return cost_of(lambda: visit(app, clock))

    push_and_visit(100)
    without = push_and_visit(200)
    marks = True
    marked = push_and_visit(300)

    assert (without.round_trips, without.scripts) == (marked.round_trips, marked.scripts)
    assert marked.commands.total() - without.commands.total() <= 150 * fails


def test_kept_runs_cost_no_call_and_others_nothing(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """They travel with settlings: a few commands inside of each. A queue that keeps none asks what it asked."""
    keeping = warm_worker(app, nothing, "keeping", shards_count=1, batch_size=10, keep_runs=1_000)
    other = warm_worker(app, nothing, "other", shards_count=1, batch_size=10)
    ref, other_ref = app.core.drains.drainer.shards()
    costs = []
    for worker, shard in ((keeping, ref), (other, other_ref)):
        worker.push_many(jobs())
        costs.append(cost_of(lambda shard=shard: app.core.drains.drainer.visit(shard, Budget(clock))))  # type: ignore[misc]  # bound at once

    with_runs, without = costs
    assert (with_runs.round_trips, with_runs.scripts) == (without.round_trips, without.scripts)
    assert with_runs.commands.total() - without.commands.total() <= 10
    stream_commands = {"xadd", "xlen", "xrange", "xdel", "hsetnx", "expire"}
    assert set() == stream_commands & {*without.commands}


def test_p8_an_idle_look_at_all_shards_is_one_round_trip(app: Lowkiq, cost_of: CostOf) -> None:
    """P8: a drain that finds nothing to do asks once, however many shards there are."""
    warm_worker(app, nothing, shards_count=100)

    cost = cost_of(app.drain)

    assert (1, 5) == (cost.round_trips, cost.scripts)
    assert cost.commands.total() <= 1 + 6 * 100


def test_an_idle_minute_on_lambda_is_two_round_trips(app: Lowkiq, cost_of: CostOf) -> None:
    """The tick tells numbers and the drain looks for work: each asks once, however many queues and shards there are."""
    for number in range(4):
        warm_worker(app, nothing, queue_name=f"queue-{number}", shards_count=25)
    settings = Settings()

    def minute() -> None:
        ticked(app, settings, LocalContext("drain", 60.0), keep=5)
        app.drain()

    minute()
    cost = cost_of(minute)

    assert 2 == cost.round_trips
    assert cost.commands.total() <= 22 + 8 * 100


def test_a_drain_looks_at_all_shards_before_and_after(app: Lowkiq, cost_of: CostOf) -> None:
    """Draining five shards costs two calls for each visit, and two looks at all of them together."""
    worker = warm_worker(app, nothing, batch_size=100)
    worker.push_many(jobs())

    cost = cost_of(app.drain)

    assert 1 + 5 * 2 + 1 == cost.round_trips


def test_p8_shards_that_are_visited_at_once_cost_no_call_more(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """P8: draining five shards at the same time costs what it does one after the other; where one is due, that one."""
    worker = warm_worker(app, nothing, batch_size=100)
    calls = []
    for more in (jobs(), jobs(1)):
        worker.push_many(more)
        drain = Loop(app.core.drains.drainer, app.core.drains.drainer.shards, at_once=5)
        # Not round trips: connections are made as they are needed.
        calls.append(cost_of(partial(drain.run, Budget(clock))).scripts)

    assert [1 + 5 * 2 + 1, 1 + 2 + 1] == calls


def test_a_visit_to_an_empty_shard_is_one_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """Nothing is written where there is nothing to do."""
    warm_worker(app, nothing, shards_count=1)

    cost = cost_of(lambda: visit(app, clock))

    assert (1, 1) == (cost.round_trips, cost.scripts)
    assert cost.commands.total() <= 8


def test_a_push_of_many_jobs_is_one_round_trip_and_one_notification(app: Lowkiq, cost_of: CostOf) -> None:
    """All shards are written to in one round trip, each by one call, and one notification names all of them."""
    worker = warm_worker(app, nothing)

    cost = cost_of(lambda: worker.push_many(jobs()))

    assert (2, 5, 1) == (cost.round_trips, cost.scripts, cost.commands["publish"])
    assert cost.commands.total() <= 51


def test_a_push_behind_others_notifies_nobody(app: Lowkiq, cost_of: CostOf) -> None:
    """Where work waits already, nobody is told of more."""
    worker = warm_worker(app, nothing)
    worker.push_many(jobs())

    cost = cost_of(lambda: worker.push_many(jobs(JOBS, start=JOBS)))

    assert (1, 5, 0) == (cost.round_trips, cost.scripts, cost.commands["publish"])


def test_a_single_push_is_one_call_and_a_notification(app: Lowkiq, cost_of: CostOf) -> None:
    """A push of one job is one call of a script, which publishes the notification where the shard had nothing to do."""
    worker = warm_worker(app, nothing, shards_count=1)

    first = cost_of(lambda: worker.push_many(jobs(1)))
    second = cost_of(lambda: worker.push_many(jobs(1, start=1)))

    assert (1, 1, 1) == (first.round_trips, first.scripts, first.commands["publish"])
    assert (1, 1, 0) == (second.round_trips, second.scripts, second.commands["publish"])
    assert second.commands.total() <= 10


@pytest.mark.parametrize(
    ("options", "more"), [({"unless": "waiting"}, 0), ({"unless": "busy"}, 1), ({"on_conflict": "replace"}, 0)]
)
def test_uniqueness_costs_one_command_of_a_push_and_others_nothing(
    app: Lowkiq, cost_of: CostOf, options: dict[str, str], more: int
) -> None:
    """In the call that there is anyway, for a thousand jobs as for one; a push without it asks what it asked."""
    worker = warm_worker(app, nothing, shards_count=1)

    def push(**fields: str) -> Cost:
        cost = cost_of(lambda: worker.push_many([{**job, **fields} for job in jobs()]))
        app.drain()
        return cost

    push(**options)
    plain, unique, after = push(), push(**options), push()

    assert plain.commands == after.commands
    assert (plain.round_trips, plain.scripts) == (unique.round_trips, unique.scripts)
    assert +Counter(hmget=more) == unique.commands - plain.commands


def test_a_push_that_wakes_costs_one_call_more_and_later_ones_nothing(app: Lowkiq, cost_of: CostOf) -> None:
    """With a notification the shard is asked whether a drain is to be started; behind what waits nobody asks."""
    woken: list[tuple[str, int]] = []
    app.core.configure(wake_function=lambda queue_name, shard: woken.append((queue_name, shard)))
    worker = warm_worker(app, nothing, shards_count=1)
    woken.clear()

    first = cost_of(lambda: worker.push_many(jobs(1)))
    second = cost_of(lambda: worker.push_many(jobs(1, start=1)))

    assert [("queue", 0)] == woken
    assert (2, 2, 1) == (first.round_trips, first.scripts, first.commands["publish"])
    assert (1, 1, 0) == (second.round_trips, second.scripts, second.commands["publish"])


def _commands(admin: redis.Redis) -> Counter[str]:
    stats: dict[str, Any] = admin.info("commandstats")
    counts = Counter({name.removeprefix("cmdstat_"): int(stat["calls"]) for name, stat in stats.items()})
    del counts["config|resetstat"]
    return counts


def test_an_idle_tick_of_schedules_is_one_round_trip(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """All shards of all queues are asked together, whether they have entries or not; nothing is written."""
    worker = warm_worker(app, nothing, shards_count=100)
    app.every(3_600, worker, id="poll")
    app.schedules.tick()
    clock.advance(1.0)

    cost = cost_of(app.schedules.tick)

    assert (1, 100) == (cost.round_trips, cost.scripts)
    assert 0 == cost.commands["hset"]
    assert cost.commands.total() <= 1 + 3 * 100 + 3


def test_a_firing_is_one_round_trip_more(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """However many entries are due."""
    worker = warm_worker(app, nothing, shards_count=10)
    for number in range(100):
        app.every(3_600, worker, id=number)
    for _ in range(2):
        app.schedules.tick()
        clock.advance(3_600.0)

    cost = cost_of(app.schedules.tick)

    assert (2, 10 + 100) == (cost.round_trips, cost.scripts)


def test_entries_cost_a_push_and_a_drain_nothing(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """The same commands, with the same words, as those of a queue without entries."""
    worker = warm_worker(app, nothing, shards_count=1)

    def push_and_drain() -> None:
        worker.push_many(jobs(10))
        visit(app, clock)

    before = cost_of(push_and_drain)
    app.every(3_600, worker, id="poll")
    app.schedules.tick()
    after = cost_of(push_and_drain)

    assert (before.round_trips, before.commands) == (after.round_trips, after.commands)
    shard, with_entries = (
        app.core.queues.agreed(worker).shards[0],
        with_timetable(app.core.queues.agreed(worker).shards)[0],
    )
    for name in ("enqueue", "acquire", "settle"):
        plain, with_key = (evalsha(script(name, one.features), one, []) for one in (shard, with_entries))
        assert plain == with_key


HELD = (
    "due jobs box seen since retry errors trouble suspects groups flight morgue morgue_payloads morgue_errors "
    "meta lease failures texts journal"
)
KEYS = {
    "enqueue": "due jobs box seen retry trouble flight meta pushes_even pushes_odd",
    "acquire": HELD,
    "settle": HELD,
}
"""What a queue without any feature passes to the scripts that each job pays for, whatever else there is."""


def test_tracking_costs_no_call_more(app: Lowkiq, clock: ManualClock, cost_of: CostOf, own_server: Server) -> None:
    """A-30, P8: a thousand items cost a few commands for each call; without any the queue costs what it did."""
    worker = warm_worker(app, nothing, shards_count=1, batch_size=100)
    task = TaskOfTests(worker.worker, own_server.admin)

    def costs(jobs: list[dict[str, Any]]) -> list[Cost]:
        return [cost_of(partial(worker.push_many, jobs)), cost_of(partial(visit, app, clock))]

    plain = costs(jobs())
    # When the last item ends somebody looks whether its task is complete.
    task.push_many(("the last", "", ""), delay=3_600)
    # The first time its scripts are loaded, and the process learns that there are items.
    _, tracked = [costs([{**job, "item": task.ref("")} for job in jobs()]) for _ in range(2)]

    assert [(1, 1), (2, 2)] == [(cost.round_trips, cost.scripts) for cost in tracked]
    assert [(1, 1), (2, 2)] == [(cost.round_trips, cost.scripts) for cost in plain]
    more = [cost.commands.total() - untracked.commands.total() for cost, untracked in zip(tracked, plain, strict=True)]
    assert more[0] <= 8
    assert more[1] <= 20


def test_limits_cost_two_calls_a_visit_and_others_nothing(
    app: Lowkiq, clock: ManualClock, cost_of: CostOf, own_server: Server
) -> None:
    """P8: a visit to a limited queue enters and leaves; all else is sent word by word as for a queue without limits."""
    sent, costs = [], []
    for limits in (None, 3):
        worker = app.worker(queue_name=f"at-most-{limits}", shards_count=1, max_running=limits)(nothing)
        worker.push_many(jobs(10))
        shard = app.core.queues.agreed(worker).shards[0]
        app.drain()
        with Monitor(own_server) as monitor:
            worker.push_many(jobs(10))
            cost = partial(app.core.drains.drainer.visit, shard, Budget(clock))
            costs.append(cost_of(cost))
            sent.append([_without_chance(asked, worker.worker) for asked in monitor.heard() if not asked.by_script])
    plain, limited = sent

    scripts = {script(name).sha.encode(): name for name in KEYS}
    by_name = [(scripts[words[1]], words) for words in plain if len(words) > 1 and words[1] in scripts]
    assert [*KEYS] == [name for name, _ in by_name]
    for name, words in by_name:
        keys = [f"lowkiq:{{QUEUE:1:0}}:{key}".encode() for key in KEYS[name].split()]
        assert [str(len(keys)).encode(), *keys] == [*words[2 : 3 + len(keys)]]
    admit = script("admit", (LIMITS,)).sha.encode()
    assert plain == [words for words in limited if words[1:2] != (admit,)]
    assert (costs[0].round_trips + 2, costs[0].scripts + 2) == (costs[1].round_trips, costs[1].scripts)
    assert costs[1].commands.total() - costs[0].commands.total() <= 20


def test_a_queue_that_waits_asks_each_queue_before_it_once_a_visit(
    app: Lowkiq, clock: ManualClock, cost_of: CostOf
) -> None:
    """P8: beside the two calls of a permit; limits that are set for a worker cost its next visits those two."""
    costs = []
    for name, waits_for in (("first", ()), ("second", ()), ("third", ("first", "second"))):
        app.worker(queue_name=name, shards_count=1, waits_for=waits_for)(nothing)
    app.worker(queue_name="set", shards_count=1)(nothing)
    app.operate(app.workers[3]).limits.set(max_running=1)
    for worker in app.workers[2:]:
        visit = partial(app.core.drains.drainer.visit, app.core.queues.agreed(worker).shards[0], Budget(clock))
        worker.push_many(jobs(10))
        visit()
        worker.push_many(jobs(10))
        costs.append(cost_of(visit).scripts)

    assert [2 + 2 + 2, 2 + 2] == costs


def _without_chance(asked: Asked, worker: type[Worker]) -> tuple[bytes, ...]:
    """Its words, the same each time: without the name of the queue, tokens and nonces."""
    words = [word.replace(worker.queue_name.encode(), b"QUEUE") for word in asked.words]
    if asked.name == "evalsha":
        # Behind its keys, the version, the time and whether that was measured.
        at = int(words[2]) + 6
        words[at : at + 1] = [b"CHANCE"]
    return tuple(words)


def test_a_settling_tells_of_its_calls_without_a_command_more(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """Payloads, calls and times are one read and one write, whatever they were: batches of 1, a settling each."""
    worker = warm_worker(app, lambda _batch: clock.advance(1.0), shards_count=1)
    worker.push_many(jobs(100))
    before = app.operate.metrics()["queue"]

    cost = cost_of(lambda: visit(app, clock))
    after = app.operate.metrics()["queue"]

    assert (1 + 100, 1 + 100) == (cost.round_trips, cost.scripts)
    assert (100, 100.0) == (after.calls - before.calls, round(after.busy - before.busy, 3))
    assert 100.0 <= round(after.held - before.held, 3)


def test_watching_queues_is_six_round_trips_a_minute(app: Lowkiq, clock: ManualClock, cost_of: CostOf) -> None:
    """However many queues there are; and an app that is on time is not watched."""
    for number in range(5):
        warm_worker(app, nothing, f"queue-{number}", shards_count=2)
    duty = WatchDuty(app.core)
    duty.run(lambda: 60.0)
    clock.advance(60.0)

    cost = cost_of(lambda: duty.run(lambda: 60.0))

    assert cost.round_trips <= 6
    assert not app.core.housekeeping.watches


def test_an_app_is_watched_from_its_first_late_id_on(app: Lowkiq, clock: ManualClock) -> None:
    """The process that drains it has seen it wait."""
    worker = warm_worker(app, nothing, shards_count=1)
    worker.push_many(jobs(3))
    clock.advance(119.0)
    visit(app, clock)
    on_time = app.core.housekeeping.watches
    worker.push_many(jobs(3))
    clock.advance(121.0)
    visit(app, clock)

    assert (False, True) == (on_time, app.core.housekeeping.watches)
