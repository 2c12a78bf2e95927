"""Functions that push while Redis is away, and are frozen when they have answered (S-4)."""

from tests.aws.runtime.conftest import MakeStage
from tests.aws.runtime.function_stage import PLENTY, FunctionStage
from tests.kit.servers import Server
from tests.kit.servers.lambda_outcome import Error
from tests.kit.servers.lambda_runtime import LambdaEnvironment

PUSHING = "tests.aws.runtime.pushing_app.handler"


def producer_of(stage: FunctionStage) -> LambdaEnvironment:
    """An environment of the function that pushes."""
    return stage.environment(PUSHING, when_unavailable="buffer", redis_timeout=0.5)


def waiting(stage: FunctionStage) -> list[str]:
    """The ids that are in Redis."""
    return sorted(stage.state()["waiting"])


def test_s4_a_function_answers_when_what_it_kept_is_written(make_stage: MakeStage, own_server: Server) -> None:
    """S-4: Redis comes back while the function still runs: its answer is given when the jobs are in Redis."""
    stage = make_stage(own_server)
    producer = producer_of(stage)
    assert 0 == producer.begin({"ids": "a"}, timeout=PLENTY).result().value
    own_server.freeze()
    invocation = producer.begin({"ids": "bcd"}, timeout=PLENTY)
    stage.await_told("pushed", 2)
    own_server.thaw()

    assert 3 == invocation.result().value
    # The process stands still by now.
    assert ["a", "b", "c", "d"] == waiting(stage)


def test_s4_a_function_that_cannot_write_what_it_kept_fails(make_stage: MakeStage, own_server: Server) -> None:
    """S-4: its caller gets an error. If the environment is used again, its jobs are written then."""
    stage = make_stage(own_server)
    producer = producer_of(stage)
    producer.begin({"ids": "a"}, timeout=PLENTY).result()
    own_server.freeze()
    outcome = producer.begin({"ids": "bc"}, timeout=PLENTY).outcome()
    own_server.thaw()

    assert isinstance(outcome, Error)
    assert ("NotFlushed", True) == (outcome.type, "(2 jobs)" in outcome.message)
    assert 0 == producer.begin({"ids": ""}, timeout=PLENTY).result().value
    assert ["a", "b", "c"] == waiting(stage)
