"""The whole way on a local cloud: the template deployed, schedules that fire, drains, numbers, an update."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stack import BY_HAND, LAST, QUEUE, SCHEDULED, Stack
from tests.kit.servers import LocalCloud
from tests.kit.servers.ports import HOST
from tests.kit.waiting import eventually

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(400)  # the first has the packages built and the stack deployed


def test_the_stack_schedules_each_shard_that_is_named(stack: Stack) -> None:
    """There is a schedule for each index of `ShardIndexes`, and one for the tick, all enabled."""
    assert {"minute", *(f"shard-{shard}" for shard in SCHEDULED)} == stack.schedules == stack.enabled_schedules
    assert '{"tick": "only"}' == stack.schedule("minute")["Target"]["Input"]


def test_schedules_that_are_due_drain_their_shards(stack: Stack) -> None:
    """What was pushed from outside ends done, in order, once the schedules of its shards fire; no other shard does."""
    shards = [shard for shard in SCHEDULED[:-1] if shard != BY_HAND]
    with stack.due_now(*shards):
        stack.wait_until_done(*shards)

    assert stack.metrics.shards[LAST].length


@pytest.mark.nightly("a written project's `make cloud` does so in each check")
@pytest.mark.xdist_group("cloud")  # for the packages, which would be built once more
def test_the_script_for_people_runs_it_all(packages: Path, tmp_path: Path) -> None:
    """`python -m local.cloud` deploys, drains and compares on a cloud of its own; Ctrl-C ends all that it started."""
    # Here, as the stack's first minute has to pass anyway.
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        script = subprocess.Popen(
            [sys.executable, "-m", "local.cloud", "--packages", str(packages)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(
            lambda: script.poll() is not None or "Ctrl-C ends it" in printed.read_text(), 200, "the end of all jobs"
        )
        ports = [int(port) for port in re.findall(r"[/@]127\.0\.0\.1:(\d+)", printed.read_text())]
        assert [0, 0] == [refusal(port) for port in ports], printed.read_text()
        script.send_signal(signal.SIGINT)
        code = script.wait(30)
    finally:
        script.kill()
        script.wait()

    assert 0 == code, printed.read_text()
    assert "the files are what git says" in printed.read_text()
    assert ".execute-api.localhost:" in printed.read_text()
    assert all(refusal(port) for port in ports)


def refusal(port: int) -> int:
    """The system's number for why nobody answers on a port of loopback; 0 where somebody does."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port))


@pytest.mark.nightly("it waits for up to two minutes; schedules that are due are fired by hand in each check")
def test_a_schedule_of_a_minute_fires_by_itself(stack: Stack) -> None:
    """Within two minutes of the deployment the shard that nobody else drains is drained by its own schedule."""
    stack.wait_until_done(SCHEDULED[-1], timeout=120)


def test_lag_is_in_the_logs(stack: Stack) -> None:
    """Drains log the lag they found and left, ticks each minute that of the app, as an embedded metric."""

    def of_drains() -> list[float]:
        queues = [line["queues"] for line in stack.lines_of("drain") if line.get("message") == "drained"]
        return [queue[QUEUE]["lag_at_start"] or 0.0 for queue in queues if QUEUE in queue]

    def of_ticks() -> list[float]:
        return [line["oldest_due_age"][0] for line in stack.lines_of("drain") if "oldest_due_age" in line]

    assert max(eventually(of_drains, timeout=30, what="metrics of drains")) > 0
    # The last shard has work, and nothing drains it.
    assert max(eventually(of_ticks, timeout=120, what="metrics of ticks")) > 0


def test_an_update_gives_a_new_shard_its_schedule(stack: Stack) -> None:
    """A longer `ShardIndexes` adds schedules, whose drains do what had to wait; a shorter one takes them away."""
    assert stack.metrics.shards[LAST].length

    stack.schedule_shards([*SCHEDULED, LAST])
    assert {"minute", *(f"shard-{shard}" for shard in (*SCHEDULED, LAST))} == stack.schedules
    with stack.due_now(LAST):
        stack.wait_until_done(LAST)

    stack.schedule_shards([0, LAST])
    assert {"minute", "shard-0", f"shard-{LAST}"} == stack.schedules


def test_nothing_went_wrong_on_the_way(stack: Stack) -> None:
    """No job failed but the one that was meant to, no event was lost, no function logged an error."""
    errors = [
        line
        for function in ("drain", "dashboard")
        for line in stack.log_of(function)
        if re.search('Task timed out|"level": ?"(ERROR|CRITICAL)"', line)
    ]

    assert [] == errors
    assert (1, 0) == (stack.metrics.failed, stack.metrics.morgue_length)
    assert 0 == stack.failed_events()


def test_an_event_that_fails_ends_in_the_failure_queue(stack: Stack, cloud: LocalCloud) -> None:
    """An invocation that fails is not tried again; its event lies where people can find it."""
    function = stack.deployment.outputs["DrainFunctionName"]

    cloud.client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=b'{"queue": "unknown"}')

    eventually(stack.failed_events, timeout=60, what="the event in the queue")
    assert 1 == sum("The event's queue 'unknown' is unknown" in line for line in stack.log_of("drain"))
