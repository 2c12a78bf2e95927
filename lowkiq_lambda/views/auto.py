"""How many shards a queue needs, as housekeeping said it last, for people and programs."""

from typing import Literal, TypeAlias

import msgspec

from lowkiq_lambda.views.lateness import Cause

Answer: TypeAlias = Literal["nothing", "refusal", "proposal", "moving"]
"""The queue keeps its target; it does not, and more shards are not the answer; another count; a move is under way."""


class AutoDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided at `at` (Unix seconds) about the shards of a queue.

    `says`: all of it in a sentence. `cause`: why the queue is late, None if it is not or no cause is known, with the
    numbers in `evidence`, and in how many of the last `looked` minutes it held. `shards`: that it has, and `to` how
    many it should have; None: as many. `bars`: why a proposal is not carried out by itself; without any it is, where
    the setting `auto` is "act". `ids`: that would move, `pause`: seconds that each waits for it at most.
    `expected`: the 95th percentile of the waits of the last ten minutes (s), simulated with the present shards and with
    the proposed ones; None where nothing was simulated, or the queue contradicts it.
    """

    queue: str
    at: float
    answer: Answer
    says: str
    shards: int
    to: int | None = None
    cause: Cause | None = None
    evidence: tuple[str, ...] = ()
    minutes: int = 0
    looked: int = 0
    bars: tuple[str, ...] = ()
    ids: int = 0
    pause: float = 0.0
    expected: tuple[float, float] | None = None


class AutoMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move that was made. `at`, `ended_at`: Unix seconds; None while it goes on. `is_turned`: it was turned round.

    `lag_before`, `lag_after`: the 95th percentile of the lag in seconds, of ten minutes before and of minutes 6 to 30
    after, when what waited is worked off; None while that is not known.
    """

    at: float
    shards: int
    to: int
    lag_before: float
    ended_at: float | None = None
    lag_after: float | None = None
    is_turned: bool = False


class AutoState(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with a count of shards of its own. `mode`: the setting `auto`. `least` to `most` shards keep `lag` (s).

    `decision`: the last; None: housekeeping has not looked. `held_until`: until when somebody has stopped it, Unix
    seconds, and `held_by` whom. `moves`: of the last day, the newest first.
    """

    queue: str
    mode: Literal["propose", "act", "off"]
    least: int
    most: int
    lag: float
    decision: AutoDecision | None = None
    held_until: float | None = None
    held_by: str = ""
    moves: tuple[AutoMove, ...] = ()
