"""What a job with a cursor costs: items that do nothing, saves of the cursor, and items repeated after a kill.

`python -m bench.iteration`. After a kill the next holder begins at the last save once the lease is over. A save is due
`settle_interval` (0.05 s) after the last, and later where saves are slow: they take at most a twentieth of the time.
Progress goes to stderr.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.here import DrainedHere, drain_here, new_queue
from bench.table import goals, ratio, spread
from lowkiq_lambda import BatchJob, Config, Lowkiq, Worker
from lowkiq_lambda.cli.output import markdown, whole
from tests.kit.servers import Server

ITEM: Final = 0.002
"""Seconds of an item where processes are killed."""
LEASE: Final = 1.0
ITEMS: Final = 150_000.0
SAVE: Final = 600.0
"""Microseconds."""
REPEATED: Final = 0.06
"""Seconds of work: what was done since the last save, which is due after 0.05."""
MICROSECONDS: Final = 1_000_000.0


@dataclass(frozen=True, slots=True)
class IterationSample:
    """Items a second; what a save takes, in all and of the server, in microseconds."""

    rate: float
    save: float
    server: float


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.iteration", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often all is measured (3)")
    parser.add_argument("--items", type=int, default=100_000, metavar="N", help="items without saves (100,000)")
    parser.add_argument("--kills", type=int, default=10, metavar="N", help="processes that are killed (10)")
    options = parser.parse_args(arguments)
    with Server() as server:
        samples = []
        for repeat in range(options.repeats):
            samples.append(measure(server, options.items))
            print(repeat + 1, samples[-1], file=sys.stderr, flush=True)
        repeated = repeated_items(server.url, options.kills)
    print(table(samples, repeated))
    print()
    print(goals(targets(samples, repeated)))


def measure(server: Server, items: int) -> IterationSample:
    """A job that saves as often as usual, and one a twentieth as long that saves at each item."""
    usual, saved = items, max(1, items // 20)
    seconds = _drain(server, usual, Config().settle_interval).seconds
    saving = _drain(server, saved, 0.0)
    save = saving.seconds / saved - seconds / usual
    return IterationSample(usual / seconds, save * MICROSECONDS, saving.server)


def _drain(server: Server, items: int, settle_interval: float) -> DrainedHere:
    """What a job of so many empty items takes."""
    app = Lowkiq(Config(redis_url=server.url, settle_interval=settle_interval))

    @app.worker
    class Counting(Worker):
        queue_name = new_queue("iteration")
        shards_count = 1

        def perform_job(self, job: BatchJob) -> Iterator[int]:
            yield from range(0 if job.cursor is None else job.cursor + 1, items)

    Counting.push_many([{"id": 1}])
    return drain_here(app, 1, server.admin)


def repeated_items(url: str, kills: int) -> list[int]:
    """How many items each killed process had done that the next one did again."""
    context, rng, name = get_context("spawn"), Random(kills), new_queue("killed")
    items = 200 * (kills + 1)
    with TemporaryDirectory() as folder:
        done = Path(folder) / "done"
        done.touch()
        _killed_app(url, name, str(done), items)[1].push_many([{"id": 1}])
        repeated = []
        for _ in range(kills):
            before = len(_lines(done))
            until = before + rng.randint(100, 150)
            process = context.Process(target=work, args=(url, name, str(done), items))
            process.start()
            while len(_lines(done)) < until and process.is_alive():
                time.sleep(ITEM)
            process.kill()
            process.join()
            lines = _lines(done)
            repeated.append(len(set(lines[:before]) & set(lines[before:])))
        return repeated[1:]


def work(url: str, name: str, done: str, items: int) -> None:
    """Drain the job, in a process that will be killed; a lease that a dead one left is waited for."""
    app, _ = _killed_app(url, name, done, items)
    while not app.drain(600):
        time.sleep(LEASE / 20)


def _killed_app(url: str, name: str, done: str, items: int) -> tuple[Lowkiq, type[Worker]]:
    app = Lowkiq(Config(redis_url=url, lease_ttl=LEASE))

    @app.worker
    class Killed(Worker):
        queue_name = name
        shards_count = 1

        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            file = os.open(done, os.O_WRONLY | os.O_APPEND)
            for item in range(0 if job.cursor is None else job.cursor + 1, items):
                time.sleep(ITEM)
                os.write(file, b"%d\n" % item)
                yield item

    return app, Killed


def _lines(done: Path) -> list[bytes]:
    return done.read_bytes().splitlines()


def table(samples: Sequence[IterationSample], repeated: Sequence[int]) -> str:
    """A line for each figure."""
    share = [ITEM * items for items in repeated]
    return markdown(
        ("a job with a cursor", "measured"),
        [
            ["empty items/s", spread([sample.rate for sample in samples], whole)],
            ["a save, µs", spread([sample.save for sample in samples], whole)],
            ["of which the server's, µs", spread([sample.server for sample in samples], whole)],
            [f"items of {ITEM * 1_000:.0f} ms repeated after a kill", spread([float(n) for n in repeated], whole)],
            ["the same in seconds, settle_interval 0.05", ratio(median(share)) if share else ""],
        ],
    )


def targets(samples: Sequence[IterationSample], repeated: Sequence[int]) -> Iterator[tuple[str, str, str, bool]]:
    """What is to be reached: items and saves that cost little, and of the work no more again than a kill may cost."""
    rate, save = median(sample.rate for sample in samples), median(sample.save for sample in samples)
    yield "empty items", f"{whole(ITEMS)}/s", f"{whole(rate)}/s", rate >= ITEMS
    yield "a save", f"at most {whole(SAVE)} µs", f"{whole(save)} µs", save <= SAVE
    if repeated:
        again = ITEM * median(repeated)
        yield "repeated after a kill", f"at most {ratio(REPEATED)} s", f"{ratio(again)} s", again <= REPEATED


if __name__ == "__main__":
    main()
