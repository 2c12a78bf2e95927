"""The nine causes of lateness, in their order: the first that holds is the cause. A pure function of the evidence.

The order matters: a cause that more shards, or more calls at once, would make worse stands before one that they cure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.operate.lateness.minutes import HELD, Minute, Present
from lowkiq_lambda.views.lateness import Cause

LOOKED: Final = 8
"""Minutes that are looked at: fewer would follow every burst, more would tell of it when it is over."""
ENOUGH: Final = 6
"""Of these, in which a cause has to hold: two may tell of something else, such as a pause between bursts."""
UNKNOWN: Final = 1
"""So many may be unknown at most: with two the six would be nearly all that is known."""
FAILING: Final = 0.05
"""The share of outcomes that are failures, above which retries are a good part of the work."""
RETRIES: Final = 0.5
"""The share of waiting ids that have failed, above which the queue waits for its retries."""
SLOWER: Final = 2.0
"""So many times as long as usual a call takes: less is within what loads and payloads change."""
WORKING: Final = 0.85
"""Of the processors that processes may use: above it calls wait for one another."""
WAITING_SHARE: Final = 0.5
"""Of the late shards, without a holder: there are too few threads for them, or none."""
STAYS: Final = 0.7
"""Of its load that the busiest shard would keep with twice the shards: half is what evenly spread ids leave."""
IDLE: Final = 0.3
"""Of a call's time in which a processor works, below which calls mostly wait, and more of them at once cost little."""
MOST_AT_ONCE: Final = 10
"""Calls of a shard at once up to which a higher `concurrency` is proposed where code fixes it: more is for somebody."""


class CauseVerdict(NamedTuple):
    """The cause, if any is known, and in how many of the minutes that are known it held."""

    cause: Cause | None
    minutes: int
    looked: int

    @property
    def is_known(self) -> bool:
        """Whether there was enough to judge by."""
        return self.looked >= LOOKED - UNKNOWN


def failures(minute: Minute, present: Present) -> bool:
    """Failures are a good part of the work, or of what waits; or ids run alone, as they are suspected."""
    ends = minute.ended + minute.failed
    fails = minute.failed > FAILING * ends if ends else False
    return fails or minute.retries > RETRIES * max(1, minute.length) or present.suspects > 0


def limits(minute: Minute, present: Present) -> bool:
    """The ids that are late wait for a limit."""
    return minute.held_back > present.limit


def slow_handlers(minute: Minute, present: Present) -> bool:
    """Calls take much longer than they usually do with as many ids."""
    return minute.took is not None and present.usual is not None and minute.took > SLOWER * present.usual


def processor(minute: Minute, _present: Present) -> bool:
    """The processes that drain the queue have no processor left."""
    return minute.processors is not None and minute.processors >= WORKING


def compute(minute: Minute, present: Present) -> bool:
    """Late shards have no holder, or there are fewer threads than shards with work."""
    late = minute.late(present.limit)
    if not late:
        return False
    waiting = sum(shard.lacks_holder(present.waits) for shard in late)
    # Invocations tell of themselves only while they drain, so that their threads may be missing from the count.
    are_held = all(shard.held >= HELD for shard in late)
    return waiting >= WAITING_SHARE * len(late) or (minute.threads < minute.working and not are_held)


def hot_ids(minute: Minute, present: Present) -> bool:
    """The late shards are full, and with more shards the busiest would be as full."""
    return minute.speaks_for_shards(present.limit) and present.hot is not None and present.hot > STAYS


def slots(minute: Minute, present: Present) -> bool:
    """The late shards are full of calls that wait, and may have more of them at once."""
    computing = minute.computing if present.computing is None else present.computing
    may_rise = present.concurrency < (MOST_AT_ONCE if present.most is None else present.most)
    return minute.speaks_for_shards(present.limit) and may_rise and computing is not None and computing < IDLE


def shards(minute: Minute, present: Present) -> bool:
    """The late shards are full."""
    return minute.speaks_for_shards(present.limit)


ROWS: Final[Mapping[Cause, Callable[[Minute, Present], bool]]] = {
    "failures": failures,
    "limits": limits,
    "slow handlers": slow_handlers,
    "processor": processor,
    "compute": compute,
    "hot ids": hot_ids,
    "slots": slots,
    "shards": shards,
}
"""What has to hold in a minute. The first cause, that somebody is at it, is of the present and not of minutes."""


def judge(minutes: Sequence[Minute | None], present: Present) -> CauseVerdict:
    """The cause, by the last minutes, of which those that are None are unknown. The queue has to be late now."""
    usable = [minute for minute in minutes[-LOOKED:] if minute is not None]
    if present.at_it:
        # A fact of now, which no minute has to confirm; and the minutes beside it may show its effect.
        return CauseVerdict("somebody is at it", 0, 0)
    if len(usable) < LOOKED - UNKNOWN:
        return CauseVerdict(None, 0, len(usable))
    for cause, count in held_minutes(usable, present):
        if count >= ENOUGH:
            return CauseVerdict(cause, count, len(usable))
    return CauseVerdict(None, 0, len(usable))


def held_minutes(minutes: Sequence[Minute], present: Present) -> Iterator[tuple[Cause, int]]:
    """Each cause of minutes, in order, and in how many of these it holds."""
    for cause, holds in ROWS.items():
        yield cause, sum(bool(minute.late(present.limit)) and holds(minute, present) for minute in minutes)


_BY_THE_MOMENT: Final[tuple[Cause, ...]] = ("failures", "limits", "compute")
"""The causes that a moment shows without any share of time."""


def judge_moment(moment: Minute, present: Present) -> CauseVerdict:
    """The cause as far as the present alone shows it, where nobody has kept the minutes before."""
    if present.at_it:
        return CauseVerdict("somebody is at it", 0, 0)
    holding = (cause for cause in _BY_THE_MOMENT if ROWS[cause](moment, present))
    cause = next(holding, None)
    # A process that lives may have held the shards until now, and hold them again in a moment.
    return CauseVerdict(None if cause == "compute" and moment.threads else cause, 0, 0)
