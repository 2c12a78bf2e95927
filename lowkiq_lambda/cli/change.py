"""`lowkiq requeue`, `run-now` and `delete`: changes of jobs, each after a question."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final, NamedTuple, TypeAlias

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import Progress

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE, FAILED, INTERRUPTED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import NOTHING, agreed, remark, say
from lowkiq_lambda.cli.parts import Yes, command_app, flag
from lowkiq_lambda.cli.queues import AppOption, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.acts.bulk_actions import BulkAction, count, prepare, steps
from lowkiq_lambda.operate.presentation.formatting import selected, visible

Id: TypeAlias = Annotated[str, Parameter(name="ID", help="The ids of the jobs.", negative="")]
All: TypeAlias = Annotated[bool, flag("All jobs, in place of ids.")]

_ENDING: Final = """
It says what it touches, and asks; --yes does not. What is in flight, and what is pushed after the question, stays as \
it is. IDs that begin with a hyphen come after --.
"""
_CODES: Final = """
EXIT CODES
  0    It is done.
  1    Nothing was changed, or not for all of the ids: some have no such job,
       or the answer was not yes.
  2    The command line, the settings or the app cannot work; or there is no
       terminal to ask at, and no --yes.
  3    Redis cannot be reached: the error says how far it came.
  130  Ctrl-C: what was changed stays changed, and the same command goes on.
"""


class JobChange(NamedTuple):
    """A change in words: what is asked, where its jobs are (a queue's name follows), and what is told at the end."""

    act: ActionName
    asked: str
    where: str
    told: str


REQUEUE: Final = JobChange("requeue", "Requeue", "in the morgue of", "requeued")
RUN_NOW: Final = JobChange("run_now", "Make due now", "waiting for a later time in", "made due")
DELETE: Final = JobChange("delete", "Delete for good", "waiting in", "deleted")
DELETE_DEAD: Final = JobChange("delete_dead", "Delete for good", "in the morgue of", "deleted")
_LOOKED_UP: Final = 100
"""Of how many ids the end says whether they run."""
_COUNT_FOR: Final = 5.0
"""Seconds, at most, for counting what is to be changed."""
_NAMED: Final = 5


def _command(name: str, help_: str, examples: str) -> App:
    return command_app(
        name,
        help_=f"{help_.strip()}\n{_ENDING}",
        epilogue=f"{_CODES}\nEXAMPLES\n{examples}",
        usage=f"lowkiq {name} [OPTIONS] QUEUE (ID ... | --all)",
    )


requeue: Final = _command(
    "requeue",
    "Have jobs of the morgue of QUEUE wait again, due now, as if they had never failed.\n",
    """  Two jobs:
    lowkiq requeue SyncOrder 17 18
  All of them; `lowkiq requeue` does so with a filter, and so many a second:
    lowkiq requeue SyncOrder --all
""",
)
run_now: Final = _command(
    "run-now",
    "Make jobs of QUEUE that wait for a later time due now, in their order: retries, and delayed jobs.\n",
    """  A job that would be retried in an hour:
    lowkiq run-now SyncOrder 17
""",
)
delete: Final = _command(
    "delete",
    "Delete what waits in QUEUE; with --morgue what lies in its morgue.\n",
    """  What waits under an id that begins with a hyphen:
    lowkiq delete SyncOrder -- -17
  All jobs of the morgue, in a script:
    lowkiq delete SyncOrder --morgue --all --yes
""",
)


@requeue.default
def requeue_jobs(queue: QueueName, /, *ids: Id, all_: All = False, app: AppOption = None, yes: Yes = False) -> int:
    """Requeue; the exit code."""
    return _change(queue, REQUEUE, ids, app, every=all_, yes=yes)


@run_now.default
def run_jobs_now(queue: QueueName, /, *ids: Id, all_: All = False, app: AppOption = None, yes: Yes = False) -> int:
    """Run now; the exit code."""
    return _change(queue, RUN_NOW, ids, app, every=all_, yes=yes)


@delete.default
def delete_jobs(
    queue: QueueName,
    /,
    *ids: Id,
    all_: All = False,
    morgue: Annotated[bool, flag("Jobs of the morgue.")] = False,
    app: AppOption = None,
    yes: Yes = False,
) -> int:
    """Delete; the exit code."""
    return _change(queue, DELETE_DEAD if morgue else DELETE, ids, app, every=all_, yes=yes)


def _change(  # noqa: PLR0913 - what the three commands are given
    queue: str, change: JobChange, ids: tuple[str, ...], app: str | None, *, every: bool, yes: bool
) -> int:
    if bool(ids) == every:
        raise ConfigError("Give ids, or --all: one of the two.")
    named_queue = queue_of(app_of(app), queue)
    runner = named_queue.operate.runner
    action = prepare(runner, change.act, chosen_ids=None if every else ids, whole_list=every)
    until = SystemClock.monotonic() + _COUNT_FOR
    number, is_all = count(runner, action, lambda: SystemClock.monotonic() < until)
    if not number:
        say(f"there are no jobs {change.where} {named_queue.name}")
        return DONE
    jobs = f"{_jobs(number)}{'' if is_all else ', or more,'}"
    listed = f" ({', '.join(map(visible, ids[:_NAMED]))}{', ...' if len(ids) > _NAMED else ''})" if ids else ""
    where = f"{change.where} {named_queue.name} at {without_password(named_queue.app.core.connections.url)}"
    if not yes and not agreed(f"{change.asked} {jobs}{listed} {where}?"):
        say(NOTHING)
        return NOT_APPLIED
    return _carry_out(named_queue, change, action, is_chosen=not every)


def _carry_out(queue: NamedQueue, change: JobChange, action: BulkAction, *, is_chosen: bool) -> int:
    last = action
    try:
        with Progress(console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:
            bar = progress.add_task(change.act, total=max(1, action.total))
            for last in steps(queue.operate.runner, action):
                progress.update(bar, completed=min(last.handled, action.total))
    except KeyboardInterrupt:
        remark(f"{change.told} {_jobs(last.changed)}; the same command goes on")
        return INTERRUPTED
    except BackendError as error:
        raise type(error)(f"{error} It has {change.told} {_jobs(last.changed)}; the same command goes on.") from error
    except ValueError as error:
        raise LowkiqError(str(error)) from error
    finally:
        target = selected(action.chosen) if action.chosen else "all"
        note(queue.app, queue.name, change.act, target, last.changed)
    if is_chosen and last.changed < action.total:
        say(f"{change.told} {last.changed:,} of {_jobs(action.total)}: the others are not {change.where} {queue.name}")
        _remark_running(queue, change, action.chosen or ())
        return FAILED
    say(f"{change.told} {_jobs(last.changed)}")
    return DONE


def _remark_running(queue: NamedQueue, change: JobChange, ids: Sequence[str]) -> None:
    """Tell of ids that run, as nothing changes these, and what makes a job with a cursor stop."""
    if not change.where.startswith("waiting"):
        return
    with suppress(LowkiqError):
        if running := len(queue.operate.in_flight.fetch(ids[:_LOOKED_UP])):
            run = f"{running:,} of them {'runs' if running == 1 else 'run'} now, and nothing changes what runs"
            remark(f"{run}; a job with a cursor stops at its next checkpoint after: lowkiq pause {queue.name}")


def _jobs(count: int) -> str:
    return f"{count:,} job{'s' if count != 1 else ''}"
