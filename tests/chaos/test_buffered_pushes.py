"""Pushes that wait in the process, through outages of real servers, and ends of real processes (S-3, S-4)."""

import subprocess
import sys
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Final

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.stack.cloud import reaper
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare

ROOT: Final = Path(__file__).parents[2]
IDS: Final = 5
_OUTAGES: Final = 6
_REFUSED: Final = 0.5
"""How often nobody can connect any more, whatever else happens."""


def test_s3_a_producer_pushes_through_a_frozen_server(own_server: Server, queue_name: str) -> None:
    """S-3: nothing is lost, nothing repeated, and each id keeps its order; a thread delivers, and ends."""
    notes = Notes()
    numbers = iter(range(100_000))
    with closing_app(Lowkiq(Config(redis_url=own_server.url, when_unavailable="buffer", redis_timeout=0.3))) as app:
        worker = declare(app, queue_name, notes, shards_count=3, merge="never", batch_size=IDS)

        def push() -> bool:
            number = next(numbers)
            return worker.push_many([{"id": number % IDS, "payload": number}])[0].buffered

        direct = [push() for _ in range(20)]
        with own_server.frozen():
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
        redelivery = app.core.pushes.clients.redelivery
        eventually(lambda: redelivery is not None and redelivery._waiting.thread is None)


class NumberPusher:
    """Pushes numbers to a few ids, and knows the order in which each id got them."""

    def __init__(self, app: Lowkiq, queue_name: str, rng: Random, name: str) -> None:
        self.notes = Notes()
        self.name = name
        self.worker = declare(app, queue_name, self.notes, shards_count=3, merge="never", batch_size=IDS)
        self.rng = rng
        self.pushed: dict[str, list[tuple[str, int]]] = {str(number): [] for number in range(IDS)}
        self._numbers = count()

    def push(self) -> None:
        """One to three jobs."""
        jobs = []
        for number in islice(self._numbers, self.rng.choice((1, 1, 3))):
            job_id = str(self.rng.randrange(IDS))
            self.pushed[job_id].append((self.name, number))
            jobs.append({"id": job_id, "payload": [self.name, number]})
        self.worker.push_many(jobs)


def disturb(rng: Random, server: Server, proxy: FaultProxy) -> None:
    """Begin an outage of some kind."""
    match rng.choice(("freeze", "cut", "lose replies", "lose requests")):
        case "freeze":
            server.freeze()
        case "cut":
            proxy.refuse()
            proxy.cut()
        case "lose replies":
            proxy.drop_reply_after(b"EVALSHA", rng.choice((1, 2)))
        case _:
            proxy.drop_request(b"EVALSHA", rng.choice((1, 2)))
    if rng.random() < _REFUSED:
        proxy.refuse()


@pytest.mark.parametrize("on_lambda", [False, True])
def test_e13_order_and_count_hold_over_random_outages(
    own_server: Server,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
    on_lambda: bool,  # noqa: FBT001 - a parameter of the case
) -> None:
    """E-13, P3: lost requests, lost answers, freezes: each job is there once, in the order of its producer's pushes."""
    if on_lambda:
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "producer")
    rng = Random(13 + on_lambda)
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(own_server))
        keeping = Config(redis_url=proxy.url, when_unavailable="buffer", redis_timeout=0.2)
        app, other = (
            stack.enter_context(closing_app(Lowkiq(one))) for one in (keeping, Config(redis_url=own_server.url))
        )
        kept, direct = NumberPusher(app, queue_name, rng, "kept"), NumberPusher(other, queue_name, rng, "direct")
        for _ in range(_OUTAGES):
            for _ in range(rng.randrange(4)):
                kept.push()
            disturb(rng, own_server, proxy)
            for _ in range(rng.randrange(1, 6)):
                kept.push()
            own_server.thaw()
            direct.push()
            kept.push()
            proxy.heal()
        assert 0 == app.flush(60)
        other.drain(60)

        handed = {
            job_id: [tuple(pair) for batch in direct.notes.batches for pair in batch.get(job_id, [])]
            for job_id in kept.pushed
        }
        for producer in (kept, direct):
            own = {job_id: [pair for pair in pairs if pair[0] == producer.name] for job_id, pairs in handed.items()}
            assert producer.pushed == own


def end(server: Server, queue_name: str, ending: str, *, thawed: bool) -> list[str]:
    """What a process says that pushes while the server is frozen, and then ends; `thawed`: when Redis is back."""
    # More would prove no more of a server that stands still.
    seconds = "60" if thawed else "0.5"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.pushing_child", server.url, queue_name, ending, seconds],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    reaper.watch_process(process.pid)
    with ExitStack() as freeze:
        freeze.enter_context(server.frozen())
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
