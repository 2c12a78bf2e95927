"""`lowkiq requeue`: jobs of the morgue wait again, and a bar shows how far it is."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, ConfigError
from lowkiq_lambda.cli.codes import DONE, INTERRUPTED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import NOTHING, agreed
from lowkiq_lambda.cli.parts import Yes, command_app, flag, number
from lowkiq_lambda.cli.queues import QueueName, app_of, worker_of
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_actions import BulkAction, count, steps
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOptions, RequeueOrder
from lowkiq_lambda.operate.acts.requeueing import RATE, RequeuePreview, begin, how_to_go_on, ids_again, previews
from lowkiq_lambda.operate.presentation.formatting import selected

_HELP: Final = """
Have jobs of the morgue of QUEUE wait again: those of --ids, or those that --filter wants.

Each id is given the time at which it is due: the first now, and so many in each second as --rate says. So nothing \
has to run meanwhile, and what is not due yet can be taken back (waiting.kill). It says what it touches, and asks; \
--yes does not.
"""
_EPILOGUE: Final = """
ORDERS
  score         each payload comes where its score belongs, as before it failed
  unless_newer  the same, but a payload stays in the morgue where a newer one
                of its id waits or is in flight
  last          behind all payloads of its id

FILTERS are NAME=VALUE, several are all to fit: fingerprint (of the last error,
as the page of errors shows it), error (a part of it), prefix (of the id), least
and most (when it died, Unix seconds).
--filter all is everything.

EXIT CODES
  0    What was asked for waits again.
  1    Nothing was changed: a dry run, or the answer was not yes.
  2    The command line, the settings or the app cannot work; or there is no
       terminal to ask at, and no --yes.
  3    Redis cannot be reached: the error says how many ids wait, and how to go
       on.
  130  Ctrl-C: the last line says how to go on.

EXAMPLES
  What would become of the jobs that failed by a timeout:
    lowkiq requeue SyncOrder shop.jobs:app --filter error=timeout --dry-run
  The same for good, 20 of them in a second, where nothing newer has come:
    lowkiq requeue SyncOrder shop.jobs:app --filter error=timeout \\
      --order unless_newer --rate 20 --yes
"""
_MOST: Final = 1_000_000
_COUNT_FOR: Final = 5.0
"""Seconds, at most, for counting what is to be requeued."""
_SKIPPED: Final = {"not in the morgue": "is not in the morgue", "newer": "stays: a newer payload waits or runs"}

command: Final = command_app(
    "requeue", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq requeue [OPTIONS] QUEUE [MODULE:APP]"
)


@command.default
def requeue(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    app: Annotated[
        str | None, Parameter(name="MODULE:APP", help="The app; else that of LOWKIQ_APP, or of the project.")
    ] = None,
    /,
    *,
    ids: Annotated[list[str] | None, Parameter(help="An id; may be given again.", negative="")] = None,
    filter_: Annotated[
        list[str] | None, Parameter(name="--filter", help="NAME=VALUE, or all; may be given again.", negative="")
    ] = None,
    order: Annotated[RequeueOrder, Parameter(help="Where payloads come.")] = "score",
    rate: Annotated[
        float,
        Parameter(converter=number(0, _MOST, is_least_allowed=False), help="Ids that become due in a second."),
    ] = RATE,
    start: Annotated[
        float | None, Parameter(help="When the first is due, in Unix seconds; now.", converter=number(0, 2**40))
    ] = None,
    dry_run: Annotated[bool, flag("Tell what would become of each id, and change nothing.")] = False,
    yes: Yes = False,
) -> int:
    """Requeue; the exit code."""
    if bool(ids) == bool(filter_):
        raise ConfigError("Give --ids or --filter: --filter all is everything in the morgue.")
    wanted = None if filter_ is None else _filter(filter_)
    found = app_of(app)
    worker = worker_of(found, queue)
    runner = found.operate(worker).runner
    options: RequeueOptions = {"order": order, "rate": rate, "start": start}
    try:
        action = begin(runner, ids or None, wanted, options)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if dry_run:
        sys.stdout.writelines(f"{line}\n" for line in _told(previews(runner, action)))
        return NOT_APPLIED
    where = f"{worker.queue_name} at {without_password(found.core.connections.url)}"
    if not (yes or agreed(_question(runner, action, rate, where))):
        sys.stdout.write(f"{NOTHING}\n")
        return NOT_APPLIED
    if start is None and not yes:
        # People take their time: the first is due when they have answered; the jobs are those of the question.
        action = msgspec.structs.replace(action, requeue=begin(runner, ids or None, wanted, options).requeue)
    target = selected(action.chosen) if action.chosen else f"found by: {', '.join(filter_ or ())}" if wanted else "all"
    noting = partial(note, found, worker.queue_name, "requeue", f"{target}, {rate:g} a second")
    return _carry_out(runner, action, noting)


def _question(runner: ActionRunner, action: BulkAction, rate: float, queue: str) -> str:
    until = SystemClock.monotonic() + _COUNT_FOR
    number, is_all = count(runner, action, lambda: SystemClock.monotonic() < until)
    ids = f"{_many(number, 'id')}{'' if is_all else ', or more,'}"
    return f"Requeue {ids} in the morgue of {queue}, {rate:g} a second?"


def _filter(words: Sequence[str]) -> Mapping[str, str]:
    if list(words) == ["all"]:
        return {}
    pairs = [word.partition("=") for word in words]
    for word, (name, sign, value) in zip(words, pairs, strict=True):
        if not (name and sign and value):
            raise ConfigError(f"--filter {word} is refused: write NAME=VALUE, such as error=timeout, or all.")
    return {name: value for name, _, value in pairs}


def _carry_out(runner: ActionRunner, action: BulkAction, note_changed: Callable[[int], None]) -> int:
    """Step by step, so that an interruption can say where to go on; it is noted how many ids wait again."""
    done = action
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task("requeueing", total=max(1, action.total))
        try:
            for step in steps(runner, action):
                done = step
                progress.update(bar, completed=min(done.handled, action.total))
        except KeyboardInterrupt:
            sys.stderr.write(f"{_in_words(done)}\n")
            return INTERRUPTED
        except BackendError as error:
            raise type(error)(f"{error} {_in_words(done)}") from error
        finally:
            note_changed(done.changed)
    last = action.requeue.due_at(max(0, done.changed - 1)) if action.requeue else 0.0
    until = f", the last of them due at {_time(last)}" if done.changed else ""
    sys.stdout.write(f"{ids_again(done.changed)}, of {done.handled:,} that were examined{until}\n")
    return DONE


def _in_words(action: BulkAction) -> str:
    return how_to_go_on(action).replace("start=", "--start ").replace("the same call", "the same command")


def _told(shown: Iterator[RequeuePreview]) -> Iterator[str]:
    """A line for each id, and one for all of them."""
    waits = stays = 0
    for one in shown:
        waits, stays = waits + (not one.skipped), stays + bool(one.skipped)
        if one.skipped:
            yield f"{one.id}: {_SKIPPED[one.skipped]}"
        else:
            behind = f", behind {_many(one.place, 'id')}"
            when = "while its head is blocked" if one.due_at is None else f"until {_time(one.due_at)}{behind}"
            left = f"; {one.stay:,} would stay" if one.stay else ""
            yield f"{one.id}: {_many(one.payloads, 'payload')} would wait in shard {one.shard} {when}{left}"
    yield f"{_many(waits, 'id')} would wait again, {stays:,} would not; nothing was changed"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
