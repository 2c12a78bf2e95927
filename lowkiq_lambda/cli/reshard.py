"""`lowkiq reshard`: another number of shards for a queue, while it is pushed to and drained."""

import os
import sys
from typing import Annotated, Final

from cyclopts import App, Parameter

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.parts import app_spec, command_app, flag, whole_number
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.loading import load_app
from lowkiq_lambda.reshard.group import Moved, Postponed
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.worker import Worker

_HELP: Final = """
Give a queue another number of shards, while it is pushed to and drained. No code has to be deployed for that.

The ids move group by group. While a group moves, pushes to it go on, and its jobs are not performed; all other groups \
go on. Interrupt the command and start it again as you like: what has moved has moved. Without an option that changes \
anything it tells where the ids are.
"""
_EPILOGUE: Final = """
EXIT CODES
  0    All ids lie in the shards that were asked for; or it was told where they are.
  1    Redis cannot be reached, another move is under way, or shards are in use.
  2    The command line, the settings or the app cannot work.
  3    Ids would move: a dry run.
  130  Ctrl-C; the same command goes on.

EXAMPLES
  How many ids each group has:
    lowkiq reshard SyncOrder --to 48 --app shop.jobs:app --dry-run
  Move them:
    lowkiq reshard SyncOrder --to 48 --app shop.jobs:app
  Turn round, where it was no good idea:
    lowkiq reshard SyncOrder --abort --app shop.jobs:app
  Code may declare 48 before the move, and 24 no more after it:
    lowkiq reshard SyncOrder --announce --to 48 --app shop.jobs:app
    lowkiq reshard SyncOrder --forget 24 --app shop.jobs:app
"""
MOST_SHARDS: Final = 100_000


def reshard(  # noqa: PLR0913 - the options
    queue: Annotated[str, Parameter(name="QUEUE", help="The queue, by its name or its worker's.")],
    /,
    *,
    to: Annotated[
        int | None, Parameter(converter=whole_number(1, MOST_SHARDS), help="How many shards it is to have.")
    ] = None,
    app: Annotated[str | None, Parameter(help="The app, MODULE:APP; else LOWKIQ_APP.")] = None,
    dry_run: Annotated[bool, flag("Tell the groups and their ids, and change nothing.")] = False,
    announce: Annotated[bool, flag("Only let code declare so many shards, beside those that the queue has.")] = False,
    abort: Annotated[bool, flag("Turn round: what has moved walks back, two minutes after it had left.")] = False,
    forget: Annotated[
        int | None, Parameter(converter=whole_number(1, MOST_SHARDS), help="Code may not declare so many any more.")
    ] = None,
) -> int:
    """Do what the options say; the exit code."""
    if sum((abort, forget is not None, announce or dry_run or to is not None)) > 1:
        raise ConfigError("--to, --abort and --forget are three orders: give one of them.")
    if (announce or dry_run) and to is None:
        raise ConfigError("Say with --to how many shards the queue is to have.")
    loaded = load_app(app_spec(app, os.environ))
    resharding = loaded.resharding(_worker_of(loaded, queue))
    if forget is not None:
        return _tell(resharding.accept(forget, is_accepted=False))
    if announce and to is not None:
        return _tell(resharding.accept(to))
    if dry_run and to is not None:
        return _plan(resharding, to)
    return _move(resharding, to, turns=abort)


def build(program: str) -> App:
    """The command line of a program that runs this command."""
    return _app(program, program)


def _app(name: str, program: str) -> App:
    app = command_app(name, help_=_HELP, epilogue=_EPILOGUE, usage=f"{program} [OPTIONS] QUEUE")
    app.default(reshard)
    return app


command: Final = _app("reshard", "lowkiq reshard")


def _move(resharding: Resharding, to: int | None, *, turns: bool) -> int:
    if turns:
        resharding.abort(_report)
    elif to is not None:
        resharding.begin(to)
    else:
        return _tell(resharding.layout)
    resharding.go_on(_report)
    return _tell(resharding.layout)


def _report(moved: int, groups: int, outcome: Moved | Postponed) -> None:
    if isinstance(outcome, Moved):
        _say(f"group {moved} of {groups}: {outcome.rows:,} records moved, paused for {outcome.seconds:.1f} s")
    else:
        _say(f"a group waits: {outcome.reason}")


def _plan(resharding: Resharding, to: int) -> int:
    layout = resharding.layout
    if layout.before == layout.after == to:
        return _tell(layout)
    counts = resharding.ids_by_group(to)
    _say(f"from {layout.before} to {to} shards: {len(counts)} groups, {sum(counts):,} ids")
    for group, ids in enumerate(counts):
        _say(f"group {group}: {ids:,} ids")
    return NOT_APPLIED


def _tell(layout: Layout) -> int:
    if layout.is_moving:
        done = layout.groups - len(layout.left)
        _say(f"on its way from {layout.before} to {layout.after} shards: {done} of {layout.groups} groups have moved")
    else:
        accepted = [count for count in layout.accepts if count != layout.after]
        more = f"; code may declare {', '.join(map(str, accepted))} too" if accepted else ""
        _say(f"{layout.after} shards{more}")
    return DONE


def _worker_of(app: Lowkiq, named: str) -> type[Worker]:
    worker = app.worker_named(named) or next((one for one in app.workers if one.__name__ == named), None)
    if worker is None:
        known = ", ".join(one.queue_name for one in app.workers)
        raise ConfigError(f"The app has no queue or worker {named!r}, but {known}.")
    return worker


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
