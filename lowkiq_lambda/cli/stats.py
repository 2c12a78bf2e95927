"""`lowkiq stats`: the queues of an app in a table."""

import sys
from collections.abc import Iterator
from threading import Event
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say, table, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import AppOption, app_of, worker_of
from lowkiq_lambda.operate.presentation.formatting import duration, rate, short
from lowkiq_lambda.operate.presentation.queues import Queues, queue_stats
from lowkiq_lambda.views.queues import QueueOverview

_HELP: Final = """
Count the waiting, running, failed and dead ids of each queue, and print how long the oldest due one waits.

All counts are ids. The rates are of the last half minute.
"""
_EPILOGUE: Final = """
COLUMNS
  WAITING    ids that wait, those included that are due later
  LAG        how long the oldest due id has waited, for no limit and no pause
  IN FLIGHT  ids that handlers have
  FAILED     those of the waiting ids that have failed, and are tried again
  MORGUE     ids whose retries are used up
  ENDED/S    how many ended in a second: done or refused
  FAIL/S     how many failed in a second

EXIT CODES
  0  The table is printed; with --watch: Ctrl-C ended it.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  All queues, every two seconds:
    lowkiq stats --watch
  The ids in all morgues:
    lowkiq stats --json | jq '[.queues[].morgue_length] | add'
"""
_INTERVAL: Final = 2.0
"""Seconds between two looks."""
_TO_THE_TOP: Final = "\x1b[H\x1b[J"
_HEAD: Final = ("QUEUE", "WAITING", "LAG", "IN FLIGHT", "FAILED", "MORGUE", "ENDED/S", "FAIL/S", "")

command: Final = command_app("stats", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stats [OPTIONS] [QUEUE]")


@command.default
def stats(
    queue: Annotated[str | None, Parameter(name="QUEUE", help="This queue alone, by its name or its worker's.")] = None,
    /,
    *,
    watch: Annotated[bool, flag("Print again every two seconds, until Ctrl-C.")] = False,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/queues does; with --watch one in each line.")] = False,
) -> int:
    """Tell; the exit code."""
    loaded = app_of(app)
    only = None if queue is None else worker_of(loaded, queue)
    pause = Event()
    while True:
        with loaded.operate.overview(worker=only) as overview:
            queues = [*overview.queues]
        _tell(queues, watch=watch, json=json)
        if not watch:
            return DONE
        try:
            pause.wait(_INTERVAL)
        except KeyboardInterrupt:
            return DONE


def _tell(queues: list[QueueOverview], *, watch: bool, json: bool) -> None:
    if json:
        answer = Queues(
            [queue_stats(queue.name, queue.shards_count, queue.now) for queue in queues if not queue.mismatch],
            {queue.name: queue.mismatch for queue in queues if queue.mismatch},
        )
        say(msgspec.json.encode(answer).decode()) if watch else write_json(answer)
        return
    if watch and sys.stdout.isatty():
        sys.stdout.write(_TO_THE_TOP)
    say(*(table(_HEAD, map(_row, queues)) if queues else ["The app has no queue."]))


def _row(queue: QueueOverview) -> tuple[str, ...]:
    now, history = queue.now, queue.history
    if queue.mismatch:
        # The counts are not those of the queue's jobs.
        return (queue.name, *("-" for _ in _HEAD[1:-1]), "declared otherwise")
    return (
        queue.name,
        short(now.length),
        duration(now.lag),
        short(now.in_flight),
        short(now.retries),
        short(now.morgue_length),
        rate(history.ended_rate),
        rate(history.failed_rate),
        ", ".join(_remarks(queue)),
    )


def _remarks(queue: QueueOverview) -> Iterator[str]:
    if queue.now.paused:
        yield "paused" if queue.now.paused >= queue.shards_count else f"{queue.now.paused} shards paused"
    elif queue.now.paused_lag:
        yield f"a tenant paused for {duration(queue.now.paused_lag)}"
    if queue.now.limited_lag:
        yield f"limited for {duration(queue.now.limited_lag)}"
    if queue.moves_to:
        yield f"moves to {queue.moves_to} shards, so up to {short(queue.twice)} may count twice"
    if queue.now.blocked:
        yield f"{short(queue.now.blocked)} blocked"
