"""Handlers that fork (E-99): a child that leaves the handler is not the holder of the lease."""

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lowkiq_lambda.base.error_text import LONGEST_LOGGED
from lowkiq_lambda.base.forks import awaited_in_parent_alone
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server

ROOT = Path(__file__).parents[2]
TIMEOUT = 60.0


PLAIN = ["perform", "perform_job", "perform_items", "middleware"]
COROUTINES = ["async_perform", "async_perform_job", "async_in_thread", "async_middleware"]
WAYS = [("exit", 7), ("error", 1), ("return", 0)]


@pytest.mark.parametrize(
    ("kind", "way", "code"),
    mostly_nightly(
        [
            *[(kind, *way) for kind in PLAIN + COROUTINES for way in WAYS],
            *[(kind, "wait", 1) for kind in COROUTINES if kind != "async_middleware"],
        ],
        # Each kind once, and each way.
        *[(kind, *WAYS[place % 3]) for place, kind in enumerate(PLAIN + COROUTINES)],
        ("async_perform", "wait", 1),
    ),
)
def test_p1_a_child_of_a_handler_gives_nothing_back_and_settles_nothing(
    server: Server, queue_name: str, kind: str, way: str, code: int
) -> None:
    """P1, P2, E-99: however the child leaves, it ends there; the parent still holds its lease, and goes on alone."""
    program = [sys.executable, "-m", "tests.rules.forking", server.url, queue_name, way, kind]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False)

    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [True] * len(told) == [line.pop("parent") for line in told]
    assert {"what": "waited", "code": code, "held": 2} in told
    assert ["a", "b"] == sorted(line["id"] for line in told if line["what"] == "begin")
    assert [{"what": "drained", "counts": {"done": 2}}, {"what": "atexit"}] == told[-2:]
    assert 2 == sum(line["what"] == "around" for line in told)
    assert (2 if kind == "perform_items" else 0) == sum(line["what"] == "item" for line in told)
    assert 0 == ended.returncode
    assert ("ValueError: in the child" in ended.stderr) == (way == "error")
    assert ("cannot wait: the event loop is that of its parent" in ended.stderr) == (way == "wait")


def test_p1_a_child_that_is_not_forked_by_python_ends_where_the_handler_ends() -> None:
    """P1: a library in C forks without a word to Python, and its child performs no further batch either."""
    program = """
import ctypes, os
from lowkiq_lambda.base.forks import InParentAlone

def fork(parent):
    if ctypes.CDLL(None).fork():
        os.wait()

with InParentAlone():
    fork(os.getpid())
os.write(1, b"went on ")
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=TIMEOUT, check=True)

    assert b"went on " == told.stdout


def test_what_a_forked_child_raised_is_cut_in_its_log() -> None:
    """A message of megabytes, such as a body of a reply, fills no log."""
    program = """
import os
from lowkiq_lambda.base.forks import InParentAlone

def fork(_given):
    if os.fork() == 0:
        raise ValueError("x" * 1_000_000)
    os.wait()

with InParentAlone():
    fork(None)
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=TIMEOUT, check=True)

    assert b"a process that a handler forked ended with an error" in told.stderr
    assert len(told.stderr) < LONGEST_LOGGED


def test_a_handler_that_a_garbage_collector_has_closed_is_closed_once_more() -> None:
    """A task whose loop is gone is garbage, and a collector closes the coroutines of a cycle in any order."""
    handler = asyncio.sleep(0)
    alone = awaited_in_parent_alone(handler)
    next(alone)

    handler.close()
    alone.close()

    assert inspect.getgeneratorstate(alone) == inspect.GEN_CLOSED


def test_a_coroutine_that_is_closed_cleans_up_as_without_the_guard() -> None:
    """Its `finally` runs, and it may not wait any more."""
    events: list[str] = []

    async def handle(*, waits: bool) -> None:
        try:
            await asyncio.sleep(0)
        finally:
            events.append("cleaned up")
            if waits:
                await asyncio.sleep(0)

    alone = awaited_in_parent_alone(handle(waits=False))
    next(alone)
    alone.close()
    assert ["cleaned up"] == events
    alone = awaited_in_parent_alone(handle(waits=True))
    next(alone)
    with pytest.raises(RuntimeError, match="coroutine ignored GeneratorExit"):
        alone.close()
