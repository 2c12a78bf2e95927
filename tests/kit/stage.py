"""A queue whose jobs are performed in processes of their own, by the workers of `tests.kit.telling`."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda import Config, Lowkiq, Pushed, Worker
from tests.kit.daemons import DaemonProcess
from tests.kit.servers import Cluster, Server
from tests.kit.waiting import eventually

_TIMEOUT: Final = 30.0


class Stage:
    """Pushes jobs, starts daemons of the app in the module `app`, and reads the lines of its handlers and hooks."""

    def __init__(  # noqa: PLR0913 - all but the first four by keyword, few of them at a time
        self,
        server: Server | Cluster,
        queue_name: str,
        folder: Path,
        app: str,
        *,
        shards_count: int = 1,
        batch_size: int = 1,
        namespace: str | None = None,
    ) -> None:
        self.folder = folder
        self.variables = {
            "LOWKIQ_REDIS_URL": server.url,
            "STAGE_FOLDER": str(folder),
            "STAGE_QUEUE": queue_name,
            "STAGE_SHARDS": str(shards_count),
            "STAGE_BATCH_SIZE": str(batch_size),
            **({"LOWKIQ_NAMESPACE": namespace} if namespace else {}),
        }
        self.app_spec = app
        self._daemons: list[DaemonProcess] = []
        # Only to push to the queue.
        self.app = Lowkiq(Config(redis_url=server.url, namespace=namespace))
        fields = {"queue_name": queue_name, "shards_count": shards_count, "perform": lambda _self, _batch: None}
        self.worker: type[Worker] = self.app.worker(type("Perform", (Worker,), fields))

    def variables_with(self, **settings: object) -> dict[str, str]:
        """The environment of a process of the stage; settings without `LOWKIQ_`, in small letters."""
        given = {f"LOWKIQ_{name.upper()}": str(value) for name, value in settings.items()}
        return {**self.variables, **given}

    def daemon(self, *arguments: str, **settings: object) -> DaemonProcess:
        """Start a daemon."""
        log = self.folder / f"daemon-{len(self._daemons)}.log"
        daemon = DaemonProcess([self.app_spec, *arguments], self.variables_with(**settings), log)
        self._daemons.append(daemon)
        return daemon

    def push(self, ids: Iterable[str], do: str = "note", number: int = 1) -> list[Pushed]:
        """Queue a payload for each id (each letter, or each of several words); a job that waits can be released."""
        pushed = []
        for job_id in ids:
            if do == "wait":
                os.mkfifo(self.folder / f"{job_id}.pipe")
            job = {"id": job_id, "payload": {"do": do, "number": number}, "score": number}
            pushed += self.worker.push_many([job])
        return pushed

    def release(self, job_id: str) -> None:
        """Let an execution of a job that waits go on."""
        (self.folder / f"{job_id}.pipe").write_text("go")

    def told(self, what: str = "", **fields: object) -> list[dict[str, Any]]:
        """The lines of handlers and hooks, in order: all, or those of one kind, with these fields."""
        path = self.folder / "told"
        lines = path.read_text().splitlines() if path.exists() else []
        all_told = [json.loads(line) for line in lines]
        return [one for one in all_told if what in ("", one["what"]) and fields.items() <= one.items()]

    def await_told(self, what: str, times: int = 1, **fields: object) -> list[dict[str, Any]]:
        """Wait until it was told so often."""

        def often_enough() -> list[dict[str, Any]]:
            found = self.told(what, **fields)
            return found if len(found) >= times else []

        return eventually(often_enough, timeout=_TIMEOUT, what=f"{times} times {what!r} {fields}")

    def close(self) -> None:
        """End the daemons."""
        for daemon in self._daemons:
            daemon.close()
        self.app.core.backend.client.close()
