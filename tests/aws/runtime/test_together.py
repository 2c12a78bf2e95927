"""Invocations that should not have been: two for one shard, the same twice, and events that make no sense."""

import signal
from contextlib import closing
from typing import Any

import pytest

from tests.aws.runtime.conftest import MakeStage
from tests.aws.runtime.function_stage import PLENTY, FunctionStage, reason_of
from tests.kit.servers import MakeServer, Server
from tests.kit.servers.lambda_outcome import Error
from tests.kit.waiting import eventually

IDS = "abcdef"
ROUNDS = 6


class Requests:
    """How often a server is asked, as it counts it: what comes in one piece is one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = self._reads()

    def since(self) -> int:
        """Since this was made; asking how often is itself one, which was counted."""
        return self._reads() - self._before - 1

    def _reads(self) -> int:
        return int(self._server.admin.info("stats")["total_reads_processed"])


def test_p1_of_two_invocations_for_one_shard_one_drains_and_the_other_ends_at_once(
    make_stage: MakeStage, make_server: MakeServer
) -> None:
    """P1: the one that finds the shard held asks once, is told, and is over, while the other works on."""
    server = make_server()
    stage = make_stage(server)
    # A lease so long that nobody renews it meanwhile.
    first, second = stage.environment(lease_ttl=120.0), stage.environment(lease_ttl=120.0)
    # Warm: connections, scripts and what was declared are there.
    stage.push("w")
    second.begin({"shard": 0}, timeout=PLENTY).result()
    stage.push("a", "wait")
    stage.push(IDS[1:], number=2)
    running = first.begin({"shard": 0}, timeout=60.0)
    stage.await_told("begin", id="a")

    asked = Requests(server)
    held = second.begin({"shard": 0}, timeout=PLENTY).result()
    assert 1 == asked.since()
    assert "held" == reason_of(held)
    assert not running.is_over

    stage.release("a")
    assert "empty" == reason_of(running.result())
    assert {running.result().pid} == {line["pid"] for line in stage.told("begin") if line["id"] in IDS}
    stage.check_that_nothing_is_left(done=1 + len(IDS))


def test_an_invocation_that_finds_nothing_asks_once(make_stage: MakeStage, make_server: MakeServer) -> None:
    """P8: what a schedule costs each minute while nothing is to do is one round trip."""
    server = make_server()
    stage = make_stage(server)
    environment = stage.environment()
    stage.push(IDS)
    environment.begin({"shard": 0}, timeout=PLENTY).result()

    asked = Requests(server)
    assert "empty" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())
    assert 1 == asked.since()


def test_a_duplicated_event_does_nothing_twice(stage: FunctionStage) -> None:
    """The same event under the same request id, to the same and to another process: each job is done once."""
    environments = [stage.environment(), stage.environment()]
    stage.push(IDS)
    first = environments[0].begin({"shard": 0}, timeout=PLENTY)
    first.result()
    for environment in environments:
        again = environment.begin({"shard": 0}, timeout=PLENTY, request_id=first.request_id)
        assert "empty" == reason_of(again.result())

    assert {job_id: [[1]] for job_id in IDS} == stage.performed()
    stage.check_that_nothing_is_left(done=len(IDS))


def test_p1_a_duplicate_that_comes_at_the_same_time_does_nothing_twice(make_stage: MakeStage) -> None:
    """P1: whichever of the two gets a shard, no job is in two hands, and none is done twice."""
    stage = make_stage(shards_count=3, batch_size=1)
    environments = [stage.environment() for _ in range(3)]
    stage.push("abcdefghijklmnopqrstuvwxyz")
    running = [environment.begin({}, timeout=PLENTY, request_id="one") for environment in environments]
    for one in running:
        one.result()

    assert {job_id: [[1]] for job_id in "abcdefghijklmnopqrstuvwxyz"} == stage.performed()
    assert [] == stage.told("overlap")
    stage.check_that_nothing_is_left(done=26)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"queue": "NoSuchQueue", "shard": 0}, "NoSuchQueue"),
        ({"shard": "first"}, "first"),
        ({"shard": -1}, "-1"),
    ],
)
def test_a_bad_event_is_an_error_that_says_what_is_wrong(
    stage: FunctionStage, event: dict[str, Any], said: str
) -> None:
    """It names what was given; the process lives on, and nothing was drained."""
    environment = stage.environment()
    stage.push(IDS)
    error = environment.invoke(event, timeout=PLENTY)

    assert isinstance(error, Error)
    assert said in error.message
    assert [] == stage.told("begin")
    after = environment.begin({"shard": 0}, timeout=PLENTY).result()
    assert error.pid == after.pid
    stage.check_that_nothing_is_left(done=len(IDS))


def test_settings_that_cannot_work_are_told_by_each_invocation(stage: FunctionStage) -> None:
    """Not by a process that does not start: the sentence reaches whoever looks at the function's errors."""
    environment = stage.environment(app="tests.aws.runtime.app:nowhere")
    errors = [environment.invoke({}, timeout=PLENTY) for _ in range(2)]

    for error in errors:
        assert isinstance(error, Error)
        assert "has no 'nowhere'" in error.message
    assert errors[0].pid == errors[1].pid


def test_e54_a_handler_that_exits_does_not_end_the_environment(stage: FunctionStage) -> None:
    """E-54: SystemExit is an error of the invocation; the job was given back as it was, the process is warm still."""
    stage.push("a", "exit once")
    stage.push(IDS[1:], number=2)
    environment = stage.environment()
    error = environment.invoke({"shard": 0}, timeout=PLENTY)
    after = environment.begin({"shard": 0}, timeout=PLENTY).result()

    assert isinstance(error, Error)
    assert "SystemExit" in error.message
    assert (error.pid, False) == (after.pid, after.cold)
    assert set(IDS) == stage.performed().keys()
    assert 0 == stage.check_that_nothing_is_left(done=len(IDS))["retried"]


def test_e96_functions_and_a_daemon_drain_the_same_queue(make_stage: MakeStage) -> None:
    """E-96: they take each other's leases for what they are: no job is in two hands, and none is done twice."""
    stage = make_stage(shards_count=4)
    environments = [stage.environment() for _ in range(2)]
    ids = [f"id{number}" for number in range(60)]
    with closing(stage.daemon(threads_per_node=2, poll_interval=0.1)) as daemon:
        # Each of the three has a share of its own first.
        stage.push(ids, number=1)
        eventually(lambda: len(stage.performed()) == len(ids))
        eventually(lambda: not any(stage.state(index)["lease"][2] for index in range(4)))
        daemon.send(signal.SIGSTOP)
        for number, environment in enumerate(environments, 2):
            stage.push(ids, number=number)
            environment.begin({}, timeout=PLENTY).result()
        daemon.send(signal.SIGCONT)
        for number in range(4, ROUNDS + 1):
            stage.push(ids, number=number)
            running = [environment.begin({}, timeout=PLENTY) for environment in environments]
            for one in running:
                one.result()
        eventually(lambda: not any(stage.state(index)["waiting"] for index in range(4)))
        eventually(lambda: not any(stage.state(index)["lease"][2] for index in range(4)))

    assert 3 == len({line["pid"] for line in stage.told("begin")})
    assert [] == stage.told("overlap")
    performed = {job_id: [n for numbers in runs for n in numbers] for job_id, runs in stage.performed().items()}
    assert {job_id: list(range(1, ROUNDS + 1)) for job_id in ids} == performed
