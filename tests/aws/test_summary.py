"""What a tick publishes of the app by default, and the count of the dead that Redis keeps."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda.aws import ticking
from lowkiq_lambda.aws.tick import HousekeepingFailed
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.shard.keys import told_key
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction
from tests.aws.minutes import TICK
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

ROOT: Final = Path(__file__).parents[2]


def metrics_of(blob: dict[str, Any]) -> dict[str, float]:
    """The values that a line publishes."""
    (directive,) = blob["_aws"]["CloudWatchMetrics"]
    assert [["function"]] == directive["Dimensions"]
    return {metric["Name"]: blob[metric["Name"]][0] for metric in directive["Metrics"]}


def test_a_summary_is_two_metrics_in_one_line(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """However many queues there are and whatever was drained; a drain without a tick publishes nothing."""
    app = make_app()
    first = declare(app, f"{queue_name}-first", failing("b"))
    second = declare(app, f"{queue_name}-second", Notes())
    drain.install(app)
    first.push_many(jobs_of("ab"))
    clock.advance(7)
    second.push_many(jobs_of("abc"))
    clock.advance(5)

    drain(TICK)
    drain()

    assert [{"oldest_due_age": 12.0, "dead": 0.0}] == [metrics_of(blob) for blob in drain.blobs]


def test_payloads_that_the_morgue_lost_are_published(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """P9: only where some are lost, as each metric costs."""
    app = make_app(morgue=MorgueLimits(entries=1))
    worker = declare(app, queue_name, failing("a", "b", "c"), max_retry_count=0)
    drain.install(app)
    worker.push_many(jobs_of("abc"))

    drain()
    drain(TICK)

    assert [2.0] == [metrics_of(blob)["trimmed"] for blob in drain.blobs]


def test_without_metrics_nothing_is_published_and_nothing_kept(
    drain: DrainFunction, make_app: MakeApp, server: Server, queue_name: str
) -> None:
    """Whoever wants none pays for none: no line, no command, no key."""
    app = make_app()
    worker = declare(app, queue_name, failing("a"), max_retry_count=0)
    drain.install(app, metrics="none")
    worker.push_many(jobs_of("a"))

    assert {} == drain(TICK)["tick"]

    assert [] == drain.blobs
    assert 0 == server.admin.exists(told_key(queue_name))


def test_an_idle_tick_writes_nothing(
    drain: DrainFunction, make_app: MakeApp, server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was told is read with the numbers, and written where it has changed."""
    app = make_app()
    declare(app, queue_name, Notes())
    drain.install(app)
    drain(TICK)
    told = server.admin.hgetall(told_key(queue_name))
    written: list[object] = []
    monkeypatch.setattr(ticking, "note_told", lambda *arguments: written.append(arguments))

    drain(TICK)

    assert ({b"shop-drain": b"0"}, []) == (told, written)


def test_each_death_is_told_once_whoever_drained(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """This function, a daemon beside it, and a process that dies right behind the death."""
    app, daemon, dying = make_app(), make_app(), make_app()
    worker = declare(app, queue_name, failing("a"), max_retry_count=0)
    declare(daemon, queue_name, failing("b"), max_retry_count=0)
    died = Mortal(dying)
    declare(dying, queue_name, lambda batch: died.die() if "d" in batch else failing("c")(batch), max_retry_count=0)
    drain.install(app)
    drain(TICK)

    worker.push_many(jobs_of("a"))
    drain(TICK)
    worker.push_many(jobs_of("b"))
    daemon.drain()
    worker.push_many(jobs_of("cd"))
    assert died.drain() is None
    outlive(app, clock, worker)
    for _ in range(3):
        drain(TICK)

    assert [0.0, 0.0, 3.0, 0.0, 0.0] == drain.values("dead")


def test_deaths_before_the_first_tick_are_told_by_it(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """A queue whose first jobs die within the first minute of a new stack rings as one whose later jobs do."""
    app = make_app()
    worker = declare(app, queue_name, failing("a", "b"), max_retry_count=0)
    drain.install(app)
    worker.push_many(jobs_of("ab"))

    drain()
    drain(TICK)
    drain(TICK)

    assert [2.0, 0.0] == drain.values("dead")


def test_a_tick_that_dies_before_it_has_told_loses_no_death(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was told is written behind the line, so that a death between the two tells twice, and never not at all."""
    app = make_app()
    worker = declare(app, queue_name, failing("a"), max_retry_count=0)
    drain.install(app)
    drain(TICK)
    worker.push_many(jobs_of("a"))
    drain()

    def die(*_arguments: object, **_options: object) -> None:
        raise BackendUnavailable("the tick is over")

    with monkeypatch.context() as patch:
        patch.setattr(ticking, "publish", die)
        with pytest.raises(HousekeepingFailed):
            drain(TICK)
        patch.undo()
        patch.setattr(ticking, "note_told", die)
        with pytest.raises(HousekeepingFailed):
            drain(TICK)
    drain(TICK)
    drain(TICK)

    assert [0.0, 1.0, 1.0, 0.0] == drain.values("dead")


def test_deaths_of_a_killed_process_are_told_by_a_later_one(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """With real processes and a real SIGKILL: the tick is of a process that has never seen the deaths."""
    (tmp_path / "dying.py").write_text(
        "import os, signal, sys, time\n"
        "from lowkiq_lambda import Lowkiq\n"
        "app = Lowkiq()\n"
        f"@app.worker(queue_name={queue_name!r}, shards_count=1, max_retry_count=0)\n"
        "def perform(batch):\n"
        "    if 'c' in batch: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    raise ValueError('no such order')\n"
        "from lowkiq_lambda.aws.drain_function import handler\n"
        "class Context:\n"
        "    function_name = invoked_function_arn = aws_request_id = 'shop-drain'\n"
        "    memory_limit_in_mb = '512'\n"
        "    def get_remaining_time_in_millis(self): return 60_000\n"
        "if __name__ == '__main__':\n"
        "    if sys.argv[1] == 'tick': handler({'tick': 'only'}, Context())\n"
        "    else:\n"
        "        perform.push_many([{'id': id, 'due_at': time.time() - 9 + n} for n, id in enumerate('abc')])\n"
        "        handler({}, Context())\n"
    )
    environ = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_APP": "__main__:app", "LOWKIQ_SETTLE_INTERVAL": "0"}

    def run(what: str) -> tuple[int, list[dict[str, Any]]]:
        process = subprocess.run(
            [sys.executable, "dying.py", what],
            cwd=tmp_path,
            env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            check=False,
            timeout=60,
        )
        return process.returncode, [json.loads(line) for line in process.stdout.splitlines()]

    assert 0 == run("tick")[0]
    assert -signal.SIGKILL == run("drain")[0]
    code, lines = run("tick")

    assert 0 == code
    assert [2.0] == [value for line in lines for value in line.get("dead", [])]


def test_a_queue_that_is_declared_anew_counts_from_its_new_counter(
    drain: DrainFunction, make_app: MakeApp, server: Server, queue_name: str
) -> None:
    """Its shards count from 0 again: nothing is told of what is less, and all that comes on top."""
    app = make_app()
    worker = declare(app, queue_name, failing("a", "b"), max_retry_count=0)
    drain.install(app)
    server.admin.hset(told_key(queue_name), "shop-drain", 7)
    drain(TICK)

    for job_id in "ab":
        worker.push_many(jobs_of(job_id))
        drain()
        drain(TICK)

    assert [0.0, 1.0, 1.0] == drain.values("dead")


def test_the_line_of_an_idle_minute_is_as_long_for_many_queues(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """Queues in which nothing is and nothing was are left out of the log, not of the answer."""
    lengths = []
    for count in (1, 20):
        app = make_app()
        for number in range(count):
            declare(app, f"{queue_name}-{count}-{number}", Notes())
        drain.install(app)
        drain(TICK)
        before = len(drain.lines)
        told = drain({"tick": True})
        lengths.append(len(json.dumps(drain.lines[before:])))
        assert (count, count) == (len(told["queues"]), len(told["tick"]["queues"]))

    # The request's number, and times, are of one length.
    assert lengths[0] == lengths[1] < 700


def test_what_was_done_of_each_queue_stands_in_the_line_of_the_drain(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """For queries of the log: ids by outcome, batches, their seconds, and the slowest of them."""
    app = make_app()
    busy = declare(app, queue_name, lambda batch: clock.advance(3 if "a" in batch else 1), batch_size=1)
    declare(app, f"{queue_name}-idle", Notes())
    drain.install(app)
    busy.push_many(jobs_of("abc"))

    drain(TICK)

    (line,) = drain.logs
    assert {queue_name: {"done": 3, "batches": 3, "seconds": 5.0, "slowest": 3.0}} == line["work"]
    assert {} == line["queues"]
    assert [queue_name] == list(line["tick"]["queues"])


def test_a_batch_that_fails_is_a_line_of_a_kilobyte(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """Its error is told as it is kept with the job: the handler's frames, and none of those that call it."""

    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        raise ValueError("order 17 has no amount")

    app = make_app()
    declare(app, queue_name, lambda _batch: deep(20)).push_many(jobs_of("a"))
    drain.install(app)

    drain()

    (line,) = [line for line in drain.logs if line["message"] == "a batch failed"]
    assert len(json.dumps(line)) < 1_400
    assert line["exception"].startswith("ValueError: order 17 has no amount\n")
    assert line["exception"].endswith('raise ValueError("order 17 has no amount")')
    assert "perform.py" not in line["exception"]
    assert not {"location", "service", "function_arn", "function_memory_size"} & line.keys()
