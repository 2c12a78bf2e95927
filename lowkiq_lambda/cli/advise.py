"""`lowkiq advise`: which way to run the app costs least this month, and what a change would risk."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DIFFERENT, DONE
from lowkiq_lambda.cli.output import say, table, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, seconds_above_0, whole_number
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.declare.worker import Worker, at_most
from lowkiq_lambda.operate.presentation.formatting import duration, exact

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.stack.advice.advising import Advice, Change
    from lowkiq_lambda.stack.advice.bill_files import Compared
    from lowkiq_lambda.stack.advice.loads import QueueLoad
    from lowkiq_lambda.stack.advice.ways import WayName
    from lowkiq_lambda.views.lateness import HourOfQueue

_HELP: Final = """
Compare what the app costs this month on AWS with other ways to run it, in dollars and in lag.

The load is that of the hours that are kept (35 days of watched queues; else three days of history, marked ~). The \
dollars are those of `lowkiq stack costs`, and the lag is simulated. What is not known stands first. No bill is read, \
unless you give a file that you exported yourself.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  No change is worth it.
  1  A change saves more than 20 % of the month, and more than $5.
  2  The command line, the bill, the prices or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  What to change, for an app that drains by schedules of shards:
    lowkiq advise --now shards
  Only ways that keep ids from being late for more than 5 s, for a program:
    lowkiq advise --lag-p95 5s --json | jq '.changes[0]'
  How far the estimate is from a bill, exported from Cost Explorer as CSV, by
  service and day:
    lowkiq advise --bill costs.csv
"""
_HOUR: Final = 3_600

command: Final = command_app("advise", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq advise [OPTIONS]")


@command.default
def advise(  # noqa: PLR0913 - the options of a command line
    *,
    now: Annotated[
        Literal["minute", "shards", "task", "daemon"] | None,
        Parameter(help="The present way: minute (one schedule), shards, task, daemon; else as processes tell."),
    ] = None,
    memory: Annotated[
        int, Parameter(help="Megabytes of the drain function.", converter=whole_number(128, 10_240))
    ] = 256,
    lag_p95: Annotated[
        float | None,
        Parameter(name="--lag-p95", help="The lag that a change has to keep, such as 5s.", converter=seconds_above_0),
    ] = None,
    bill: Annotated[
        Path | None, Parameter(help="A CSV file of Cost Explorer, by service: the estimate is compared with it.")
    ] = None,
    prices: Annotated[Path | None, Parameter(help="A file like prices.toml, with the prices that differ.")] = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write it as JSON; times are seconds, dollars those of a month.")] = False,
) -> int:
    """Tell it; the exit code."""
    from lowkiq_lambda.stack.advice.advising import advise as advise_on
    from lowkiq_lambda.stack.advice.bill_files import BadBill, compared, read_bill
    from lowkiq_lambda.stack.advice.loads import load_of
    from lowkiq_lambda.stack.advice.ways import Options
    from lowkiq_lambda.stack.costs.prices import BadPrice, changed_by_file, load

    try:
        own_prices = changed_by_file(load(), prices) if prices else load()
        billed = None if bill is None else read_bill(bill)
    except (BadPrice, BadBill) as error:
        raise ConfigError(str(error)) from error
    loaded = app_of(app)
    at = loaded.core.clock.time()
    _, skipped = loaded.core.queues.all_current()
    queues = [_load_of(loaded, worker) for worker in loaded.core.queues.workers if worker.queue_name not in skipped]
    guessed = [f"{name} is left out: {sentence}" for name, sentence in skipped.items()]
    guessed += [] if now else ["the present way is taken from the processes that live now: --now says another"]
    options = Options(memory, loaded.config.threads_per_node, own_prices)
    advice = advise_on(load_of(queues, at), options, now or _present(loaded), guessed, lag_p95)
    present = next(way for way in advice.ways if way.kind == advice.now)
    comparison = [] if billed is None else [*compared(billed, present.rows)]
    if json:
        write_json({**msgspec.to_builtins(advice), "bill": comparison, "is_due": advice.is_due})
    else:
        say(*_lines(advice, comparison, lag_p95))
    return DIFFERENT if advice.is_due else DONE


def _present(app: "Lowkiq") -> "WayName":
    kinds = [process.kind for process in app.operate.processes() if not process.is_gone]
    return "task" if "daemon" in kinds else "minute"


def _load_of(app: "Lowkiq", worker: type[Worker[Any]]) -> "QueueLoad":
    """The hours that are kept of a queue; else those of its history."""
    from lowkiq_lambda.stack.advice.loads import QueueLoad

    queue = app.operate(worker)
    shards, hours = len(queue.reader.shards.layout.live), queue.hours()
    return QueueLoad(
        name=worker.queue_name,
        shards=shards,
        concurrency=at_most(worker.concurrency),
        batch=at_most(worker.batch_size),
        hours=tuple(hours or _of_history(app, worker)),
        is_rough=not hours,
    )


def _of_history(app: "Lowkiq", worker: type[Worker[Any]]) -> "Iterator[HourOfQueue]":
    """Hours as far as history tells: how many ids, with the mean time of an id since the queue began."""
    from lowkiq_lambda.views.lateness import HourDigest

    with app.operate.overview("72h", worker) as overview:
        (queue,) = overview.queues
    series, now = queue.history.series, queue.now
    each, computing = (seconds / max(1, now.done + now.failed) for seconds in (now.busy, now.computing))
    points = max(1, _HOUR // series.step)
    outcomes = [ended + failed for ended, failed in zip(series.ended, series.failed, strict=True)]
    # Of a queue that began in this time, the hours before it were not idle. History has not the minute that goes on.
    is_new = now.done + now.failed - sum(outcomes) <= max(outcomes[-2:], default=0)
    first = next((place for place, count in enumerate(outcomes) if count), len(outcomes)) if is_new else 0
    for place in range(first // points * points, len(outcomes), points):
        ended, failed = series.ended[place : place + points], sum(series.failed[place : place + points])
        until = min(place + points, len(outcomes))
        ids = sum(ended)
        busy = (ids + failed) * each
        yield HourDigest(
            at=series.began_at + place * series.step,
            seconds=float((until - max(place, first)) * series.step),
            ids=ids,
            payloads=ids,
            calls=ids,
            busy=busy,
            computing=(ids + failed) * computing,
            held=busy,
            failed=failed,
            dead=0,
            busiest=max(ended, default=0) * 60 // series.step,
            p50=None,
            p95=None,
            p99=None,
        )


def _lines(advice: "Advice", comparison: "list[Compared]", target: float | None) -> Iterator[str]:
    yield from (f"not known: {one}" for one in advice.unknown)
    hours = f"{advice.hours:.0f} hours" if advice.hours > 1 else "an hour or less"
    mark = "~" if advice.is_rough else ""
    yield f"{mark}{exact(advice.jobs)} jobs a month, at the pace of {hours}. Dollars are without Redis."
    so_far = f"{mark}${advice.so_far:.2f} in the hours that are known"
    yield f"this month so far {so_far}, at the same pace {mark}${advice.month:.2f} in all"
    rows = [
        (
            way.name,
            f"{mark}${way.dollars:.2f}",
            "-" if way.p95 is None else f"{mark}{duration(way.p95)}",
            "now" * (way.kind == advice.now),
        )
        for way in advice.ways
    ]
    yield from table(("WAY", "$/MONTH", "LAG P95", ""), rows, {0, 3})
    yield advice.break_even
    if not advice.changes:
        yield "No change saves anything" + ("." if target is None else f" and keeps {duration(target)}.")
    yield from (line for place, change in enumerate(advice.changes, 1) for line in _change(place, change, mark))
    if advice.managed:
        yield advice.managed
    for one in comparison:
        error = "-" if one.error is None else f"{one.error:+.0%}"
        yield f"bill: {one.service} ${one.billed:.2f}, estimated {mark}${one.estimated:.2f} ({error})"


def _change(place: int, change: "Change", mark: str) -> Iterator[str]:
    worth = "" if change.is_worth_it else ": not worth your time"
    yield f"{place}. {change.what} saves {mark}${change.saves:.2f} a month{worth}"
    yield f"   risk: {change.risks}"
