"""`lowkiq tasks`: all tasks, or how far one has come; and the order to cancel it."""

from collections.abc import Iterator
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError, NoSuchTask
from lowkiq_lambda.cli.changing import many
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import paint, remark, say, table, when, write_json
from lowkiq_lambda.cli.parts import After, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import ACT, ActOptions, app_of
from lowkiq_lambda.operate.presentation.formatting import ago, exact, visible
from lowkiq_lambda.operate.presentation.tasks import TaskReader, TaskResponse, below_words
from lowkiq_lambda.tasks.family import family_of
from lowkiq_lambda.tasks.views import Item, ItemError, Progress, Status, TaskSummary

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.tasks.task import Task

_HELP: Final = """
List the tasks that go on, and those that have ended, the latest first; of TASK print how far it has come, and what \
failed in it.

--cancel deletes its waiting jobs, and those of tasks below it, unless others pushed them too; what runs ends by \
itself. With --running its running jobs are asked to stop: one with a cursor stops at its next checkpoint, another one \
is not tried again. The command \
names the task and asks; with --yes it does not ask.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The tasks are printed, or the task is cancelled.
  1  There is no such task, or the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached.

EXAMPLES
  All tasks:
    lowkiq tasks
  One, until it has ended:
    lowkiq tasks 9sGm2TQx0aYvLr1B --watch
  What failed in it, for a program:
    lowkiq tasks 9sGm2TQx0aYvLr1B --items failed --json | jq '.items[].messages'
  The end of one that was pushed by mistake:
    lowkiq tasks 9sGm2TQx0aYvLr1B --cancel --reason "the wrong file"
"""
_HEAD: Final = ("TASK", "NAME", "STATE", "PUSHED", "MADE", "ENDED")
_LEFT: Final = frozenset({0, 1, 2})
_TROUBLES: Final[tuple[Status, ...]] = ("failed", "dead", "lost")
_FIRST: Final = 10
"""Items that failed, of a task that is printed."""
_CANCELLING: Final = 60.0
"""Seconds, at most, for deleting what waits: a daemon or a tick deletes the rest."""

command: Final = command_app("tasks", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq tasks [OPTIONS] [TASK]")


@command.default
def tasks(  # noqa: PLR0913 - the options of a command line
    task: Annotated[str | None, Parameter(name="TASK", help="The id of a task: how far it has come.")] = None,
    /,
    *,
    items: Annotated[Status | None, Parameter(help="Print the items of TASK with this status.")] = None,
    limit: Annotated[int, Parameter(help="The largest number of them.", converter=whole_number(1, 1_000))] = 100,
    after: After = None,
    watch: Annotated[bool, flag("Print TASK again, until it has ended or Ctrl-C.")] = False,
    cancel: Annotated[bool, flag("Cancel TASK.")] = False,
    running: Annotated[bool, flag("With --cancel: stop running jobs too.")] = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write what GET /api/v1/tasks writes; with --watch one in each line.")] = False,
) -> int:
    """Print them, or cancel one; the exit code."""
    if task is None and (items is not None or watch or cancel):
        raise ConfigError("TASK is missing: --items, --watch and --cancel are of one task.")
    if (items is not None) + watch + cancel > 1:
        raise ConfigError("--items, --watch and --cancel are three things: give one of them.")
    if running and not cancel:
        raise ConfigError("--running is a part of --cancel.")
    loaded = app_of(act.app)
    try:
        if task is None:
            return _list(loaded, after, limit, json=json)
        one = loaded.tasks.get(task)
        if items is not None:
            return _tell_items(loaded, one, items, (after, limit), json=json)
        if cancel:
            return _cancel(loaded, one, act, running=running, json=json)
        return _tell(one, watch=watch, json=json)
    except NoSuchTask:
        remark(visible(f"there is no task {task}: it was forgotten, or it never was"))
        return FAILED
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from error


def _list(app: "Lowkiq", after: str | None, limit: int, *, json: bool) -> int:
    page = TaskReader(app.tasks).page(after, limit)
    if json:
        write_json(page)
        return DONE
    now = app.core.backend.clock.time()
    if page.tasks:
        say(*table(_HEAD, [_row(one, now) for one in page.tasks], _LEFT))
    number = f"{len(page.tasks):,} task{'s' if len(page.tasks) != 1 else ''}"
    remark(number if page.next is None else f"{number}; more: --after {page.next}")
    return DONE


def _row(one: TaskSummary, now: float) -> tuple[str, ...]:
    ended = "-" if one.completed_at is None else ago(one.completed_at - now)
    return one.id, one.name, one.state, exact(one.pushed), ago(one.created_at - now), ended


def _tell(task: "Task", *, watch: bool, json: bool) -> int:
    pause = Event()
    while True:
        progress = task.progress(_FIRST)
        if json:
            response = TaskResponse.of(progress)
            say(msgspec.json.encode(response).decode()) if watch else write_json(response)
        else:
            say(*_lines(progress))
        if not watch or progress.next_poll is None:
            break
        try:
            pause.wait(progress.next_poll)
        except KeyboardInterrupt:
            return DONE
    if not json:
        say(*(visible(_item(error, error.text)) for error in progress.errors))
    return DONE


def _lines(progress: Progress) -> Iterator[str]:
    share = f" ({progress.ended / progress.total:.0%})" if progress.total else ""
    items = f"{progress.ended:,} of {progress.total:,} items have ended{share}"
    below = f"; {words}" if (words := below_words(progress)) else ""
    yield visible(f"{progress.name}: {progress.state}, {items}{below}")
    counts = [f"{count:,} {status}" for status, count in progress.counts.items() if count]
    line = f"  {', '.join(counts) or 'no items'}"
    yield paint(line, "red") if any(progress.counts[status] for status in _TROUBLES) else line
    yield f"  made at {when(progress.created_at)}"
    if progress.completed_at is not None:
        yield f"  ended at {when(progress.completed_at)}"


def _tell_items(app: "Lowkiq", task: "Task", status: Status, part: tuple[str | None, int], *, json: bool) -> int:
    after, limit = part
    if json:
        write_json(TaskReader(app.tasks).items(task.id, status, after, limit))
        return DONE
    page = task.items(status, after, limit)
    say(*(visible(_item(item, item.text)) for item in page.items))
    number = f"{len(page.items):,} item{'s' if len(page.items) != 1 else ''}"
    remark(number if page.next is None else f"{number}; more: --after {page.next}")
    return DONE


def _item(item: Item | ItemError, text: str) -> str:
    label = "" if item.label is None else f" ({item.label})"
    message = f": {text}" if text else ""
    return f"  {item.status}  {item.queue_name} {item.id}{label}{message}"


def _cancel(app: "Lowkiq", task: "Task", act: ActOptions, *, running: bool, json: bool) -> int:
    from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE

    before = family_of(app.tasks, task.id)
    total = before.top.total + sum(one.total for one in before.below)
    waits = f"{before.count('enqueued'):,} of {'the' if before.below else 'its'} {total:,} items wait"
    runs = f", and stop {before.count('running'):,} that run" if running else ""
    below = f" and {many(len(before.below), 'open task')} below it" if before.below else ""
    question = f"Cancel the task {visible(before.top.name)} ({task.id}){below}, of which {waits}{runs}, at"
    number = before.would_touch(running=running)
    why = act.reason_if_agreed(f"{question} {without_password(app.core.connections.url)}?", number, json=json)
    if why is None:
        return NOT_APPLIED
    left = task.cancel(_CANCELLING, running=running)
    after = before.again(app.tasks)
    changed = after.count("cancelled") - before.count("cancelled")
    note(app, OF_NO_QUEUE, "cancel", f"task {after.top.name!r} {task.id}", changed, why)
    if json:
        write_json(TaskResponse.of(after.top))
        return DONE
    rest = f"; {left:,} still wait, and are deleted within minutes" if left else ""
    still = after.count("running")
    runs = f"; {still:,} still run, and are asked to stop unless others pushed them too"
    say(f"cancelled {changed:,} items{rest}{runs if running and still else ''}")
    return DONE
