"""A tick: what it publishes, what it starts, and what keeps the rest of it going."""

import json
from threading import Barrier, Thread
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, QueueMismatch
from lowkiq_lambda.aws import ticking
from lowkiq_lambda.aws.drain_function import handler
from lowkiq_lambda.aws.duty_task import LONGEST_RESULT
from lowkiq_lambda.aws.fan_out import AT_ONCE, WINDOW
from lowkiq_lambda.aws.tick import HousekeepingFailed
from lowkiq_lambda.aws.ticking import tasks_of, tick_alone
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.providers.aws.invoker import InvocationRefused
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import FunctionContext, Install
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.duties import Noted
from tests.kit.firing import MINUTE, NOON, at_noon
from tests.kit.handlers import Notes, failing
from tests.kit.servers import MakeServer, Server
from tests.kit.workers import declare, jobs_of, shard_of

FAN_OUT = Settings(idle="start", metrics="queues")
PUNCTUAL = Settings(idle="punctual", metrics="queues")
QUEUES = Settings(metrics="queues")


class TickContext(FunctionContext):
    """That of an invocation that ticks."""

    def __init__(self, seconds: float = 30.0) -> None:
        super().__init__(seconds)


class AliasContext(TickContext):
    """That of an invocation by an alias."""

    invoked_function_arn = f"{TickContext.invoked_function_arn}:live"


class Ticker:
    """Makes ticks, which start drains unless the settings say otherwise."""

    def __init__(self, app: Lowkiq, invocations: Invocations) -> None:
        self._app = app
        self.invocations = invocations

    def __call__(self, settings: Settings = FAN_OUT, seconds: float = 30.0) -> dict[str, Any]:
        """One tick of an invocation that has so many seconds left."""
        return tick_alone(self._app, settings, TickContext(seconds), self.invocations)


@pytest.fixture
def invocations() -> Invocations:
    """What was invoked."""
    return Invocations()


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """One of them."""
    return make_app()


@pytest.fixture
def tick(app: Lowkiq, invocations: Invocations) -> Ticker:
    """Makes ticks of the app."""
    return Ticker(app, invocations)


def published(lines: str, namespace: str = "lowkiq") -> dict[tuple[str, str], dict[str, float]]:
    """The embedded metrics among what was printed, by function and queue ("" for the app as a whole)."""
    found = {}
    for blob in map(json.loads, lines.splitlines()):
        if "_aws" not in blob:
            continue
        (directive,) = blob["_aws"]["CloudWatchMetrics"]
        (dimensions,) = directive["Dimensions"]
        assert dimensions in (["function"], ["function", "queue"])
        assert namespace == directive["Namespace"]
        found[blob["function"], blob.get("queue", "")] = {
            metric["Name"]: blob[metric["Name"]][0] for metric in directive["Metrics"]
        }
    return found


def test_each_queue_is_published_in_numbers(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lag, length, morgue and the oldest due age, by queue, and over all of them by the function."""
    broken = declare(app, f"{queue_name}-broken", failing("a"), max_retry_count=0)
    other = declare(app, f"{queue_name}-other", Notes(), shards_count=3)
    broken.push_many(jobs_of("a"))
    app.drain()
    other.push_many(jobs_of("abcd"))
    clock.advance(20)
    broken.push_many(jobs_of("b"))
    clock.advance(10)
    other.push_many(jobs_of("e", delay=60))

    summary = tick(QUEUES)

    first = {"lag": 10.0, "oldest_due_age": 10.0, "length": 1, "morgue": 1}
    second = {"lag": 30.0, "oldest_due_age": 30.0, "length": 5, "morgue": 0}
    assert {"queues": {broken.queue_name: first, other.queue_name: second}} == summary
    assert json.loads(json.dumps(summary)) == summary
    assert {
        ("shop-drain", broken.queue_name): first,
        ("shop-drain", other.queue_name): second,
        ("shop-drain", ""): {"lag": 30.0, "oldest_due_age": 30.0, "length": 6, "morgue": 1, "dead": 1},
    } == published(capsys.readouterr().out)


def test_e79_blocked_ids_are_published_where_a_worker_may_block(
    app: Lowkiq, tick: Ticker, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """E-79: of other queues nothing more is published than ever, as each metric costs."""
    blocking = declare(app, queue_name, Notes(failing("a", "b")), batch_size=2, max_retry_count=0, dead_head="block")
    other = declare(app, f"{queue_name}-other", Notes())
    blocking.push_many(jobs_of("ab"))
    other.push_many(jobs_of("c"))
    app.drain()

    tick(QUEUES)

    seen = published(capsys.readouterr().out)
    assert [2, 2] == [seen["shop-drain", name]["blocked"] for name in ("", blocking.queue_name)]
    assert "blocked" not in seen["shop-drain", other.queue_name]


def test_what_somebody_works_on_is_lag_but_not_left_alone(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str
) -> None:
    """The oldest due age tells whether drains come: a long batch does not raise it, though it lags."""
    seen: list[dict[str, float]] = []

    def work(_batch: object) -> None:
        clock.advance(8)
        seen.append(tick(QUEUES)["queues"][queue_name])

    worker = declare(app, queue_name, Notes(work))
    worker.push_many(jobs_of("a"))
    clock.advance(5)
    app.drain()

    assert [(13.0, 0.0)] == [(one["lag"], one["oldest_due_age"]) for one in seen]


def test_an_app_without_queues_publishes_zeros(tick: Ticker, capsys: pytest.CaptureFixture[str]) -> None:
    """An alarm on the app as a whole has its data from the first minute on."""
    assert {"queues": {}, "drains": {"due": 0, "started": 0}} == tick()
    assert {"lag": 0, "oldest_due_age": 0, "length": 0, "morgue": 0, "dead": 0} == published(capsys.readouterr().out)[
        "shop-drain", ""
    ]


@pytest.mark.parametrize(("name", "value"), [("день", "%D0%B4%D0%B5%D0%BD%D1%8C"), (" x", "%20x"), ("a:b", "a:b")])
def test_a_queue_whose_name_is_no_dimension_is_published_escaped(
    app: Lowkiq, tick: Ticker, name: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudWatch takes printable ASCII."""
    declare(app, name, Notes())

    tick(QUEUES)

    assert ("shop-drain", value) in published(capsys.readouterr().out)


def test_the_settings_name_the_namespace_and_nothing_else_adds_to_it(
    tick: Ticker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the environment says of Powertools adds no dimension, which would hide the metrics from alarms."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "shop")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "other")

    tick(Settings(metrics="queues", metrics_namespace="shop/jobs"))

    assert [("shop-drain", "")] == list(published(capsys.readouterr().out, "shop/jobs"))


def test_each_free_shard_with_due_work_gets_one_drain(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str, invocations: Invocations
) -> None:
    """Those that have nothing due get none, and the most lagging come first."""
    late = declare(app, f"{queue_name}-late", Notes())
    busy = declare(app, f"{queue_name}-busy", Notes(), shards_count=30)
    idle = declare(app, f"{queue_name}-idle", Notes(), shards_count=3)
    late.push_many(jobs_of("a"))
    clock.advance(5)
    busy.push_many(jobs_of([str(number) for number in range(300)]))
    idle.push_many(jobs_of("abc", delay=5))
    app.drain(0)

    assert {"due": 31, "started": 31} == tick()["drains"]

    assert {"shop-drain"} == {function for function, _ in invocations.accepted}
    started = sorted((event["queue"], event["shard"]) for event in invocations.events)
    assert sorted([*((busy.queue_name, index) for index in range(30)), (late.queue_name, 0)]) == started
    assert {"queue": late.queue_name, "shard": 0} in invocations.events[:AT_ONCE]


def test_a_tick_by_an_alias_starts_drains_by_it(app: Lowkiq, queue_name: str, invocations: Invocations) -> None:
    """Else they would run what was published last, which the alias may not name yet."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))

    tick_alone(app, FAN_OUT, AliasContext(), invocations)

    assert [f"{TickContext.invoked_function_arn}:live"] == [function for function, _ in invocations.accepted]


def test_two_ticks_at_once_start_one_drain_for_each_shard(
    make_app: MakeApp, queue_name: str, invocations: Invocations
) -> None:
    """E-23: a tick may come twice, at the same moment too."""
    apps = [make_app() for _ in range(3)]
    workers = [declare(one, queue_name, Notes(), shards_count=20) for one in apps]
    workers[0].push_many(jobs_of([str(number) for number in range(200)]))
    ready = Barrier(len(apps))

    def ticking(one: Lowkiq) -> None:
        ready.wait()
        tick_alone(one, FAN_OUT, TickContext(), invocations)

    threads = [Thread(target=ticking, args=(one,)) for one in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert list(range(20)) == sorted(event["shard"] for event in invocations.events)


def test_a_tick_that_comes_again_starts_nothing_twice_and_the_next_minute_tries_again(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str, invocations: Invocations
) -> None:
    """A start counts for less than a minute: then an invocation that was lost is made up for."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))

    assert {"due": 1, "started": 1} == tick()["drains"]
    clock.advance(WINDOW - 1)
    assert {"due": 1, "started": 0} == tick()["drains"]
    clock.advance(60 - WINDOW + 1)
    assert {"due": 1, "started": 1} == tick()["drains"]
    assert 2 == len(invocations.accepted)


def test_a_shard_that_is_held_or_paused_gets_no_drain(
    app: Lowkiq, tick: Ticker, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """A held one has its drain; of a paused one nothing may be had."""
    paused = declare(app, f"{queue_name}-paused", Notes())
    held = declare(app, f"{queue_name}-held", Notes(lambda _batch: tick()))
    paused.push_many(jobs_of("a"))
    server.admin.hset(shard_of(app, paused, "a").key("meta"), "paused_until", clock.time() + 60)
    held.push_many(jobs_of("ab"))

    app.drain()

    assert [] == tick.invocations.events


def test_jobs_of_a_dead_holder_get_a_drain(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str, invocations: Invocations
) -> None:
    """E-14: a shard whose only jobs lie with a dead holder is not empty."""
    mortal = Mortal(app)
    worker = declare(app, queue_name, Notes(mortal.die))
    worker.push_many(jobs_of("a"))
    assert mortal.drain() is None
    assert {"due": 0, "started": 0} == tick()["drains"]

    outlive(app, clock, worker)
    assert {"due": 1, "started": 1} == tick()["drains"]
    assert [{"queue": queue_name, "shard": 0}] == invocations.events


def test_fan_out_is_off_by_default(app: Lowkiq, tick: Ticker, queue_name: str, invocations: Invocations) -> None:
    """Without the option no AWS API is called, though a drain function is named."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))

    assert {"queues"} == tick(Settings()).keys()
    assert [] == invocations.accepted


def test_a_function_starts_drains_of_itself(app: Lowkiq, tick: Ticker, queue_name: str) -> None:
    """Unless another function is named for that."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))

    tick(Settings(idle="start"))

    assert [(TickContext.function_name, {"queue": queue_name, "shard": 0})] == tick.invocations.accepted


def test_a_queue_that_was_made_otherwise_hides_no_other(
    make_app: MakeApp,
    app: Lowkiq,
    tick: Ticker,
    queue_name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The others are published and drained, and then the invocation fails, so that somebody hears of it."""
    declare(make_app(), f"{queue_name}-drifted", Notes(), shards_count=7).push_many(jobs_of("a"))
    declare(app, f"{queue_name}-drifted", Notes(), shards_count=5)
    fine = declare(app, f"{queue_name}-fine", Notes())
    fine.push_many(jobs_of("a"))

    with pytest.raises(HousekeepingFailed, match="shards_count=7") as caught:
        tick()

    assert isinstance(caught.value.__cause__, QueueMismatch)
    assert [{"queue": fine.queue_name, "shard": 0}] == tick.invocations.events
    assert [("shop-drain", fine.queue_name), ("shop-drain", "")] == list(published(capsys.readouterr().out))


def test_a_shard_that_refuses_hides_no_other(app: Lowkiq, tick: Ticker, server: Server, queue_name: str) -> None:
    """One wants a newer library than this environment has: its other shards, and others, have their drains."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many(jobs_of([str(number) for number in range(30)]))
    server.admin.hset(app.core.queues.agreed(worker).shards[1].key("meta"), "least_version", 99)

    with pytest.raises(HousekeepingFailed, match="contract version 99"):
        tick()

    assert [0, 2] == sorted(event["shard"] for event in tick.invocations.events)


def test_a_task_that_fails_keeps_no_other_from_its_turn(
    app: Lowkiq,
    tick: Ticker,
    queue_name: str,
    invocations: Invocations,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drains are started though nothing could be published; the error ends the invocation."""

    def broken(_tick: object) -> None:
        raise ZeroDivisionError("oh")

    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    monkeypatch.setattr(ticking, "publish_queues", broken)

    with pytest.raises(HousekeepingFailed, match="ZeroDivisionError: oh"):
        tick()
    assert 1 == len(invocations.accepted)


def test_refused_invocations_fail_the_tick_and_are_made_up_for(
    app: Lowkiq, tick: Ticker, queue_name: str, invocations: Invocations
) -> None:
    """One sentence tells it for all; no shard counts as started, so that the next tick tries all of them."""
    worker = declare(app, queue_name, Notes(), shards_count=30)
    worker.push_many(jobs_of([str(number) for number in range(300)]))
    invocations.refusing = InvocationRefused("shop-drain was not started: no right.")

    with pytest.raises(HousekeepingFailed) as caught:
        tick()
    assert 1 == str(caught.value).count("no right")
    assert AT_ONCE == invocations.refused

    invocations.refusing = None
    assert {"due": 30, "started": 30} == tick()["drains"]


def test_a_tick_whose_time_is_over_starts_nothing_that_it_could_not_finish(
    app: Lowkiq, tick: Ticker, queue_name: str, invocations: Invocations
) -> None:
    """What is left has no start noted, so it is free for the next tick; that the time was too short is told."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))

    with pytest.raises(HousekeepingFailed, match="before 1 shards"):
        tick(seconds=FAN_OUT.reserve)
    assert [] == invocations.accepted

    assert {"due": 1, "started": 1} == tick()["drains"]


def test_redis_out_of_reach_is_the_error_of_the_invocation(
    make_app: MakeApp, make_server: MakeServer, queue_name: str, invocations: Invocations
) -> None:
    """It is waited for once, not once for each queue."""
    own = make_server()
    app = make_app(redis_url=own.url, redis_timeout=0.1)
    for number in range(3):
        declare(app, f"{queue_name}-{number}", Notes())
    own.kill()

    with pytest.raises(BackendUnavailable):
        tick_alone(app, FAN_OUT, TickContext(), invocations)


def test_tasks_have_an_order(app: Lowkiq) -> None:
    """Drains are started last: what earlier tasks push has its drain in the same tick."""
    assert ["queues", "drains"] == list(tasks_of(app, FAN_OUT))
    app.add_duty(Noted())
    assert ["queues", "duties", "drains"] == list(tasks_of(app, FAN_OUT))


def test_jobs_that_a_duty_pushes_have_a_drain_in_the_same_tick(app: Lowkiq, tick: Ticker, queue_name: str) -> None:
    """The summary tells what the duty returned; the next tick of the same period finds nothing to do."""
    worker = declare(app, queue_name, Notes())
    app.add_duty(Noted(act=lambda: [pushed.merged for pushed in worker.push_many(jobs_of("a"))]))
    summary = tick()

    assert ({"sweep": [False]}, {"due": 1, "started": 1}) == (summary["duties"], summary["drains"])
    assert {} == tick()["duties"]


def test_a_duty_that_fails_fails_the_tick_when_all_else_is_done(
    app: Lowkiq, tick: Ticker, queue_name: str, invocations: Invocations
) -> None:
    """As any other task; what the others returned is JSON, whatever it was."""

    def fail() -> None:
        raise ValueError("is broken")

    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    app.add_duty(Noted("broken", act=fail))
    app.add_duty(Noted("odd", act=lambda: {("a", "key"): object}))
    app.add_duty(Noted("set", act=lambda: {1}))

    with pytest.raises(HousekeepingFailed, match="The duty 'broken' failed: ValueError: is broken") as raised:
        tick()
    assert "'set': '{1}'" in str(raised.value)
    assert 1 == len(invocations.events)


def test_what_a_duty_returns_fits_into_an_answer(app: Lowkiq, tick: Ticker, queue_name: str) -> None:
    """Lambda refuses an answer of many megabytes, and logs read no number that JSON has not."""
    declare(app, queue_name, Notes())
    app.add_duty(Noted("long", act=lambda: ["x" * 1_000] * 9_000))
    app.add_duty(Noted("nan", act=lambda: {"mean": float("nan")}))

    told = tick()["duties"]

    assert LONGEST_RESULT == len(told["long"])
    assert "{'mean': nan}" == told["nan"]


def test_duties_leave_half_of_the_time_to_the_start_of_drains(app: Lowkiq, tick: Ticker, queue_name: str) -> None:
    """A run that would take longer is told so."""
    declare(app, queue_name, Notes())
    duty = Noted(every=3_600.0)
    app.add_duty(duty)
    tick(seconds=FAN_OUT.reserve + 20.0)
    assert [pytest.approx(10.0, abs=1.0)] == duty.runs


def test_the_handler_finds_its_app_in_the_environment(
    app: Lowkiq, install: Install, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """LOWKIQ_APP and a Redis are all that it needs; the log leaves out an idle queue."""
    declare(app, queue_name, Notes())
    install(app, metrics="queues")

    summary = handler({"tick": "only"}, TickContext())

    assert {queue_name} == summary["queues"].keys()
    lines = capsys.readouterr().out
    assert ("shop-drain", queue_name) in published(lines)
    (said,) = (line for line in map(json.loads, lines.splitlines()) if "_aws" not in line)
    assert ("ticked", {}) == (said["message"], said["queues"])
    assert (TickContext.aws_request_id, "shop-drain", True) == tuple(
        said[name] for name in ("function_request_id", "function_name", "cold_start")
    )


def test_entries_fire_before_drains_are_started(
    app: Lowkiq, tick: Ticker, clock: ManualClock, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """C-3: a tick fires what came due since the last one, and its summary and the metrics tell of that."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    tick()
    clock.advance(3_690.0)
    capsys.readouterr()
    summary = tick()

    ticked = {"fired": 1, "missed": 59, "replaced": 1, "late": 30.0, "problems": []}
    assert ({"schedules": ticked}, {"due": 1, "started": 1}) == (summary["duties"], summary["drains"])
    printed = capsys.readouterr().out
    assert {"schedules_missed": 59, "schedules_late": 30.0} == published(printed)["shop-drain", ""]
    assert ["schedules"] == [state.name for state in app.operate.duties()]


class PassingContext(TickContext):
    """An invocation whose time passes with the clock."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__(seconds)
        self._clock = clock
        self._ends_at = clock.time() + seconds

    def get_remaining_time_in_millis(self) -> int:
        """Less with each second."""
        return int(1_000 * (self._ends_at - self._clock.time()))


def test_a_punctual_tick_stays_for_what_comes_within_its_time(
    app: Lowkiq, invocations: Invocations, clock: ManualClock, queue_name: str
) -> None:
    """C-3: each planned time fires in its second, and has a drain started; what comes later is for the next tick."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(20.0, worker, id="poll", offset=5.0)
    summary = tick_alone(app, PUNCTUAL, PassingContext(clock, 60.0), invocations)

    looked = {"looks": 3, "fired": 3, "missed": 0, "replaced": 0, "problems": []}
    assert looked.items() <= summary["punctual"].items()
    assert 0.1 > summary["punctual"]["late"]
    fired = [firing.at - NOON for firing in reversed(app.schedules.history(worker, "poll"))]
    assert [pytest.approx(5.0, abs=0.1), pytest.approx(25.0, abs=0.1), pytest.approx(45.0, abs=0.1)] == fired
    assert 1 == len(invocations.events)
    assert 57.0 > clock.time() - NOON


def test_a_punctual_tick_returns_at_once_where_nothing_is_near(
    app: Lowkiq, invocations: Invocations, clock: ManualClock, queue_name: str
) -> None:
    """Entries of whole minutes cost nothing more."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    summaries = []
    for _ in range(2):
        summaries.append(tick_alone(app, PUNCTUAL, PassingContext(clock, 60.0), invocations))
        clock.advance(NOON + 60.0 - clock.time())
    assert [0, 0] == [summary["punctual"]["looks"] for summary in summaries]
    assert [0, 1] == [summary["duties"]["schedules"]["fired"] for summary in summaries]
    assert ["queues", "duties", "drains"] == list(tasks_of(app, FAN_OUT))


def test_a_tick_fires_nothing_where_the_settings_say_so(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """C-9: `schedules=False` leaves the task out."""
    app = make_app(schedules=False)
    app.every(MINUTE, declare(app, queue_name, Notes()), id="poll")
    assert ["queues", "drains"] == list(tasks_of(app, FAN_OUT))
    assert clock.time() < NOON
