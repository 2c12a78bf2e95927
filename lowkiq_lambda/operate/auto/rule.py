"""The rule: whether a queue gets another number of shards. A pure function of facts, memory and a forecast."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lowkiq_lambda.operate.auto.facts import AutoFacts, busiest_of_day, is_quietest
from lowkiq_lambda.operate.auto.memory import BETTER, DAY, Memory
from lowkiq_lambda.operate.auto.sizes import Forecast, ShardsSize, cost_of, size_of
from lowkiq_lambda.operate.lateness.at_it import BEGAN
from lowkiq_lambda.operate.lateness.causes import ENOUGH, LOOKED, UNKNOWN
from lowkiq_lambda.operate.lateness.words import lasting

BETWEEN: Final = 1_800.0
"""Seconds from one move to the next: its effect is to be seen first."""
A_DAY: Final = 4
"""Moves of a queue in a day."""
BY_HAND: Final = 7 * DAY
"""Seconds after a move of somebody else in which nothing is moved by itself: they had a reason."""
AFTER_FAILURES: Final = 600.0
"""Seconds after a minute of failures in which no shards are made: what is tried again comes and goes."""
FALLING: Final = -1.0
"""Seconds a second by which lag falls, from which on it is over soon without a move."""
SOON: Final = 600.0
"""Seconds ahead for which the lag is foreseen."""
IDLE_ENOUGH: Final = 0.4
"""Of the slots of half the shards, busy in the busiest minute of a day, up to which half of them suffice."""
FEW: Final = 1_000
"""Waiting ids, below which a move back takes no time."""


class Proposal(NamedTuple):
    """Another number of shards. `bars`: why it is not made without somebody's yes; none: it may be."""

    to: int
    size: ShardsSize
    bars: tuple[str, ...]


class Unmoved(NamedTuple):
    """The queue misses its target, and another number of shards is not the answer now, for this reason."""

    reason: str


class Fine(NamedTuple):
    """Nothing is to be done."""


def decide(facts: AutoFacts, memory: Memory, forecast: Forecast) -> Proposal | Unmoved | Fine:
    """What is to become of the queue's shards."""
    if not facts.is_late:
        return _back(facts, memory)
    if refusal := next(_refusals(facts, memory), ""):
        return Unmoved(refusal)
    size = size_of(facts, forecast)
    if isinstance(size, str):
        return Unmoved(size)
    now = forecast(facts.shards)
    if now is not None and size.p95 is not None and size.p95 > max(facts.bounds.lag, BETTER * now):
        waits = f"p95 {lasting(now)} → {lasting(size.p95)}"
        return Unmoved(f"by a simulation of the last minutes {size.to} shards would not help: {waits}")
    return Proposal(size.to, size, tuple(_bars(facts, memory)))


def _refusals(facts: AutoFacts, memory: Memory) -> Iterator[str]:
    """Why nothing is proposed, the first of them being told."""
    if facts.is_held:
        yield "somebody has stopped it here"
    if facts.cause != "shards":
        yield facts.clause or "its cause is not known"
        return
    if facts.looked < LOOKED - UNKNOWN or facts.minutes < ENOUGH:
        yield f"only {facts.looked} of the last {LOOKED} minutes are known"
    yield from _waits(facts, memory)
    if facts.failing or (memory.failed_at is not None and facts.now - memory.failed_at < AFTER_FAILURES):
        yield "failures were a good part of its work in the last ten minutes"
    if facts.rises < FALLING:
        yield f"its lag falls by {-facts.rises:.1f} s a second"
    foreseen, cost = facts.lag + max(0.0, facts.rises) * SOON, cost_of(facts.ids, facts.shards)
    if cost > foreseen:
        yield f"a move takes {lasting(cost)}, and in ten minutes the oldest id will have waited {lasting(foreseen)}"


def _waits(facts: AutoFacts, memory: Memory) -> Iterator[str]:
    """Why it has to wait after moves that were made before."""
    if memory.rests_until is not None and facts.now < memory.rests_until:
        yield f"its last move had to be turned round, so it rests for {lasting(memory.rests_until - facts.now)} more"
    last = memory.last
    since = 0.0 if last is None else facts.now - max(last.at, last.ended_at or 0.0)
    if last is not None and since < BETWEEN:
        yield f"it moved {lasting(max(0.0, since))} ago, and the effect is waited for"
    if len(memory.moves_since(facts.now - DAY)) >= A_DAY:
        yield f"it moved {A_DAY} times within a day"
    if memory.back_at is not None and facts.now - memory.back_at < BEGAN:
        yield f"nobody could look at it until {lasting(facts.now - memory.back_at)} ago, as in an outage"


def _bars(facts: AutoFacts, memory: Memory) -> Iterator[str]:
    """Why a proposal is not carried out by itself."""
    if facts.mode != "act":
        yield f'auto is "{facts.mode}"'
    if memory.moved_by_hand is not None and facts.now - memory.moved_by_hand < BY_HAND:
        yield f"somebody else moved it {lasting(max(0.0, facts.now - memory.moved_by_hand))} ago"
    if memory.useless_at is not None:
        yield "its last move did not help"
    if facts.dying:
        yield "ids die"
    if facts.schedules == "foreign":
        yield "its shards have schedules on AWS that only a deploy, or lowkiq stack schedules, makes"
    if not (facts.is_replicated or facts.bounds.unreplicated):
        yield "no replica would keep a move if the server is lost (Auto(unreplicated=True) allows that)"


def _back(facts: AutoFacts, memory: Memory) -> Proposal | Fine:
    """Half of the shards, where they suffice, in the quietest hour."""
    to = facts.shards // 2
    if (
        facts.is_held
        or facts.at_it
        or facts.failing
        or facts.shards % 2
        or to < facts.bounds.least
        or facts.length >= FEW
    ):
        return Fine()
    # The hours first, as nearly no queue has them quiet enough.
    busiest = busiest_of_day(facts.hours, facts.now)
    if busiest is None or busiest / (to * facts.concurrency) > IDLE_ENOUGH:
        return Fine()
    if not (facts.any_hour or is_quietest(facts.hours, facts.now)):
        return Fine()
    moves = memory.moves_since(facts.now - DAY)
    if next(_waits(facts, memory), "") or any(move.to < move.shards for move in moves):
        return Fine()
    bars = [*_bars(facts, memory), *([] if facts.bounds.back else ["Auto(back=True) is not declared"])]
    return Proposal(to, ShardsSize(to, None), tuple(bars))
