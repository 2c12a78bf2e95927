"""What a deadline leaves behind: nothing is lost, the order is kept, and what was done is known."""

import string

import pytest

from tests.aws.runtime.conftest import MakeStage
from tests.aws.runtime.function_stage import PLENTY, FunctionStage, reason_of
from tests.kit.order import is_in_order
from tests.kit.servers.lambda_outcome import Killed
from tests.kit.waiting import eventually

BEFORE, BEHIND = "abcdef", "hijkl"
ALL = BEFORE + "g" + BEHIND


def test_p2_a_run_killed_in_the_middle_of_a_batch_loses_nothing(stage: FunctionStage) -> None:
    """P2, P3: the invocation after the lease's end recovers what was in flight; then all is done, in order."""
    for ids, do in ((BEFORE, "note"), ("g", "hang once"), (BEHIND, "note")):
        stage.push(ids, do, 1)
        stage.push(ids, "note", 2)
    environment = stage.environment(metrics="queues")
    running = environment.begin({"shard": 0}, timeout=PLENTY)
    stage.await_told("begin", id="g")
    environment.time_out()
    killed = running.outcome()
    assert isinstance(killed, Killed)
    assert {} != stage.state()["flight"]

    # More arrives for those that died: it comes behind what they have.
    stage.push(ALL, "note", 3)
    stage.end_lease()
    after = environment.begin({"shard": 0}, timeout=PLENTY).result()

    assert after.cold
    assert [1] == after.metric("cold_start")
    assert [3] == after.metric("recovered")
    performed = stage.performed()
    assert set(ALL) == performed.keys()
    for numbers in performed.values():
        assert is_in_order(numbers)
        assert 3 == numbers[-1][-1]
    assert [] == stage.told("overlap")
    # Nobody is worse off for it: no retry counted, nobody suspected any more.
    counters = stage.check_that_nothing_is_left(done=sum(map(len, performed.values())))
    assert 0 == counters["retried"] == counters["dead"]


def test_what_a_killed_run_had_done_is_in_its_metrics(stage: FunctionStage) -> None:
    """Metrics are flushed after every batch: of the batches before the one that was killed none is missing."""
    stage.push(BEFORE)
    stage.push("g", "hang once")
    environment = stage.environment(metrics="queues")
    running = environment.begin({"shard": 0}, timeout=PLENTY)
    stage.await_told("begin", id="g")
    environment.time_out()
    killed = running.outcome()

    assert isinstance(killed, Killed)
    assert len(BEFORE) == stage.state()["counters"]["done"] == sum(killed.metric("done"))


def test_metrics_can_be_read_while_the_function_runs(stage: FunctionStage) -> None:
    """They do not wait for the end of the invocation."""
    stage.push(BEFORE)
    stage.push("w", "wait", 2)
    environment = stage.environment(metrics="queues")
    running = environment.begin({"shard": 0}, timeout=PLENTY)
    stage.await_told("begin", id="w")

    eventually(lambda: len(BEFORE) == sum(environment.metric("done")))
    stage.release("w")
    assert len(BEFORE) + 1 == sum(running.result().metric("done"))


def test_an_invocation_right_after_the_kill_finds_the_shard_held(stage: FunctionStage) -> None:
    """The lease of the dead runs to its end: nobody performs what may still be performed."""
    stage.push("g", "hang once")
    environment = stage.environment(lease_ttl=30.0)
    running = environment.begin({"shard": 0}, timeout=PLENTY)
    stage.await_told("begin", id="g")
    environment.time_out()

    assert isinstance(running.outcome(), Killed)
    assert "held" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())
    assert 1 == len(stage.told("begin"))


@pytest.mark.parametrize("left", [5.0, 12.0])
def test_p5_an_event_that_comes_late_starts_nothing(stage: FunctionStage, left: float) -> None:
    """P5: with less time than the reserve nothing is started, claimed or lost, and the reason is said."""
    stage.push(ALL)
    environment = stage.environment(reserve=15.0)

    late = environment.begin({"shard": 0}, timeout=left).result()
    assert "out of time" == reason_of(late)
    assert [] == stage.told("begin")
    assert set(ALL) == stage.state()["waiting"].keys()
    assert 0 == stage.state()["lease"][0]

    assert "empty" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())
    assert {job_id: [[1]] for job_id in ALL} == stage.performed()


def test_p5_more_work_than_time_is_left_to_the_next_invocations(make_stage: MakeStage) -> None:
    """P5: no run is killed, each ends by itself before its deadline, and none leaves a lease or a job in flight."""
    stage = make_stage(batch_size=1)
    stage.push(string.ascii_letters[:30], "take a tenth")
    environment = stage.environment(reserve=2.5)

    reasons = []
    while stage.state()["waiting"]:
        result = environment.begin({"shard": 0}, timeout=3.5).result()
        reasons.append(reason_of(result))
        assert {} == stage.state()["flight"]
        assert not stage.state()["lease"][2]

    assert len(reasons) > 2
    assert {"out of time"} == set(reasons[:-1])
    assert {1} == {len(numbers) for numbers in stage.performed().values()}
