"""The evidence by which the shards of a queue are counted, and how much work it has. Values, without I/O."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.operate.lateness.minutes import Minute
from lowkiq_lambda.views.lateness import Cause, HourDigest

WORK_OFF: Final = 300.0
"""Seconds in which a backlog is to be worked off, beside what comes."""
A_DAY: Final = 24
"""Hours."""
A_WEEK: Final = 7 * A_DAY
_HOUR: Final = 3_600.0
_MINUTE: Final = 60.0


class AutoFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A queue at `now` (Unix seconds), with `shards` that have `concurrency` slots each.

    `late`: whether it misses its target; then `cause`, `minutes`, `looked`, `evidence` and `clause` are those of its
    lateness, and `part` that of the hottest id in its shard. `are_fixed`: its calls wait, and code says how many run at
    once. `lag`: seconds, `rises`: by how many a second. `load`: slots that its work takes.
    `busy`: the share of the late shards' slots, and `full`: how many of how many were, both in the last minute.
    `threads`: of all processes that drain. `ids`: that a move carries.
    `length`: that wait. `failing`: whether failures were a good part of any known minute, `dying`: whether ids died in
    them. `at_it`: a clause about what somebody does, of a queue that does not lag. `hours`: of the last week;
    `any_hour`: a way back may be told in each. `mode`: what the app allows. `schedules`: of shards, on AWS: none are
    needed, the duty may make them, or somebody else has to. `is_replicated`: whether a replica has each step.
    """

    now: float
    shards: int
    bounds: Auto
    mode: Literal["propose", "act", "off"] = "propose"
    concurrency: int = 1
    is_late: bool = False
    cause: Cause | None = None
    are_fixed: bool = False
    minutes: int = 0
    looked: int = 0
    clause: str = ""
    part: float = 0.0
    evidence: tuple[str, ...] = ()
    lag: float = 0.0
    rises: float = 0.0
    load: float = 0.0
    busy: float = 0.0
    full: tuple[int, int] = (0, 0)
    threads: int = 0
    ids: int = 0
    length: int = 0
    failing: bool = False
    dying: bool = False
    is_held: bool = False
    at_it: str = ""
    hours: tuple[HourDigest, ...] = ()
    any_hour: bool = False
    schedules: Literal["none", "own", "foreign"] = "none"
    is_replicated: bool = True


def load_of(minutes: Sequence[Minute], concurrency: int, due: int) -> float:
    """Slots that the work takes: of the busiest of these minutes, and so many more that what is due is worked off.

    `due`: ids that wait and may run.
    """
    busy = max((sum(shard.busy for shard in minute.shards) * concurrency for minute in minutes), default=0.0)
    measured = [minute for minute in minutes if minute.took is not None and minute.fill]
    an_id = (measured[-1].took or 0.0) / (measured[-1].fill or 1.0) if measured else 0.0
    return busy + due * an_id / WORK_OFF


def rises_of(lags: Sequence[tuple[float, float]]) -> float:
    """By how many seconds a second the lag has risen over these moments, each with its lag."""
    if len(lags) < 2:  # noqa: PLR2004 - a slope is between two
        return 0.0
    (first_at, first), (last_at, last) = lags[0], lags[-1]
    return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


def busiest_of_day(hours: Sequence[HourDigest], now: float) -> float | None:
    """Slots that the busiest minute of the last 24 hours took; None where some of these hours are not known."""
    day = [hour for hour in hours if 0 <= now - hour.at <= A_DAY * _HOUR + _HOUR]
    if len(day) < A_DAY:
        return None
    return max((hour.busiest * hour.busy / hour.ids / _MINUTE if hour.ids else hour.busy / _HOUR) for hour in day)


def is_quietest(hours: Sequence[HourDigest], now: float) -> bool:
    """Whether this is the hour of the day in which the queue has the least to do, by the last seven days."""
    busy: dict[int, list[float]] = {}
    for hour in hours:
        if 0 <= now - hour.at <= A_WEEK * _HOUR:
            busy.setdefault(int(hour.at // _HOUR) % A_DAY, []).append(hour.busy)
    if len(busy) < A_DAY:
        return False
    means = {hour: sum(each) / len(each) for hour, each in busy.items()}
    return int(now // _HOUR) % A_DAY == min(means, key=means.__getitem__)
