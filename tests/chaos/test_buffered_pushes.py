"""Pushes that wait in the process, through outages of real servers, and ends of real processes (S-3, S-4)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server, reaper
from tests.kit.waiting import eventually
from tests.kit.workers import declare

ROOT: Final = Path(__file__).parents[2]
IDS: Final = 5


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """It answers nobody meanwhile, and does then what it was asked."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_s3_a_producer_pushes_through_a_frozen_server(own_server: Server, queue_name: str) -> None:
    """S-3: nothing is lost, nothing repeated, and each id keeps its order; a thread delivers, and ends."""
    notes = Notes()
    numbers = iter(range(100_000))
    with closing_app(Lowkiq(Config(redis_url=own_server.url, when_unavailable="buffer", redis_timeout=0.3))) as app:
        worker = declare(app, queue_name, notes, shards_count=3, merge="never", batch_size=IDS)

        def push() -> bool:
            number = next(numbers)
            return worker.perform_async([{"id": number % IDS, "payload": number}])[0].buffered

        direct = [push() for _ in range(20)]
        with frozen(own_server):
            kept = [push() for _ in range(100)]
        eventually(lambda: not push())
        assert 0 == app.flush(60)
        app.drain(60)

        assert (not any(direct), any(kept)) == (True, True)
        by_id: dict[str, list[int]] = {}
        for batch in notes.batches:
            for job_id, payloads in batch.items():
                by_id.setdefault(job_id, []).extend(payloads)
        pushed = next(numbers)
        assert {str(n): list(range(n, pushed, IDS)) for n in range(IDS)} == by_id
        redelivery = app._parts.redelivery
        eventually(lambda: redelivery is not None and redelivery._waiting.thread is None)


def end(server: Server, queue_name: str, ending: str, *, thawed: bool) -> list[str]:
    """What a process says that pushes while the server is frozen, and then ends; `thawed`: when Redis is back."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.pushing_child", server.url, queue_name, ending],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    reaper.watch_process(process.pid)
    with ExitStack() as freeze:
        freeze.enter_context(frozen(server))
        assert process.stdout is not None
        assert "kept\n" == process.stdout.readline()
        if thawed:
            freeze.close()
        said, _ = process.communicate("end\n", timeout=60)
    assert 0 == process.returncode
    return said.splitlines()


def test_s4_what_waits_when_the_process_ends_is_told(own_server: Server, queue_name: str) -> None:
    """S-4: jobs in the memory of a process end with it, but not silently: `on_lost` gets them."""
    assert ["lost [0, 1, 2]"] == end(own_server, queue_name, "exit", thawed=False)


@pytest.mark.parametrize("ending", ["exit", "fork"])
def test_a_process_delivers_what_waits_before_it_ends(own_server: Server, queue_name: str, ending: str) -> None:
    """Where Redis is back by then nothing is lost, though no more is pushed."""
    assert [] == [line for line in end(own_server, queue_name, ending, thawed=True) if "lost" in line]
    assert [0, 1, 2] == performed(own_server, queue_name)["a"]


def test_a_child_that_was_forked_begins_with_an_empty_buffer(own_server: Server, queue_name: str) -> None:
    """What the parent kept is delivered once, by the parent, or told lost by it; a child keeps its own pushes."""
    said = end(own_server, queue_name, "fork", thawed=False)

    assert ["child 0", "child True", "lost ['child']", "lost [0, 1, 2]"] == said


def performed(server: Server, queue_name: str) -> dict[str, list[object]]:
    """The payloads of all that waits, by id."""
    notes = Notes()
    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        declare(app, queue_name, notes, batch_size=IDS)
        app.drain(30)
    return {job_id: payloads for batch in notes.batches for job_id, payloads in batch.items()}
