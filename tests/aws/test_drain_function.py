"""The drain function: what it drains, when it ends, and what it answers."""

import asyncio
import sys
import time
from collections.abc import Callable
from subprocess import run
from threading import Barrier, Event, Lock, Thread
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.aws.drain_function import DrainFailed
from lowkiq_lambda.aws.events import BadEvent
from lowkiq_lambda.base.error_text import LONGEST_LOGGED
from lowkiq_lambda.store.shard.nodes import ServerTime
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction, overdue
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Notes, failing
from tests.kit.looks import left_behind, look
from tests.kit.sends import counted_sends
from tests.kit.servers import Cluster, MakeServer, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of, shard_of

FAR = 1_900_000_000


def test_it_drains_and_says_what_came_of_it(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Counts by outcome, why it ended, lags, and no lease is left."""
    app = make_app()
    worker = declare(app, queue_name, failing("b"), shards_count=2, max_retry_count=3)
    worker.push_many(jobs_of("abcdef"))
    drain.install(app)

    assert {
        "reason": "empty",
        "counts": {"done": 5, "failed": 1, "retried": 1},
        "left": 0,
        "queues": {queue_name: {"shards": {"empty": 2}, "lag_at_start": 0.0, "lag_at_end": 0.0}},
    } == drain()
    assert 0 == app.core.backend.client.exists(*[shard.key("lease") for shard in app.core.queues.agreed(worker).shards])


@pytest.mark.parametrize("event", [{"shard": 1}, {"queue": "{}-one"}, {"queue": "{}-two", "shard": 0}])
def test_only_what_is_selected_is_drained(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, event: dict[str, Any]
) -> None:
    """DESIGN 6: what the event does not select is not touched."""
    app = make_app()
    for name in ("one", "two"):
        worker = declare(app, f"{queue_name}-{name}", Notes(), shards_count=2)
        worker.push_many(jobs_of("abcdef"))
    event = {key: value.format(queue_name) if isinstance(value, str) else value for key, value in event.items()}
    drain.install(app)

    drain(event)

    emptied = {
        (shard.queue_name, shard.index)
        for shard in app.core.drains.drainer.shards()
        if not app.core.backend.client.exists(shard.key("jobs"))
    }
    assert emptied == {
        (name, index)
        for name in (f"{queue_name}-one", f"{queue_name}-two")
        for index in (0, 1)
        if event.get("queue", name) == name and event.get("shard", index) == index
    }


def test_the_most_lagging_shard_comes_first(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """DESIGN 6: whatever the order of declaration, what has waited longest is drained first."""
    app, notes = make_app(threads_per_node=1), Notes()
    for name, waited in (("a", 5), ("b", 50), ("c", 20)):
        declare(app, f"{queue_name}-{name}", notes).push_many([{"id": name, "due_at": clock.time() - waited}])
    drain.install(app)

    result = drain()

    assert [["b"], ["c"], ["a"]] == notes.ids
    assert [5, 50, 20] == [queue["lag_at_start"] for queue in result["queues"].values()]


def test_a_bad_event_is_refused_while_redis_is_away(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """DESIGN 6: it gets its error, and nothing is drained."""
    app = make_app(redis_url="redis://127.0.0.1:1")
    declare(app, queue_name, Notes())
    drain.install(app)

    with pytest.raises(BadEvent, match="shard 7 is not a shard of any queue"):
        drain({"shard": 7})


@pytest.mark.parametrize("own", [{}, {"queue": True}], ids=["of every queue", "of one"])
def test_a_shard_that_no_queue_has_is_a_warning(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, own: dict[str, object]
) -> None:
    """Nothing waits there: a schedule that is left over names itself and its remedy, and rings no FailureAlarm."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of("abc"))
    drain.install(app)

    answer = drain({"shard": 7, **dict.fromkeys(own, queue_name)})

    (warning,) = [line for line in drain.logs if line["level"] == "WARNING"]
    assert ({}, {}, 0) == (answer["counts"], answer["queues"], answer["left"])
    assert "they count from 0 to 1. Nothing waits there" in warning["message"]
    assert "shard-7" in warning["message"]
    assert "`lowkiq stack schedules indexes`" in warning["message"]


def test_a_queue_that_the_app_does_not_have_fails(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Its jobs may wait, and nobody else would say so; the error names the remedy where the queue is no more."""
    app = make_app()
    declare(app, queue_name, Notes())
    drain.install(app)

    with pytest.raises(BadEvent, match=r"is unknown: this app has .* `lowkiq stack schedules`"):
        drain({"queue": "Gone"})


def test_p5_it_ends_before_its_time_is_over(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P5: with 13 s to go, 3 kept back and batches of 4 s, two run, and the shard is free again."""
    app = make_app()
    worker = declare(app, queue_name, Notes(lambda _batch: clock.advance(4)))
    worker.push_many(jobs_of("abcdef"))
    drain.install(app)
    started = clock.time()

    result = drain(seconds=13)

    assert (8, {"done": 2}) == (clock.time() - started, result["counts"])
    assert ("out of time", 1) == (result["reason"], result["left"])
    assert {"due": 4, "jobs": 4} == left_behind(app, worker)
    assert 0 == app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("lease"))


def test_p5_a_coroutine_that_takes_too_long_is_cancelled(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P5: it cleans up in the time that is kept back, its job is given back, and the shard is free again."""
    app, cleaned = make_app(), list[str]()

    async def perform(_self: Worker, batch: Batch) -> None:
        clock.advance(11)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.extend(batch)

    worker = declare(app, queue_name, Notes(), perform=perform)
    worker.push_many(jobs_of("ab"))
    drain.install(app)

    result = drain(seconds=13)

    assert (["a"], "out of time", {"returned": 1}) == (cleaned, result["reason"], result["counts"])
    assert {"due": 2, "jobs": 2} == {key: left_behind(app, worker)[key] for key in ("due", "jobs")}
    assert 0 == app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("lease"))


def test_p5_the_reserve_is_a_setting(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P5: LOWKIQ_RESERVE is what is kept back."""
    app = make_app()
    declare(app, queue_name, Notes(lambda _batch: clock.advance(4))).push_many(jobs_of("abcdef"))
    drain.install(app, reserve=8)

    assert 1 == drain(seconds=13)["counts"]["done"]


def test_p5_an_event_that_comes_without_time_touches_nothing(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """P5, E-30: it ends at once, and a warning says what to change."""
    app, notes = make_app(), Notes()
    declare(app, queue_name, notes).push_many(jobs_of("a"))
    drain.install(app)

    result = drain(seconds=3)

    assert ("out of time", {}, []) == (result["reason"], result["counts"], notes.batches)
    assert "LOWKIQ_RESERVE keeps 3.0 of them back; give the function a longer timeout" in drain.logs[0]["message"]


def hold(app: Lowkiq, shard: Any) -> None:
    """As another process that died would."""
    app.core.backend.client.hset(shard.key("meta"), mapping={"until": FAR, "ttl": FAR, "nonce": "other"})


def pause(app: Lowkiq, shard: Any) -> None:
    """For a long time."""
    app.core.backend.client.hset(shard.key("meta"), "paused_until", str(FAR))


def delay(app: Lowkiq, shard: Any) -> None:
    """Nothing is due for a long time."""
    app.core.backend.client.zadd(shard.key("due"), {"a": FAR})


@pytest.mark.parametrize(("obstacle", "reason"), [(hold, "held"), (pause, "paused"), (delay, "empty")])
@pytest.mark.parametrize("event", [{}, {"shard": 0}])
def test_p8_what_is_held_paused_or_empty_takes_one_round_trip(  # noqa: PLR0913, PLR0917 - all of them fixtures
    drain: DrainFunction,
    make_app: MakeApp,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
    event: dict[str, Any],
    obstacle: Callable[[Lowkiq, Any], None],
    reason: str,
) -> None:
    """P8: on a warm connection a tick that finds nothing to do asks once, and says why it ended."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes)
    drain.install(app)
    drain()
    worker.push_many(jobs_of("a"))
    obstacle(app, app.core.queues.agreed(worker).shards[0])
    trips = counted_sends(monkeypatch)

    result = drain(event)

    assert (1, reason, []) == (len(trips), result["reason"], notes.batches)


def test_what_others_hold_keeps_nobody_from_the_rest(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """The result says which shards of a queue were left for which reason."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many(jobs_of("abcdefghi"))
    shards = app.core.queues.agreed(worker).shards
    hold(app, shards[0])
    pause(app, shards[1])
    drain.install(app)

    result = drain()

    assert {"held": 1, "paused": 1, "empty": 1} == result["queues"][queue_name]["shards"]
    assert ("paused", 0) == (result["reason"], result["left"])


def test_a_shard_that_is_damaged_is_repaired_amid_the_drain(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """What can be had of it is performed in the same invocation, as are the others, and nothing ends in an error."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=3)
    worker.push_many(jobs_of("abcdefghi"))
    damaged = app.core.queues.agreed(worker).shards[1]
    app.core.backend.client.set(damaged.key("due"), "not what it should be")
    drain.install(app)

    drain()

    done = {job_id for batch in notes.ids for job_id in batch}
    assert {job_id for job_id in "abcdefghi" if shard_of(app, worker, job_id) != damaged} <= done
    assert app.operate.metrics()[queue_name].damaged > 0


def test_a_shard_that_refuses_stops_no_other(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """The others are drained, and then the invocation ends in an error that names the shard."""
    app, notes = make_app(), Notes()
    worker = declare(app, queue_name, notes, shards_count=3)
    worker.push_many(jobs_of("abcdefghi"))
    broken = app.core.queues.agreed(worker).shards[2]
    app.core.backend.client.hset(broken.key("meta"), "least_version", 99)
    drain.install(app)

    with pytest.raises(DrainFailed) as raised:
        drain()

    assert f"1 of 3 shards could not be drained, the rest was: shard 2 of {queue_name!r}: Que" in str(raised.value)
    assert "contract version 99" in str(raised.value)
    done = {job_id for batch in notes.ids for job_id in batch}
    assert {job_id for job_id in "abcdefghi" if shard_of(app, worker, job_id) != broken} == done
    assert {"failed": 1, "empty": 2} == drain.logs[-1]["queues"][queue_name]["shards"]


def test_a_queue_that_is_declared_otherwise_stops_no_other(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """The drift guard refuses one queue; the others are drained, and the error says what is wrong."""
    other = make_app()
    other.core.queues.agreed(declare(other, f"{queue_name}-drifted", Notes(), shards_count=7))
    app, notes = make_app(), Notes()
    declare(app, f"{queue_name}-drifted", notes, shards_count=3)
    declare(app, queue_name, notes).push_many(jobs_of("a"))
    drain.install(app)

    with pytest.raises(DrainFailed, match=r"3 of 4 shards could not be drained, the rest was.*QueueMismatch"):
        drain()

    assert [["a"]] == notes.ids


def test_a_redis_that_is_out_of_reach_is_an_error(drain: DrainFunction, queue_name: str) -> None:
    """The invocation fails, so that an alarm can see it; in the time that it has."""
    app = Lowkiq(Config(redis_url="redis://127.0.0.1:1", redis_timeout=0.1))
    declare(app, queue_name, Notes(), shards_count=3)
    drain.install(app)

    with pytest.raises(DrainFailed, match=r"3 of 3 shards could not be drained: shard 0 of .*BackendUnavailable"):
        drain()


def test_a_node_that_is_down_stops_no_shard_of_another(drain: DrainFunction, cluster: Cluster, queue_name: str) -> None:
    """In a cluster what the other nodes hold is drained, and the error names what was on the one that is gone."""
    app, notes = Lowkiq(Config(redis_url=cluster.url, redis_timeout=0.3)), Notes()
    worker = declare(app, queue_name, notes, shards_count=9)
    drain.install(app)
    drain()
    ids = [str(n) for n in range(100)]
    worker.push_many(overdue(ids))
    dead = cluster.node_for(app.core.queues.agreed(worker).shards[0].keys[0])
    lost = [shard for shard in app.core.queues.agreed(worker).shards if cluster.node_for(shard.keys[0]) is dead]
    dead.kill()

    with pytest.raises(DrainFailed) as raised:
        drain()

    assert all(f"shard {shard.index} of {queue_name!r}: BackendUnavailable" in str(raised.value) for shard in lost)
    assert str(raised.value).startswith(f"{len(lost)} of 9 shards could not be drained, the rest was")
    performed = {job_id for batch in notes.ids for job_id in batch}
    assert {job_id for job_id in ids if shard_of(app, worker, job_id) not in lost} == performed


def test_a_redis_that_fails_for_a_moment_is_waited_for(
    drain: DrainFunction, make_server: MakeServer, queue_name: str
) -> None:
    """A connection that broke while the environment was frozen costs nothing."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url))
    worker = declare(app, queue_name, Notes())
    drain.install(app)
    drain()
    worker.push_many(overdue("a"))
    server.admin.client_kill_filter(_type="normal", skipme=True)

    assert {"done": 1} == drain()["counts"]


def test_a_handler_that_wants_to_exit_fails_the_invocation_alone(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """SystemExit would end the process, and the warm environment with it: it is an error, and the jobs go back."""

    def leave(_batch: Batch) -> None:
        sys.exit(3)

    app = make_app()
    worker = declare(app, queue_name, leave)
    worker.push_many(jobs_of("a"))
    drain.install(app)

    with pytest.raises(DrainFailed, match=rf"jobs were given back: shard 0 of '{queue_name}': SystemExit: 3"):
        drain()

    found = look(app, worker, "a")
    assert found is not None
    assert -1 == found.retry_count


def test_what_a_handler_exits_with_is_cut_in_the_error(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """Lambda logs the error of an invocation: a message of megabytes fills no log."""

    def leave(_batch: Batch) -> None:
        sys.exit("x" * 1_000_000)

    app = make_app()
    declare(app, queue_name, leave).push_many(jobs_of("a"))
    drain.install(app)

    with pytest.raises(DrainFailed) as failed:
        drain()

    assert len(str(failed.value)) < LONGEST_LOGGED


def test_a_warm_environment_connects_once_and_loads_no_script_again(
    drain: DrainFunction, make_server: MakeServer, queue_name: str
) -> None:
    """Module scope keeps connection and scripts."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url))
    worker = declare(app, queue_name, Notes())
    worker.push_many(overdue("a"))
    drain.install(app)
    drain()
    worker.push_many(overdue("b"))
    before = known_of(server)

    drain()

    assert before == known_of(server)


def known_of(server: Server) -> tuple[int, int]:
    """Connections that were made, scripts that were sent in full."""
    info = server.admin.info("stats"), server.admin.info("commandstats")
    return info[0]["total_connections_received"], info[1].get("cmdstat_eval", {"calls": 0})["calls"]


class Thawing(ManualClock):
    """The clock of an environment: its monotonic one stands still while the environment is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self._frozen_at: float | None = None
        self._lost = 0.0

    def freeze(self) -> None:
        """From now on."""
        self._frozen_at = time.monotonic()

    def thaw(self) -> None:
        """The process goes on, as if no time had passed."""
        assert self._frozen_at is not None
        self._lost += time.monotonic() - self._frozen_at

    def time(self) -> float:
        """The real one."""
        return time.time()

    def monotonic(self) -> float:
        """The real one, without the time in the ice."""
        return time.monotonic() - self._lost


def test_a_thawed_environment_measures_its_clock_again(drain: DrainFunction, server: Server, queue_name: str) -> None:
    """What became due while it was frozen is due for it too, though its own clock says that no time passed."""
    clock = Thawing()
    app = Lowkiq(Config(redis_url=server.url), clock=clock)
    app.core.connections.new_time = ServerTime
    worker = declare(app, queue_name, Notes())
    drain.install(app)
    worker.push_many([{"id": "a", "delay": 0.3}])
    assert "empty" == drain()["reason"]
    due_at = float(app.core.backend.client.zscore(app.core.queues.agreed(worker).shards[0].key("due"), "a") or 0.0)
    clock.freeze()
    eventually(lambda: now_of(server) > due_at)
    clock.thaw()

    assert {"done": 1} == drain()["counts"]


def now_of(server: Server) -> float:
    """The server's time."""
    seconds, micros = server.admin.time()
    return float(seconds) + float(micros) / 1_000_000


def test_a_thawed_environment_trusts_no_old_lease(
    drain: DrainFunction,
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P4: frozen amid a batch until another took over, it claims nothing as done and starts nothing more."""
    app, other, started, others_did = make_app(), make_app(), list[str](), list[dict[str, int]]()
    stop_renewing(app, monkeypatch)

    def freeze_once(batch: Batch) -> None:
        started.extend(batch)
        if len(started) == 1:
            # Only the wall clock moves while it is frozen.
            clock.set_wall(clock.time() + app.config.lease_ttl + 1)
            app.core.backend.client.delete(app.core.queues.agreed(worker).shards[0].key("lease"))
            others_did.append(other.drain())

    worker = declare(app, queue_name, freeze_once)
    taken_over = Notes()
    declare(other, queue_name, taken_over)
    worker.push_many(jobs_of("ab"))
    drain.install(app, metrics="queues")

    result = drain()

    assert [2] == [counts["done"] for counts in others_did]
    assert (["a"], "lease lost", {}) == (started, result["reason"], result["counts"])
    assert {} == drain.sums("done", "failed")
    assert {"done": 1} == (worker.push_many(jobs_of("c")) and drain()["counts"])


def test_invocations_at_once_for_one_shard_perform_each_job_once(
    drain: DrainFunction, server_url: str, queue_name: str
) -> None:
    """P1: of several that start together one has the lease, the others end at once or find nothing left."""
    app, performed, overlaps = Lowkiq(Config(redis_url=server_url)), list[str](), list[str]()
    running = Lock()

    def perform(batch: Batch) -> None:
        if not running.acquire(blocking=False):
            overlaps.extend(batch)
            return
        performed.extend(batch)
        running.release()

    worker = declare(app, queue_name, perform, batch_size=5)
    drain.install(app)
    # What a process makes once is made by the first invocation: on Lambda no other one runs beside it there.
    drain({"shard": 0})
    worker.push_many(overdue([str(n) for n in range(200)]))
    results, start = list[dict[str, Any]](), Barrier(4)

    def invoke() -> None:
        start.wait()
        results.append(drain({"shard": 0}))

    threads = [Thread(target=invoke) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ([], 200, 200) == (overlaps, len(performed), len(set(performed)))
    assert 200 == sum(result["counts"].get("done", 0) for result in results)
    assert {"empty", "held"} >= {result["reason"] for result in results}


def test_a_duplicate_that_comes_while_the_first_runs_is_harmless(
    drain: DrainFunction, server_url: str, queue_name: str
) -> None:
    """P1: the same event, delivered again amid the first's batch, finds the shard held and ends."""
    app, second = Lowkiq(Config(redis_url=server_url)), list[dict[str, Any]]()
    worker = declare(app, queue_name, Notes(lambda _batch: second.append(drain({"shard": 0}))))
    worker.push_many(overdue("a"))
    drain.install(app)

    first = drain({"shard": 0})

    assert [("held", {})] == [(result["reason"], result["counts"]) for result in second]
    assert ("empty", {"done": 1}) == (first["reason"], first["counts"])


def test_a_duplicate_that_comes_late_finds_nothing(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """An event that is delivered again after its work was done does nothing."""
    app, notes = make_app(), Notes()
    declare(app, queue_name, notes).push_many(jobs_of("a"))
    drain.install(app)
    drain({"shard": 0})

    assert ("empty", {}) == ((again := drain({"shard": 0}))["reason"], again["counts"])
    assert [["a"]] == notes.ids


def test_a_daemon_and_invocations_share_the_work(drain: DrainFunction, server_url: str, queue_name: str) -> None:
    """P1, E-96: who drains is all the same to a shard; here a plain drain and the function."""
    function, plain = Lowkiq(Config(redis_url=server_url)), Lowkiq(Config(redis_url=server_url))
    performed, lock = list[str](), Lock()

    def perform(batch: Batch) -> None:
        with lock:
            performed.extend(batch)

    declare(function, queue_name, perform, shards_count=4)
    worker = declare(plain, queue_name, perform, shards_count=4)
    worker.push_many(overdue([str(n) for n in range(400)]))
    drain.install(function)
    pushed_out = Event()

    def drain_plainly() -> None:
        while not pushed_out.is_set():
            plain.drain(seconds=5)

    thread = Thread(target=drain_plainly)
    thread.start()
    eventually(lambda: drain() and len(performed) == 400)
    pushed_out.set()
    thread.join()

    assert 400 == len(set(performed))


def test_p2_what_a_killed_invocation_left_is_recovered_by_the_next(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P2: the next tick after the lease's end takes over, and says so."""
    app, dead = make_app(), make_app()
    died, notes = Mortal(dead), Notes()
    worker = declare(dead, queue_name, died.die)
    worker.push_many(jobs_of("a"))
    died.drain()
    declare(app, queue_name, notes)
    drain.install(app)
    assert "held" == drain()["reason"]
    outlive(app, clock, worker)

    assert {"done": 1, "recovered": 1} == drain()["counts"]


def test_the_module_imports_no_more_than_it_needs() -> None:
    """A cold start pays for redis, msgspec, Powertools Logger and Metrics, and us: no web, no SDK, no read side."""
    code = "import sys, lowkiq_lambda.aws.drain_function; print(*sys.modules)"
    imported = set(run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())

    tops = {name.partition(".")[0] for name in imported}
    assert {"redis", "msgspec", "aws_lambda_powertools"} <= tops
    assert not tops & {"boto3", "mangum", "starlette", "jinja2", "pydantic", "aws_xray_sdk", "cyclopts", "rich"}
    # Powertools looks whether botocore is there, to name itself in its calls; none of its modules is loaded.
    assert not {name for name in imported if name.startswith("botocore.")}
    assert not {"lowkiq_lambda.local", "lowkiq_lambda.dashboard", "lowkiq_lambda.operate.queue_operations"} & imported


def test_a_full_server_and_a_queue_that_was_never_used_keep_nothing_from_being_drained(
    drain: DrainFunction, make_app: MakeApp, make_server: MakeServer
) -> None:
    """E-41: a declaration that cannot be written is no error of an invocation, and what is queued is drained."""
    own = make_server()
    app = make_app(redis_url=own.url)
    declare(app, "a never used one", Notes(), shards_count=2)
    declare(app, "used", Notes(), shards_count=2).push_many(jobs_of("abcdef"))
    own.admin.config_set("maxmemory", 1)
    drain.install(app)

    told = drain()

    assert ("empty", {"done": 6}) == (told["reason"], told["counts"])
