"""Pushes that wait in the process, through outages of real servers, and ends of real processes (S-3, S-4)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lowkiq_lambda import Config, Lowkiq
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare

ROOT: Final = Path(__file__).parents[2]
IDS: Final = 5

EXITING: Final = """
import sys
from lowkiq_lambda import Config, Lowkiq

def tell(worker, jobs):
    print("lost", worker.queue_name, [job["payload"] for job in jobs], flush=True)

app = Lowkiq(Config(redis_url=sys.argv[1], redis_timeout=0.3, when_unavailable="buffer", on_lost=tell))
worker = app.worker(queue_name=sys.argv[2], shards_count=1)(print)
for number in range(3):
    worker.perform_async([{"id": "a", "payload": number}])
print("kept", flush=True)
sys.stdin.readline()
"""


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


def leave(server: Server, queue_name: str, *, thaw: bool) -> str:
    """What a process says that pushes while the server is frozen, and ends then."""
    process = subprocess.Popen(
        [sys.executable, "-c", EXITING, server.url, queue_name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with frozen(server):
        assert process.stdout is not None
        assert "kept\n" == process.stdout.readline()
        if not thaw:
            return process.communicate("go\n", timeout=60)[0]
    return process.communicate("go\n", timeout=60)[0]


def test_s4_what_waits_when_the_process_ends_is_told(own_server: Server, queue_name: str) -> None:
    """S-4: jobs in the memory of a process end with it, but not silently: `on_lost` gets them."""
    assert f"lost {queue_name} [0, 1, 2]\n" == leave(own_server, queue_name, thaw=False)


def test_a_process_delivers_what_waits_before_it_ends(own_server: Server, queue_name: str) -> None:
    """Where Redis is back by then nothing is lost, though no more is pushed."""
    notes = Notes()
    assert "" == leave(own_server, queue_name, thaw=True)
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        declare(app, queue_name, notes)
        app.drain(30)
    assert [{"a": [0, 1, 2]}] == notes.batches
