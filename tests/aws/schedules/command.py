"""The command in a process of its own, and apps in modules for it."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.settings.loading import load_app
from tests.aws.schedules.front import Front
from tests.aws.schedules.values import FUNCTION, ROLE
from tests.kit.servers import Server

ROOT = Path(__file__).parents[3]
DONE, FAILED, MISUSED, NOT_APPLIED, AWAY = 0, 1, 2, 1, 3
"""The exit codes."""

Run: TypeAlias = Callable[..., "CommandOutput"]
WriteApp: TypeAlias = Callable[[Mapping[str, int]], str]


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a run of the command left: its exit code, and what it printed where."""

    code: int
    out: str
    error: str


def write_module(folder: Path, name: str, shards: Mapping[str, int]) -> str:
    """A module with an app, whose workers have these queue names and counts of shards; how to name the app."""
    lines = ["from lowkiq_lambda import Lowkiq, Worker", "app = Lowkiq()"]
    for position, (queue_name, shards_count) in enumerate(shards.items()):
        lines += [
            f"class Worker{position}(Worker):",
            f"    queue_name, shards_count = {queue_name!r}, {shards_count}",
            "    def perform(self, batch): ...",
            f"app.worker(Worker{position})",
        ]
    (folder / f"{name}.py").write_text("\n".join(lines) + "\n")
    return f"{name}:app"


def without_aws(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment, with nothing in it that leads to an account."""
    return {name: value for name, value in environ.items() if not name.startswith(("AWS_", "LOWKIQ_"))}


def push(app: str, count: int = 20) -> None:
    """Push so many jobs to each queue of the app."""
    for worker in load_app(app, Lowkiq).workers:
        worker.push_many([{"id": number} for number in range(count)])


def start(words: Sequence[str], front: Front, server: Server, folder: Path) -> "subprocess.Popen[str]":
    """The command as a process of its own."""
    environment = {**without_aws(), **front.environment, "LOWKIQ_REDIS_URL": server.url, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "lowkiq_lambda", "stack", "schedules", "--function", FUNCTION, "--role", ROLE, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
