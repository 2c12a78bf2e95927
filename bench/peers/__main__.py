"""Other libraries on the same work, beside ours: how fast, and what a job costs the processor.

For each peer: its program pushes, by calls of 1,000 where it has such a call; then its worker, one process that is
started as its documentation says, works the jobs off, the clocks in the handler from its first call to its last.
Beside the rates stands what a job had of the processor: the program's time and the server's. Then the same with
handlers that wait for 5 ms, a hundred at once.

Each peer is first tried with few jobs and several settings (concurrency, and what else it has); the fastest are named
in the table, and are what is measured. Then all peers are measured once, then all again, each with as many jobs as it
can drain in some seconds; numbers are medians with the least and the most, ratios are taken within a repeat.
The first table has the medians alone, and a job's processor time in one number. Progress goes to stderr. Ctrl-C prints
what has been measured.

    make peers                                       installs the peers for Python and Node.js, once
    python -m bench.peers --only ours --only huey    two of them
    python -m bench.peers --repeats 1 --seconds 0.5  a first look at all

Promises differ: Sidekiq and huey lose the job in hand when their process dies; only Lowkiq and ours keep the order of
an id's jobs, one job of an id at a time, and merge payloads. Peers that are not installed are named with what to do.
LOWKIQ_BENCH_PEERS is the folder of their environment (.tools/peers).
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.peers.backends import Backend, has_postgres, postgres_backend, redis_backend
from bench.peers.catalog import PEERS, Peer, Settings, label
from bench.peers.installed import Installed
from bench.peers.running import Load, PeerFailedError, PeerSample, fastest, measure
from bench.peers.tables import Row, blank_table, summary, waiting_table

WAIT: Final = 0.005
_MOST_JOBS: Final = 200_000
_LEAST_JOBS: Final = 100


class Bench:
    """Measures peers on servers that run meanwhile."""

    def __init__(self, backends: Mapping[str, Backend], options: argparse.Namespace) -> None:
        self._backends = backends
        self._options = options
        self.repeats: int = options.repeats

    def sweep(self, peer: Peer, installed: Installed, wait: float) -> Row | None:
        """The peer with the settings that were fastest; None if it was done with none."""
        load, samples = Load(self._options.jobs, wait, self._options.limit), []
        name = peer.called(installed.version)
        for settings in peer.waiting if wait else peer.blank:
            with suppress(PeerFailedError):
                samples.append((settings, self._measured(peer, installed, settings, load, f"try {name}")))
        if not samples:
            return None
        best = fastest(samples)
        rate = max(sample.drained.rate for _, sample in samples)
        return Row(name, best, jobs_for(rate, self._options.seconds))

    def repeat(self, turn: int, peer: Peer, installed: Installed, row: Row, wait: float) -> None:
        """Add a sample to the row."""
        load = Load(row.jobs, wait, self._options.limit + 20 * self._options.seconds)
        with suppress(PeerFailedError):
            row.samples[turn] = self._measured(peer, installed, row.settings, load, f"{turn + 1} {row.name}")

    def _measured(self, peer: Peer, installed: Installed, settings: Settings, load: Load, what: str) -> PeerSample:
        said = f"{what} ({label(settings)}; {load.jobs:,} jobs{f' of {load.wait * 1_000:.0f} ms' if load.wait else ''})"
        try:
            sample = measure(peer, installed, settings, load, self._backends[peer.backend])
        except PeerFailedError as failed:
            _tell(f"{said}: {failed}", *getattr(failed, "__notes__", ()))
            raise
        pushed, drained = sample.pushed, sample.drained
        _tell(
            f"{said}: pushed {pushed.rate:,.0f}/s, {pushed.own:.1f} + {pushed.server:.1f} µs; "
            f"drained {drained.rate:,.0f}/s, {drained.own:.1f} + {drained.server:.1f} µs"
        )
        return sample


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    options = _parser().parse_args(arguments)
    peers = [peer for peer in PEERS if not options.only or peer.key in options.only]
    installed = {peer.key: found for peer in peers if (found := _installed(peer))}
    measured: dict[float, list[tuple[Peer, Row]]] = {0.0: [], WAIT: []}
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        backends = {"redis": stack.enter_context(redis_backend())}
        if any(peer.backend == "postgres" and peer.key in installed for peer in peers):
            backends["postgres"] = stack.enter_context(postgres_backend())
        bench = Bench(backends, options)
        present = [peer for peer in peers if peer.key in installed]
        for wait, rows in measured.items():
            _measure(bench, present, installed, wait, rows)
    blank, waiting = ([row for _, row in rows if row.samples] for rows in measured.values())
    printed = [summary(blank, waiting)] if blank else []
    printed += [blank_table(blank) if blank else "", waiting_table(waiting, WAIT) if waiting else ""]
    printed.append("\n".join(missing(peers, installed)))
    print("\n\n".join(filter(None, printed)))
    if options.json:
        raw = [[asdict(row) for row in rows] for rows in (blank, waiting)]
        options.json.write_text(json.dumps(raw, indent=1))


def _measure(
    bench: Bench, peers: Sequence[Peer], installed: Mapping[str, Installed], wait: float, rows: list[tuple[Peer, Row]]
) -> None:
    for peer in peers:
        row = bench.sweep(peer, installed[peer.key], wait)
        rows.extend([(peer, row)] if row else [])
    for turn in range(bench.repeats):
        for peer, row in rows:
            bench.repeat(turn, peer, installed[peer.key], row, wait)


def jobs_for(rate: float, seconds: float) -> int:
    """So many that a drain takes some seconds, as a round number."""
    jobs = rate * seconds
    step = 1_000 if jobs >= 1_000 else _LEAST_JOBS
    return min(_MOST_JOBS, max(step, round(jobs / step) * step))


def missing(peers: Sequence[Peer], installed: Mapping[str, Installed]) -> Iterator[str]:
    """A line for each peer that is not installed, with what to do."""
    lines = [f"{peer.key} is not installed: {_install(peer)}." for peer in peers if peer.key not in installed]
    yield from dict.fromkeys(lines)


def _installed(peer: Peer) -> Installed | None:
    return None if peer.backend == "postgres" and not has_postgres() else peer.find()


def _install(peer: Peer) -> str:
    return f"{peer.install}, and PostgreSQL" if peer.backend == "postgres" else peer.install


def _tell(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    keys = list(dict.fromkeys(peer.key for peer in PEERS))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often all is measured (5)")
    parser.add_argument("--jobs", type=int, default=1_000, metavar="N", help="jobs for each try of settings (1,000)")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long a drain is to take (2)")
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="when a try is given up (60)")
    parser.add_argument("--only", action="append", choices=keys, metavar="PEER", help=f"again for more: {keys}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what every repeat found to this file")
    return parser


if __name__ == "__main__":
    # TERM ends it as Ctrl-C does, so that no worker is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
