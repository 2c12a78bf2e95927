"""`lowkiq reshard`: another number of shards for a queue, while it is pushed to and drained."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note, report_group
from lowkiq_lambda.cli.output import NOTHING, agreed, remark, say
from lowkiq_lambda.cli.parts import AppOption, Reason, Yes, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import QueueName, app_of, worker_of
from lowkiq_lambda.store.shard.layout import Layout

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.reshard.resharding import Resharding

_HELP: Final = """
Change the number of shards of a queue, while it is pushed to and drained. No code has to be deployed for that.

The ids move group by group. While a group moves, pushes to it go on, and its jobs are not performed; all other groups \
go on. You may interrupt the command and start it again: ids that have moved stay moved. Without an option that \
changes anything the command prints where the ids are; with one it names the change and asks, and with --yes it does \
not ask.
"""
_EPILOGUE: Final = """
EXIT CODES
  0    All ids lie in the shards that were asked for; or their places are
       printed.
  1    Ids would move: a dry run; or the answer was not yes, another move is
       under way, or shards are in use.
  2    The command line, the settings or the app cannot work; or there is no
       terminal to ask at, and no --yes.
  3    Redis cannot be reached.
  130  Ctrl-C; the same command goes on.

EXAMPLES
  How many ids each group has:
    lowkiq reshard SyncOrder --to 48 --app shop.jobs:app --dry-run
  Move them:
    lowkiq reshard SyncOrder --to 48 --app shop.jobs:app --yes
  The same, and which shards would have no schedule in a stack on AWS:
    lowkiq reshard SyncOrder --to 48 --app shop.jobs:app --stack shop
  Move them back:
    lowkiq reshard SyncOrder --abort --app shop.jobs:app
  Code may declare 48 before the move, and 24 no more after it:
    lowkiq reshard SyncOrder --announce --to 48 --app shop.jobs:app
    lowkiq reshard SyncOrder --forget 24 --app shop.jobs:app
"""
MOST_SHARDS: Final = 100_000
_ADVICE: Final = (
    "where each shard has a schedule on AWS, they need theirs. --announce, deploy with the ShardIndexes that "
    "`lowkiq stack schedules indexes` then prints, and move. --stack NAME asks AWS."
)
_ADVICE_OF_QUEUE: Final = (
    "where `lowkiq stack schedules --each queue` made the schedules, they need theirs. --announce, run it again, and "
    "move."
)


command: Final = command_app("reshard", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq reshard [OPTIONS] QUEUE")


@command.default
def reshard(  # noqa: PLR0913 - the options
    queue: QueueName,
    /,
    *,
    to: Annotated[
        int | None, Parameter(converter=whole_number(1, MOST_SHARDS), help="The new number of shards.")
    ] = None,
    app: AppOption = None,
    dry_run: Annotated[bool, flag("Print the groups and their ids, and change nothing.")] = False,
    announce: Annotated[
        bool, flag("Only allow code to declare the new number of shards, beside the present one.")
    ] = False,
    abort: Annotated[bool, flag("Move back: the ids that have moved return, two minutes after they had left.")] = False,
    unreplicated: Annotated[
        bool, flag("Do not wait until a replica has the ids that were moved: a failover may lose jobs.")
    ] = False,
    forget: Annotated[
        int | None,
        Parameter(converter=whole_number(1, MOST_SHARDS), help="A number of shards that code may no longer declare."),
    ] = None,
    stack: Annotated[
        str | None,
        Parameter(help="The name of a deployed stack: AWS is asked, too, which shards would have no schedule in it."),
    ] = None,
    reason: Reason = None,
    yes: Yes = False,
) -> int:
    """Do what the options say; the exit code."""
    if sum((abort, forget is not None, announce or dry_run or to is not None)) > 1:
        raise ConfigError("--to, --abort and --forget are three orders: give one of them.")
    if (announce or dry_run) and to is None:
        raise ConfigError("Say with --to how many shards the queue is to have.")
    loaded = app_of(app)
    worker = worker_of(loaded, queue)
    resharding = loaded.operate(worker).resharding(unreplicated=unreplicated)
    if to is not None:
        _note_schedules(loaded, worker.queue_name, resharding.layout, to, stack)
    if dry_run and to is not None:
        return _plan(resharding, to)
    question = _question(resharding.layout, to, forget, announces=announce, turns=abort)
    where = f"{worker.queue_name} at {without_password(loaded.core.connections.url)}"
    if not (question is None or yes or agreed(question.format(where))):
        say(NOTHING)
        return NOT_APPLIED
    if forget is not None:
        layout = resharding.accept(forget, is_accepted=False)
        note(loaded, worker.queue_name, "reshard", f"code may no longer declare {forget} shards", 0, reason)
        return _tell(layout)
    if announce and to is not None:
        layout = resharding.accept(to)
        note(loaded, worker.queue_name, "reshard", f"code may declare {to} shards", 0, reason)
        return _tell(layout)
    return _move(resharding, to, partial(note, loaded, worker.queue_name, "reshard", reason=reason), turns=abort)


def _note_schedules(app: "Lowkiq", queue_name: str, layout: Layout, to: int, stack: str | None) -> None:
    """Name the shards that no schedule would drain, before there are any; without a stack, those that are new."""
    if stack is not None:
        from lowkiq_lambda.aws.drain_schedules.coverage import coverage_of
        from lowkiq_lambda.aws.tick import naming

        for name, indexes in coverage_of(app, stack, {queue_name: to}).missing.items():
            remark(f"note: {name}: {naming(indexes)}.")
        return
    # The queue's own count is its layout's: code that declares another has no shards of it before the announcement.
    counts = [1 + shard.index for queue in app.core.queues.all_current()[0].values() for shard in queue.shards]
    own = max(layout.before, layout.after)
    widest = max([own, *counts])
    if to > own:
        least = widest if to > widest else own
        new = f"shard {least} is new" if to == least + 1 else f"shards {least} to {to - 1} are new"
        remark(f"note: {new}: {_ADVICE if to > widest else _ADVICE_OF_QUEUE}")


def _question(layout: Layout, to: int | None, forget: int | None, *, announces: bool, turns: bool) -> str | None:
    """What is to be asked about the queue, whose name is put in; None where nothing will change."""
    if forget is not None:
        return f"Let code no more declare {forget} shards of {{}}?"
    if announces:
        return f"Let code declare {to} shards of {{}}, beside {layout.after}?"
    if turns:
        to = layout.after if layout.is_returning else layout.before
    if to is None or (to == layout.after and not layout.is_moving):
        return None
    way = f"back to {to} shards" if turns else f"from {layout.before} to {to} shards"
    return f"Move the jobs of {{}} {way}?"


def _move(resharding: "Resharding", to: int | None, note_begun: Callable[[str, int], None], *, turns: bool) -> int:
    before = resharding.layout
    if turns:
        resharding.abort(report_group)
    elif to is not None:
        resharding.begin(to)
    else:
        return _tell(before)
    layout = resharding.layout
    if layout.epoch != before.epoch:
        # At its beginning, as any process may bring it to its end.
        note_begun(f"from {before.after} to {layout.after} shards", layout.after)
    resharding.go_on(report_group)
    return _tell(resharding.layout)


def _plan(resharding: "Resharding", to: int) -> int:
    layout = resharding.layout
    if layout.before == layout.after == to:
        return _tell(layout)
    counts = resharding.ids_by_group(to)
    say(f"from {layout.before} to {to} shards: {len(counts)} groups, {sum(counts):,} ids")
    for group, ids in enumerate(counts):
        say(f"group {group}: {ids:,} ids")
    return NOT_APPLIED


def _tell(layout: Layout) -> int:
    if layout.is_moving:
        done = layout.groups - len(layout.left)
        say(f"on its way from {layout.before} to {layout.after} shards: {done} of {layout.groups} groups have moved")
    else:
        accepted = [count for count in layout.accepts if count != layout.after]
        more = f"; code may declare {', '.join(map(str, accepted))} too" if accepted else ""
        say(f"{layout.after} shards{more}")
    return DONE
