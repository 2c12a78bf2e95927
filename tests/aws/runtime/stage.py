"""A queue whose jobs are performed by drain functions in processes of their own."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.local.daemons import DaemonProcess
from tests.properties.observed import State, stored
from tests.servers import Server
from tests.servers.lambda_outcome import Result
from tests.servers.lambda_runtime import LambdaEnvironment
from tests.waiting import eventually

DRAIN: Final = "lowkiq_lambda.aws.drain_function.handler"
DISPATCH: Final = "lowkiq_lambda.aws.dispatch_function.handler"
DASHBOARD: Final = "lowkiq_lambda.aws.dashboard_function.handler"
TIMEOUT: Final = 30.0
PLENTY: Final = 20.0
"""Seconds for an invocation that is to end by itself."""


class Stage:
    """`settings` are those of the function, as in its environment without `LOWKIQ_`, in small letters."""

    def __init__(
        self, server: Server, queue_name: str, folder: Path, *, shards_count: int = 1, batch_size: int = 3
    ) -> None:
        self.server = server
        self.folder = folder
        self._clock = folder / "clock"
        self.shards = [ShardRef(queue_name, shards_count, index) for index in range(shards_count)]
        self._environments: list[LambdaEnvironment] = []
        self._settings = {
            "LOWKIQ_APP": "tests.aws.runtime.app:app",
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_RESERVE": "0.2",
            # Each batch is acknowledged at once, so that a test knows what a killed process has left.
            "LOWKIQ_ACK_INTERVAL": "0",
            "STAGE_FOLDER": str(folder),
            "STAGE_CLOCK": str(self._clock),
            "STAGE_QUEUE": queue_name,
            "STAGE_SHARDS": str(shards_count),
            "STAGE_BATCH_SIZE": str(batch_size),
        }
        self.app = Lowkiq(Config(redis_url=server.url))
        # Only to push to the queue.
        fields = {"queue_name": queue_name, "shards_count": shards_count, "perform": lambda _self, _batch: None}
        self.worker: type[Worker] = self.app.worker(type("Perform", (Worker,), fields))

    def environment(
        self, handler: str = DRAIN, variables: Mapping[str, str] | None = None, **settings: object
    ) -> LambdaEnvironment:
        """An execution environment of the drain function, or of another one; `variables` are Lambda's and AWS's."""
        made = LambdaEnvironment(handler, {**self._with(settings), **(variables or {})}, self.folder)
        self._environments.append(made)
        return made

    def daemon(self, **settings: object) -> DaemonProcess:
        """A daemon for the same queue; the test closes it."""
        app = self._settings["LOWKIQ_APP"]
        return DaemonProcess([app], self._with(settings), self.folder / "daemon.log")

    def _with(self, settings: Mapping[str, object]) -> dict[str, str]:
        return {**self._settings, **{f"LOWKIQ_{name.upper()}": str(value) for name, value in settings.items()}}

    def push(self, ids: Iterable[str], do: str = "note", number: int = 1) -> None:
        """Queue a payload for each id; what waits can be released."""
        for job_id in ids:
            if do == "wait":
                os.mkfifo(self.folder / f"{job_id}.pipe")
            job = {"id": job_id, "payload": {"do": do, "number": number}, "score": number}
            self.worker.perform_async([job])

    def release(self, job_id: str) -> None:
        """Let an execution of a job that waits go on."""
        (self.folder / f"{job_id}.pipe").write_text("go")

    def set_clock_forward(self, seconds: float) -> None:
        """For the functions it is that much later all of a sudden, by the clock on the wall."""
        self._clock.write_text(str(seconds))

    def told(self, what: str, **fields: object) -> list[dict[str, Any]]:
        """What handlers told, in order, of one kind, with these fields."""
        path = self.folder / "told"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if line["what"] == what and fields.items() <= line.items()]

    def await_told(self, what: str, **fields: object) -> dict[str, Any]:
        """Wait until it was told; the last that was."""
        return eventually(lambda: self.told(what, **fields), timeout=TIMEOUT, what=f"{what} {fields}")[-1]

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
        self.app.backend.client.close()


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
