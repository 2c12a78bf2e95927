"""Whether a drain, and a visit of it, may go on: time, how long batches take, the stop signal, whose turn it is."""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.error_text import is_a, type_name
from lowkiq_lambda.settings.config import Config

if TYPE_CHECKING:
    from lowkiq_lambda.engine.hindrances import Hindrances

StopReason: TypeAlias = Literal[
    "failed", "exited", "stopping", "out of time", "turn over", "lease lost", "paused", "limited", "held", "empty"
]
"""Why a drain of a shard ended, in the order in which reasons say something of what is left.

`failed`: with an error; `exited`: its handlers exited (`sys.exit`, a cancellation), or Ctrl-C came; `stopping`: the
process stops; `out of time`: no further batch is predicted to fit; `turn over`: another shard had its turn; `lease
lost`: another holder has the shard; `paused`: an operator paused it; `limited`: the limits of its queue let nothing
more begin; `held`: another holder had it before; `empty`: nothing is due.
"""
STOP_REASONS: Final[tuple[StopReason, ...]] = get_args(StopReason)

MOMENT: Final = 0.001
"""Seconds for which a look at the time holds."""
MAX_IDS: Final = 1_000
"""The largest claim, in ids: more saves no round trips worth having, and makes recovery longer."""

_WEIGHT: Final = 0.1
"""Of the last batch in the mean."""
_DECAY: Final = 0.99
"""How much of the slowest is left after each second: a half after 69 of them."""
_NEARLY_ALL: Final = 100.0
"""Seconds for which more than a quarter of the slowest is left."""
MOST_OF_BUDGET: Final = 1 / 3
"""The part of its budget that a drain leaves unused, at most, for what is slower than usual."""
_MISLEADS_FROM: Final = 0.1
"""The part of its budget that a drain leaves unused, at least, for a prediction that misleads."""
_TIMES_USUAL: Final = 4
"""So many times as long as usual such a prediction is, at least."""
_PLAIN: Final = 4
"""Numbers of a dumped timing without hindrances."""
_TUNED: Final = (_PLAIN + 2, _PLAIN + 7)
"""Numbers of one with calls and ids behind them, without hindrances and with them."""


class BatchTiming(msgspec.Struct):
    """Seconds a batch takes: `mean` as of late, and `slowest`, of the slowest one, which is forgotten by and by.

    They size the next claim, and tell what still fits. Of a job with a cursor `mean` is of whole runs, and `slowest` of
    single items. `usual` is the mean of what `slowest` is the slowest of, and `seen_at` when that was (Unix seconds).
    """

    mean: float | None = None
    slowest: float = 0.0
    usual: float = 0.0
    seen_at: float = 0.0
    hindrances: "Hindrances | None" = None
    """None where there were none."""
    calls: int = 0
    """How many run side by side, where the worker leaves that to the library; else 0."""
    ids: int = 0
    """How many ids a batch has, where the worker leaves that to the library; else 0."""

    def observe(self, seconds: float, now: float) -> None:
        """Take in how long a batch took that has just come to its end."""
        self.observe_each((seconds,), now)

    def observe_each(self, seconds: Iterable[float], now: float) -> None:
        """The same of several that ran one after the other."""
        mean = self.mean
        for each in seconds:
            mean = each if mean is None else mean + _WEIGHT * (each - mean)
            # Most batches are far from the slowest, so its decay need not be computed for them.
            if 4 * each > self.slowest or now - self.seen_at > _NEARLY_ALL:
                self.observe_rest(each, now)
        self.mean, self.usual = mean, mean or 0.0

    def observe_run(self, seconds: float) -> None:
        """Take in how long a run of a job with a cursor took, apart from its items."""
        self.mean = seconds if self.mean is None else self.mean + _WEIGHT * (seconds - self.mean)

    def observe_item(self, seconds: float, now: float) -> None:
        """Take in how long an item of a job with a cursor took."""
        self.usual = self.usual + _WEIGHT * (seconds - self.usual) if self.usual else seconds
        self.observe_rest(seconds, now)

    def observe_rest(self, seconds: float, now: float) -> None:
        """Take in the seconds of a step that has to fit too, without a change to the usual time."""
        if seconds >= self.slowest_at(now):
            self.slowest, self.seen_at = seconds, now

    def slowest_at(self, now: float) -> float:
        """The slowest time after its decay, which goes by time because a queue may have few batches or many."""
        # A clock that was set back makes nothing last for longer.
        self.seen_at = min(self.seen_at, now)
        return self.slowest * math.pow(_DECAY, now - self.seen_at)

    def predicted(self, now: float, budget: float) -> float:
        """How long the next one takes, at most, for a drain of `budget` seconds in all.

        The usual time counts in full. The slowest time counts up to a part of the budget, so a call that hung takes at
        most that part from later drains.
        """
        return max(self.usual, min(self.slowest_at(now), budget * MOST_OF_BUDGET))

    def predicted_at_most(self, budget: float) -> float:
        """An upper bound of `predicted`: cheaper, because it reads no clock."""
        return max(self.usual, min(self.slowest, budget * MOST_OF_BUDGET))

    def claim_ids(self, batch_size: int, settle_interval: float) -> int:
        """How many ids to claim, so that what is finished waits about `settle_interval` for its acknowledgement."""
        if self.mean is None:
            return batch_size
        batches = int(settle_interval / max(self.mean, 1e-9))
        return batch_size * max(1, min(batches, MAX_IDS // batch_size))

    def beside(self, batch_size: int, settle_interval: float, concurrency: int) -> int:
        """How many ids to have in flight, so that each slot has its next batch while what ended is acknowledged."""
        spare = 0 if self.mean is None else int(concurrency * settle_interval / max(self.mean, 1e-9))
        return batch_size * max(concurrency, min(concurrency + spare, MAX_IDS // batch_size))

    def hinder(self) -> "Hindrances":
        """The notes of what kept drains from their work, for one more."""
        from lowkiq_lambda.engine.hindrances import Hindrances  # noqa: PLC0415 - imported lazily: few drains are kept from it

        self.hindrances = self.hindrances or Hindrances()
        return self.hindrances

    def dump(self, ahead: float = 0.0) -> str:
        """The form that Redis stores, for the first batch of a cold start, and for operators.

        `ahead`: seconds by which the server's clock, which all its times are by, is ahead of this process's.
        """
        seen_at = max(0.0, self.seen_at + ahead)
        plain = f"{self.mean or 0.0:.6f} {self.slowest:.6f} {self.usual:.6f} {seen_at:.3f}"
        tuned = f" {self.calls} {self.ids}" if self.calls or self.ids else ""
        if self.hindrances is None:
            return plain + tuned
        unused, until, stalls, stalled, stalled_at = msgspec.structs.astuple(self.hindrances)
        until, stalled_at = max(0.0, until + ahead), max(0.0, stalled_at + ahead)
        return f"{plain} {unused:.3f} {until:.3f} {stalls} {stalled:.3f} {stalled_at:.3f}{tuned}"

    def adopt(self, dumped: str, ahead: float = 0.0) -> None:
        """Take over what other processes measured, if this one has measured nothing yet, and what hindered them.

        Behind an @ it may say from when on (Unix seconds) measurements count: others are forgotten, also by processes
        that made them. `ahead`: as in `dump`.
        """
        dumped, _, since = dumped.partition("@")
        stored = BatchTiming()
        if dumped:
            numbers = [float(number) for number in dumped.split()]
            mean, slowest, usual, seen_at = numbers[:_PLAIN]
            stored = BatchTiming(mean, slowest, usual, seen_at - ahead)
            if len(numbers) in _TUNED:
                *numbers, calls, ids = numbers
                stored.calls, stored.ids = int(calls), int(ids)
            if numbers[_PLAIN:]:
                unused, until, stalls, stalled, stalled_at = numbers[_PLAIN:]
                kind = type(stored.hinder())
                stored.hindrances = kind(unused, until - ahead, int(stalls), stalled, stalled_at - ahead)
        if since:
            self._forget_until(float(since) - ahead)
            stored._forget_until(float(since) - ahead)
        if self.mean is None:
            self.mean, self.slowest, self.usual, self.seen_at = msgspec.structs.astuple(stored)[:_PLAIN]
            self.calls, self.ids = stored.calls, stored.ids
        if stored.hindrances is not None:
            self.hinder().join(stored.hindrances)

    def _forget_until(self, at: float) -> None:
        if self.seen_at <= at:
            self.mean, self.slowest, self.usual, self.seen_at = None, 0.0, 0.0, 0.0
            self.calls = self.ids = 0
            if self.hindrances is not None:
                self.hindrances.unused = self.hindrances.unused_until = 0.0

    @classmethod
    def of(cls, dumped: str) -> "BatchTiming":
        """As it was dumped. Raises ValueError for anything else."""
        timing = cls()
        timing.adopt(dumped)
        hindrances = () if timing.hindrances is None else msgspec.structs.astuple(timing.hindrances)
        numbers = [*msgspec.structs.astuple(timing)[:_PLAIN], *hindrances, timing.calls, timing.ids]
        if not all(0 <= (number or 0.0) < math.inf for number in numbers):
            raise ValueError(dumped)
        return timing


def _never() -> bool:
    return False


def _ignore() -> None:
    pass


class Budget:
    """Time for a drain. `seconds` from now on; without, only the stop signal ends it.

    `stopping` is asked before each batch, `turn_over` before each claim: another shard may be waiting. `before_claim`
    is called before the last request of a claim, which claims more or ends the visit.
    """

    def __init__(
        self,
        clock: Clock,
        seconds: float = math.inf,
        *,
        stopping: Callable[[], bool] = _never,
        turn_over: Callable[[], bool] = _never,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._ends_at = clock.monotonic() + seconds
        self.stopping = stopping
        self.turn_over = turn_over
        self.before_claim: Callable[[], None] = _ignore
        self.is_hard = False
        """Whether what runs when the time is over is cancelled, as far as it can be."""
        self.is_unattended = False
        """Whether the process runs without a terminal: a handler's KeyboardInterrupt is its own, as `sys.exit` is."""
        self.is_cancelled: Callable[[], bool] = _never
        """Whether what runs is to be cancelled, as far as it can be, before."""
        self.patience = 0.0
        """Seconds for which it is waited for a permit of a limited queue, at most; infinity: its owner is rung."""
        # Taken once, by the first batch; a lock, as it is shared with the copies that are made for visits at once.
        self._ran = Lock()

    def for_turn(self, is_over: Callable[[], bool], before_claim: Callable[[], None] = _ignore) -> "Budget":
        """The same budget for a visit that others wait for: it ends at a claim when `is_over` is true."""
        turn = copy(self)
        turn.turn_over, turn.before_claim = is_over, before_claim
        return turn

    def exit_of(self, error: BaseException) -> BaseException:
        """The exit of a handler; if the process runs without people at a terminal, Ctrl-C is the handler's own exit."""
        if not (self.is_unattended and is_a(error, KeyboardInterrupt)):
            return error
        own = SystemExit(type_name(error))
        own.__cause__ = error
        return own

    def remaining(self) -> float:
        """Seconds that are left; never below 0."""
        return max(0.0, self._ends_at - self._clock.monotonic())

    def try_one(self) -> bool:
        """Whether one id is tried though it is not predicted to fit: nothing has been started yet. True once."""
        return self.remaining() > 0 and self._ran.acquire(blocking=False)

    def note_batch(self) -> None:
        """A batch has been started on this budget."""
        # For each batch: looking is cheap.
        if not self._ran.locked():
            self._ran.acquire(blocking=False)

    def fits_for(self, timing: BatchTiming) -> float:
        """Seconds for which batches that take less than MOMENT may begin without another look at the time.

        Until then the longest of them is all by which the prediction may have grown.
        """
        return self.remaining() - max(timing.predicted_at_most(self._seconds), MOMENT)

    def prediction(self, timing: BatchTiming) -> float:
        """The most seconds that the next batch, or item, is expected to take; it begins if more are left."""
        return timing.predicted(self._clock.time(), self._seconds)

    def against_batch(self, predicted: float) -> StopReason | None:
        """Why no further batch may start, or None; `predicted` is how long it would take, in seconds."""
        if self.stopping():
            return "stopping"
        return "out of time" if predicted >= self.remaining() else None

    def against_next(self, timing: BatchTiming) -> StopReason | None:
        """Why the next batch, or item, of such a timing may not start, or None."""
        if self.stopping():
            return "stopping"
        remaining = self.remaining()
        if timing.predicted_at_most(self._seconds) < remaining:
            return None
        return "out of time" if self.prediction(timing) >= remaining else None

    def misled_by(self, timing: BatchTiming) -> "Hindrances | None":
        """Notes what is left unused of this budget, if that is much, and one batch far slower than usual is why.

        That was before this budget began: a slow batch of its own leaves little time, whether or not more waits.
        """
        now, left = self._clock.time(), self.remaining()
        least, predicted = self._seconds * _MISLEADS_FROM, timing.predicted(now, self._seconds)
        if not least <= left <= predicted or predicted < _TIMES_USUAL * timing.usual:
            return None
        # The time in its middle is a whole half of it away from the beginning, whatever clocks differ by.
        if timing.seen_at - timing.slowest / 2 > now - (self._seconds - left):
            return None
        hindrances = timing.hinder()
        lasts = math.log(timing.slowest_at(now) / least) / -math.log(_DECAY)
        hindrances.unused, hindrances.unused_until = left, now + lasts
        return hindrances

    def against_claim(self, predicted: float) -> StopReason | None:
        """Why nothing more may be claimed, or None."""
        return self.against_batch(predicted) or ("turn over" if self.turn_over() else None)


class VisitResult(msgspec.Struct, frozen=True):
    """How a visit ended: why, ids by outcome, the lease's token, when the shard is worth another look.

    `exit`: what a handler exited with, at last; its jobs were given back. `predicted`, with "out of time": for how many
    seconds a further batch was expected to run.
    """

    reason: StopReason
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    token: int | None = None
    until: float | None = None
    exit: BaseException | None = None
    predicted: float | None = None

    def after(self, earlier: "VisitResult") -> "VisitResult":
        """Two visits as one: how this one ended, and what both did."""
        counts, token = earlier.counts + self.counts, self.token or earlier.token
        return replace(self, counts=counts, token=token, exit=earlier.exit if self.exit is None else self.exit)


def budget_for(clock: Clock, seconds: float | None, config: Config, **options: Callable[[], bool]) -> Budget:
    """The budget of a drain of all queues of an app; without `seconds` as the settings say. Raises ValueError."""
    value: object = seconds
    # NaN is not equal to itself; `math.isnan` takes no int that no float holds.
    if value is not None and (not isinstance(value, int | float) or value != value):  # noqa: PLR0124 - as NaN does
        kind = ValueError if isinstance(value, float) else TypeError
        raise kind(f"seconds must be a number, not {value!r}: a drain visits all queues of the app.")
    limit = config.visit_seconds if seconds is None else seconds
    return Budget(clock, math.inf if limit > sys.float_info.max else max(limit, 0.0), **options)
