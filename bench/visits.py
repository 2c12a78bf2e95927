"""Many shards with little work each, as an invocation of the drain function has them whose event selects all.

`python -m bench.waiting` measures them: visited one after the other and at the same time, with one call of the handler
at once in each and with several.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from statistics import median
from typing import Final

from bench.here import new_queue
from bench.table import MILLISECONDS, ratio, spread
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.jobs.job import shard_for
from tests.kit.servers import Server

WAIT: Final = 0.05
"""Seconds of a job."""
IDS: Final = 5
"""Of each shard."""
CASES: Final = ((1, 1), (1, 5), (5, 1), (5, 5))
"""Shards that are visited at once, and calls at once in each; the first is what the others are compared with."""
TIMES: Final = 15.0
"""How many times as fast as the first case the last one is to be."""

VisitsSample = Mapping[tuple[int, int], float]
"""Seconds of a drain, for each case."""


def measure(server: Server, shards: int) -> VisitsSample:
    """Each case once."""
    sample = {(at_once, concurrency): _seconds(server, shards, at_once, concurrency) for at_once, concurrency in CASES}
    print(sample, file=sys.stderr, flush=True)
    return sample


def _seconds(server: Server, shards: int, at_once: int, concurrency: int) -> float:
    """Of a drain in an environment that is warm."""
    app = Lowkiq(Config(redis_url=server.url))
    worker = app.worker(queue_name=new_queue("visits"), shards_count=shards, concurrency=concurrency)(_wait)
    seconds = 0.0
    for each in (1, IDS):
        worker.push_many([{"id": job_id} for job_id in _ids(shards, each)])
        drain = Loop(app.core.drains.drainer, app.core.drains.drainer.shards, at_once=at_once)
        began_at = time.perf_counter()
        drain.run(Budget(SystemClock()))
        seconds = time.perf_counter() - began_at
        if drain.counts != {"done": shards * each}:
            raise RuntimeError(f"not all of {shards * each} jobs were done: {drain.counts}")
    return seconds


def _wait(_batch: object) -> None:
    time.sleep(WAIT)


def _ids(shards: int, each: int) -> Iterator[str]:
    """So many ids for each shard."""
    left = [each] * shards
    for number in count():
        if not any(left):
            return
        shard = shard_for(str(number), shards)
        if left[shard]:
            left[shard] -= 1
            yield str(number)


def table(samples: Sequence[VisitsSample], shards: int) -> str:
    """A line for each case."""
    rows = [
        [
            f"{at_once} at once, concurrency {concurrency}",
            spread([MILLISECONDS * sample[at_once, concurrency] for sample in samples], whole),
            spread([sample[CASES[0]] / sample[at_once, concurrency] for sample in samples], ratio),
        ]
        for at_once, concurrency in CASES
    ]
    return markdown((f"{shards} shards with {IDS} jobs of {WAIT * MILLISECONDS:.0f} ms", "ms", "times as fast"), rows)


def targets(samples: Sequence[VisitsSample]) -> Iterator[tuple[str, str, str, bool]]:
    """What both together are to bring."""
    times = median(sample[CASES[0]] / sample[CASES[-1]] for sample in samples)
    at_once, concurrency = CASES[-1]
    name = f"many shards, {at_once} at once, concurrency {concurrency}, times as fast as one call at a time"
    yield name, ratio(TIMES), ratio(times), times >= TIMES
