"""An invocation that visits several shards at once, and is killed amid all of them."""

from collections import Counter

import pytest

from lowkiq_lambda.jobs.job import shard_for
from tests.aws.runtime.conftest import MakeStage
from tests.aws.runtime.function_stage import PLENTY, FunctionStage
from tests.kit.servers.lambda_outcome import Crashed
from tests.kit.waiting import eventually

SHARDS = 5


def in_each_shard(name: str, each: int) -> list[str]:
    """So many ids in each shard."""
    ids: list[str] = []
    found, number = Counter[int](), 0
    while len(ids) < SHARDS * each:
        number += 1
        shard = shard_for(f"{name}{number}", SHARDS)
        if found[shard] < each:
            found[shard] += 1
            ids.append(f"{name}{number}")
    return ids


def done_by(stage: FunctionStage) -> int:
    """How many ids are settled."""
    return sum(stage.state(index)["counters"].get("done", 0) for index in range(SHARDS))


@pytest.mark.parametrize("concurrency", [1, 3])
def test_p1_p2_p3_a_kill_amid_several_visits_repeats_what_was_not_settled_and_no_more(
    make_stage: MakeStage, concurrency: int
) -> None:
    """P1, P2, P3: all is done afterwards, in order, and only what ran at the kill has begun twice."""
    stage = make_stage(shards_count=SHARDS, batch_size=1)
    before, amid, behind = in_each_shard("before", 2), in_each_shard("amid", concurrency), in_each_shard("behind", 2)
    stage.push(before)
    stage.push(amid, "hang once")
    stage.push(behind)
    environment = stage.environment(variables={"STAGE_CONCURRENCY": str(concurrency)})
    running = environment.begin({}, timeout=60.0)
    stage.await_told("begin", times=len(before) + len(amid))
    eventually(lambda: done_by(stage) == len(before))

    environment.kill()
    assert isinstance(running.outcome(), Crashed)
    stage.push([*before, *amid, *behind], number=2)
    for index in range(SHARDS):
        stage.end_lease(index)
    after = environment.begin({}, timeout=PLENTY).result()

    begun = Counter(line["id"] for line in stage.told("begin") if 1 in line["numbers"])
    assert {**dict.fromkeys([*before, *behind], 1), **dict.fromkeys(amid, 2)} == begun
    performed = {job_id: [n for run in runs for n in run] for job_id, runs in stage.performed().items()}
    assert {job_id: [1, 2] for job_id in [*before, *amid, *behind]} == performed
    assert [] == stage.told("overlap")
    assert ("empty", 0) == (after.value["reason"], after.value["left"])
    counters = stage.check_that_nothing_is_left(done=len(before) + after.value["counts"]["done"])
    assert (0, 0) == (counters["retried"], counters["dead"])
