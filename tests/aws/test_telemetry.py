"""What the drain function says about itself, and when."""

import json
import logging
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from lowkiq_lambda import Batch, ConfigError, Lowkiq
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction, Install
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive, stop_renewing
from tests.kit.handlers import Notes, failing, raising_with
from tests.kit.workers import declare, jobs_of, shard_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def install(install: Install) -> Install:
    """Makes an app the one that the functions find, which publish all that there is."""
    return partial(install, metrics="queues")


def test_what_is_done_is_told_before_the_next_batch_starts(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """An invocation that is killed amid a batch has told all batches before it: their line has left the process."""
    told = list[float]()

    def note_what_was_told(_batch: Batch) -> None:
        told.append(sum(drain.values("done", queue_name)))
        clock.advance(1)

    app = make_app()
    declare(app, queue_name, note_what_was_told, batch_size=2).push_many(jobs_of("abcdefgh"))
    drain.install(app)

    drain()

    assert [0, 2, 4, 6] == told
    assert 8 == sum(drain.values("done"))


def test_a_killed_run_has_told_what_it_got_done(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """The same with a real process and a real SIGKILL, and the standard output a pipe, which Python would buffer."""
    (tmp_path / "dying.py").write_text(
        "import os, signal, time\n"
        "from lowkiq_lambda import Lowkiq\n"
        "app = Lowkiq()\n"
        f"@app.worker(queue_name={queue_name!r}, shards_count=1)\n"
        "def perform(batch):\n"
        "    if 'c' in batch: os.kill(os.getpid(), signal.SIGKILL)\n"
        "perform.push_many([{'id': id, 'due_at': time.time() - 9 + n} for n, id in enumerate('abcd')])\n"
        "from lowkiq_lambda.aws.drain_function import handler\n"
        "class Context:\n"
        "    function_name = invoked_function_arn = aws_request_id = 'shop-drain'\n"
        "    memory_limit_in_mb = '512'\n"
        "    def get_remaining_time_in_millis(self): return 60_000\n"
        "if __name__ == '__main__':\n"
        "    handler({}, Context())\n"
    )
    # Acknowledged after each batch, so that two of the four are.
    environ = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_APP": "__main__:app", "LOWKIQ_SETTLE_INTERVAL": "0"}
    environ["LOWKIQ_METRICS"] = "queues"

    died = subprocess.run(
        [sys.executable, "dying.py"],
        cwd=tmp_path,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )

    assert -signal.SIGKILL == died.returncode
    # On a slow machine there are lines of the log among them.
    lines = [line for line in map(json.loads, died.stdout.splitlines()) if "_aws" in line]
    assert 2 == sum(sum(line.get("done", [])) for line in lines)
    assert [1.0] == [value for line in lines for value in line.get("cold_start", [])]
    assert [] != [value for line in lines for value in line.get("lag_at_start", [])]


def test_counts_are_those_of_the_result(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """Processed, failed, and of the failed those that are tried again and those that are dead."""
    app = make_app()
    declare(app, f"{queue_name}-retried", failing("b", "c")).push_many(jobs_of("abc"))
    declare(app, f"{queue_name}-dead", failing("b"), max_retry_count=0, batch_size=5).push_many(jobs_of("ab"))
    declare(app, f"{queue_name}-slow", Notes(lambda _batch: clock.advance(2))).push_many(jobs_of("a"))
    drain.install(app)

    counts = drain()["counts"]

    assert {"done": 3, "failed": 3, "retried": 2, "dead": 1} == counts
    assert {"done": 3, "failed": 3, "retried": 2, "dead": 1} == drain.sums(
        "done", "failed", "retried", "dead", "recovered"
    )
    assert [1] == drain.values("dead", f"{queue_name}-dead")
    assert ([2], [2]) == tuple(drain.values(name, f"{queue_name}-slow") for name in ("batch_duration", "slowest_batch"))


def test_what_an_operator_stops_is_told_as_cancelled(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """It is no failure."""
    app = make_app()

    def perform(batch: Batch) -> None:
        app.operate(worker).cancel([*batch])
        batch.fail("b", "broken")

    worker = declare(app, queue_name, perform, batch_size=2)
    worker.push_many(jobs_of("ab"))
    drain.install(app)

    assert {"done": 1, "cancelled": 1} == drain()["counts"]
    assert ([1], []) == (drain.values("cancelled", queue_name), drain.values("failed", queue_name))


def test_what_a_dead_holder_left_is_told_as_recovered(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """Before the first batch, which may kill this one too."""
    dead, app, recovered = make_app(), make_app(), list[float]()
    died = Mortal(dead)
    worker = declare(dead, queue_name, died.die)
    worker.push_many(jobs_of("ab"))
    died.drain()
    declare(app, queue_name, lambda _batch: recovered.extend(drain.values("recovered")))
    drain.install(app)
    outlive(app, clock, worker)

    drain()

    assert [1] == recovered[:1] == drain.values("recovered")


def test_what_died_for_crashes_is_told_as_failed(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """`failed` is the sum of `retried` and `dead`, whatever an id died of."""
    dead, app = make_app(), make_app()
    died = Mortal(dead)
    worker = declare(dead, queue_name, died.die)
    worker.push_many(jobs_of("a"))
    declare(app, queue_name, Notes())
    drain.install(app)
    for _ in range(4):
        died.drain()
        outlive(app, clock, worker)

    assert {"recovered": 1, "failed": 1, "dead": 1} == drain()["counts"]
    assert {"failed": 1, "dead": 1} == drain.sums("failed", "retried", "dead")


def test_only_what_was_acknowledged_is_told(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P9: what a drain did without a lease is done by its successor too, and counted there."""
    app, other = make_app(), make_app()
    stop_renewing(app, monkeypatch)

    def lose_the_lease(_batch: Batch) -> None:
        outlive(app, clock, worker)
        other.drain()

    worker = declare(app, queue_name, lose_the_lease)
    declare(other, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    drain.install(app)

    assert ("lease lost", []) == (drain()["reason"], drain.values("done"))


def test_lag_and_reason_are_told_of_each_queue(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """At the start before anything runs, and at the end, with why its shards were left."""
    at_start = list[float]()

    def take_ten_seconds(_batch: Batch) -> None:
        at_start.extend(drain.values("lag_at_start", f"{queue_name}-slow"))
        clock.advance(10)

    app = make_app()
    slow = declare(app, f"{queue_name}-slow", take_ten_seconds)
    slow.push_many([{"id": job_id, "due_at": clock.time() - 7} for job_id in "abc"])
    declare(app, f"{queue_name}-idle", Notes(), shards_count=3)
    drain.install(app)

    drain(seconds=28)

    assert [7] == at_start[:1] == drain.values("lag_at_start", f"{queue_name}-slow")
    assert [27] == drain.values("lag_at_end", f"{queue_name}-slow")
    assert [1] == drain.values("ended_out_of_time", f"{queue_name}-slow")
    assert [([0.0], [0.0], [3.0], "empty")] == [
        (blob["lag_at_start"], blob["lag_at_end"], blob["ended_empty"], blob["reason"])
        for blob in drain.blobs
        if blob.get("queue") == f"{queue_name}-idle"
    ]


def test_the_lag_that_is_left_is_told_also_where_a_batch_overran(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """When the budget is over there is still the reserve, for one more look."""
    app = make_app()
    worker = declare(app, queue_name, Notes(lambda _batch: clock.advance(61)))
    worker.push_many(jobs_of("ab"))
    drain.install(app)

    result = drain(seconds=63)

    assert ("out of time", {"done": 1}, 1) == (result["reason"], result["counts"], result["left"])
    assert [61] == drain.values("lag_at_end")


def test_a_cold_start_is_told_once(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """By the first invocation of an environment, as a metric and in its log lines."""
    app = make_app()
    declare(app, queue_name, Notes())
    drain.install(app)

    drain()
    drain()

    assert [1] == drain.values("cold_start")
    assert [True, False] == [line["cold_start"] for line in drain.logs]


def test_dimensions_are_queue_and_function_and_no_id_is_told(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value of a dimension is a metric that costs: neither an id nor a name of the environment makes one more."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "shop")
    app = make_app()
    declare(app, queue_name, failing("id-of-a-job")).push_many(jobs_of(["id-of-a-job", "id-of-another"]))
    drain.install(app, metrics_namespace="shop/queues")

    drain()

    found = [blob["_aws"]["CloudWatchMetrics"] for blob in drain.blobs]
    assert {"shop/queues"} == {of_one["Namespace"] for (of_one,) in found}
    assert {(("function",),), (("function", "queue"), ("function",))} == {
        tuple(tuple(dimensions) for dimensions in of_one["Dimensions"]) for (of_one,) in found
    }
    assert {("shop-drain", queue_name), ("shop-drain", None)} == {
        (blob["function"], blob.get("queue")) for blob in drain.blobs
    }
    assert "id-of-a" not in json.dumps(drain.blobs)


def test_each_line_is_valid_embedded_metric_format(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """A queue's name may be anything, a dimension's value may not; every metric that is named has its values."""
    name = f" {queue_name} äöü\n"
    app = make_app()
    declare(app, name, Notes()).push_many(jobs_of("a"))
    drain.install(app)

    drain()

    for blob in drain.blobs:
        ((of_one,), stamp) = blob["_aws"]["CloudWatchMetrics"], blob["_aws"]["Timestamp"]
        assert isinstance(stamp, int)
        assert all(isinstance(value, float) for one in of_one["Metrics"] for value in blob[one["Name"]])
        assert all(blob[one].isascii() and blob[one].strip() for names in of_one["Dimensions"] for one in names)


def test_the_library_s_own_warnings_are_structured(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """A batch that fails is a line of JSON that names invocation and shard; its error is a field, and in the trace."""
    app = make_app()
    declare(app, queue_name, raising_with("a")).push_many(jobs_of("a"))
    drain.install(app)

    drain()

    (line,) = (line for line in drain.logs if line["level"] == "WARNING")
    assert ("a batch failed", queue_name) == (line["message"], line["queue"])
    assert (0, ["a"]) == (line["shard"], line["ids"])
    assert ("lowkiq_lambda.engine.failure_log", "shop-drain", "6f5d") == tuple(
        line[name] for name in ("name", "function_name", "function_request_id")
    )
    assert line["exception"].startswith(line["error"])
    assert "a is broken" in line["error"]
    assert 2 == json.dumps(line).count("Broken: ")


def test_the_log_level_is_that_of_powertools(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POWERTOOLS_LOG_LEVEL holds for the library and for the function's own lines."""
    app = make_app()
    declare(app, queue_name, Notes())
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "error")
    drain.install(app)

    drain()

    assert [] == drain.logs


def test_a_log_level_that_there_is_not_is_refused(
    drain: DrainFunction, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the variable, the value and the levels."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "loud")
    drain.install(make_app())

    with pytest.raises(ConfigError, match=r"^POWERTOOLS_LOG_LEVEL='LOUD' is refused: expected one of DEBUG, INFO, "):
        drain()


class Deaf:
    """An observer that breaks."""

    def __init__(self) -> None:
        self.told = 0

    def settled(self, _event: SettledEvent) -> None:
        """Break."""
        self.told += 1
        raise OSError("the standard output is closed")


def test_p6_an_observer_that_raises_stops_nothing(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: it is logged, and the drain goes on."""
    app, deaf = make_app(), Deaf()
    declare(app, queue_name, Notes()).push_many(jobs_of("abc"))
    app.core.drains.drainer.observer = deaf
    app.observers.append(Deaf())

    with caplog.at_level(logging.ERROR):
        counts = app.drain()

    assert ({"done": 3}, True) == (counts, deaf.told > 0)
    assert "the observer of settlings raised" in caplog.text


def test_a_queue_without_a_line_of_its_own_has_none(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """What was not selected is not told of."""
    app: Lowkiq = make_app()
    worker = declare(app, f"{queue_name}-one", Notes())
    declare(app, f"{queue_name}-two", Notes())
    worker.push_many(jobs_of("a"))
    drain.install(app)

    drain({"queue": f"{queue_name}-one", "shard": shard_of(app, worker, "a").index})

    assert {f"{queue_name}-one"} == {blob["queue"] for blob in drain.blobs if "queue" in blob}
