"""`python -m local.demo`: replays the history of a git repository into a table, and compares the two.

It runs on the server of LOWKIQ_REDIS_URL, or on the embedded one, and ends by itself: with 0 where the table is as git
says, 1 where it is not, 130 after Ctrl-C or TERM.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from secrets import randbits
from signal import SIGINT, SIGTERM, signal
from typing import Final

from rich.console import Console

from local.demo.faults import FAILURES, INTERRUPTIONS, Faults
from local.demo.run import FAILURE, Demo
from local.demo.server import server_for_demo
from local.demo.source import DEFAULT_LIMIT, choose_history
from lowkiq_lambda import Config, Lowkiq, LowkiqError
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.dashboard_port import dashboard_at
from lowkiq_lambda.local.logs import set_up_logs

PROGRAM: Final = "python -m local.demo"


def main(words: Sequence[str]) -> int:
    """Run the demo; the exit code."""
    chosen = _options(words)
    set_up_logs("warning", "text", sys.stderr)
    try:
        return _run(chosen)
    except LowkiqError as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILURE


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__, allow_abbrev=False)
    parser.add_argument("--repository", type=Path, help="a git checkout to replay; else the one around this folder")
    parser.add_argument(
        "--limit", type=_count, default=DEFAULT_LIMIT, help="at most so many changes, the latest; 0 for all"
    )
    parser.add_argument("--failures", type=_share, default=FAILURES, help="the share of batches that are made to fail")
    parser.add_argument(
        "--interruptions", type=_share, default=INTERRUPTIONS, help="the share of batches whose thread is made to end"
    )
    parser.add_argument("--data-dir", type=Path, help="the folder for files; by default .lowkiq of the project")
    parser.add_argument("--dashboard", metavar="[HOST:]PORT", help="serve the dashboard meanwhile")
    return parser.parse_args(words)


def _run(chosen: argparse.Namespace) -> int:
    app = Lowkiq(Config.from_env(os.environ))
    # It drains all that it pushes, whatever part of an app's shards this machine is to have.
    app.core.configure(number_of_nodes=1, node_number=0)
    history = choose_history(chosen.repository, chosen.limit or None)
    dashboard = dashboard_at(chosen.dashboard, app)
    folder = server_for_demo(app, chosen.data_dir)
    faults = Faults(chosen.failures, chosen.interruptions, seed=randbits(32))
    demo = Demo(app, Daemon, folder, Console(), faults)
    # Both end it in good order, at a place of its own choosing: an exception may come when a lock is held.
    for ending in (SIGINT, SIGTERM):
        signal(ending, lambda *_: demo.stop.set())
    with dashboard:
        return demo.run(history)


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is refused: give a whole number.")
    return int(word)


def _share(word: str) -> float:
    share = float(word)
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{word} is refused: give a number of at least 0 and below 1.")
    return share


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
