"""`lowkiq scale`: how many holders the queues could use now."""

from typing import Annotated, Final

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import remark_skipped, say, table, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.views.queues import QueueScale

_HELP: Final = """
Print how many holders the queues could use now: shards that are held, or have due work that no pause and no limit \
keeps back. Divided by the threads of a daemon, it is the number of daemons.

It never exceeds the number of shards, as more threads would have nothing to hold.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The numbers are printed; a queue that was made with another declaration
     is named and left out.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  The number alone, for a script:
    lowkiq scale --json | jq .wanted
"""
_HEAD: Final = ("QUEUE", "WANTED", "MOST", "OLDEST DUE")

command: Final = command_app("scale", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq scale [OPTIONS]")


@command.default
def scale(
    *,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/scale does; times are in seconds.")] = False,
) -> int:
    """Print them; the exit code."""
    view = app_of(app).operate.scale()
    if json:
        write_json(view)
        return DONE
    rows = [_row(name, queue) for name, queue in view.queues.items()]
    say(*table(_HEAD, [*rows, _row("(all)", view)], frozenset({0})))
    remark_skipped(view.skipped)
    return DONE


def _row(name: str, scale: QueueScale) -> tuple[str, ...]:
    return name, exact(scale.wanted), exact(scale.most), duration(scale.oldest_due_age)
