"""Handlers that are coroutines, in real functions: they are cancelled in time, and keep what their module keeps."""

import pytest

from tests.aws.runtime.function_stage import PLENTY, FunctionStage, reason_of


@pytest.fixture
def waiting(stage: FunctionStage) -> FunctionStage:
    """A queue of one shard, whose handler is a coroutine."""
    stage.variables["LOWKIQ_APP"] = "tests.aws.runtime.waiting_app:app"
    return stage


def test_p5_what_takes_too_long_is_cancelled_before_the_function_is_killed(waiting: FunctionStage) -> None:
    """P5: the invocation ends by itself, its jobs are given back in order, and the shard is free."""
    waiting.push("ab", "hang")
    environment = waiting.environment(reserve=10.0)

    result = environment.begin({"shard": 0}, timeout=12.0).result()

    assert "out of time" == reason_of(result)
    assert {"a", "b"} == {line["id"] for line in waiting.told("end")}
    state = waiting.state()
    assert ({"a", "b"}, {}) == (state["waiting"].keys(), state["flight"])
    assert not state["lease"][2]
    assert 2 == state["counters"]["returned"]


def test_a_warm_invocation_keeps_what_the_module_keeps(waiting: FunctionStage) -> None:
    """What is bound to the handlers' loop works in the next invocation: the loop is the same."""
    environment = waiting.environment()
    for ids in ("abc", "def"):
        waiting.push(ids, "note")
        assert "empty" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())

    begun = waiting.told("begin")
    assert [*"abcdef"] == sorted(line["id"] for line in begun)
    assert 1 == len({(line["pid"], line["loop"]) for line in begun})
