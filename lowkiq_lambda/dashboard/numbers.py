"""The six numbers of the first page, each with a line of its past. Red means that somebody has to act.

Red is a share or a limit, and never a count alone.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.dashboard.charts import Chart, line, through
from lowkiq_lambda.dashboard.needs import Looked
from lowkiq_lambda.operate.inspect.history import waited_by_all
from lowkiq_lambda.operate.inspect.sampling import PAST, AppSample
from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.operate.presentation.trouble import FAILING, FEWEST, LATE
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueOverview

_GONE: Final = 0.25
"""The share of processes that are gone from which it is red."""

Kind: TypeAlias = Literal["rate", "share", "duration", "count"]


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A number. `value`: None where nothing is known; `note`: what stands below it; `line`: a path, or empty."""

    name: str
    title: str
    kind: Kind
    value: float | None
    note: str = ""
    is_red: bool = False
    line: str = ""


def numbers_of(
    queues: Sequence[QueueOverview], drawn: Chart, looked: Looked, at: float, lag_limit: float
) -> list[Number]:
    """The six, of the app's queues and of the processes of its server, at `at` (Unix seconds)."""
    # A queue that was declared otherwise has no numbers.
    sound = [queue for queue in queues if not queue.mismatched]
    alive = [process for process in looked.processes if not process.is_gone]
    waited = waited_by_all(queue.times for queue in sound)
    lag = max((queue.now.lag for queue in sound), default=0.0)
    due = sum(queue.now.due for queue in sound)
    present = AppSample(at, lag, due, waited.p95 if waited else 0.0, len(alive))
    samples = [*(sample for sample in looked.samples if 0 < at - sample.at <= PAST), present]
    places = [1 - (at - sample.at) / PAST for sample in samples]
    return [
        Number(
            name="Done/s",
            title="Done or refused: the mean of the last 30 seconds",
            kind="rate",
            value=sum(queue.history.ended_rate for queue in queues),
            note=f"{exact(drawn.total_ended)} in the chart",
            line=drawn.ended,
        ),
        _failing(drawn),
        Number(
            name="Oldest due job",
            title="How long the oldest due id of all queues has waited; what pauses and limits keep back counts apart",
            kind="duration",
            value=lag,
            note=_kept_back(sound),
            is_red=lag >= lag_limit,
            line=through(places, [sample.lag for sample in samples]),
        ),
        Number(
            name="Due now",
            title="Ids whose time has come. Empty in: at the rate of the last 30 seconds, if nobody pushes",
            kind="count",
            value=due,
            note=_until_empty(sound),
            is_red=any(_stands_still(queue, lag_limit) for queue in sound),
            line=through(places, [sample.due for sample in samples]),
        ),
        Number(
            name="Wait p95",
            title="From when ids were due until a drain claimed them, over the last 30 to 60 minutes, in all queues",
            kind="duration",
            value=waited.p95 if waited else None,
            note=f"p50 {duration(waited.p50)}" if waited else "nothing in the last hour",
            is_red=waited is not None and waited.p95 >= lag_limit,
            line=through(places, [sample.waited for sample in samples]),
        ),
        _processes(looked.processes, alive, through(places, [sample.processes for sample in samples])),
    ]


def _failing(drawn: Chart) -> Number:
    ended, failed = drawn.total_ended, drawn.total_failed
    share = failed / (ended + failed) if failed else 0.0
    pairs = zip(drawn.series.ended, drawn.series.failed, strict=True)
    return Number(
        name="Failing",
        title="The share of all ids in the chart that failed",
        kind="share",
        value=share if ended + failed else None,
        note=f"{exact(failed)} of {exact(ended + failed)}",
        is_red=share > FAILING and ended + failed >= FEWEST,
        line=line([bad / (good + bad) if bad else 0.0 for good, bad in pairs], 1.0) if failed else "",
    )


def _kept_back(queues: Sequence[QueueOverview]) -> str:
    paused = max((queue.now.paused_lag for queue in queues), default=0.0)
    limited = max((queue.now.limited_lag for queue in queues), default=0.0)
    parts = [f"{name} {duration(lag)}" for name, lag in (("paused", paused), ("limited", limited)) if lag]
    return " · ".join(parts) or "nothing is kept back"


def _stands_still(queue: QueueOverview, limit: float) -> bool:
    return queue.empty_in is None and queue.now.lag >= limit


def _until_empty(queues: Sequence[QueueOverview]) -> str:
    still = [queue.name for queue in queues if _stands_still(queue, LATE)]
    if still:
        return f"{still[0]} stands still" if len(still) == 1 else f"{exact(len(still))} queues stand still"
    longest = max((queue.empty_in or 0.0 for queue in queues), default=0.0)
    kept = sum(queue.now.paused_due for queue in queues)
    parts = [f"empty in {duration(longest)}" if longest >= 1 else "empty within a second"] if longest else []
    parts += [f"{exact(kept)} more paused"] if kept else []
    is_due = any(queue.now.due for queue in queues)
    return " · ".join(parts) or ("due for less than a minute" if is_due else "nothing waits for a drain")


def _processes(processes: Sequence[Process], alive: Sequence[Process], drawn: str) -> Number:
    gone = len(processes) - len(alive)
    busy, threads = sum(len(process.doing) for process in alive), sum(process.threads for process in alive)
    return Number(
        name="Processes",
        title="Daemons and invocations that drain on this server, as of their last heartbeats",
        kind="count",
        value=len(alive),
        note=f"{exact(gone)} gone" if gone else f"{exact(busy)} of {exact(threads)} threads busy",
        is_red=gone > 0 and gone >= _GONE * len(processes),
        line=drawn,
    )
