"""A drain that leaves due work for want of time starts its successor, and never runs away."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Config, Lowkiq, Worker
from lowkiq_lambda.aws import continuation
from lowkiq_lambda.aws.continuation import continue_if_due, in_time
from lowkiq_lambda.aws.environment import Environment
from lowkiq_lambda.aws.events import BadEvent, selected
from lowkiq_lambda.core import Core
from lowkiq_lambda.engine.budget import Budget, StopReason
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.providers.aws.invoker import InvocationRefused
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.waking import wake
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of, shard_of

IDS = "abcdefghij"


class Function:
    """The drain function of an app, as often in a row as its settings allow; jobs take a second each."""

    def __init__(self, app: Lowkiq, clock: ManualClock) -> None:
        self.app = app
        self.clock = clock
        self.invocations = Invocations()
        self.settings = Settings(idle="start")
        self.notes = Notes(lambda _batch: clock.advance(1.0))

    def drain(self, event: Mapping[str, Any], seconds: float = 3.0) -> Loop:
        """Drain what the event selects, for so long."""
        drainer = self.app.core.drains.drainer
        return Loop(drainer, lambda: selected(event, drainer.shards())).run(Budget(self.clock, seconds))

    def goes_on(self, event: Mapping[str, Any], drain: Loop) -> bool:
        """What the function does at its end."""
        return continue_if_due(Environment(self.settings, self.app), event, drain, "shop-drain", self.invocations)

    def run(self, event: Mapping[str, Any], seconds: float = 3.0) -> bool:
        """One invocation; whether it started another."""
        return self.goes_on(event, self.drain(event, seconds))


@pytest.fixture
def function(make_app: MakeApp, clock: ManualClock) -> Function:
    """The drain function of an app."""
    return Function(make_app(), clock)


def test_a_drain_that_leaves_due_work_starts_its_successor(function: Function, queue_name: str) -> None:
    """For the same target, as the next generation."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    event = {"queue": queue_name, "shard": 0}

    assert function.run(event)

    assert [("shop-drain", {**event, "generation": 1})] == function.invocations.accepted
    assert 0 < len(function.notes.ids) < len(IDS)


def test_a_job_that_moved_its_cursor_is_gone_on_with(function: Function, queue_name: str) -> None:
    """E-33: the next drain has less to do, though no job was done."""
    items = Items(9, lambda _job, _item: function.clock.advance(1.0))
    declare_items(function.app, queue_name, items).push_many(jobs_of("a"))
    event = {"queue": queue_name, "shard": 0}

    assert function.run(event)
    assert function.run(function.invocations.accepted[-1][1])
    assert not function.run(function.invocations.accepted[-1][1], 60.0)

    assert ([None, 2, 4], ["a"]) == (items.cursors, items.ended)


def test_a_job_that_stands_still_is_not_gone_on_with(function: Function, queue_name: str) -> None:
    """E-33: else it could go on like this for ever."""

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[None]:
        while True:
            function.clock.advance(1.0)
            yield

    declare(function.app, queue_name, function.notes, perform_job=perform_job).push_many(jobs_of("a"))

    assert not function.run({"queue": queue_name, "shard": 0})


@pytest.mark.parametrize(
    ("event", "target"),
    [({"shard": 0}, {"shard": 0}), ({}, {}), ({"source": "aws.events", "detail": {"shard": 1}}, {})],
)
def test_the_successor_gets_what_selects_its_shards_and_no_more(
    function: Function, queue_name: str, event: dict[str, Any], target: dict[str, Any]
) -> None:
    """An event from elsewhere means all shards, and so does its successor's."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))

    assert function.run(event)

    assert [{**target, "generation": 1}] == function.invocations.events


def test_several_shards_have_one_successor_together(function: Function, queue_name: str) -> None:
    """The event selects them all, so one drain after the other does, not one for each shard."""
    worker = declare(function.app, queue_name, function.notes, shards_count=5)
    worker.push_many(jobs_of([str(number) for number in range(50)]))

    assert function.run({"queue": queue_name})

    assert [{"queue": queue_name, "generation": 1}] == function.invocations.events


def test_generations_follow_one_another_until_the_work_is_done(function: Function, queue_name: str) -> None:
    """E-32: a backlog larger than one invocation is worked off in a row."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    event: dict[str, Any] = {"queue": queue_name, "shard": 0}

    while function.run(event):
        event = function.invocations.events[-1]

    assert [[job_id] for job_id in IDS] == function.notes.ids
    assert list(range(1, event["generation"] + 1)) == [one["generation"] for one in function.invocations.events]


def test_a_backlog_behind_a_handler_that_exits_has_a_successor(function: Function, queue_name: str) -> None:
    """The time was over before the backlog was: that one of its handlers exited changes nothing about that."""

    def perform(batch: Batch) -> None:
        function.clock.advance(0.3)
        if "x" in batch:
            raise SystemExit(3)

    def last_long(_batch: Batch) -> None:
        function.clock.advance(3.0)

    worker = declare(function.app, f"{queue_name}-long", perform)
    worker.push_many(jobs_of("x"))
    function.clock.advance(60)
    worker.push_many(jobs_of(IDS))
    declare(function.app, queue_name, last_long).push_many(jobs_of("m"))

    drain = function.drain({}, seconds=3.0)

    shard = shard_of(function.app, worker, "a")
    assert "out of time" == drain.reasons[shard]
    assert function.goes_on({}, drain)
    assert [] == wake(function.app.core.backend, [shard], 50.0, retry_for=0.0).shards


@pytest.mark.parametrize("error", [TimeoutError("no answer"), ValueError("no right")])
def test_what_a_start_raises_is_not_taken_for_want_of_time(error: Exception) -> None:
    """A TimeoutError of the start itself too is raised as it is, and not told as one of the wait for it."""

    def start() -> bool:
        raise error

    with pytest.raises(type(error), match=str(error)):
        in_time(30.0, start)


def test_no_more_generations_than_the_bound(
    function: Function, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that never ends is left to the next schedule: a runaway costs so many invocations and no more."""
    monkeypatch.setattr(continuation, "GENERATIONS", 5)
    worker = declare(function.app, queue_name, function.notes)

    def push_more(_batch: Batch) -> None:
        function.clock.advance(1.0)
        worker.push_many(jobs_of(IDS, payload=function.clock.time()))

    function.notes.then = push_more
    worker.push_many(jobs_of(IDS))
    event: dict[str, Any] = {"queue": queue_name, "shard": 0}
    while function.run(event):
        event = function.invocations.events[-1]

    assert 5 == event["generation"] == len(function.invocations.accepted)


def test_continuation_is_off_by_default(function: Function, queue_name: str) -> None:
    """Nothing in a drain calls an AWS API unless it is asked for."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    function.settings = Settings()

    assert not function.run({"queue": queue_name})
    assert [] == function.invocations.events


def test_nothing_is_started_where_nothing_is_due(function: Function, queue_name: str) -> None:
    """Neither when all is done, nor for what is due later."""
    worker = declare(function.app, queue_name, function.notes)
    worker.push_many(jobs_of("a"))
    worker.push_many(jobs_of("b", delay=600))

    assert not function.run({"queue": queue_name}, seconds=30.0)
    assert [] == function.invocations.events


def test_a_drain_that_got_nothing_done_does_not_go_on(function: Function, queue_name: str) -> None:
    """What it gave back as it was would come to the next one in the same way."""

    def fail_slowly(_batch: Batch) -> None:
        function.clock.advance(10.0)
        raise ValueError("the database is down")

    declare(function.app, queue_name, fail_slowly, batch_size=5).push_many(jobs_of(IDS))
    drain = function.drain({"queue": queue_name})

    assert "out of time" == drain.reason
    assert {"suspected"} == drain.counts.keys()
    assert not function.goes_on({"queue": queue_name}, drain)


def test_a_drain_without_time_does_not_go_on(function: Function, queue_name: str) -> None:
    """An invocation that comes too late for anything starts no other."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))

    assert not function.run({"queue": queue_name}, seconds=0.0)
    assert [] == function.notes.ids


def test_a_held_shard_has_no_successor(function: Function, make_app: MakeApp, queue_name: str) -> None:
    """E-23: a duplicate that finds the shard held starts nothing; nor does a drain whom somebody has followed."""
    results: list[tuple[str, bool]] = []

    def compete(_batch: Batch) -> None:
        drain = function.drain({"queue": queue_name})
        results.append((drain.reason, function.goes_on({"queue": queue_name}, drain)))
        drain = Loop(other.core.drains.drainer, other.core.drains.drainer.shards)
        drain.counts["done"] = 1
        drain.run(Budget(function.clock, 0.0))
        results.append((drain.reason, function.goes_on({"queue": queue_name}, drain)))

    other = make_app()
    declare(function.app, queue_name, function.notes).push_many(jobs_of("a"))
    declare(other, queue_name, compete)
    other.drain()

    assert [("held", False), ("out of time", False)] == results


def test_a_paused_shard_has_no_successor(function: Function, server: Server, queue_name: str) -> None:
    """Somebody who pauses a queue while it drains does not want it drained."""
    worker = declare(function.app, queue_name, function.notes)
    worker.push_many(jobs_of(IDS))
    drain = function.drain({"queue": queue_name})
    until = function.clock.time() + 60
    server.admin.hset(shard_of(function.app, worker, "a").key("meta"), "paused_until", until)

    assert not function.goes_on({"queue": queue_name}, drain)


@pytest.mark.parametrize("reason", ["held", "paused", "lease lost", "failed", "stopping", "empty"])
def test_only_want_of_time_is_a_reason(function: Function, queue_name: str, reason: StopReason) -> None:
    """A shard that was left for another reason would be left for it again."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    drain = function.drain({"queue": queue_name})
    drain.reasons = dict.fromkeys(drain.reasons, reason)

    assert not function.goes_on({"queue": queue_name}, drain)


def test_a_shard_has_one_start_whoever_asks_for_it(function: Function, queue_name: str) -> None:
    """E-32: where a tick or a push has started a drain already, continuation starts no second one."""
    worker = declare(function.app, queue_name, function.notes)
    worker.push_many(jobs_of(IDS))
    drain = function.drain({"queue": queue_name})
    shard = shard_of(function.app, worker, "a")
    assert [shard] == wake(function.app.core.backend, [shard], 50.0, retry_for=0.0).shards

    assert not function.goes_on({"queue": queue_name}, drain)
    assert [] == function.invocations.events


def test_a_refused_invocation_is_told_and_leaves_the_shard_free(
    function: Function, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was drained stands; the next schedule, push or tick goes on."""
    worker = declare(function.app, queue_name, function.notes)
    worker.push_many(jobs_of(IDS))
    function.invocations.refusing = InvocationRefused("shop-drain was not started: no right.")

    assert not function.run({"queue": queue_name})

    assert ["the drain does not go on: shop-drain was not started: no right."] == caplog.messages
    shard = shard_of(function.app, worker, "a")
    assert [shard] == wake(function.app.core.backend, [shard], 50.0, retry_for=0.0).shards


def test_redis_out_of_reach_at_the_end_is_only_told(
    function: Function, queue_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be noted is not started."""
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    drain = function.drain({"queue": queue_name})
    gone = Lowkiq(Config(redis_url="redis://127.0.0.1:1"), clock=function.clock)
    monkeypatch.setattr(Core, "backend", gone.core.backend)

    assert not function.goes_on({"queue": queue_name}, drain)
    assert caplog.messages[0].startswith("the drain does not go on: Nothing answers at 127.0.0.1:1: ")


@pytest.mark.parametrize("generation", [-1, "1", 1.5, True, None])
def test_a_generation_that_is_no_number_is_a_bad_event(function: Function, generation: object) -> None:
    """It is refused before anything is drained."""
    with pytest.raises(BadEvent, match="generation"):
        selected({"generation": generation}, function.app.core.drains.drainer.shards())


def test_the_drain_function_goes_on_where_its_settings_say_so(
    function: Function, drain: DrainFunction, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOWKIQ_IDLE=start is all that it takes; the function's own name is what it starts."""
    monkeypatch.setattr(continuation, "shared_invoker", lambda: function.invocations)
    monkeypatch.setattr(continuation, "GENERATIONS", 2)
    declare(function.app, queue_name, function.notes).push_many(jobs_of(IDS))
    drain.install(function.app, idle="start")

    told = [drain({"shard": 0, "generation": number}, seconds=6.0)["continued"] for number in range(3)]

    assert [True, True, False] == told
    started = [("shop-drain", {"shard": 0, "generation": number}) for number in (1, 2)]
    assert started == function.invocations.accepted
