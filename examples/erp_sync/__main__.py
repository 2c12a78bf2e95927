"""`python -m examples.erp_sync`: a shop sends webhooks, and at the end the ERP must have what the shop has.

It ends by itself: with 0 where both are equal, apart from poison orders, which must be in the morgue; with 1 where they
are not, and with 130 after Ctrl-C.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event

from examples.erp_sync.knobs import HELP, Knobs
from examples.erp_sync.run import RunError, run
from examples.erp_sync.shop import plan, write_trace


def main(words: Sequence[str]) -> int:
    """Run it; the exit code."""
    knobs = _knobs(words)
    if knobs.trace:
        print(f"{write_trace(plan(knobs, 0.0), Path(knobs.trace)):,} webhooks of orders are in {knobs.trace}")
        return 0
    stop = Event()
    for ending in (SIGINT, SIGTERM):
        signal(ending, lambda *_: stop.set())
    try:
        report = run(knobs, stop, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        return 130
    except RunError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0 if report.is_good else 1


def _knobs(words: Sequence[str]) -> Knobs:
    parser = argparse.ArgumentParser(prog="python -m examples.erp_sync", description=__doc__, allow_abbrev=False)
    for knob in fields(Knobs):
        name = f"--{knob.name.replace('_', '-')}"
        if isinstance(knob.default, bool):
            parser.add_argument(name, action="store_true", help=HELP[knob.name])
        else:
            text = f"{HELP[knob.name]} (default {knob.default})"
            parser.add_argument(name, type=type(knob.default), default=knob.default, help=text)
    try:
        return Knobs(**vars(parser.parse_args(words)))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
