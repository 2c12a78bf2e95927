"""`lowkiq errors`: the last errors of jobs that are retried or dead, in groups of those that are alike."""

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import paint, remark, say, table, write_json
from lowkiq_lambda.cli.parts import After, AppOption, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import OneQueue, app_of, worker_of
from lowkiq_lambda.operate.presentation.errors import ErrorsView, SharedError, errors_view
from lowkiq_lambda.operate.presentation.formatting import ago, exact, visible
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.views.errors import ErrorCounts, ErrorGrouping

_HELP: Final = """
Print the last errors of jobs that are retried or dead, of QUEUE or of all queues, in groups of those that are alike; \
the largest group first.

Errors of one fingerprint differ in numbers and other values that differ each time. One call reads some 50,000 errors.
"""
_EPILOGUE: Final = """
COLUMNS
  FINGERPRINT  by which a filter finds the jobs of the group
  SHARE        of all errors that were read
  JOBS         how many jobs have the error; DEAD: those of them in the morgue
  FIRST, LAST  the oldest and the newest failure: five of each job are kept
  RELEASE      the newest one when the first failure happened
  QUEUE        how many queues have the error, and beneath it each of them

EXIT CODES
  0  The errors are printed, be there none.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  What has failed within the last hour:
    lowkiq errors --since 1h
  The jobs of a group, and their requeue:
    lowkiq ls SyncOrder --in morgue --filter fingerprint=1f0c9b7a52e3d846
    lowkiq requeue SyncOrder --filter fingerprint=1f0c9b7a52e3d846
  The fingerprint of the most frequent error, for a program:
    lowkiq errors SyncOrder --json | jq --raw-output '.groups[0].fingerprint'
"""
_HEAD: Final = ("FINGERPRINT", "SHARE", "JOBS", "DEAD", "FIRST", "LAST", "RELEASE", "QUEUE", "ERROR")
_LEFT: Final = frozenset({0, 6, 7, 8})
_LARGE: Final = 0.5
"""The share of a group that is marked."""

command: Final = command_app("errors", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq errors [OPTIONS] [QUEUE]")


@command.default
def errors(  # noqa: PLR0913 - the options of a command line
    queue: OneQueue = None,
    /,
    *,
    since: Annotated[
        str | None, Parameter(help='A moment, such as "2h ago" or 1h: groups that have failed then or later.')
    ] = None,
    by: Annotated[ErrorGrouping, Parameter(help="By what errors are alike.")] = "fingerprint",
    limit: Annotated[int, Parameter(help="The largest number of groups.", converter=whole_number(1, 1_000))] = 100,
    after: After = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/errors does.")] = False,
) -> int:
    """Print them; the exit code."""
    loaded = app_of(app)
    only = None if queue is None else worker_of(loaded, queue)
    operate = loaded.operate
    now = loaded.core.backend.clock.time()
    try:
        begin = None if since is None else moment_of(since, now)
        groups = operate.errors(only, by=by, limit=limit, after=after)
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from None
    view = errors_view(groups, operate.releases())
    if begin is not None:
        recent = [group for group in view.groups if group.last_at is not None and group.last_at >= begin]
        view = msgspec.structs.replace(view, groups=recent)
    if json:
        write_json(view)
        return DONE
    if view.groups:
        lines = [(group.share, row) for group in view.groups for row in _rows(group, now)]
        head, *rows = table(_HEAD, [row for _, row in lines], _LEFT)
        say(head, *(paint(row, "red") if share >= _LARGE else row for (share, _), row in zip(lines, rows, strict=True)))
    for line in _remarks(view):
        remark(line)
    return DONE


def _rows(group: SharedError, now: float) -> Iterator[tuple[str, ...]]:
    """The group, and beneath it each of its queues if they are several."""
    several = len(group.queues) > 1
    queue = f"{len(group.queues)} queues" if several else group.queues[0].queue
    share, release = f"{group.share:.0%}", group.since_release or "-"
    yield group.fingerprint or "-", share, *_counts(group, now), release, queue, group.line
    for of_queue in group.queues if several else ():
        yield "", "", *_counts(of_queue, now), "", f"  {of_queue.queue}", ""


def _counts(errors: ErrorCounts, now: float) -> Iterator[str]:
    yield exact(errors.count)
    yield exact(errors.dead)
    for at in (errors.first_at, errors.last_at):
        yield "-" if at is None else ago(at - now)


def _remarks(view: ErrorsView) -> Iterator[str]:
    """Lines beside the list, on how much of the errors it has."""
    number = f"{view.counted:,} error{'s' if view.counted != 1 else ''}"
    if view.next is None:
        yield f"{number} read, all that there are" if view.counted else "there are no errors"
    else:
        yield f"{number} of about {view.total:,} read; more: --after {view.next}"
    if view.others:
        yield f"{view.others:,} more groups: a larger --limit prints them"
    for queue, sentence in view.skipped.items():
        yield visible(f"{queue} is left out: {sentence}")
