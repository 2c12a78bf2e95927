"""What jobs cost that fail, beside jobs that do: each kind of failure, at three batch sizes.

`python -m bench.failures`. Times are of the processor, a job; each batch size is compared with 1 in the same round.
Retries are due after the measurement. Progress goes to stderr.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.blank import PUSHED_AT_ONCE
from bench.here import new_queue
from bench.table import ratio, spread
from bench.usage import processor_time, reset, scripts
from lowkiq_lambda import Batch, Config, Lowkiq, Rejected
from lowkiq_lambda.cli.output import markdown
from tests.kit.servers import Server

JOBS: Final = 5_000
SIZES: Final = (1, 10, 100)
MICROSECONDS: Final = 1_000_000.0
_TIMEOUT: Final = 600.0
_LATER: Final = 3_600.0
_EACH: Final = 100
"""One job of so many is the bad one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What goes wrong: the handler, and the outcomes, of `jobs`."""

    name: str
    handler: Callable[[Batch], None]
    outcomes: Callable[[int], dict[str, int]]
    max_retry_count: int = 25


def down(_batch: Batch) -> None:
    """Fails whatever it gets, as in an outage."""
    raise ConnectionError("the shop is down")


def poisoned(batch: Batch) -> None:
    """Fails if a bad id is in the batch, and does not say which."""
    if bad := next((job_id for job_id in batch if int(job_id) % _EACH == _EACH // 2), None):
        raise ValueError(f"{bad} is bad")


def refusing(batch: Batch) -> None:
    """Rejects a bad payload, and does all others."""
    for job_id in batch:
        if int(job_id) % _EACH == _EACH // 2:
            batch.fail(job_id, Rejected("no such order"), payload=0)


FAILURES: Final = (
    Failure("nothing fails", lambda _batch: None, lambda jobs: {"done": jobs}),
    Failure("all fail, and are retried", down, lambda jobs: {"retried": jobs}),
    Failure("all fail for good", down, lambda jobs: {"dead": jobs}, max_retry_count=0),
    Failure(
        "one of 100 fails its batch", poisoned, lambda jobs: {"done": jobs - jobs // _EACH, "retried": jobs // _EACH}
    ),
    Failure(
        "one payload of 100 is rejected",
        refusing,
        lambda jobs: {"done": jobs - jobs // _EACH, "rejected": jobs // _EACH},
    ),
)


@dataclass(frozen=True, slots=True)
class FailureSample:
    """Of a job: microseconds of the processor in the client and on the server, calls of scripts, and of the handler."""

    failure: str
    batch_size: int
    client: float
    server: float
    scripts: float
    calls: float


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.failures", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often all is measured (5)")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=f"jobs of each drain ({JOBS:,})")
    options = parser.parse_args(arguments)
    # A line for each batch that failed would be most of the client's time.
    logging.getLogger("lowkiq_lambda").setLevel(logging.CRITICAL)
    samples: list[FailureSample] = []
    with Server() as server:
        for repeat in range(options.repeats):
            for failure in FAILURES:
                for batch_size in SIZES:
                    samples.append(measure(server, failure, batch_size, options.jobs))
                    print(repeat + 1, asdict(samples[-1]), file=sys.stderr, flush=True)
    print(table(samples))


def measure(server: Server, failure: Failure, batch_size: int, jobs: int) -> FailureSample:
    """Drain so many jobs, on a server whose data is thrown away."""
    admin, calls = server.admin, 0
    admin.flushall()
    app = Lowkiq(Config(redis_url=server.url))

    def handle(batch: Batch) -> None:
        nonlocal calls
        calls += 1
        failure.handler(batch)

    fields: dict[str, Any] = {
        "batch_size": batch_size,
        "max_retry_count": failure.max_retry_count,
        "retry_in": lambda _count: _LATER,
    }
    worker = app.worker(queue_name=new_queue("failures"), **fields)(handle)
    app.drain(_TIMEOUT)
    for start in range(0, jobs, PUSHED_AT_ONCE):
        numbers = range(start, min(jobs, start + PUSHED_AT_ONCE))
        worker.push_many([{"id": number, "payload": str(number)} for number in numbers])
    reset(admin)
    server_at, client_at = processor_time(admin), time.process_time()
    counts = app.drain(_TIMEOUT)
    client, used = time.process_time() - client_at, processor_time(admin) - server_at
    wanted = failure.outcomes(jobs)
    if wanted != {outcome: counts.get(outcome) for outcome in wanted}:
        raise RuntimeError(f"{failure.name}: {counts} of {jobs} jobs")
    each = MICROSECONDS / jobs
    return FailureSample(failure.name, batch_size, client * each, used * each, scripts(admin)[0] / jobs, calls / jobs)


def table(samples: Sequence[FailureSample]) -> str:
    """A line for each failure and batch size."""
    rows = []
    for failure in FAILURES:
        alone = of(samples, failure.name, 1)
        for batch_size in SIZES:
            own = of(samples, failure.name, batch_size)
            rows.append(
                [
                    failure.name,
                    str(batch_size),
                    spread([sample.client for sample in own], ratio),
                    spread([sample.server for sample in own], ratio),
                    spread([one.server / other.server for one, other in zip(own, alone, strict=True)], ratio),
                    spread([sample.scripts for sample in own], "{:.3f}".format),
                    spread([sample.calls for sample in own], ratio),
                ]
            )
    head = (
        *("what fails", "batch_size", "client, µs a job", "server, µs a job", "x batch_size 1"),
        *("script calls a job", "handler calls a job"),
    )
    return markdown(head, rows)


def of(samples: Sequence[FailureSample], failure: str, batch_size: int) -> list[FailureSample]:
    """Those of a failure at a batch size, in the order of the rounds."""
    return [sample for sample in samples if (sample.failure, sample.batch_size) == (failure, batch_size)]


if __name__ == "__main__":
    main()
