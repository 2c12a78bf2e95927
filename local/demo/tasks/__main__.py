"""`python -m local.demo.tasks DEMO`: runs one of the demos on the embedded server, or on that of LOWKIQ_REDIS_URL."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event

from rich.console import Console

from local.demo.server import server_for_demo
from local.demo.tasks.demo import Demo
from local.demo.tasks.enrol import Enrolment
from local.demo.tasks.export import Export
from local.demo.tasks.import_rows import Import
from lowkiq_lambda import Config, Lowkiq

DEMOS: dict[str, type[Demo]] = {"enrol": Enrolment, "import": Import, "export": Export}


def main(arguments: Sequence[str]) -> int:
    """Run the demo that is named; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m local.demo.tasks", description=__doc__)
    parser.add_argument("demo", choices=DEMOS)
    parser.add_argument("--size", type=int, help="how many products, or rows")
    parser.add_argument("--data-dir", type=Path, help="the folder for files; by default .lowkiq of the project")
    chosen = parser.parse_args(arguments)
    app, stop = Lowkiq(Config.from_env(os.environ)), Event()
    folder = server_for_demo(app, chosen.data_dir)
    for ending in (SIGINT, SIGTERM):
        signal(ending, lambda *_: stop.set())
    demo = DEMOS[chosen.demo](app, folder / "tasks")
    return demo.run(chosen.size or demo.size, Console(), stop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
