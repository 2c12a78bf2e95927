"""`lowkiq stats`: the queues of an app in a table."""

import sys
from collections.abc import Iterable, Iterator
from threading import Event
from typing import Annotated, Final

import msgspec

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import paint, say, table, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import AppOption, OneQueue, app_of, worker_of
from lowkiq_lambda.operate.presentation.formatting import duration, rate, short
from lowkiq_lambda.operate.presentation.queues import Queues, queue_stats
from lowkiq_lambda.operate.presentation.trouble import Trouble, trouble_of
from lowkiq_lambda.views.queues import QueueOverview

_HELP: Final = """
Count the waiting, running, failed and dead ids of each queue, and print how long the oldest due one waits.

All counts are ids. The rates are of the last half minute. Queues in trouble come first, in red those that somebody \
has to act on: more than a quarter of the ids failed in the last ten minutes, ids are blocked, nothing ends although \
ids are due, or the queue was made with another declaration. In yellow are those to look at.
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
  NO_COLOR=1 and TERM=dumb switch colours off; a pipe has none.

EXIT CODES
  0  The table is printed; with --watch: Ctrl-C ended it.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  All queues, every two seconds:
    lowkiq stats --watch
  What needs somebody, and nothing else:
    lowkiq stats --only-trouble
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
    queue: OneQueue = None,
    /,
    *,
    watch: Annotated[bool, flag("Print again every two seconds, until Ctrl-C.")] = False,
    only_trouble: Annotated[bool, flag("Only queues that somebody has to look at.")] = False,
    app: AppOption = None,
    json: Annotated[
        bool, flag("Write an object as GET /api/v1/queues does, by trouble; with --watch one in each line.")
    ] = False,
) -> int:
    """Tell; the exit code."""
    loaded = app_of(app)
    only = None if queue is None else worker_of(loaded, queue)
    pause = Event()
    while True:
        with loaded.operate.overview(worker=only) as overview:
            queues = _by_trouble(overview.queues, only_trouble=only_trouble)
        _tell(queues, only_trouble=only_trouble, watch=watch, json=json)
        if not watch:
            return DONE
        try:
            pause.wait(_INTERVAL)
        except KeyboardInterrupt:
            return DONE


def _by_trouble(queues: Iterable[QueueOverview], *, only_trouble: bool) -> list[tuple[QueueOverview, Trouble]]:
    """The worst first; those of one rank as the app declares them."""
    rated = [(queue, trouble_of(queue)) for queue in queues]
    queues_left = [(queue, trouble) for queue, trouble in rated if trouble.words or not only_trouble]
    return sorted(queues_left, key=lambda pair: pair[1].rank)


def _tell(rated: list[tuple[QueueOverview, Trouble]], *, only_trouble: bool, watch: bool, json: bool) -> None:
    queues = [queue for queue, _ in rated]
    if json:
        answer = Queues(
            [queue_stats(queue.name, queue.shards_count, queue.now) for queue in queues if not queue.mismatch],
            {queue.name: queue.mismatch for queue in queues if queue.mismatch},
        )
        say(msgspec.json.encode(answer).decode()) if watch else write_json(answer)
        return
    if watch and sys.stdout.isatty():
        sys.stdout.write(_TO_THE_TOP)
    if not queues:
        say("no queue is in trouble" if only_trouble else "The app has no queue.")
        return
    head, *rows = table(_HEAD, [_row(queue, trouble) for queue, trouble in rated], {0, len(_HEAD) - 1})
    say(head, *(_painted(trouble, row) for (_, trouble), row in zip(rated, rows, strict=True)))


def _painted(trouble: Trouble, row: str) -> str:
    return paint(row, "red" if trouble.severity == "act" else "yellow") if trouble.words else row


def _row(queue: QueueOverview, trouble: Trouble) -> tuple[str, ...]:
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
        ", ".join([*([trouble.words] if trouble.words and not queue.now.blocked else []), *_remarks(queue)]),
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
