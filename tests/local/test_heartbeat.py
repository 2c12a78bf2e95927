"""Processes that tell that they live, and hear what they are to do."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from threading import Event

import msgspec
import pytest
from msgspec import UNSET

import lowkiq_lambda
from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.engine.heartbeat import VERSION, Heartbeat
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.store.shard.keys import ProcessesRef
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Process
from tests.kit.apps import MakeApp, closing_app
from tests.kit.daemons import ROOT, DaemonProcess, clean_environment
from tests.kit.servers import FaultProxy, Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of

SOON = 0.05
"""Seconds between two heartbeats."""


def process_of(app: Lowkiq, pid: int) -> Process | None:
    """What the process told last; None where it has told nothing, or its end."""
    return next((process for process in app.operate.processes() if process.pid == pid), None)


def doing_of(app: Lowkiq, pid: int) -> list[str]:
    """The ids that the process performs, as far as it told."""
    process = process_of(app, pid)
    return [job_id for doing in process.doing for job_id in doing.ids] if process else []


@contextmanager
def closing_process(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Ended at the end, whatever it is doing."""
    try:
        with process:
            yield
    finally:
        process.kill()


def begin_a(stage: Stage, daemon: DaemonProcess) -> Process:
    """Have the daemon hold the job a, with more behind it; as which process it is known."""
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    stage.push(f"b{number}" for number in range(30))
    eventually(lambda: doing_of(stage.app, daemon.pid) == ["a"])
    process = process_of(stage.app, daemon.pid)
    assert process is not None
    return process


def test_sk1_a_daemon_tells_who_it_is_and_what_each_thread_does(stage: Stage) -> None:
    """SK-1, S-24: host, version, threads, memory, round trip, and the shard and first ids that are being performed."""
    daemon = stage.daemon(heartbeat_interval=SOON, threads_per_node=3)
    began = begin_a(stage, daemon)

    eventually(lambda: (found := process_of(stage.app, daemon.pid)) and found.round_trip)
    process = process_of(stage.app, daemon.pid)
    assert process is not None
    (doing,) = process.doing
    assert (began.id, "daemon", VERSION, 3, "running") == (
        process.id,
        process.kind,
        process.version,
        process.threads,
        process.state,
    )
    assert (stage.worker.queue_name, 0, 1, ("a",)) == (doing.queue, doing.shard, doing.count, doing.ids)
    assert process.since <= doing.since <= process.seen_at
    assert process.rss > 1 << 20
    assert not process.is_slow
    stage.release("a")


def test_sk2_a_daemon_under_load_is_quieted_and_then_stopped(stage: Stage) -> None:
    """SK-2: after quiet what runs ends, nothing begins and the process stays; after stop it ends in good order."""
    daemon = stage.daemon(heartbeat_interval=SOON)
    process = begin_a(stage, daemon)

    is_known = stage.app.operate.processes().quiet(process)
    stage.await_told("on_quiet")
    stage.push(f"c{number}" for number in range(10))
    stage.release("a")
    stage.await_told("end", id="a")
    quiet = eventually(lambda: (found := process_of(stage.app, daemon.pid)) and not found.doing and found)

    assert is_known
    assert isinstance(quiet, Process)
    assert (True, "quiet", "quiet") == (quiet.quiet, quiet.state, quiet.order)
    assert stage.app.operate.processes().stop(process.id)
    assert 0 == daemon.exit_code()
    assert ["a"] == [told["id"] for told in stage.told("begin")]
    assert process_of(stage.app, daemon.pid) is None
    assert 40 == stage.app.drain()["done"]


def test_sk2_a_daemon_under_load_is_stopped(stage: Stage) -> None:
    """SK-2: as by TERM, handlers see that they should come to an end, and what waits is left to others."""
    daemon = stage.daemon(heartbeat_interval=SOON)
    stage.push("a", "await stop")
    stage.await_told("begin", id="a")
    stage.push(f"b{number}" for number in range(30))
    eventually(lambda: process_of(stage.app, daemon.pid))
    process = process_of(stage.app, daemon.pid)
    assert process is not None

    assert stage.app.operate.processes().stop(process)

    assert 0 == daemon.exit_code()
    assert ["a"] == [told["id"] for told in stage.told("end")]
    assert 30 == stage.app.drain()["done"]


def test_sk2_one_of_several_processes_is_quieted_alone_and_stop_replaces_it(
    own_server: Server, queue_name: str, tmp_path: Path
) -> None:
    """SK-2: each child has a heartbeat of its own; stopped by an order, it has a successor as after any TERM."""
    with closing(Stage(own_server, queue_name, tmp_path, "tests.local.app:app")) as stage:
        stage.daemon("--processes", "2", heartbeat_interval=SOON)
        _quiet_and_stop_a_child(stage)


def _quiet_and_stop_a_child(stage: Stage) -> None:
    eventually(lambda: len(stage.app.operate.processes()) == 2, timeout=30)
    first, second = stage.app.operate.processes()

    stage.app.operate.processes().quiet(first)
    eventually(lambda: (found := process_of(stage.app, first.pid)) and found.quiet)
    kept = process_of(stage.app, second.pid)
    stage.app.operate.processes().stop(first)
    eventually(lambda: {process.pid for process in stage.app.operate.processes()} - {first.pid, second.pid}, timeout=30)

    assert kept is not None
    assert not kept.quiet
    assert process_of(stage.app, first.pid) is None
    assert process_of(stage.app, second.pid) is not None


@pytest.mark.parametrize("order", ["quiet", "stop"])
def test_sk2_an_invocation_that_is_played_here_ends_its_tour(stage: Stage, order: str) -> None:
    """SK-2: told either, `lowkiq stack invoke` performs its batch to the end, begins no other, and answers."""
    stage.push("a", "wait")
    invocation = subprocess.Popen(
        [sys.executable, "-m", "lowkiq_lambda", "stack", "invoke", stage.app_spec, "--timeout", "300"],
        cwd=ROOT,
        env={**clean_environment(), **stage.variables_with(heartbeat_interval=SOON)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with closing_process(invocation):
        stage.await_told("begin", id="a")
        stage.push(f"b{number}" for number in range(30))
        eventually(lambda: doing_of(stage.app, invocation.pid) == ["a"])
        process = process_of(stage.app, invocation.pid)
        assert process is not None
        processes = stage.app.operate.processes()
        is_known = processes.stop(process) if order == "stop" else processes.quiet(process)
        eventually(lambda: (found := process_of(stage.app, invocation.pid)) and found.quiet)
        stage.release("a")
        answer, _ = invocation.communicate(timeout=60)

    assert is_known
    assert "lambda" == process.kind
    assert ("stopping", {"done": 1}, 0) == (*itemgetter("reason", "counts")(json.loads(answer)), invocation.returncode)
    assert ["a"] == [told["id"] for told in stage.told("begin")]
    assert process_of(stage.app, invocation.pid) is None
    assert 30 == stage.app.drain()["done"]


def test_sk4_a_hook_is_called_before_each_heartbeat(
    fault_proxy: FaultProxy, queue_name: str, make_app: MakeApp
) -> None:
    """SK-4, C-18: the first, and those that Redis does not take: it says that this process lives."""
    heartbeats: list[int] = []
    app = make_app(
        redis_url=fault_proxy.url,
        heartbeat_interval=SOON,
        redis_timeout=0.5,
        on_heartbeat=lambda: heartbeats.append(0),
    )
    app.worker(queue_name=queue_name, shards_count=1)(print)

    with Daemon(app):
        eventually(lambda: len(heartbeats) > 3)
        fault_proxy.refuse()
        fault_proxy.cut()
        lost = len(heartbeats)
        eventually(lambda: len(heartbeats) > lost + 3)
        fault_proxy.accept()
        back = len(heartbeats)
        eventually(lambda: len(heartbeats) > back, timeout=30)


def test_sk1_five_slow_heartbeats_are_told_once(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SK-1: a warning comes with the fifth reading in a row that is too slow, and not again with the sixth."""
    monkeypatch.setattr("lowkiq_lambda.engine.heartbeat.SLOW", 0.0)
    made: list[None] = []
    app = make_app(heartbeat_interval=SOON, on_heartbeat=lambda: made.append(None))
    app.worker(queue_name=queue_name, shards_count=1)(print)

    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: len(made) > 4)
        eventually(lambda: any(process.is_slow for process in app.operate.processes()))
        eventually(lambda: len(made) > 8)

    told = [record for record in caplog.records if "Redis is slow to answer" in record.message]
    assert 1 == len(told)


def test_a_heartbeat_that_fails_ends_nothing(
    own_server: Server, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They decide nothing: where Redis has something else under their key, that is told once, and jobs are done."""
    key = ProcessesRef().key("alive")
    own_server.admin.set(key, "of somebody else")
    app = Lowkiq(Config(redis_url=own_server.url, heartbeat_interval=SOON))
    done = Event()

    def perform(_batch: Batch) -> None:
        done.set()

    worker = app.worker(queue_name=queue_name, shards_count=1)(perform)
    with closing_app(app), caplog.at_level(logging.WARNING), Daemon(app):
        worker.push_many(jobs_of("a"))
        is_done = done.wait(30)
        eventually(lambda: "cannot tell that it lives" in caplog.text)
        own_server.admin.delete(key)
        eventually(app.operate.processes)

    assert is_done
    assert 1 == caplog.text.count("cannot tell that it lives")


def test_sk1_who_is_silent_is_gone_after_a_minute_and_forgotten_after_a_day(own_server: Server) -> None:
    """SK-1: no heartbeat for 60 s shows a process as gone; after 24 h the heartbeats of others remove it."""
    clock = ManualClock()
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    silent, other = (Heartbeat(app.core.drains.drainer, "daemon", 1, print) for _ in range(2))

    def shown() -> dict[str, bool]:
        return {process.id: process.is_gone for process in app.operate.processes()}

    with closing_app(app):
        silent.sender.send(silent.told())
        clock.advance(60.0)
        after_a_minute = shown()
        clock.advance(1.0)
        other.sender.send(other.told())
        later = shown()
        clock.advance(86_400.0)
        was_known = app.operate.processes().stop(silent.id)
        other.sender.send(other.told())

        assert {silent.id: False} == after_a_minute
        assert {silent.id: True, other.id: False} == later
        assert was_known
        assert {other.id: False} == shown()
        assert not app.operate.processes().stop(silent.id)
        assert not own_server.admin.exists(ProcessesRef().key("orders"))


def test_who_is_to_stop_is_not_told_less(own_server: Server) -> None:
    """A later quiet does not take back a stop; what nobody of this version wrote hides no process."""
    app = Lowkiq(Config(redis_url=own_server.url))
    heartbeat = Heartbeat(app.core.drains.drainer, "daemon", 1, print)

    with closing_app(app):
        heartbeat.sender.send(heartbeat.told())
        own_server.admin.hset(ProcessesRef().key("alive"), "newer", "17.0 \xff")
        app.operate.processes().stop(heartbeat.id)
        app.operate.processes().quiet(heartbeat.id)

        assert [(heartbeat.id, "stop")] == [(process.id, process.order) for process in app.operate.processes()]


def test_the_version_that_heartbeats_tell_is_that_of_the_package() -> None:
    """It is written in two places, as reading the package's metadata takes long."""
    assert version("lowkiq_lambda") == VERSION == lowkiq_lambda.__version__


@pytest.mark.parametrize("release", ["r418", None])
def test_a_process_tells_the_release_of_its_code(make_app: MakeApp, release: str | None) -> None:
    """Beside the version of the library; an app without one sends no byte for it."""
    app = make_app(release=release)
    heartbeat = Heartbeat(app.core.drains.drainer, "daemon", 1, print)
    heartbeat.sender.send(heartbeat.told())

    (process,) = (process for process in app.operate.processes() if process.id == heartbeat.id)
    assert (release or UNSET) == process.release
    assert (release is not None) == (b"release" in msgspec.msgpack.encode(heartbeat.told()))
