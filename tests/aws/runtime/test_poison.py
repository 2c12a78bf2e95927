"""A job that kills the process that performs it."""

import pytest

from lowkiq_lambda.engine.outcomes import EXIT_LIMIT
from tests.aws.runtime.function_stage import PLENTY, FunctionStage
from tests.kit.examples import mostly_nightly
from tests.kit.servers.lambda_outcome import Crashed, Error, Outcome, Result

HEALTHY = "abcdefghijkl"
MAX_CRASHES = 3


@pytest.mark.parametrize("do", mostly_nightly(["leave", "shoot"], "shoot"))
def test_a_job_that_kills_its_process_dies_alone_and_soon(stage: FunctionStage, do: str) -> None:
    """One crash with company, three alone, and it is in the morgue; all others are done, and none is blamed."""
    stage.push(HEALTHY[:4])
    stage.push("x", do, 2)
    stage.push(HEALTHY[4:], number=3)
    environment = stage.environment()

    outcomes: list[Outcome] = []
    while not outcomes or not isinstance(outcomes[-1], Result):
        outcomes.append(environment.invoke({"shard": 0}, timeout=PLENTY))
        assert isinstance(outcomes[-1], Result | Crashed)
        stage.end_lease()

    assert 1 + MAX_CRASHES == len(outcomes) - 1
    state = stage.state()
    assert {"x"} == state["morgue"].keys()
    _, error, _ = state["morgue"]["x"]
    assert error.startswith("crashed")
    assert set(HEALTHY) == stage.performed().keys()
    assert 1 + MAX_CRASHES == len(stage.told("begin", id="x"))
    assert [] == stage.told("overlap")
    counters = stage.check_that_nothing_is_left(done=len(HEALTHY), troubled=True)
    assert (0, 1) == (counters["retried"], counters["dead"])
    assert {} == state["errors"] == state["trouble"]


def test_a_keyboard_interrupt_of_a_job_is_an_exit_of_its_own(stage: FunctionStage) -> None:
    """No process dies of it, its neighbours are done, and so many in a row are a failure, as with `sys.exit`."""
    stage.push("x", "interrupt")
    stage.push(HEALTHY, number=2)
    environment = stage.environment()

    outcomes = [environment.invoke({"shard": 0}, timeout=PLENTY) for _ in range(EXIT_LIMIT)]

    assert {Error} == {type(outcome) for outcome in outcomes}
    assert 1 == len({outcome.pid for outcome in outcomes})
    assert set(HEALTHY) == stage.performed().keys()
    assert 1 == stage.state()["counters"]["retried"]
