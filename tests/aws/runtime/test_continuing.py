"""Continuation has what is left of the invocation, and no more."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.aws.runtime.function_stage import FunctionStage
from tests.kit.servers.lambda_outcome import Result
from tests.kit.servers.ports import HOST

WORK = [f"job-{number}" for number in range(100)]
TIMEOUT = 5.0
GAVE_UP = "the drain does not go on: its successor was not started in the time that was left"


@pytest.fixture
def silent_api() -> Iterator[str]:
    """The URL of an API that takes connections and answers nothing, as one without a route back."""
    with socket.create_server((HOST, 0)) as listening:
        yield f"http://{HOST}:{listening.getsockname()[1]}"


def test_a_call_that_gets_no_answer_ends_with_the_invocation_and_not_later(
    stage: FunctionStage, silent_api: str
) -> None:
    """P5: the drain has told what it did before it starts its successor, and is not killed while it waits for that."""
    stage.push(WORK, "take a tenth")
    variables = {
        "AWS_ENDPOINT_URL_LAMBDA": silent_api,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    environment = stage.environment(variables=variables, idle="start", reserve=1.5)

    end = environment.invoke({"shard": 0}, TIMEOUT)

    assert isinstance(end, Result), end
    assert ("out of time", False) == (end.value["reason"], end.value["continued"])
    assert 0 < end.value["counts"]["done"] < len(WORK)
    said = [str(json.loads(line).get("message")) for line in end.log.splitlines()]
    assert said.index("drained") < said.index(GAVE_UP)
