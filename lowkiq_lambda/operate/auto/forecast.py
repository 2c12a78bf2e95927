"""How long ids would wait with other shards: the last minutes simulated, of as many pushes as a second allows."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from lowkiq_lambda.declare.worker import at_most
from lowkiq_lambda.operate.inspect.history import SPANS, command, history, windows
from lowkiq_lambda.operate.lateness.minutes import Minute
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueHistory, Series

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Worker
    from lowkiq_lambda.store.shard.backend import Backend

MOST_JOBS: Final = 60_000
"""Of one run: three runs are some second of a processor."""
PAST: Final = 600.0
"""Seconds that are played: calmer times before would hide how long ids wait by what comes now."""
IDS: Final = 10_000
"""That the pushes are spread over, as nobody has counted how many there are."""
_MINUTE: Final = 60.0


def forecast_of(  # noqa: PLR0913, PLR0917 - what is played
    backend: "Backend",
    worker: "type[Worker]",
    concurrency: int,
    minutes: Sequence[Minute],
    processes: Sequence[Process],
    retry_for: float,
) -> Callable[[int], float | None]:
    """Simulates, when it is called first with a count of shards. `concurrency`: at present. Raises BackendError.

    It tells nothing where no daemon drains: the pace of functions is that of their schedules, and not of shards.
    """
    daemons = [process for process in processes if process.kind == "daemon" and not (process.is_gone or process.quiet)]
    measured = [minute for minute in minutes if minute.took is not None and minute.fill]
    rates: list[float] = []
    spread = 0.0

    def p95(shards: int) -> float | None:
        nonlocal spread
        if not daemons or not measured:
            return None
        from lowkiq_lambda.engine.skew import HOUR, read_shares  # noqa: PLC0415 - where a move is proposed
        from lowkiq_lambda.simulate import Choice, Times, Trace, simulate  # noqa: PLC0415 - the same
        from lowkiq_lambda.simulate.times import spread_of  # noqa: PLC0415 - the same

        if not rates:
            past = _last_hour(backend, worker.queue_name, retry_for)
            rates[:] = _rates(past.series)
            spread = spread_of(past.took.p50, past.took.p95) if past.took else 0.0
        if not any(rates):
            return None
        last = measured[-1]
        took, between = last.took or 0.0, _between(last) if concurrency == 1 else 0.0
        times = Times(each_id=took / (last.fill or 1.0), spread=spread, computing=min(1.0, last.computing or 0.0))
        choice = Choice(
            shards=shards,
            batch=at_most(worker.batch_size),
            concurrency=concurrency,
            threads=max(1, sum(process.threads for process in daemons)),
            processes=len(daemons),
            cores=max(1.0, sum(process.cores for process in daemons)),
            payloads_at_once=worker.payloads_at_once,
        )
        if between:
            choice = replace(choice, engine=between, round_trip=0.0)
        now = backend.clock.time()
        shares = read_shares(backend, worker.queue_name, [now - HOUR, now], retry_for) or {}
        return simulate(Trace.of_rates(rates, _MINUTE, ids=IDS, shares=[*shares.values()]), times, choice).p95

    return p95


def _between(minute: Minute) -> float:
    """Seconds from one call of a full shard to its next, as measured: of claims and settlings. 0: not known."""
    full = [shard for shard in minute.shards if shard.is_full]
    busy, held = sum(shard.busy for shard in full), sum(shard.held for shard in full)
    return (minute.took or 0.0) * max(0.0, held / busy - 1.0) if full else 0.0


def _last_hour(backend: "Backend", queue_name: str, retry_for: float) -> QueueHistory:
    now, stretch = backend.clock.time(), SPANS["1h"]
    requested = windows(stretch, now, arrivals=True)
    asked_for = command(queue_name, requested, backend.prefix)
    (reply,) = backend.retrying(retry_for, lambda: send_each(backend.client, [asked_for]))
    return history(reply, requested, stretch, now)


def _rates(series: Series) -> list[float]:
    """Pushes a second of each of the last minutes: no more of them than `MOST_JOBS` fill."""
    counts = [*_counts(series)][-math.ceil(PAST / _MINUTE) :]
    first, jobs = len(counts), 0
    while first and jobs + counts[first - 1] <= MOST_JOBS:
        first -= 1
        jobs += counts[first]
    kept = counts[first:] or [min(counts[-1], MOST_JOBS)] if counts else []
    begin = next((place for place, count in enumerate(kept) if count), 0)
    return [count / _MINUTE for count in kept[begin:]]


def _counts(series: Series) -> Iterator[int]:
    """What was pushed in each minute; what ended, where nobody has counted pushes."""
    arrived = series.arrived or (None,) * len(series.ended)
    for pushed, ended, failed in zip(arrived, series.ended, series.failed, strict=True):
        yield ended + failed if pushed is None else pushed
