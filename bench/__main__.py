"""Measure blank jobs on a server of its own, and print a markdown table.

For each case: push the jobs from one thread; let a daemon with default settings (5 threads), in a process of its
own, work them off, the clock in the handler from its first call to its last; push them again and let the smallest
possible loop call the same scripts with claims of the same size (the floor); then, where it says so, push single
jobs to an idle daemon. All cases are measured once, then all again, so that a slow minute of the machine hits all.
Numbers are medians with the smallest and the largest; ratios are taken within a repeat. Reads from clients (a round
trip is one, a request of many kilobytes several) and commands, those inside scripts too, are the server's own counts
for the drain; what a job has of the processor stands beside each rate, the client's and the server's microseconds.
Then come several payloads of an id and dicts (bench.payloads), and last how long cold starts take (bench.imports), and
the dashboard's first page (bench.overview).
Progress goes to stderr.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from bench import imports, overview, payloads
from bench.cases import Sample, cases, measure
from bench.table import Results, table
from bench.targets import targets
from tests.kit.servers import Server

IMPORTS: Final = 20
"""Fresh processes that start each function, and as many that import what it stands on."""
PAYLOAD_SHARE: Final = 5
"""Of the jobs of most cases, for ids with several payloads and with dicts: there are nine kinds of them."""
QUEUES: Final = 50
LOOKS: Final = 100
"""Requests of each kind to the dashboard of so many queues, with ten times the jobs of most cases."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    options = _parser().parse_args(arguments)
    chosen = [case for case in cases(options.jobs) if not options.only or case.name in options.only]
    samples: list[Sample] = []
    with Server() as server:
        for repeat in range(options.repeats):
            for case in chosen:
                sample = measure(case, server.url, server.admin, options.trials)
                samples.append(sample)
                print(f"{repeat + 1}/{options.repeats} {_short(sample)}", file=sys.stderr, flush=True)
    results = Results(samples)
    print(table(results))
    print()
    print(targets(results))
    if not options.only:
        print()
        print(payloads.report(options.repeats, options.jobs // PAYLOAD_SHARE))
        print()
        print(imports.table(IMPORTS))
        print()
        print(overview.table(10 * options.jobs, QUEUES, LOOKS))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode([asdict(sample) for sample in samples])))


def _short(sample: Sample) -> str:
    return f"{sample.case}: enqueue {sample.enqueue:,.0f}/s, drain {sample.drain:,.0f}/s, floor {sample.floor:,.0f}/s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in cases(1)]
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="how often all is measured (3)")
    parser.add_argument("--jobs", type=int, default=100_000, metavar="N", help="jobs in most cases (100,000)")
    parser.add_argument("--trials", type=int, default=100, metavar="N", help="single jobs for idle latency (100)")
    parser.add_argument(
        "--only", action="append", choices=names, metavar="CASE", help=f"only this case; again for more: {names}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what every repeat found to this file")
    return parser


if __name__ == "__main__":
    main()
