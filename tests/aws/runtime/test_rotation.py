"""The password of Redis is rotated while an environment is warm: no invocation fails for it."""

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.aws.runtime.function_stage import DASHBOARD, DRAIN, PLENTY, TICK, FunctionStage, web_event
from tests.kit.servers import LocalCloud, Server
from tests.kit.servers.lambda_runtime import LambdaEnvironment

TOKEN: Final = "t" * 20


class Secret:
    """The URL of Redis as a secret of the cloud, with a user of its own."""

    def __init__(self, server: Server, cloud: LocalCloud) -> None:
        self._server = server
        self._manager = cloud.client("secretsmanager")
        self._variables = cloud.environment
        self._user = f"user-{uuid4().hex}"
        self._change_in_redis()
        self.arn: str = self._manager.create_secret(Name=self._user, SecretString=self._url)["ARN"]

    def rotate(self) -> None:
        """Another password in Redis and in the secret; who was signed in is cut off."""
        self._change_in_redis()
        self._manager.put_secret_value(SecretId=self.arn, SecretString=self._url)

    def environment(self, stage: FunctionStage, handler: str, **settings: str) -> LambdaEnvironment:
        """An environment of a function that knows Redis by the secret alone."""
        return stage.environment(handler, self._variables, redis_url="", redis_secret_arn=self.arn, **settings)

    def delete(self) -> None:
        """Leave nothing."""
        self._manager.delete_secret(SecretId=self.arn, ForceDeleteWithoutRecovery=True)
        self._server.admin.execute_command("ACL", "DELUSER", self._user)

    @property
    def _url(self) -> str:
        return f"redis://{self._user}:{self._password}@{self._server.host}:{self._server.port}"

    def _change_in_redis(self) -> None:
        self._password = uuid4().hex
        rights = ("reset", "on", f">{self._password}", "+@all", "~*", "&*")
        self._server.admin.execute_command("ACL", "SETUSER", self._user, *rights)
        self._server.admin.client_kill_filter(_type="normal", user=self._user)


@pytest.fixture
def secret(server: Server, cloud: LocalCloud) -> Iterator[Secret]:
    """A real one, of a real user."""
    secret = Secret(server, cloud)
    yield secret
    secret.delete()


def lines_of(log: str) -> list[dict[str, Any]]:
    """The lines of a log."""
    return [json.loads(line) for line in log.splitlines()]


def test_drains_go_on_after_the_password_was_rotated(stage: FunctionStage, secret: Secret) -> None:
    """None fails, and the environment stays warm; the log says once that the secret was read again."""
    environment = secret.environment(stage, DRAIN)
    pids = set()
    for job_id in "abc":
        stage.push(job_id)

        drained = environment.begin({"shard": 0}, PLENTY).result()

        assert {"done": 1} == drained.value["counts"]
        pids.add(drained.pid)
        if job_id == "a":
            secret.rotate()

    assert 1 == len(pids)
    found = [line for line in lines_of(environment.log) if "has a newer one" in line.get("message", "")]
    assert 1 == len(found)


def test_a_rotation_amid_a_batch_costs_nothing(stage: FunctionStage, secret: Secret) -> None:
    """What was running is settled by a connection that signs in with the new password."""
    environment = secret.environment(stage, DRAIN)
    stage.push("a", "wait")
    running = environment.begin({"shard": 0}, PLENTY)
    stage.await_told("begin", id="a")

    secret.rotate()
    stage.release("a")

    assert {"done": 1} == running.result().value["counts"]
    stage.check_that_nothing_is_left(done=1)


@pytest.mark.parametrize("handler", [DRAIN, DASHBOARD])
def test_ticks_and_dashboard_go_on_too(stage: FunctionStage, secret: Secret, handler: str) -> None:
    """They sign in as drains do."""
    environment = secret.environment(stage, handler, dashboard_tokens=f"scraper:reader:{TOKEN}")
    event = web_event("GET", "/api/v1/stats", authorization=f"Bearer {TOKEN}") if handler == DASHBOARD else TICK
    stage.push("a")

    first = environment.begin(event, PLENTY).result()
    secret.rotate()
    second = environment.begin(event, PLENTY).result()

    assert first.pid == second.pid
    said = [json.dumps(one.value) for one in (first, second)]
    assert all(stage.worker.queue_name in one for one in said), said
