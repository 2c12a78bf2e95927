"""`lowkiq processes`: the processes that drain, the work of each process, and two orders for it."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import NOTHING, agreed
from lowkiq_lambda.cli.parts import AppOption, Reason, Yes, command_app, flag
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.views.processes import Doing, Process

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.inspect.processes import Processes

_HELP: Final = """
List the processes that drain, which are daemons and invocations of the drain function; quiet one, or stop it.

Each process writes every ten seconds (LOWKIQ_HEARTBEAT_INTERVAL) what it does, and reads its orders then. A process \
that has not written for a minute is shown as gone: it died, or cannot reach Redis.
"""
_EPILOGUE: Final = """
ORDERS say what they touch, and ask; --yes does not.
  --quiet P  P begins nothing new, as after the signal TSTP: what runs ends,
             and a daemon stays. Only --stop follows on that.
  --stop P   P ends, as after TERM: what runs has LOWKIQ_SHUTDOWN_TIMEOUT.
  P is the name of a process as it is listed, or its beginning if no other
  begins so. An invocation has nothing to stay for: either ends it after the
  batch that runs, and the next schedule starts another one. One of several
  processes of a daemon (lowkiq run --processes) that is stopped is replaced by
  its parent.

EXIT CODES
  0  The processes are listed, or the order is given.
  1  No process has that name, or the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached.

EXAMPLES
  Before a deploy, let a daemon come to an end of what it does:
    lowkiq processes shop.jobs:app --quiet web-1:17 --yes
  The names of those that live, for another program:
    lowkiq processes shop.jobs:app --json \\
      | jq --raw-output '.[].id'
"""
_MEBIBYTE: Final = 1024 * 1024
_QUESTIONS: Final = {"stop": "Stop", "quiet": "Let nothing new begin in"}
_KINDS: Final = {"lambda": "drain function's invocation"}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))

command: Final = command_app(
    "processes", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq processes [OPTIONS] [MODULE:APP]"
)


@command.default
def processes(  # noqa: PLR0913 - the options of a command line
    app: AppOption = None,
    *,
    quiet: Annotated[str | None, Parameter(help="The process that is to begin nothing new.")] = None,
    stop: Annotated[str | None, Parameter(help="The process that is to end.")] = None,
    reason: Reason = None,
    yes: Yes = False,
    json: Annotated[bool, flag("List them as JSON; times are Unix seconds.")] = False,
) -> int:
    """List them, or give an order; the exit code."""
    if quiet is not None and stop is not None:
        raise ConfigError("--quiet and --stop are two orders: give one of them.")
    loaded = app_of(app)
    listed = loaded.operate.processes()
    if quiet is not None:
        return _order(loaded, listed, quiet, "quiet", reason, yes=yes)
    if stop is not None:
        return _order(loaded, listed, stop, "stop", reason, yes=yes)
    if json:
        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode([msgspec.to_builtins(one) for one in listed])).decode()
        )
        sys.stdout.write("\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(listed, SystemClock.time())))
    return DONE


def _order(  # noqa: PLR0913 - an order, and how it is asked for
    app: "Lowkiq", listed: "Processes", name: str, order: str, reason: str | None, *, yes: bool
) -> int:
    from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE

    matches = [process for process in listed if process.id == name] or [
        process for process in listed if process.id.startswith(name)
    ]
    if len(matches) != 1:
        several = f" Say which: {', '.join(process.id for process in matches)}." if matches else ""
        sys.stderr.write(f"error: {len(matches) or 'no'} processes are named {name!r}.{several}\n")
        return FAILED
    (process,) = matches
    question = f"{_QUESTIONS[order]} {process.id}, a {_KINDS.get(process.kind, process.kind)} at"
    if not (process.is_gone or yes or agreed(f"{question} {without_password(app.core.connections.url)}?")):
        sys.stdout.write(f"{NOTHING}\n")
        return NOT_APPLIED
    is_known = listed.stop(process) if order == "stop" else listed.quiet(process)
    if not is_known or process.is_gone:
        sys.stderr.write(f"error: {process.id} is gone: nobody hears the order.\n")
        return FAILED
    note(app, OF_NO_QUEUE, order, f"process {process.id}", 1, reason)
    what = "stops" if order == "stop" else "begins nothing new"
    sys.stdout.write(f"{process.id} {what} as soon as it has heard that, with its next heartbeat\n")
    return DONE


def _lines(processes: Sequence[Process], now: float) -> Iterator[str]:
    if not processes:
        yield "no process drains, as far as is known"
    width = max((len(process.id) for process in processes), default=0)
    for process in processes:
        yield f"{process.id:{width}}  {process.kind:6}  {_state(process, now)}"
        if not process.is_gone:
            yield from (f"    {_doing(doing, process.seen_at)}" for doing in process.doing)


def _state(process: Process, now: float) -> str:
    age = f"for {_ago(now - process.since)}"
    if process.is_gone:
        return f"gone, heard of {_ago(now - process.seen_at)} ago"
    words = "be quiet" if process.order == "quiet" else process.order
    order = f" (told to {words})" if process.order and not process.quiet else ""
    parts = [f"{process.state}{order} {age}", f"{len(process.doing)} of {process.threads} threads busy"]
    limit = f" of {process.memory // _MEBIBYTE} MB" if process.memory else " MB"
    parts += [f"{process.rss // _MEBIBYTE}{limit}"] if process.rss else []
    parts += [f"{process.cpu:.2f} of {process.cores:g} processors"] if process.cpu is not None else []
    if process.round_trip is not None:
        slow = ", slow" if process.is_slow else ""
        parts.append(f"Redis in {process.round_trip * 1_000:.1f} ms{slow}")
    release = [f"release {process.release}"] if process.release else []
    return ", ".join([*parts, *release, f"version {process.version}"])


def _doing(doing: Doing, told_at: float) -> str:
    # What it does now nobody knows: that of its last heartbeat may have ended long ago.
    more = ", ..." if doing.count > len(doing.ids) else ""
    return f"shard {doing.shard} of {doing.queue}, for {_ago(told_at - doing.since)}: {', '.join(doing.ids)}{more}"


def _ago(seconds: float) -> str:
    number, unit = next(((n, unit) for n, unit in _UNITS if seconds >= n), (1, "s"))
    return f"{max(0.0, seconds) / number:.0f} {unit}"
