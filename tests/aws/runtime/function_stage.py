"""A queue whose jobs are performed by drain functions in processes of their own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.servers import Server
from tests.kit.servers.lambda_outcome import Result
from tests.kit.servers.lambda_runtime import LambdaEnvironment
from tests.kit.stage import Stage
from tests.kit.stored import State, stored
from tests.kit.waiting import eventually

DRAIN: Final = "lowkiq_lambda.aws.drain_function.handler"
TICK: Final = {"tick": "only"}
DASHBOARD: Final = "lowkiq_lambda.aws.dashboard_function.handler"
TIMEOUT: Final = 30.0
PLENTY: Final = 20.0
"""Seconds for an invocation that is to end by itself."""


class FunctionStage(Stage):
    """Its processes are execution environments, of the drain function or of another one."""

    def __init__(
        self, server: Server, queue_name: str, folder: Path, *, shards_count: int = 1, batch_size: int = 3
    ) -> None:
        super().__init__(
            server, queue_name, folder, "tests.aws.runtime.app:app", shards_count=shards_count, batch_size=batch_size
        )
        self.server = server
        self._clock = folder / "clock"
        self.shards = [ShardRef(queue_name, shards_count, index) for index in range(shards_count)]
        self._environments: list[LambdaEnvironment] = []
        self.variables |= {
            "LOWKIQ_APP": self.app_spec,
            "LOWKIQ_RESERVE": "0.2",
            # Each batch is acknowledged at once, so that a test knows what a killed process has left.
            "LOWKIQ_SETTLE_INTERVAL": "0",
            "STAGE_CLOCK": str(self._clock),
        }

    def environment(
        self, handler: str = DRAIN, variables: Mapping[str, str] | None = None, **settings: object
    ) -> LambdaEnvironment:
        """An execution environment of the drain function, or of another one; `variables` are Lambda's and AWS's."""
        given = {**self.variables_with(**settings), **(variables or {})}
        made = LambdaEnvironment(handler, given, self.folder)
        self._environments.append(made)
        return made

    def set_clock_forward(self, seconds: float) -> None:
        """For the functions it is that much later all of a sudden, by the clock on the wall."""
        self._clock.write_text(str(seconds))

    def performed(self) -> dict[str, list[list[int]]]:
        """For each id the numbers of its payloads, by execution that came to its end."""
        found: dict[str, list[list[int]]] = {}
        for line in self.told("end"):
            found.setdefault(line["id"], []).append(line["numbers"])
        return found

    def state(self, index: int = 0) -> State:
        """A shard as it lies in Redis."""
        return stored(self.server.admin, self.shards[index])

    def await_free(self, index: int = 0) -> None:
        """Return when the shard's lease has ended."""

        def is_free() -> bool:
            _, until, key = self.state(index)["lease"]
            seconds, micros = self.server.admin.time()
            return not key and bool(until <= seconds + micros / 1_000_000)

        eventually(is_free, timeout=TIMEOUT)

    def end_lease(self, index: int = 0) -> None:
        """Do to the lease of a process that is dead what time would do."""
        self.server.admin.delete(self.shards[index].key("lease"))
        self.server.admin.hset(self.shards[index].key("meta"), "until", 0)

    def check_that_nothing_is_left(self, *, done: int, troubled: bool = False) -> Mapping[str, int]:
        """All is done, each id so often as it should, nobody waits, nobody holds a lease; the counters."""
        total: dict[str, int] = {}
        for index in range(len(self.shards)):
            state = self.state(index)
            assert not state["waiting"]
            assert not state["flight"]
            assert not state["lease"][2]
            assert troubled or not (state["morgue"] or state["errors"])
            for name, count in state["counters"].items():
                total[name] = total.get(name, 0) + count
        assert done == total["done"]
        return total

    def close(self) -> None:
        """End what is left."""
        for environment in self._environments:
            environment.close()
        super().close()


def web_event(method: str, path: str, fields: object = None, **headers: str) -> dict[str, Any]:
    """A request as API Gateway hands it to the dashboard, with `fields` as JSON."""
    about = {"http": {"method": method, "path": path, "sourceIp": "192.0.2.1"}, "stage": "$default"}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "example.org", "content-type": "application/json", **headers},
        "requestContext": about,
        "body": "" if fields is None else json.dumps(fields),
        "isBase64Encoded": False,
    }


def reason_of(result: Result) -> str:
    """Why the visit to the only shard ended."""
    return str(result.value["reason"])
