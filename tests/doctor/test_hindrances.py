"""What keeps drains from their work without an error: a prediction that misleads, a stall, and too little memory."""

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.engine.heartbeat import RecentPeak
from lowkiq_lambda.operate.doctor.health import process_findings
from lowkiq_lambda.operate.inspect.declared_queues import shard_notes
from lowkiq_lambda.store.shard.heartbeats import GONE_AFTER
from lowkiq_lambda.testing import ManualClock
from tests.doctor.looks import found, running_process
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually

LEASE: Final = 1.2
"""Seconds: a process that is frozen for so long has lost its lease."""
NONE: Final[list[tuple[str, str]]] = []


@pytest.fixture
def stage(own: Server, queue_name: str, tmp_path: Path) -> Iterator[Stage]:
    """A queue of one shard, drained by processes of their own."""
    with closing(Stage(own, queue_name, tmp_path, "tests.local.app:app")) as made:
        yield made


def webhook(app: Lowkiq, clock: ManualClock, concurrency: int = 1) -> FunctionWorker[Any]:
    """A worker of which a call takes 50 ms, and one of the id `hangs` 25 s."""

    def perform(batch: Batch) -> None:
        clock.advance(25.0 if "hangs" in batch else 0.05)

    return app.worker(queue_name="webhook", shards_count=1, batch_size=1, concurrency=concurrency)(perform)


def have_one_hang(app: Lowkiq, worker: FunctionWorker[Any]) -> None:
    """After some that take as long as usual."""
    for jobs in (backlog(100), [{"id": "hangs"}]):
        worker.push_many(jobs)
        app.drain(20)


def await_line(daemon: DaemonProcess, times: int) -> None:
    """Until its log has told of a stall so often."""
    eventually(lambda: daemon.log.count("this process stood still") >= times)


def ignore(_batch: Batch) -> None:
    """Take no time."""


def backlog(count: int) -> list[dict[str, Any]]:
    """So many jobs."""
    return [{"id": str(number)} for number in range(count)]


def test_time_that_a_prediction_leaves_unused_is_told_while_that_lasts(
    app: Lowkiq, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One call hung: the drains after it end early, and a line of the log and a finding say why, and for how long."""
    worker = webhook(app, clock)
    have_one_hang(app, worker)
    worker.push_many(backlog(1_000))
    app.drain(20)
    (line,) = [record for record in caplog.records if "unused" in record.getMessage()]
    ((mark, says),) = found(app, "unused time")
    clock.advance(60.0)
    while_it_lasts = found(app, "unused time")
    clock.advance(400.0)

    assert line.getMessage().startswith("webhook: a drain ends with 6.7 s unused: ")
    assert ("webhook", 0, "WARNING") == (vars(line)["queue"], vars(line)["shard"], line.levelname)
    assert "a batch took 25.0 s, 13 s ago, and the next one may; usually it takes 0.05 s" in line.getMessage()
    assert "warning" == mark
    assert (
        "webhook: a drain ended with 7 s of its time unused: a batch took 25 s, 13 s ago, and the next one may" in says
    )
    assert 1 == len(while_it_lasts)
    assert NONE == found(app, "unused time")


def test_time_that_calls_side_by_side_leave_unused_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """As of calls one after the other."""
    worker = webhook(app, clock, concurrency=3)
    have_one_hang(app, worker)
    worker.push_many(backlog(1_000))
    app.drain(20)

    assert 1 == len(found(app, "unused time"))


def test_the_next_process_knows_why_time_was_left_unused(own: Server, app: Lowkiq, clock: ManualClock) -> None:
    """A cold start takes over the prediction, and the finding stays while it works."""
    worker = webhook(app, clock)
    have_one_hang(app, worker)
    worker.push_many(backlog(1_000))
    app.drain(20)
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as cold:
        webhook(cold, clock)
        cold.drain(1)

        assert 1 == len(found(cold, "unused time"))


def test_an_operator_lets_drains_forget_the_slow_batch(app: Lowkiq, own: Server, clock: ManualClock) -> None:
    """Processes that are warm use all of their time again, and so do new ones; what comes later is learned."""
    worker = webhook(app, clock)
    have_one_hang(app, worker)
    worker.push_many(backlog(1_000))
    app.drain(20)
    clock.advance(1.0)
    app.operate(worker).forget_timing()
    forgotten = found(app, "unused time")
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as cold:
        webhook(cold, clock)
        counts = [each.drain(5)["done"] for each in (app, cold, app)]
    have_one_hang(app, worker)
    worker.push_many(backlog(1_000))
    app.drain(20)

    assert NONE == forgotten
    assert all(count >= 98 for count in counts), counts
    assert 1 == len(found(app, "unused time"))


def test_a_process_whose_clock_differs_forgets_too(own: Server) -> None:
    """What it measured is stored by the server's clock: else a clock that is ahead would keep it."""

    class Ahead(SystemClock):
        time = staticmethod(lambda: time.time() + 3_600.0)

    with closing_app(Lowkiq(Config(redis_url=own.url))) as app:
        app.core.connections.clock = Ahead()
        worker = app.worker(queue_name="webhook", shards_count=1)(ignore)
        measured = list[BatchTiming]()
        for job_id in "ab":
            worker.push(job_id)
            app.drain()
            (notes,) = shard_notes(app.core.backend, [app.core.queues.agreed(worker).shards])
            measured += notes.timings
            app.operate(worker).forget_timing()

    assert [True] * 2 == [timing.mean == timing.slowest > 0.0 for timing in measured]
    assert all(abs(timing.seen_at - time.time()) < 600.0 for timing in measured)


@pytest.mark.parametrize("seconds", [0.05, 2.0])
def test_a_drain_that_ends_in_time_is_not_told(
    app: Lowkiq, clock: ManualClock, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches of usual lengths leave less than one of them unused."""

    def perform(_batch: Batch) -> None:
        clock.advance(seconds)

    worker = app.worker(queue_name="usual", shards_count=1, batch_size=1)(perform)
    worker.push_many(backlog(1_000))
    app.drain(20)

    assert NONE == found(app, "unused time") + found(app, "stalls") + found(app, "out of memory")
    assert [] == [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_slow_batch_behind_which_nothing_waits_is_not_told(
    app: Lowkiq, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It took most of a drain's time, as a job may that is longer than others; nothing was kept from its work."""
    worker = webhook(app, clock)
    for jobs in (backlog(100), [{"id": "hangs"}]):
        worker.push_many(jobs)
        app.drain(35)

    assert NONE == found(app, "unused time")
    assert [] == [record.getMessage() for record in caplog.records if "unused" in record.getMessage()]


def test_a_holder_that_stands_still_time_and_again_is_told(stage: Stage) -> None:
    """Frozen for longer than its lease, twice: its log says how late it was, and the doctor what to raise."""
    stage.push("abc", "wait")
    daemon = stage.daemon(lease_ttl=LEASE, settle_interval=0.1)
    key = stage.app.core.queues.agreed(stage.worker).shards[0].key("lease")
    for times, job_id in enumerate("ab", 1):
        stage.await_told("begin", id=job_id)
        daemon.send(signal.SIGSTOP)
        eventually(lambda: not stage.app.core.backend.client.exists(key))
        daemon.send(signal.SIGCONT)
        await_line(daemon, times)
        assert [] == found(stage.app, "stalls")
        stage.release(job_id)
    stage.await_told("begin", id="c")
    stage.release("c")
    eventually(lambda: found(stage.app, "stalls"))

    ((mark, says),) = found(stage.app, "stalls")
    assert "late to renew a lease of 1.2 s; give it more processor, or raise LOWKIQ_LEASE_TTL" in daemon.log
    assert ("warning", True) == (mark, "its holders stood still 2 times" in says)


@pytest.mark.parametrize(("megabytes", "is_near"), [("40", True), ("10240", False)])
def test_a_process_that_dies_near_its_memory_limit_is_told(
    stage: Stage, own: Server, megabytes: str, *, is_near: bool
) -> None:
    """Killed as the system kills it: its own log has said before how near it was, and the doctor says so afterwards."""
    stage.variables["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] = megabytes
    stage.push("a", "wait")
    daemon = stage.daemon(heartbeat_interval=0.05)
    stage.await_told("begin", id="a")
    eventually(lambda: [doing for process in stage.app.operate.processes() for doing in process.doing])
    assert NONE == found(stage.app, "out of memory")
    daemon.process.kill()
    daemon.exit_code()
    later = ManualClock(time.time() + GONE_AFTER + 30.0)
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=later)) as app:
        dead, gone = found(app, "out of memory"), found(app, "gone")

    assert is_near == ("MB of memory: it is killed without a word if it needs more" in daemon.log)
    assert (is_near, not is_near) == (len(dead) == 1, len(gone) == 1)
    if is_near:
        assert "died near its memory limit: it had used" in dead[0][1]
        assert f"of 40.0 MiB, as its last heartbeat says, and ran {stage.worker.queue_name}" in dead[0][1]


def test_a_peak_of_memory_counts_for_minutes() -> None:
    """The system's mark never falls; a process that dies hours after its peak did not die of that."""
    peak = RecentPeak()
    notes = [(90, 95, 0.0), (20, 95, 10.0), (30, 95, 300.0), (20, 95, 301.0), (25, 97, 310.0), (25, 97, 700.0)]

    assert [95, 95, 95, 20, 97, 25] == [peak.note(*each) for each in notes]


def test_processes_that_live_or_have_no_limit_are_not_told() -> None:
    """Only the dead are told of by their memory, and by a limit that is known."""
    full = msgspec.structs.replace(running_process(), peak=99, memory=100)
    dead = msgspec.structs.replace(full, is_gone=True)
    unknown = msgspec.structs.replace(dead, memory=0)
    checks = [{finding.check for finding in process_findings([one], "1")} for one in (full, unknown, dead)]

    assert [{"processes"}, {"processes", "gone"}, {"processes", "out of memory"}] == checks
