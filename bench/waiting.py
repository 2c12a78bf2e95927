"""What `concurrency` brings a handler that waits: jobs of 50 ms in one shard, in threads and as coroutines.

`python -m bench.waiting`. Each case has a queue and an app of its own, on one server. `busy` is how much of the time
the slots ran a job, all together. Then come many shards with little work each (bench.visits). Progress goes to stderr.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench import visits
from bench.here import drain_here, new_queue
from bench.table import goals, ratio, spread
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from tests.kit.servers import Server

WAIT: Final = 0.05
"""Seconds of a job."""
BUSY: Final = 0.9
CALLS: Final = 0.06
MANY: Final = 20
"""The concurrency from which on calls of scripts are to be few."""
MOST: Final = 50
"""The concurrency up to which slots are to be busy: beyond it the processor sets the rate, not the wait."""
KINDS: Final = ("threads", "coroutines")


@dataclass(frozen=True, slots=True)
class WaitingSample:
    """Ids a second, and calls of scripts for each id."""

    rate: float
    calls: float


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.waiting", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often all is measured (3)")
    parser.add_argument("--jobs", type=int, default=4_000, metavar="N", help="jobs at the highest concurrency (4,000)")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 10, 20, 50, 100], metavar="C")
    parser.add_argument("--shards", type=int, default=24, metavar="N", help="shards with little work each (24)")
    options = parser.parse_args(arguments)
    cases = [(kind, concurrency) for concurrency in options.concurrency for kind in KINDS]
    samples: dict[tuple[str, int], list[WaitingSample]] = {case: [] for case in cases}
    with Server() as server:
        for repeat in range(options.repeats):
            for kind, concurrency in cases:
                jobs = options.jobs * concurrency // max(options.concurrency)
                samples[kind, concurrency].append(measure(server, kind, concurrency, jobs))
                print(repeat + 1, kind, concurrency, samples[kind, concurrency][-1], file=sys.stderr, flush=True)
        visited = [visits.measure(server, options.shards) for _ in range(options.repeats)]
    print(table(samples))
    print()
    print(visits.table(visited, options.shards))
    print()
    print(goals([*targets(samples), *visits.targets(visited)]))


def measure(server: Server, kind: str, concurrency: int, jobs: int) -> WaitingSample:
    """One drain of so many jobs."""
    app = Lowkiq(Config(redis_url=server.url))
    worker = app.worker(queue_name=new_queue("waiting"), shards_count=1, concurrency=concurrency)(HANDLERS[kind])
    worker.push_many([{"id": number} for number in range(jobs)])
    drained = drain_here(app, jobs, server.admin)
    return WaitingSample(jobs / drained.seconds, drained.calls / jobs)


def _wait(_batch: object) -> None:
    time.sleep(WAIT)


async def _await(_batch: object) -> None:
    await asyncio.sleep(WAIT)


HANDLERS: Final[dict[str, Callable[[Any], object]]] = {"threads": _wait, "coroutines": _await}


def table(samples: Mapping[tuple[str, int], Sequence[WaitingSample]]) -> str:
    """A line for each case."""
    rows = [
        [
            f"{kind}, concurrency {concurrency}",
            spread([sample.rate for sample in found], whole),
            spread([sample.rate * WAIT / concurrency for sample in found], ratio),
            spread([sample.calls for sample in found], ratio),
        ]
        for (kind, concurrency), found in samples.items()
    ]
    return markdown((f"jobs of {WAIT * 1_000:.0f} ms, one shard", "ids/s", "busy", "calls an id"), rows)


def targets(samples: Mapping[tuple[str, int], Sequence[WaitingSample]]) -> Iterator[tuple[str, str, str, bool]]:
    """What is to be reached side by side: busy slots up to 50, and few calls for each id from 20 on."""
    for (kind, concurrency), found in samples.items():
        if 1 < concurrency <= MOST:
            busy = median(sample.rate * WAIT / concurrency for sample in found)
            yield f"busy, {kind}, concurrency {concurrency}", ratio(BUSY), ratio(busy), busy >= BUSY
        if concurrency >= MANY:
            calls = median(sample.calls for sample in found)
            goal = f"at most {ratio(CALLS)}"
            yield f"calls an id, {kind}, concurrency {concurrency}", goal, ratio(calls), calls <= CALLS


if __name__ == "__main__":
    main()
