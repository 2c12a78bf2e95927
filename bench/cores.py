"""How a daemon of several processes uses several cores: jobs of a millisecond of pure Python, in 1 and 2 processes.

`python -m bench.cores`. Jobs that do nothing would say little on few cores, as the server and its client fill two of
them; beside jobs that compute the server idles. Beside the daemon runs the bare loop, the same computation without any
queue, in as many processes: what the machine gives. All four are measured in turn, again and again, and ratios are
taken within a repeat. All jobs fall due at one moment, when the daemon is idle; rates are from the begin of the
first batch to the end of the last. Progress goes to stderr.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from signal import SIGTERM
from statistics import median
from typing import Final

from bench.cores_app import NOTES, QUEUE, SHARDS, TURNS, compute
from bench.table import ratio, spread
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from tests.kit.daemons import DaemonProcess
from tests.kit.servers import Server
from tests.kit.waiting import eventually

TARGET: Final = 0.9
"""Of what the machine gives: how much of it the daemon takes."""
PROCESSES: Final = (1, 2)
_AHEAD: Final = 1.0
"""Seconds before the moment at which all begin."""
_TIMEOUT: Final = 300.0


@dataclass(frozen=True, slots=True)
class CoresSample:
    """Jobs a second, of one repeat: of the daemon and of the bare loop, by number of processes."""

    daemon: tuple[float, float]
    loop: tuple[float, float]

    @property
    def of_ceiling(self) -> float:
        """How much faster a second process makes the daemon, beside how much faster it makes the loop."""
        return (self.daemon[1] / self.daemon[0]) / (self.loop[1] / self.loop[0])


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.cores", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often all is measured (5)")
    parser.add_argument("--jobs", type=int, default=4_000, metavar="N", help="jobs of each measurement (4,000)")
    options = parser.parse_args(arguments)
    turns = turns_of_a_millisecond()
    samples: list[CoresSample] = []
    with Server() as server:
        for repeat in range(options.repeats):
            rates = [
                (daemon_rate(server.url, options.jobs, turns, number), loop_rate(options.jobs, turns, number))
                for number in PROCESSES
            ]
            (daemon1, loop1), (daemon2, loop2) = rates
            samples.append(CoresSample((daemon1, daemon2), (loop1, loop2)))
            print(f"{repeat + 1}/{options.repeats} {samples[-1]}", file=sys.stderr, flush=True)
    print(table(samples))


def table(samples: Sequence[CoresSample]) -> str:
    """A line for the daemon and one for the loop, and what the one has of the other."""
    found = [
        ("daemon", [sample.daemon for sample in samples]),
        ("bare loop", [sample.loop for sample in samples]),
    ]
    rows = [
        [
            name,
            spread([one for one, _ in rates], whole),
            spread([two for _, two in rates], whole),
            spread([two / one for one, two in rates], ratio),
        ]
        for name, rates in found
    ]
    shares = [sample.of_ceiling for sample in samples]
    reached = "reached" if median(shares) >= TARGET else "**short**"
    return "\n".join(
        [
            markdown(("jobs of 1 ms", "1 process/s", "2 processes/s", "x"), rows),
            "",
            f"The daemon's ratio of the loop's: {spread(shares, ratio)}, to reach {TARGET:.2f}: {reached}",
        ]
    )


def turns_of_a_millisecond() -> int:
    """How many turns of the loop take a millisecond here, now; the same number for all that is compared."""
    turns = 1_000_000
    began_at = time.perf_counter()
    compute(turns)
    return round(turns / (time.perf_counter() - began_at) / 1_000)


def daemon_rate(url: str, jobs: int, turns: int, processes: int) -> float:
    """Jobs a second of a daemon."""
    with tempfile.TemporaryDirectory() as folder:
        notes, log = Path(folder, "notes"), Path(folder, "log")
        environment = {"LOWKIQ_REDIS_URL": url, TURNS: str(turns), NOTES: str(notes)}
        arguments = ["bench.cores_app:app", "--processes", str(processes), "--log-level", "info"]
        with closing(DaemonProcess(arguments, environment, log)) as daemon:
            eventually(lambda: daemon.log.count("a child drains") == processes, _TIMEOUT)
            push(url, jobs)
            eventually(lambda: sum(done(notes)) == jobs, _TIMEOUT)
            daemon.send(SIGTERM)
            daemon.exit_code()
        lines = [line.split() for line in notes.read_text().splitlines()]
    return jobs / (max(float(ended) for _, ended, _ in lines) - min(float(began) for began, _, _ in lines))


def done(notes: Path) -> list[int]:
    """The jobs of each batch that has ended."""
    return [int(line.split()[2]) for line in notes.read_text().splitlines()] if notes.exists() else []


def push(url: str, jobs: int) -> None:
    """Queue all jobs; they fall due together, so that no process begins while others have nothing yet."""
    app = Lowkiq(Config(redis_url=url))
    worker = app.worker(queue_name=QUEUE, shards_count=SHARDS)(lambda _batch: None)
    due_at = time.time() + 2 * _AHEAD
    worker.push_many([{"id": number, "due_at": due_at} for number in range(jobs)])


def loop_rate(jobs: int, turns: int, processes: int) -> float:
    """Jobs a second of the bare loop."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        list(pool.map(compute, [turns] * processes))
        begins_at = time.monotonic() + _AHEAD
        ends = [pool.submit(loop, begins_at, jobs // processes, turns) for _ in range(processes)]
        return jobs // processes * processes / (max(end.result() for end in ends) - begins_at)


def loop(begins_at: float, jobs: int, turns: int) -> float:
    """When so many jobs were computed that began at that moment; both monotonic."""
    time.sleep(max(0.0, begins_at - time.monotonic()))
    for _ in range(jobs):
        compute(turns)
    return time.monotonic()


if __name__ == "__main__":
    main()
