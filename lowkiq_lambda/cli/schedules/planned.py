"""`lowkiq schedules next`, `load`, `diff` and `dump`: when entries fire, without Redis."""

import os
import sys
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

from cyclopts import App, Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli.codes import DIFFERENT, DONE, MISUSED
from lowkiq_lambda.cli.parts import app_spec, command_app, whole_number
from lowkiq_lambda.cli.schedules.moments import DAY, day_of, moment_option, span_option
from lowkiq_lambda.cli.schedules.upcoming import Absence, describe

_NEXT_HELP: Final = """
Print the next planned times of each entry: in its zone, in UTC, and with what changes of the clocks do to them.

With --outage, also which of them would fire, and which would be missed, if no process had looked in that time.
"""
_NEXT_EPILOGUE: Final = """
EXIT CODES
  0  They are printed.
  2  The command line cannot work, or an entry cannot; the others are printed.

EXAMPLE
  The night in which the clocks change, and no process in the morning after it:
    lowkiq schedules next shop.jobs:app --from 2026-10-24T22:00 \\
      --outage 2026-10-25T01:00/2026-10-25T06:00
"""
_LOAD_HELP: Final = """
Print how many jobs the entries start in a day, the fullest minutes, and the ids that meet in a shard.

Jitter counts: a job starts after its planned time. How many shards a queue has is known from an app and from its dump.
"""
_LOAD_EPILOGUE: Final = """
EXIT CODES
  0  The tables are printed.
  2  The command line cannot work, or an entry cannot.

EXAMPLE
  A day of next month:
    lowkiq schedules load shop.jobs:app --day 2026-12-24
"""
_DIFF_HELP: Final = """
Print which entries were added, removed or changed from A to B, and what fires in one of them alone.

Expressions that mean the same times do not fire apart, however they are written.
"""
_DIFF_EPILOGUE: Final = """
EXIT CODES
  0  The two are the same.
  1  They differ.
  2  The command line cannot work, or an entry cannot.

EXAMPLE
  A file against the code that is to take its place:
    lowkiq schedules diff schedules.toml shop.jobs:app --days 60
"""
_DUMP_HELP: Final = """
Print the entries as JSON, which the other commands read: for a diff with what a later release declares.
"""
_DUMP_EPILOGUE: Final = """
EXIT CODES
  0  The JSON is printed.
  2  The app cannot be loaded, or a payload is not JSON.

EXAMPLE
    lowkiq schedules dump shop.jobs:app > released.json
"""
_SOURCES: Final = """
A source is an app as MODULE:APP, a TOML file with entries, or a .json file that 'dump' wrote. A moment without a zone \
is in UTC.
"""
_MOST: Final = 1_000
_DAYS: Final = 366

Src: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="SRC",
        help="MODULE:APP, a .toml file, or a .json file of dump; else the app of LOWKIQ_APP, or of the project.",
    ),
]


def print_next(
    source: Src = None,
    /,
    *,
    count: Annotated[
        int, Parameter(name=["--count", "-n"], help="Planned times of each entry.", converter=whole_number(1, _MOST))
    ] = 5,
    from_: Annotated[
        str | None, Parameter(name="--from", help="The moment before them: now, or when the outage begins.")
    ] = None,
    outage: Annotated[str | None, Parameter(help="BEGINNING/END of an outage, in which no process looks.")] = None,
) -> int:
    """Print the next planned times; the exit code."""
    from lowkiq_lambda.cli.schedules.sources import read_source

    start, span = moment_option("--from", from_), span_option("--outage", outage)
    if start is None:
        start = span[0] if span else SystemClock.time()
    described: list[str] = []
    source = app_spec(source, os.environ)
    table = read_source(source)
    sys.stderr.write("".join(f"error: {problem}\n" for problem in table.broken))
    code = MISUSED if table.broken else DONE
    for entry in table.entries:
        if problem := table.problem(entry):
            sys.stderr.write(f"error: {problem}\n")
            code = MISUSED
        else:
            described.append(describe(entry, start, count, Absence(*span) if span else None))
    if not table.entries:
        described.append(f"{source} has no entries.")
    sys.stdout.write("\n".join(f"{text}\n" for text in described))
    return code


def print_load(
    source: Src = None, /, *, day: Annotated[str | None, Parameter(help="A day in UTC; else today.")] = None
) -> int:
    """Print how many jobs start in which minutes; the exit code."""
    from lowkiq_lambda.cli.schedules.busy_minutes import load_table
    from lowkiq_lambda.cli.schedules.sources import read_checked

    moment = moment_option("--day", day)
    table = read_checked(app_spec(source, os.environ))
    sys.stdout.write(f"{load_table(table, day_of(SystemClock.time() if moment is None else moment))}\n")
    return DONE


def print_differences(
    old: Annotated[str, Parameter(name="A", help="The entries before, as SRC.")],
    new: Annotated[str, Parameter(name="B", help="The entries after, as SRC.")],
    /,
    *,
    days: Annotated[
        int, Parameter(help="The number of days whose firings are compared.", converter=whole_number(1, _DAYS))
    ] = 14,
    from_: Annotated[str | None, Parameter(name="--from", help="When these days begin; else now.")] = None,
) -> int:
    """Print what two sources have not in common; the exit code."""
    from lowkiq_lambda.cli.schedules.difference import Period, differences
    from lowkiq_lambda.cli.schedules.sources import read_checked

    moment = moment_option("--from", from_)
    start = SystemClock.time() if moment is None else moment
    lines = differences(read_checked(old), read_checked(new), Period(start, start + days * DAY))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return DIFFERENT if lines else DONE


def print_dump(source: Src = None, /) -> int:
    """Print the entries as JSON; the exit code."""
    from lowkiq_lambda.cli.schedules.sources import dumped, read_source

    sys.stdout.write(f"{dumped(read_source(app_spec(source, os.environ)))}\n")
    return DONE


def _command(name: str, run: Callable[..., int], help_: str, epilogue: str, arguments: str = "[SRC]") -> App:
    usage = f"lowkiq schedules {name} [OPTIONS] {arguments}"
    app = command_app(name, help_=f"{help_}{_SOURCES}", epilogue=epilogue, usage=usage)
    app.default(run)
    return app


upcoming: Final = _command("next", print_next, _NEXT_HELP, _NEXT_EPILOGUE)
load: Final = _command("load", print_load, _LOAD_HELP, _LOAD_EPILOGUE)
diff: Final = _command("diff", print_differences, _DIFF_HELP, _DIFF_EPILOGUE, "A B")
dump: Final = _command("dump", print_dump, _DUMP_HELP, _DUMP_EPILOGUE)
