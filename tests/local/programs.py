"""Programs of one project that use `embedded:`, each a process of its own: prompts that are told what to do."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from lowkiq_lambda.providers.embedded.folder import ServerFolder
from lowkiq_lambda.stack.cloud import reaper
from tests.kit.daemons import ROOT, DaemonProcess, clean_environment
from tests.kit.embedded import await_written, end_server, server_lives
from tests.kit.typing_in import terminal
from tests.kit.waiting import eventually

APP: Final = """
import os
from lowkiq_lambda import Config, Lowkiq, Worker

app = Lowkiq(Config(redis_url={url!r}, poll_interval={poll_interval}))

@app.worker
class Greet(Worker):
    shards_count = {shards_count}

    def perform(self, batch):
        with open({greeted!r}, "a") as greeted:
            greeted.writelines(f"{{name}} {{os.getpid()}}\\n" for name in batch)

def server():
    return app.core.backend.client.info("server")["process_id"]
"""
_PROMPT: Final = """
import json, sys, traceback
sys.path.insert(0, ".")
names = {"__name__": "prompt"}
for line in sys.stdin:
    try:
        code = json.loads(line)
        try:
            value = eval(code, names)
        except SyntaxError:
            value = exec(code, names)
        print(json.dumps({"value": value}, default=str), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
"""


def environment() -> dict[str, str]:
    """That of a developer's machine, whatever this one is."""
    return {**clean_environment(), "LOWKIQ_ENV": "development"}


class PromptError(Exception):
    """What was typed at the prompt raised an error."""


class Prompt:
    """A Python prompt in a process of its own, as a notebook is."""

    def __init__(self, cwd: Path, log: Path, **settings: str) -> None:
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROMPT],
                cwd=cwd,
                env={**environment(), **settings},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._log = log
        reaper.watch_process(self._process.pid)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it printed to the standard error."""
        return self._log.read_text()

    def type(self, code: str) -> None:
        """Let it begin with an expression or a statement."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The value of what was typed. Raises PromptError."""
        assert self._process.stdout is not None
        answered = json.loads(self._process.stdout.readline())
        if "error" in answered:
            raise PromptError(answered["error"])
        return answered["value"]

    def run(self, code: str) -> Any:
        """Both."""
        self.type(code)
        return self.answer()

    def end(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert 0 == self._process.wait(60)

    def close(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        reaper.forget_process(self._process.pid)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class Project:
    """A folder with an app in the module `jobs`, and programs that run in it."""

    def __init__(self, root: Path, url: str = "embedded:") -> None:
        self.root = root
        self.url = url
        self.folder = ServerFolder(root / ".lowkiq")
        self._ends = ExitStack()
        self._count = 0
        (root / "pyproject.toml").touch()
        self.write()

    def write(self, *, shards_count: int = 3, poll_interval: float = 1.0) -> None:
        """Write the app."""
        greeted = str(self.root / "greeted")
        text = APP.format(url=self.url, greeted=greeted, shards_count=shards_count, poll_interval=poll_interval)
        (self.root / "jobs.py").write_text(text)

    def prompt(self, below: str = ".", **settings: str) -> Prompt:
        """A prompt in a folder of the project, with the app's module loaded."""
        prompt = Prompt(self.root / below, self._log(), PYTHONPATH=f"{ROOT}{os.pathsep}{self.root}", **settings)
        self._ends.callback(prompt.close)
        prompt.run("from jobs import *")
        return prompt

    def daemon(self, *arguments: str, **settings: str) -> DaemonProcess:
        """A daemon of the app, that drains."""
        given = {**environment(), **settings}
        daemon = DaemonProcess(["jobs:app", "--threads", "3", *arguments], given, self._log(), cwd=self.root)
        self._ends.callback(daemon.close)
        return daemon

    def command(
        self, *arguments: str, answer: str | None = None, **settings: str
    ) -> "subprocess.CompletedProcess[str]":
        """The command line, run to its end; `answer` is what is typed where it asks, None: there is no terminal."""
        with nullcontext(subprocess.DEVNULL) if answer is None else terminal(answer) as stdin:
            return subprocess.run(
                [sys.executable, "-m", "lowkiq_lambda", *arguments],
                cwd=self.root,
                env={**environment(), **settings},
                stdin=stdin,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

    def greeted(self) -> list[str]:
        """Who was greeted so far, sorted."""
        path = self.root / "greeted"
        return sorted(line.split()[0] for line in path.read_text().splitlines()) if path.exists() else []

    def await_greeted(self, *names: str) -> None:
        """Wait until these were greeted, and nobody else."""
        eventually(lambda: sorted(names) == self.greeted(), timeout=30, what=f"{names} greeted")

    def server_lives(self) -> bool:
        """Whether a server runs in the project."""
        return server_lives(self.folder)

    def server_pid(self) -> int:
        """The process that the server wrote down at its start."""
        return int((self.folder.path / "server.pid").read_text())

    def await_written(self) -> None:
        """Wait until a SIGKILL of the server loses nothing."""
        access = self.folder.read_access()
        assert access is not None
        await_written(access.url)

    def kill_server(self) -> None:
        """End the server by SIGKILL, once all is written that it has answered."""
        self.await_written()
        os.kill(self.server_pid(), signal.SIGKILL)

    def _log(self) -> Path:
        self._count += 1
        return self.root / f"program-{self._count}.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all programs, and a server that they left."""
        self._ends.close()
        end_server(self.folder.path)
