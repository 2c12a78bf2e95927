"""Jobs with a cursor: when it is saved, why a run ends, and where the next one begins."""

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind
from tests.kit.workers import declare, jobs_of


def slowly(clock: ManualClock, seconds: float = 1.0) -> Callable[[BatchJob, int], None]:
    """Each item takes that long."""
    return lambda _job, _item: clock.advance(seconds)


def calls_of(app: Lowkiq) -> list[str]:
    """The names of the scripts that its drains will call."""
    backend, names = app.core.drains.drainer._backend, list[str]()
    run = backend.run

    def noting(name: str, *args: Any, **options: Any) -> Any:
        names.append(name)
        return run(name, *args, **options)

    backend.run = noting  # type: ignore[method-assign]  # that is the point
    return names


def test_a_job_within_the_settle_interval_is_never_saved(app: Lowkiq, queue_name: str) -> None:
    """It costs what any job costs: acquire and settle."""
    items = Items(1_000)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    calls = calls_of(app)

    assert {"done": 1} == app.drain()

    assert ["acquire", "settle"] == [name for name in calls if name not in ("probe", "clear")]
    assert (1_000, ["a"], {}) == (len(items.done), items.ended, left_behind(app, worker))


@pytest.mark.parametrize(("interval", "saves"), [(0.0, 10), (1.0, 10), (2.5, 3), (60.0, 2)])
def test_a_cursor_is_saved_when_the_interval_has_passed(
    make_app: MakeApp, clock: ManualClock, queue_name: str, interval: float, saves: int
) -> None:
    """J-44: at a yield, after `settle_interval`, or after a turn, so that a run learns whether others wait."""
    app = make_app(settle_interval=interval, lease_ttl=200.0)
    worker = declare_items(app, queue_name, Items(10, slowly(clock)))
    worker.push_many(jobs_of("a"))
    calls = calls_of(app)

    app.drain()

    assert saves == calls.count("checkpoint")


def test_saves_take_a_twentieth_of_the_time_at_most(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """The slower the last save was, the later the next one comes."""
    app = make_app(settle_interval=0.5)
    worker = declare_items(app, queue_name, Items(100, slowly(clock, 0.5)))
    worker.push_many(jobs_of("a"))
    backend, saved_at = app.core.drains.drainer._backend, list[float]()
    run = backend.run

    def taking_time(name: str, *args: Any, **options: Any) -> Any:
        if name == "checkpoint":
            saved_at.append(clock.monotonic())
            clock.advance(0.5)
        return run(name, *args, **options)

    backend.run = taking_time  # type: ignore[method-assign]  # that is the point
    app.drain()

    assert {10.5} == {later - sooner for sooner, later in pairwise(saved_at)}


def test_a_job_that_runs_out_of_time_goes_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-4, J-10, B-10: the last item is the last that is predicted to fit, and the next drain begins behind it."""
    items = Items(10, slowly(clock, 2.0))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a", payload="v"))

    counts = [dict(app.drain(seconds=seconds)) for seconds in (7, 9, 60)]

    assert [{"later": 1, "checkpointed": 1}, {"later": 1, "checkpointed": 1}, {"done": 1}] == counts
    assert ([None, 3, 7], list(range(10)), ["a"]) == (items.cursors, items.of("a"), items.ended)
    assert [["v"]] * 3 == [run.payloads for run in items.runs]
    assert (3, {}) == (items.closed, left_behind(app, worker))


def test_p5_items_are_what_has_to_fit_and_not_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: a run of 50 s of items of 1 s says nothing against a start with 10 s left."""
    items = Items(60, slowly(clock))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    app.drain(seconds=50.5)
    app.drain(seconds=9.5)

    assert [None, 50] == items.cursors
    assert 59 == len(items.done)


def test_one_slow_item_keeps_few_runs_short(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: it keeps a third of a run unused, and is forgotten within minutes, whatever the length of a run."""
    items = Items(1_000, lambda _job, item: clock.advance(45.0 if item == 2 else 1.0))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    in_run = []
    for _ in range(9):
        before = len(items.done)
        app.drain(seconds=50.0)
        in_run.append(len(items.done) - before)

    assert in_run[0] == 3
    assert 33 <= in_run[1] < 36
    assert in_run[1:] == sorted(in_run[1:])
    assert in_run[-1] > 45


def test_a_slow_start_has_to_fit_too(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P5: from the start of a run to its first yield is an item like any other."""
    items = Items(3, lambda _job, item: clock.advance(1.0 if item else 8.0))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    app.drain(seconds=16)

    assert [0] == items.of("a")


@pytest.mark.parametrize(("told", "reason"), [("stopping", "stopping"), ("paused", "paused"), ("quiet", "stopping")])
def test_a_job_stops_where_it_is_told_to(
    make_app: MakeApp, clock: ManualClock, queue_name: str, told: str, reason: StopReason
) -> None:
    """J-18: a signal, a pause and an operator's wish are told by the time of the next save."""
    app, stopping = make_app(), list[bool]()
    acts: dict[str, Callable[[], object]] = {
        "stopping": lambda: stopping.append(True),
        "paused": lambda: app.operate(worker).pause(),
        "quiet": lambda: app.operate(worker).in_flight.quiet_holder(0, app.operate(worker).shards()[0].token),
    }

    def before(_job: BatchJob, item: int) -> None:
        clock.advance(1.0)
        if item == 2:
            acts[told]()

    items = Items(10, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    (shard,) = app.core.queues.agreed(worker).shards

    result = app.core.drains.drainer.visit(shard, Budget(clock, 60.0, stopping=lambda: bool(stopping)))

    assert (reason, {"later": 1, "checkpointed": 1}) == (result.reason, dict(result.counts))
    assert [0, 1, 2] == items.of("a")
    app.operate(worker).resume()
    app.drain()
    assert ([None, 3], list(range(10))) == (items.cursors, items.of("a"))


def test_without_others_a_turn_never_ends(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nobody waits, so nobody is made way for."""
    items = Items(60, slowly(clock))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    worker.push_many(jobs_of("b", delay=3_600))

    app.drain()

    assert [("a", None)] == [(run.id, run.cursor) for run in items.runs]


def test_jobs_that_ran_before_it_are_acknowledged_after_a_turn(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P2: else a crash an hour later would repeat them, as their outcomes wait for the end of the claim."""
    app, done = make_app(lease_ttl=100.0), list[int]()

    def before(job: BatchJob, _item: int) -> None:
        if job.id == "zlong":
            clock.advance(1.0)
            done.append(counters(app, worker).get("done", 0))

    items = Items(30, before)
    worker = declare_items(app, queue_name, items)
    # So that a claim is known to be short, and takes all of them.
    worker.push_many(jobs_of(["first"]))
    app.drain()
    worker.push_many(jobs_of(["a", "b", "c", "zlong"]))

    app.drain()

    assert [1] * 6 + [4] * 24 == done
    assert ["a", "b", "c", "zlong", "zlong"] == [run.id for run in items.runs[1:]]


@pytest.mark.parametrize("total", [2**64, -1, True, 1.5])
def test_a_number_of_items_that_cannot_be_kept_fails_the_job(
    app: Lowkiq, clock: ManualClock, queue_name: str, total: Any
) -> None:
    """P7: it is the job's own failure, and ends no visit."""

    def before(job: BatchJob, item: int) -> None:
        clock.advance(1.0)
        if item == 1:
            job.expect(total)

    worker = declare_items(app, queue_name, Items(3, before))
    worker.push_many(jobs_of("a"))

    assert 1 == app.drain()["retried"]

    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert job.error is not None
    assert "expect: the number of items must be" in job.error


def test_a_long_job_is_no_lag(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It comes further with each save; a scheduler that goes by the lag starves no other shard for it."""
    lags = list[float]()

    def before(_job: BatchJob, _item: int) -> None:
        clock.advance(1.0)
        lags.append(app.operate.metrics()[queue_name].lag)

    worker = declare_items(app, queue_name, Items(30, before))
    worker.push_many(jobs_of("a"))

    app.drain()

    assert max(lags) == pytest.approx(1.0, abs=0.1)


def test_two_long_jobs_take_turns_and_a_short_one_waits_one_turn(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """B-11: what is due behind them comes next after a turn, however long they are."""
    items = Items(12, slowly(clock))

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        if job.id == "short":
            short_at.append(clock.monotonic() - began)
            return
        yield from items.perform_job(job)
        if len(items.runs) == 1 and job.cursor is None:
            raise AssertionError("it never ended its turn")

    def before(job: BatchJob, item: int) -> None:
        clock.advance(1.0)
        if (job.id, item) == ("long", 2):
            worker.push_many(jobs_of(["other", "short"]))

    items.before, short_at, began = before, list[float](), clock.monotonic()
    worker = declare_items(app, queue_name, items, perform_job=perform_job)
    worker.push_many(jobs_of(["long"]))

    app.drain()

    turns = [(run.id, run.cursor) for run in items.runs]
    assert [("long", None), ("other", None), ("long", 6), ("other", 6)] == turns[:4]
    assert {"long", "other"} == {*items.ended}
    assert list(range(12)) == items.of("long") == items.of("other")
    assert [12.0] == short_at


def test_a_job_makes_way_for_another_shard(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The turn of a visit is over, too."""
    items = Items(10, slowly(clock))
    worker = declare_items(app, queue_name, items, turn=3)
    worker.push_many(jobs_of("a"))
    (shard,) = app.core.queues.agreed(worker).shards

    result = app.core.drains.drainer.visit(shard, Budget(clock, 60.0, turn_over=lambda: True))

    # The turn is counted from the first yield: to come back to where the job was may take long.
    assert ("turn over", [0, 1, 2, 3]) == (result.reason, items.of("a"))


def test_others_of_the_claim_are_made_way_for(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Where several jobs were claimed together, the others of them wait."""
    app = make_app(settle_interval=20.0, lease_ttl=60.0)
    items = Items(8, slowly(clock))
    worker = declare_items(app, queue_name, items, turn=2)
    worker.push_many(jobs_of("a"))
    app.drain()
    worker.push_many(jobs_of("bc"))
    app.drain()

    assert [("b", None), ("c", None)] == [(run.id, run.cursor) for run in items.runs[1:3]]
    assert list(range(8)) == items.of("b") == items.of("c")


def test_j37_a_job_may_yield_no_cursor(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-37, B-9: bare yields are places to stop; what is left is in a store of the user's, and retries are as ever."""
    left, runs = list(range(9)), list[Any]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[None]:
        runs.append((job.id, job.cursor, len(left)))
        while left:
            clock.advance(1.0)
            left.pop()
            yield

    worker = declare(app, queue_name, lambda _batch: None, perform_job=perform_job, turn=3)
    worker.push_many(jobs_of("a"))

    counts = app.drain(seconds=2.5)

    assert {"later": 1} == {outcome: n for outcome, n in counts.items() if n}
    assert 7 == len(left)
    app.drain()
    assert (("a", None, 9), ("a", None, 7), {}) == (*runs[:2], left_behind(app, worker))


def test_a_turn_without_a_cursor_is_no_busy_loop(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-37: with `turn = 0` a bare yield makes way for others, and the next run begins a second after this one."""
    began = list[float]()

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[None]:
        began.append(clock.monotonic())
        clock.advance(0.25)
        if len(began) < 4:
            yield

    worker = declare(app, queue_name, lambda _batch: None, perform_job=perform_job, turn=0)
    worker.push_many(jobs_of("a"))

    assert {"later": 1} == app.drain()
    clock.advance(0.5)
    assert {} == app.drain()
    for outcome in ("later", "later", "done"):
        clock.advance(0.75)
        assert {outcome: 1} == app.drain()
    assert [1.5, 1.0, 1.0] == [later - earlier for earlier, later in pairwise(began)]


def test_progress_is_counted_over_all_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-21: items, interruptions, failures and seconds; and `due_at` stays that of the first run."""
    seen = list[tuple[JobProgress, float]]()

    def before(job: BatchJob, item: int) -> None:
        job.expect(6)
        clock.advance(1.0)
        seen.append((job.progress, job.due_at))
        if item == 3 and job.progress.failures == 0:
            raise OSError("disk full")

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    pushed_at = clock.time()
    worker.push_many(jobs_of("a"))
    clock.advance(5.0)
    began = clock.time()

    app.drain(seconds=2.5)
    app.drain()
    clock.advance(60)
    app.drain()

    last, due_at = seen[-1]
    assert (5, 1, 1, 6) == (last.items, last.interruptions, last.failures, last.total)
    assert 6.0 == pytest.approx(last.seconds)
    assert [began, pushed_at] == pytest.approx([last.started_at, due_at])
    assert ("out of time", ["a"]) == (last.reason, items.ended)


def test_j41_a_long_item_is_warned_of_once(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """J-41: one that takes longer than `shutdown_timeout` keeps a process from stopping well."""
    worker = declare_items(app, queue_name, Items(3, slowly(clock, 26.0)))
    worker.push_many(jobs_of("a"))

    with caplog.at_level(logging.WARNING):
        app.drain()

    (warned,) = [record.message for record in caplog.records if "an item took" in record.message]
    assert warned.startswith(f"{queue_name}: an item took 26.0 s, longer than shutdown_timeout")


def test_one_payload_at_a_time_is_a_job_of_its_own(app: Lowkiq, queue_name: str) -> None:
    """B-14: with `payloads_at_once = 1` a cursor belongs to one payload, and they run one after the other."""
    items = Items(3)
    worker = declare_items(app, queue_name, items, payloads_at_once=1)
    worker.push_many([{"id": "a", "payload": number, "score": number} for number in (2, 1, 3)])

    app.drain()

    assert [("a", None, [1]), ("a", None, [2]), ("a", None, [3])] == [tuple(run) for run in items.runs]
    assert [0, 1, 2] * 3 == items.of("a")
