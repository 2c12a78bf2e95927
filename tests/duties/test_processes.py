"""Duties of processes that run side by side, and of one that is killed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.duties import Noted, run_due, with_queue
from tests.kit.servers import Server

ROOT = Path(__file__).parents[2]


class Process(Protocol):
    """Of an app with one duty."""

    def __call__(self, what: str = "end") -> "subprocess.Popen[str]":
        """Start one whose duty ends, or hangs."""
        ...


@pytest.fixture
def process(server: Server, queue_name: str) -> Iterator[Process]:
    """Starts processes, which end with the test."""
    with ExitStack() as stack:

        def start(what: str = "end") -> "subprocess.Popen[str]":
            started = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.duties.process", server.url, queue_name, what],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(started.kill)
            await_ready(started)
            return started

        yield start


def await_ready(process: "subprocess.Popen[str]") -> None:
    """Return when it has made its app."""
    assert "ready" == told(process)


def told(process: "subprocess.Popen[str]") -> str:
    """The next line that it wrote."""
    assert process.stdout
    return process.stdout.readline().strip()


def look(process: "subprocess.Popen[str]") -> None:
    """Let it run what is due."""
    assert process.stdin
    process.stdin.write("look\n")
    process.stdin.flush()


def test_one_of_many_processes_runs_it(process: Process) -> None:
    """However often all of them look at the same time."""
    processes = [process() for _ in range(4)]
    lines: list[str] = []
    for _ in range(10):
        for one in processes:
            look(one)
        for one in processes:
            while (line := told(one)) != "looked":
                lines.append(line)
    assert 1 == len(lines)


def test_the_duty_of_a_killed_process_is_taken_over(process: Process, server: Server, queue_name: str) -> None:
    """When its claim ends: a minute, and five seconds."""
    hanging = process("hang")
    look(hanging)
    assert f"ran {hanging.pid}" == told(hanging)

    clock = ManualClock(time.time())
    app = with_queue(Lowkiq(Config(redis_url=server.url), clock=clock), queue_name)
    duty = Noted("report", 3_600.0)
    app.add_duty(duty)
    run_due(app)
    hanging.kill()
    assert [True] == [state.is_running for state in app.operate.duties()]
    clock.advance(60.0)
    run_due(app)
    assert [] == duty.runs
    clock.advance(6.0)
    run_due(app)
    assert 1 == len(duty.runs)
    close_app(app)
