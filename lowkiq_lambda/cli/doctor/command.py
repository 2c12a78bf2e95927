"""The command line of `lowkiq doctor`."""

import os
import sys
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.doctor.text import describe
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.doctor.findings import Finding

_HELP: Final = """
Tell which promises hold on the app's server, and which work nobody looks after. It changes nothing.

It looks at the server (eviction, memory, persistence, replicas, version, rights, clocks) and at what takes memory. It \
compares the queues of the code with those of the server. It finds due work that nobody took for twice the poll \
interval, paused queues and held ids, and processes, schedule entries, duties and moves that stand still. \
Each line has a mark, and says what to do.
"""
_EPILOGUE: Final = """
MARKS
  ok         It is so.
  warning    The promise holds, and may not for long, or not for all.
  not known  The server refuses to tell, as managed ones do: the line says
             where to look.
  BROKEN     A promise does not hold, or work waits that nobody will do.

EXIT CODES
  0  Nothing is broken; there may be warnings. With --health: it is well.
  1  Something is broken. With --health: a restart of the daemon may help.
  2  The command line, the settings or the app cannot work.
  3  The server cannot be reached.

EXAMPLES
  Before a release:
    lowkiq doctor shop.jobs:app
  The shards that no schedule of a stack drains, too:
    lowkiq doctor shop.jobs:app --stack shop
  In a container that runs the daemon, as its health check:
    lowkiq doctor --health
  What is broken, for another program:
    lowkiq doctor shop.jobs:app --json \\
      | jq '.findings[] | select(.mark == "broken")'
"""

command: Final = command_app("doctor", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq doctor [OPTIONS] [MODULE:APP]")


@command.default
def doctor(
    app: Annotated[
        str | None, Parameter(name="MODULE:APP", help="The app; else that of LOWKIQ_APP, or of the project.")
    ] = None,
    /,
    *,
    stack: Annotated[
        str | None, Parameter(help="Ask AWS, too, which shards have no schedule in this deployed stack.")
    ] = None,
    health: Annotated[
        bool, flag("Tell only whether the daemon of this machine does its work, as a container's health check asks.")
    ] = False,
    json: Annotated[bool, flag("Tell it as one JSON object.")] = False,
) -> int:
    """Look, and tell; the exit code."""
    loaded = app_of(app)
    if health:
        return _tell_health(loaded, as_json=json)
    found = check_up(loaded.operate, () if stack is None else _of_stack(loaded, stack))
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        sys.stdout.write(describe(found) + "\n")
    return FAILED if found.mark == "broken" else DONE


def _tell_health(app: Lowkiq, *, as_json: bool) -> int:
    from lowkiq_lambda.operate.doctor.health import health_of  # noqa: PLC0415 - a check-up needs none

    found = health_of(app.core)
    sys.stdout.write((msgspec.json.encode(found).decode() if as_json else found.says) + "\n")
    return DONE if found.is_well else FAILED


def _of_stack(app: Lowkiq, stack: str) -> Iterable[Finding]:
    """What the stack's schedules lack; the server is found as the functions find it."""
    from lowkiq_lambda.aws.environment import find_redis  # noqa: PLC0415 - only where AWS is asked
    from lowkiq_lambda.cli.doctor.drain_schedules import stack_findings  # noqa: PLC0415 - as above
    from lowkiq_lambda.settings.aws import Settings  # noqa: PLC0415 - as above

    find_redis(app, Settings.from_env(os.environ))
    return stack_findings(app, stack)
