"""Other libraries on the same work, beside ours: `python -m bench.peers`.

For each: one process pushes blank jobs, by calls of 1,000 where there is such a call; one process with 5 threads
works them off, the clock in the handler from its first call to its last. All once, then all again; ratios are taken
within a repeat. Peers that are not installed are left out: `pip install huey 'dramatiq[redis]'`; for Sidekiq and
Lowkiq see bench/rubies.py. The fast ones get ten times the jobs, so that a second is measured and not a moment.

Promises differ: Sidekiq and huey lose the job in hand when their process dies; only Lowkiq keeps the order of an id's
jobs, one job of an id at a time, and merges payloads.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import redis

from bench.away import away
from bench.blank import Load
from bench.drain import Meter, run_daemon
from bench.enqueue import enqueue
from bench.peer import THREADS, Peer
from bench.rubies import rubies
from bench.table import ratio, spread
from lowkiq_lambda.cli.output import markdown, whole
from tests.kit.servers import Server


def push_ours(url: str, jobs: int) -> float:
    """Push with push_many."""
    return jobs / enqueue(url, Load(jobs), redis.Redis.from_url(url)).rate


def work_ours(batch_size: int, url: str, jobs: int) -> float:
    """Let a daemon drain."""
    return run_daemon(url, Load(jobs, batch_size=batch_size))


def _huey(url: str, handler: Callable[[], None]) -> tuple[Any, Callable[[str], object]]:
    queue: Any = import_module("huey").RedisHuey("blank", url=url, results=False)

    def blank(_payload: str) -> None:
        handler()

    return queue, queue.task()(blank)


def push_huey(url: str, jobs: int) -> float:
    """Call the task; huey has no call for many."""
    _, blank = _huey(url, lambda: None)
    return _one_by_one(blank, jobs)


def work_huey(url: str, jobs: int) -> float:
    """Let a consumer with threads work."""
    meter = Meter(jobs)
    queue, _ = _huey(url, meter.count)
    consumer = queue.create_consumer(workers=THREADS, worker_type="thread", periodic=False)
    consumer.start()
    seconds = meter.seconds()
    consumer.stop()
    return seconds


def _dramatiq(url: str, handler: Callable[[], None]) -> tuple[Any, Any]:
    library: Any = import_module("dramatiq")
    broker = import_module("dramatiq.brokers.redis").RedisBroker(url=url)

    def blank(_payload: str) -> None:
        handler()

    return library.Worker(broker, worker_threads=THREADS), library.actor(blank, broker=broker)


def push_dramatiq(url: str, jobs: int) -> float:
    """Send messages; dramatiq has no call for many."""
    _, blank = _dramatiq(url, lambda: None)
    return _one_by_one(blank.send, jobs)


def work_dramatiq(url: str, jobs: int) -> float:
    """Let its worker work."""
    meter = Meter(jobs)
    worker, _ = _dramatiq(url, meter.count)
    worker.start()
    seconds = meter.seconds()
    worker.stop()
    return seconds


def _one_by_one(push: Callable[[str], object], jobs: int) -> float:
    began_at = time.perf_counter()
    for number in range(jobs):
        push(str(number))
    return time.perf_counter() - began_at


OURS: Final = [
    Peer(f"lowkiq_lambda, batch_size {size}", push_ours, partial(work_ours, size), jobs=10) for size in (1, 10, 100)
]
OTHERS: Final = {"huey": Peer("huey", push_huey, work_huey), "dramatiq": Peer("dramatiq", push_dramatiq, work_dramatiq)}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        "python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often all is measured (3)")
    parser.add_argument("--jobs", type=int, default=10_000, metavar="N", help="jobs for each (10,000)")
    options = parser.parse_args(arguments)
    peers = [*OURS, *(peer for name, peer in OTHERS.items() if find_spec(name)), *rubies()]
    rates: dict[str, list[tuple[float, float]]] = {peer.name: [] for peer in peers}
    with Server() as server:
        for _ in range(options.repeats):
            for peer in peers:
                server.admin.flushall()
                jobs = options.jobs * peer.jobs
                pushed = jobs / away(peer.push, server.url, jobs)
                worked = jobs / away(peer.work, server.url, jobs)
                rates[peer.name].append((pushed, worked))
                print(f"{peer.name}: enqueue {pushed:,.0f}/s, drain {worked:,.0f}/s", file=sys.stderr, flush=True)
    print(_table(rates))


def _table(rates: dict[str, list[tuple[float, float]]]) -> str:
    base = rates[OURS[0].name]
    lines = [
        (
            name,
            spread([pushed for pushed, _ in found], whole),
            spread([worked for _, worked in found], whole),
            spread([one[1] / other[1] for one, other in zip(found, base, strict=True)], ratio),
        )
        for name, found in rates.items()
    ]
    return markdown(("", "enqueue/s", "drain/s", f"x {OURS[0].name}"), lines)


if __name__ == "__main__":
    main()
