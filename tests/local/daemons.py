"""Daemons in processes of their own, and what their handlers tell."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lowkiq_lambda import Config, Lowkiq, Pushed, Worker
from tests.servers import Cluster, Server
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0


class DaemonProcess:
    """`python -m lowkiq_lambda.local` with these arguments; `log` is what it wrote to stderr."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], log: Path, cwd: Path = ROOT) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lowkiq_lambda.local", *arguments],
                cwd=cwd,
                env={**clean_environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                # Ctrl-C in the terminal of the tests is not for the daemon.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    @property
    def log(self) -> str:
        """What it printed so far."""
        return self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for its end."""
        return self.process.wait(TIMEOUT)

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of ours."""
    kept = {name: value for name, value in os.environ.items() if "LOWKIQ" not in name and name != "REDIS_URL"}
    return {**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"}


class Stage:
    """A queue whose jobs are performed by daemons of the app in `stage.py`."""

    def __init__(self, server: Server | Cluster, queue_name: str, folder: Path, shards_count: int = 1) -> None:
        self.folder = folder
        self.environment = {
            "LOWKIQ_REDIS_URL": server.url,
            "STAGE_FOLDER": str(folder),
            "STAGE_QUEUE": queue_name,
            "STAGE_SHARDS": str(shards_count),
        }
        self.daemons: list[DaemonProcess] = []
        # Only to push to the queue.
        self.app = Lowkiq(Config(redis_url=server.url))
        fields = {"queue_name": queue_name, "shards_count": shards_count, "perform": lambda _self, _batch: None}
        self.worker: type[Worker] = self.app.worker(type("Perform", (Worker,), fields))

    def daemon(self, *arguments: str, **settings: object) -> DaemonProcess:
        """Start a daemon; settings as in the environment, without `LOWKIQ_`."""
        given = {f"LOWKIQ_{name.upper()}": str(value) for name, value in settings.items()}
        log = self.folder / f"daemon-{len(self.daemons)}.log"
        daemon = DaemonProcess(["tests.local.stage:app", *arguments], {**self.environment, **given}, log)
        self.daemons.append(daemon)
        return daemon

    def push(self, job_id: str, do: str = "note", **fields: object) -> list[Pushed]:
        """Queue a job that does this; one that waits can be released."""
        if do == "wait":
            os.mkfifo(self.folder / f"{job_id}.pipe")
        return self.worker.perform_async([{"id": job_id, "payload": {"do": do}, **fields}])

    def release(self, job_id: str) -> None:
        """Let an execution of a job that waits go on."""
        (self.folder / f"{job_id}.pipe").write_text("go")

    def told(self, what: str = "", **fields: object) -> list[dict[str, Any]]:
        """What handlers and hooks told, in order: all, or of one kind, with these fields."""
        path = self.folder / "told"
        lines = path.read_text().splitlines() if path.exists() else []
        all_told = [json.loads(line) for line in lines]
        return [one for one in all_told if what in ("", one["what"]) and fields.items() <= one.items()]

    def await_told(self, what: str, times: int = 1, **fields: object) -> list[dict[str, Any]]:
        """Wait until it was told so often."""

        def often_enough() -> list[dict[str, Any]]:
            found = self.told(what, **fields)
            return found if len(found) >= times else []

        return eventually(often_enough, timeout=TIMEOUT, what=f"{times} times {what!r} {fields}")

    def close(self) -> None:
        """End what is left."""
        for daemon in self.daemons:
            daemon.close()
        self.app.backend.client.close()
