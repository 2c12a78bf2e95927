"""`lowkiq stats`: the queues of an app in a table, or the hours or days of one of them."""

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from math import ceil
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import BackendUnavailable, ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import paint, remark, say, table, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag
from lowkiq_lambda.cli.queues import OneQueue, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.formatting import duration, exact, rate, short, utc
from lowkiq_lambda.operate.presentation.queues import Queues, queue_stats
from lowkiq_lambda.operate.presentation.trouble import Trouble, troubles_of
from lowkiq_lambda.views.queues import DayTimes, QueueOverview, Series

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.doctor.findings import Need

_HELP: Final = """
Count the waiting, running, failed and dead ids of each queue, and print how long the oldest due one waits.

All counts are ids. The rates are of the last half minute. Queues in trouble come first, in red those that somebody \
has to act on, in yellow those to look at: those that `lowkiq doctor` names, and those of which in the last ten \
minutes many ids failed, or none ended although ids are due.

With --by a line for each hour of the last three days, counted back from now, or for each day (UTC) of the last 30, \
as far as Config(history_days=30) keeps days.
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
  ENDED, FAILED   of --by: how many ended and failed; a bar has both
  TOOK, TOOK 95   of --by day: the median and the 95th percentile of the time
                  that batches took
  WAITED 95       the 95th percentile of the time that the first id of a batch
                  had been due
  concurrency 7 (auto)   of a worker with concurrency = "auto": calls of a
                  shard at once that holders have come to; also of batch_size
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
  How much a queue has done in each hour:
    lowkiq stats SyncOrder --by hour
  The ids in all morgues:
    lowkiq stats --json | jq '[.queues[].morgue_length] | add'
"""
_INTERVAL: Final = 2.0
"""Seconds between two looks, of which so many tell of what needs somebody as the first does:"""
_SELDOM: Final = 8
_HOUR: Final = 3_600
_BAR: Final = 30
"""Characters of the longest bar."""
_TIMES: Final = ("TOOK", "TOOK 95", "WAITED 95")
_TO_THE_TOP: Final = "\x1b[H\x1b[J"
_HEAD: Final = ("QUEUE", "WAITING", "LAG", "IN FLIGHT", "FAILED", "MORGUE", "ENDED/S", "FAIL/S", "")

command: Final = command_app("stats", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stats [OPTIONS] [QUEUE]")


@command.default
def stats(  # noqa: PLR0913 - the options of a command line
    queue: OneQueue = None,
    /,
    *,
    watch: Annotated[bool, flag("Print again every two seconds, until Ctrl-C.")] = False,
    only_trouble: Annotated[bool, flag("Only queues that somebody has to look at.")] = False,
    by: Annotated[Literal["hour", "day"] | None, Parameter(help="The hours of QUEUE, or its days.")] = None,
    app: AppOption = None,
    json: Annotated[
        bool,
        flag(
            "Write an object as GET /api/v1/queues does, by trouble, or with --by as GET /api/v1/history; with --watch "
            "one in each line."
        ),
    ] = False,
) -> int:
    """Tell; the exit code."""
    loaded = app_of(app)
    only = None if queue is None else worker_of(loaded, queue)
    if by is not None:
        if only is None or watch or only_trouble:
            raise ConfigError("--by goes with one QUEUE, and with neither --watch nor --only-trouble.")
        return _tell_history(loaded, only, by, json=json)
    pause, looks = Event(), count()
    needs: Sequence[Need] = ()
    while True:
        with loaded.operate.overview(worker=only) as overview:
            there = [*overview.queues]
        if next(looks) % _SELDOM == 0:
            needs = _needs_of(loaded)
        queues = _by_trouble(there, needs, only_trouble=only_trouble)
        notes = {} if json else _tuned(loaded, [queue for queue, _ in queues])
        _tell(queues, notes, only_trouble=only_trouble, watch=watch, json=json)
        if not watch:
            return DONE
        try:
            pause.wait(_INTERVAL)
        except KeyboardInterrupt:
            return DONE


def _needs_of(app: "Lowkiq") -> "Sequence[Need]":
    """What needs somebody; nothing, with a remark, where the server refuses to be asked. Raises BackendUnavailable."""
    from lowkiq_lambda.operate.doctor.checkup import look_for_needs

    try:
        return look_for_needs(app.operate)
    except BackendUnavailable:
        raise
    except LowkiqError as error:
        remark(f"note: what needs somebody could not be looked at: {error}")
        return ()


def _tell_history(app: "Lowkiq", worker: type[Worker[Any]], by: Literal["hour", "day"], *, json: bool) -> int:
    with app.operate.overview("72h" if by == "hour" else "30d", worker) as overview:
        (queue,) = overview.queues
    history = queue.history
    if json:
        write_json(history)
        return DONE
    lines = [*(_hours(history.series) if by == "hour" else map(_day, history.days))]
    most = max((ended + failed for _, ended, failed, *_ in lines), default=0)
    rows = [
        (at, exact(ended), exact(failed), *times, "▇" * ceil(_BAR * (ended + failed) / max(1, most)))
        for at, ended, failed, *times in lines
    ]
    head = ("HOUR FROM", "ENDED", "FAILED", "") if by == "hour" else ("DAY", "ENDED", "FAILED", *_TIMES, "")
    say(*table(head, rows, {0, len(head) - 1}))
    if by == "day" and not app.config.history_days:
        remark("note: no days are kept: set Config(history_days=30), or LOWKIQ_HISTORY_DAYS.")
    return DONE


def _hours(series: Series) -> Iterator[tuple[str, int, int]]:
    points = _HOUR // series.step
    for place in range(0, len(series.ended), points):
        ended, failed = (sum(counts[place : place + points]) for counts in (series.ended, series.failed))
        yield utc(series.began_at + place * series.step), ended, failed


def _day(day: DayTimes) -> tuple[Any, ...]:
    took = ("-", "-") if day.took is None else (duration(day.took.p50), duration(day.took.p95))
    waited = "-" if day.waited is None else duration(day.waited.p95)
    return utc(day.at)[:10], day.ended, day.failed, *took, waited


def _by_trouble(
    queues: Sequence[QueueOverview], needs: "Sequence[Need]", *, only_trouble: bool
) -> list[tuple[QueueOverview, Trouble]]:
    """The worst first; those of one rank as the app declares them."""
    troubles = troubles_of(queues, needs)
    rated = [(queue, troubles[queue.name]) for queue in queues]
    queues_left = [pair for pair in rated if pair[1].words or not only_trouble]
    return sorted(queues_left, key=lambda pair: pair[1].rank)


def _tuned(app: "Lowkiq", queues: Sequence[QueueOverview]) -> dict[str, str]:
    """By queue what holders have found, of those whose workers leave it to them."""
    from lowkiq_lambda.operate.inspect.tuned import is_tuned, read_tuned

    names = {queue.name for queue in queues if not queue.mismatch}
    workers = [worker for worker in app.core.queues.workers if worker.queue_name in names and is_tuned(worker)]
    return {worker.queue_name: str(read_tuned(app.operate(worker).reader, worker)) for worker in workers}


def _tell(
    rated: list[tuple[QueueOverview, Trouble]], notes: dict[str, str], *, only_trouble: bool, watch: bool, json: bool
) -> None:
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
    head, *rows = table(
        _HEAD, [_row(queue, trouble, notes.get(queue.name, "")) for queue, trouble in rated], {0, len(_HEAD) - 1}
    )
    say(head, *(_painted(trouble, row) for (_, trouble), row in zip(rated, rows, strict=True)))


def _painted(trouble: Trouble, row: str) -> str:
    return paint(row, "red" if trouble.severity == "act" else "yellow") if trouble.words else row


def _row(queue: QueueOverview, trouble: Trouble, note: str) -> tuple[str, ...]:
    now, history = queue.now, queue.history
    if queue.mismatch:
        # The counts are not those of the queue's jobs.
        return (queue.name, *("-" for _ in _HEAD[1:-1]), "declared otherwise")
    words = "" if now.blocked else trouble.words
    remarks = [remark for remark in _remarks(queue) if remark.split(" for ")[0] not in words]
    words = "" if any(remark.startswith(words) for remark in remarks) else words
    return (
        queue.name,
        short(now.length),
        duration(now.lag),
        short(now.in_flight),
        short(now.retries),
        short(now.morgue_length),
        rate(history.ended_rate),
        rate(history.failed_rate),
        ", ".join(filter(None, [words, *remarks, note])),
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
