"""What `wait_replicas=1` costs: pushes and drains with and without it, in turn, on a primary with a replica.

`python -m bench.replicated`. Both servers are on this machine, so a wait takes no way through a network: add a round
trip between your primary and its replica. Progress goes to stderr.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bench.here import new_queue
from bench.table import ratio, spread
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from tests.kit.apps import closing_app
from tests.kit.servers import SentinelSetup

PUSH, PUSHES, DRAIN, SINGLE = (
    "push of one job",
    "push_many of 1,000",
    "drain, 1,000 a settling",
    "drain, one a settling",
)
_AT_ONCE: Final = 1_000
_FEW: Final = 20
"""Part of the jobs that are pushed, or settled, one by one."""

Rates = Mapping[str, float]


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.replicated", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often all is measured (5)")
    parser.add_argument("--jobs", type=int, default=40_000, metavar="N", help="jobs of a drain (40,000)")
    options = parser.parse_args(arguments)
    samples: list[tuple[Rates, Rates]] = []
    with SentinelSetup() as setup:
        for repeat in range(options.repeats):
            # The one that comes first changes, as the second finds the machine warm.
            order = (0, 1) if repeat % 2 else (1, 0)
            found = {count: dict(_measure(setup.url, count, options.jobs)) for count in order}
            samples.append((found[0], found[1]))
            print(repeat + 1, found, file=sys.stderr, flush=True)
    print(table(samples))


def _measure(url: str, wait_replicas: int, jobs: int) -> Iterator[tuple[str, float]]:
    """Jobs a second of each kind."""
    few = max(1, jobs // _FEW)
    with closing_app(Lowkiq(Config(redis_url=url, wait_replicas=wait_replicas))) as app:
        worker = app.worker(queue_name=new_queue("replicated"), shards_count=1, batch_size=100)(_nothing)
        worker.push("warm")
        app.drain()
        began_at = time.perf_counter()
        for number in range(few):
            worker.push(number)
        yield PUSH, few / (time.perf_counter() - began_at)
        began_at = time.perf_counter()
        for start in range(few, jobs, _AT_ONCE):
            worker.push_many([{"id": number} for number in range(start, min(start + _AT_ONCE, jobs))])
        yield PUSHES, (jobs - few) / (time.perf_counter() - began_at)
        began_at = time.perf_counter()
        app.drain()
        yield DRAIN, jobs / (time.perf_counter() - began_at)
    with closing_app(Lowkiq(Config(redis_url=url, wait_replicas=wait_replicas, settle_interval=0))) as app:
        worker = app.worker(queue_name=new_queue("replicated"), shards_count=1)(_nothing)
        worker.push_many([{"id": number} for number in range(few)])
        began_at = time.perf_counter()
        app.drain()
        yield SINGLE, few / (time.perf_counter() - began_at)


def _nothing(_batch: object) -> None:
    pass


def table(samples: Sequence[tuple[Rates, Rates]]) -> str:
    """A line for each kind; the ratio is within a repeat."""
    head = ("jobs a second", "wait_replicas=0", "wait_replicas=1", "ratio", "more for each call, ms")
    calls = {PUSHES: _AT_ONCE, DRAIN: _AT_ONCE}
    rows = [
        (
            kind,
            spread([without[kind] for without, _ in samples], whole),
            spread([waiting[kind] for _, waiting in samples], whole),
            spread([waiting[kind] / without[kind] for without, waiting in samples], ratio),
            spread(
                [1_000 * calls.get(kind, 1) * (1 / waiting[kind] - 1 / without[kind]) for without, waiting in samples],
                ratio,
            ),
        )
        for kind in (PUSH, PUSHES, DRAIN, SINGLE)
    ]
    return markdown(head, rows)


if __name__ == "__main__":
    main()
