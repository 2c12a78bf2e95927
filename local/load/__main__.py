"""`python -m local.load`: plants the operators' load on a server of its own, and keeps it until Ctrl-C."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.load.planting import FAILURES, JOBS, Load, Show
from local.load.troubles import TROUBLES
from lowkiq_lambda import Config, LowkiqError
from lowkiq_lambda.cli.doctor import describe
from lowkiq_lambda.local.dashboard_port import dashboard_at
from lowkiq_lambda.local.logs import set_up_logs
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.providers.embedded.server import open_embedded

PROGRAM: Final = "python -m local.load"
SUCCESS, FAILURE = 0, 1
HEARTBEAT: Final = 10.0
"""Seconds between two heartbeats of the daemons that the load pretends to have."""
_WIDTH: Final = max(map(len, TROUBLES))
_DESCRIPTION: Final = f"""
Plant what an operator meets on a bad day: 31 queues with {JOBS:,} jobs, {FAILURES:,} of which have failed by 12 kinds
of errors, and troubles that `lowkiq doctor` and the first page of the dashboard have to name. The server is one of its
own, on this machine; it and all that it holds are gone after Ctrl-C.
"""
_EPILOGUE: Final = "\n".join(
    [
        "troubles, worst first; each can be left out by --without NAME:",
        *(f"  {name:<{_WIDTH}}  {trouble.says}" for name, trouble in TROUBLES.items()),
        "",
        "examples:",
        "  The whole load, and its dashboard at http://127.0.0.1:8080/:",
        f"    {PROGRAM} --dashboard 8080",
        "  A hundredth of it, which is there in some seconds, without its failures:",
        f"    {PROGRAM} --size 0.01 --without failures",
        "  A load that is well, so that nothing needs anybody:",
        f"    {PROGRAM} --healthy --once",
    ]
)


def main(words: Sequence[str]) -> int:
    """Plant, and wait; the exit code."""
    chosen = _options(words)
    set_up_logs("error", "text", sys.stderr)
    console, stop = Console(), Event()
    for ending in (SIGINT, SIGTERM):
        signal(ending, lambda *_: stop.set())
    without = [*TROUBLES] if chosen.healthy else chosen.without
    try:
        with tempfile.TemporaryDirectory(prefix="lowkiq-load-") as folder, open_embedded(Path(folder)) as server:
            load = Load(Config(redis_url=server.url), chosen.size, chosen.seed, without)
            with dashboard_at(chosen.dashboard, load.app) if chosen.dashboard else nullcontext():
                _run(load, console, stop, once=chosen.once)
    except LowkiqError as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILURE
    return SUCCESS


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--size", type=_share, default=1.0, help="the share of the load that is planted; 1 for all")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same jobs")
    parser.add_argument(
        "--without", action="append", default=[], choices=TROUBLES, metavar="NAME", help="leave this trouble out"
    )
    parser.add_argument("--healthy", action="store_true", help="leave all troubles out")
    parser.add_argument("--once", action="store_true", help="tell what needs somebody, and end")
    parser.add_argument("--dashboard", metavar="[HOST:]PORT", help="serve the dashboard meanwhile")
    return parser.parse_args(words)


def _run(load: Load, console: Console, stop: Event, *, once: bool) -> None:
    url = load.app.config.redis_url
    with _showing(console) as show:
        load.plant(show)
    console.print(describe(check_up(load.app.operate)), markup=False, highlight=False, soft_wrap=True)
    if once:
        return
    for line in (
        "",
        "In another terminal:",
        f"  export LOWKIQ_REDIS_URL={url} LOWKIQ_APP=local.load.app:app",
        "  lowkiq doctor",
        "Ctrl-C ends it, and the server with all that it holds.",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    while not stop.wait(HEARTBEAT):
        load.attend()


@contextmanager
def _showing(console: Console) -> Iterator[Show]:
    """A bar for each step on a terminal; elsewhere a line when it has ended."""
    if not console.is_terminal:

        def tell(what: str, done: int, total: int) -> None:
            if done == total:
                console.print(f"{total:,} {what}", highlight=False)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield show


def _share(word: str) -> float:
    share = float(word)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{word} is refused: give a number above 0 and of at most 1.")
    return share


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
