"""How many calls a holder makes side by side, and how many ids each has, where a worker leaves both to the library.

Nothing moves, so the holder decides alone, by what it has just measured. The present numbers lie with the mean time of
a batch, and the next holder goes on from them. All else is forgotten with the process.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from time import process_time
from typing import Any, Final, Self

import msgspec

from lowkiq_lambda.declare.worker import Worker, is_coroutine
from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.settings.config import Config

logger = logging.getLogger(__name__)

FEWEST: Final = 8
"""Ends in a window, and two for each slot: fewer tell nothing."""
FULL: Final = 0.8
"""The share of the slots' time in calls, from which on they count as full: the rest is for claims between them."""
IDLE: Final = 0.5
"""The share below which slots are too many."""
FALL: Final = 0.9
"""So many times as many ends a slot, or fewer, are a fall: less is within what loads change."""
SLOWER: Final = 1.5
"""So many times as long as the floor of the hour a call takes, and the service behind it has had enough."""
COMPUTES: Final = 0.5
"""The share of computing in a call, above which calls would wait for a processor."""
FAILS: Final = 0.5
"""The share of failed ids, above which what fails is behind all of them."""
REST: Final = 60.0
"""Seconds after a step back: what it does has to be seen."""
HOUR: Final = 3_600.0
DAY: Final = 86_400.0

KEPT: Final = 200
"""Calls that are fitted."""
LOOK: Final = 50
"""Calls from one fit to the next."""
OVERHEAD: Final = 0.1
"""The share of a call's fixed time in that of its ids, at most."""
LONGEST: Final = 1.0
"""Seconds that the ids of a call take, at most."""
OF_TARGET: Final = 0.1
"""The share of the lag that may be, and of the lease, which a call takes at most."""
STEADY: Final = 0.25
"""A change of the batch size by less is chance."""


class Window(msgspec.Struct):
    """Calls since the last look: how long they took, how many ids they had, and what the slots had to do."""

    count: int = 0
    took: float = 0.0
    squares: float = 0.0
    ids: int = 0
    ended: int = 0
    failed: int = 0
    busy: float = 0.0
    room: float = 0.0
    """Seconds of all slots."""

    @property
    def mean(self) -> float:
        """Seconds of a call."""
        return self.took / self.count

    @property
    def error(self) -> float:
        """Twice the standard error of the mean: chance seldom makes more."""
        variance = max(0.0, self.squares / self.count - self.mean**2)
        return 2 * math.sqrt(variance / self.count)

    @property
    def fill(self) -> int:
        """The ids of a call, by powers of two: only calls of one fill are compared."""
        return round(self.ids / self.count).bit_length()

    @property
    def load(self) -> float:
        """The share of the slots' time in calls."""
        return self.busy / self.room if self.room > 0 else 0.0

    @property
    def is_failing(self) -> bool:
        """Whether most of it fails, and not by chance."""
        return self.failed >= FEWEST / 2 and self.failed > FAILS * self.ended


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a settling tells: seconds of calls that ended, and those of its slots since the one before.

    `ended`, `failed`: ids. `is_short`: whether more was due than the claim had room for; None: nothing was claimed.
    `computing`: the share of it in calls; None: not measured.
    """

    at: float
    busy: float
    room: float
    ended: int
    failed: int
    is_short: bool | None = None
    computing: float | None = None


class CallsTuner:
    """How many calls side by side. A pure function of what it is told, with the times."""

    def __init__(self, least: int, most: int) -> None:
        self.most = most
        self.least = self.calls = min(least, most)
        self._window, self._minute = Window(), Window()
        self._minute_at: float | None = None
        self._before: tuple[int, float] | None = None
        """Fill and mean of the window before the last rise."""
        self._floors: dict[int, tuple[float, float]] = {}
        """By fill: the least that a call surely took at most, and when that was."""
        self._rests_until = self._halved_until = -math.inf
        """When it may rise again, and when it may be halved again."""
        self._is_short = False
        self._computing = 0.0
        self._told_at = -math.inf

    def resume(self, calls: int) -> None:
        """Go on from so many; 0: from the least."""
        self.calls = max(self.least, min(calls, self.most))

    def note(self, ids: int, took: float) -> None:
        """A call ended well."""
        window = self._window
        window.count, window.ids = window.count + 1, window.ids + ids
        window.took, window.squares = window.took + took, window.squares + took * took

    def settled(self, settled: Settled) -> bool:
        """Look at the window if it has enough; whether the bound is in the way, which is told once a day."""
        now = settled.at
        for window in (self._window, self._minute):
            window.busy, window.room = window.busy + settled.busy, window.room + settled.room
            window.ended, window.failed = window.ended + settled.ended, window.failed + settled.failed
        self._is_short = self._is_short if settled.is_short is None else settled.is_short
        self._computing = self._computing if settled.computing is None else settled.computing
        if self._window.is_failing:
            self._halve(now)
        self._look_at_minute(now)
        if self._window.count < max(FEWEST, 2 * self.calls):
            return False
        window, self._window = self._window, Window()
        return self._judge(window, now)

    def _judge(self, window: Window, now: float) -> bool:
        floor = self._floor(window, now)
        if floor is not None and window.mean - window.error > SLOWER * floor:
            self._halve(now)
            return False
        if self._has_fallen(window):
            self._step(-1)
            self._before, self._rests_until = None, now + REST
            return False
        if now < self._rests_until or window.load < FULL or not self._is_short or self._computing > COMPUTES:
            return False
        if self.calls < self.most:
            self._before = window.fill, window.mean
            self._step(1)
            return False
        if now - self._told_at < DAY:
            return False
        self._told_at = now
        return True

    def _floor(self, window: Window, now: float) -> float | None:
        floor, at = self._floors.get(window.fill, (math.inf, -math.inf))
        surely = window.mean + window.error
        if surely < floor or now - at > HOUR:
            self._floors[window.fill] = surely, now
        return None if now - at > HOUR else floor

    def _has_fallen(self, window: Window) -> bool:
        if self._before is None or self._before[0] != window.fill:
            return False
        mean = self._before[1]
        return window.mean * FALL > mean and window.mean - window.error > mean

    def _look_at_minute(self, now: float) -> None:
        if self._minute_at is None:
            self._minute_at = now
        if now - self._minute_at < REST:
            return
        if self._minute.load < IDLE:
            self._step(-1)
        self._minute, self._minute_at = Window(), now

    def _halve(self, now: float) -> None:
        if now >= self._halved_until:
            self._step(-(self.calls - self.calls // 2))
        self._before, self._window = None, Window()
        self._rests_until = self._halved_until = now + REST

    def _step(self, by: int) -> None:
        self.calls = min(self.most, max(self.least, self.calls + by))
        self._window = Window()


class Fit(msgspec.Struct, frozen=True):
    """A call takes `fixed` seconds, and `each` for an id."""

    fixed: float
    each: float

    @classmethod
    def of(cls, calls: Sequence[tuple[int, float]]) -> "Fit | None":
        """The line through calls with ids and seconds; None if all have as many ids."""
        if not calls:
            return None
        ids, took = (sum(values) / len(calls) for values in zip(*calls, strict=True))
        spread = sum((each - ids) ** 2 for each, _ in calls)
        if not spread:
            return None
        each = max(0.0, sum((one - ids) * (seconds - took) for one, seconds in calls) / spread)
        return cls(max(0.0, took - each * ids), each)

    def ids(self, longest: float, most: int) -> int:
        """The fewest ids beside which the fixed time is little, and that do not take longer than that."""
        if not self.each:
            return most if self.fixed else 1
        # Rounded, so that no last digit of a float makes an id more.
        wanting = math.ceil(round(self.fixed / (OVERHEAD * self.each), 6))
        return max(1, min(wanting, int(longest / self.each), most))


class IdsTuner:
    """How many ids a call has. A pure function of what it is told, with the times."""

    def __init__(self, auto: Auto, lease: float) -> None:
        self.least, self.most = auto.least, auto.most
        self.ids = self.least
        self._longest = min(LONGEST, OF_TARGET * auto.lag, OF_TARGET * lease)
        self._calls: deque[tuple[int, float]] = deque(maxlen=KEPT)
        self._new = 0
        self._has_fit = False
        self._hurt_at = -math.inf
        self._window = Window()

    def note(self, ids: int, took: float) -> None:
        """A call ended well."""
        self._calls.append((ids, took))
        self._new += 1

    def resume(self, ids: int) -> None:
        """Go on from so many; 0: from the least."""
        self.ids = self._within(ids)

    def hurt(self, at: float) -> None:
        """Ids were left by a holder that died: larger calls would make suspects of more of them."""
        self._hurt_at = at

    def settled(self, settled: Settled) -> None:
        """Fit anew after so many calls."""
        window = self._window
        window.ended, window.failed = window.ended + settled.ended, window.failed + settled.failed
        if window.is_failing:
            self._hurt_at = settled.at
        if window.ended >= LOOK:
            self._window = Window()
        if self._new < LOOK:
            return
        self._new = 0
        ids = self._next()
        if ids > self.ids and settled.at - self._hurt_at <= HOUR:
            return
        if abs(ids - self.ids) > STEADY * self.ids:
            self.ids = ids

    def _next(self) -> int:
        fit = Fit.of(self._calls)
        if fit is None:
            # The line through calls of one size is not known: once, another size is tried.
            other = self.ids * 2 if self.ids <= self.least else self.ids // 2
            return self.ids if self._has_fit else self._within(other)
        self._has_fit = True
        return self._within(min(fit.ids(self._longest, self.most), 2 * self.ids))

    def _within(self, ids: int) -> int:
        return max(self.least, min(ids, self.most))


class Tuning:
    """Both of one queue in a process. The visits to its shards share it, in several threads."""

    def __init__(
        self,
        queue_name: str,
        timing: BatchTiming,
        calls: CallsTuner | None,
        ids: IdsTuner | None,
        processor: Callable[[], float] | None = None,
    ) -> None:
        self._queue_name, self._timing = queue_name, timing
        self._calls, self._ids = calls, ids
        self._lock = Lock()
        self._processor = processor
        """Seconds of the process: coroutines share a thread, so that a thread cannot tell those of one."""
        self._worked = 0.0 if processor is None else processor()
        self._has_begun = False

    @classmethod
    def of(cls, worker: type[Worker[Any]], timing: BatchTiming, config: Config) -> Self:
        """For a worker that leaves a number to the library."""
        calls = ids = None
        if isinstance(auto := worker.concurrency, Auto):
            # Pools are made once, for all threads.
            calls = CallsTuner(auto.least, min(auto.most, max(1, config.calls_at_once // config.threads_per_node)))
        if isinstance(auto := worker.batch_size, Auto):
            ids = IdsTuner(auto, config.lease_ttl)
        return cls(worker.queue_name, timing, calls, ids, process_time if is_coroutine(worker) else None)

    @property
    def calls(self) -> int | None:
        """How many calls side by side; None if the worker says that itself."""
        return None if self._calls is None else self._calls.calls

    @property
    def ids(self) -> int | None:
        """How many ids in a call; None if the worker says that itself."""
        return None if self._ids is None else self._ids.ids

    def acquired(self, at: float, *, is_recovery: bool) -> None:
        """A shard is held from now on (monotonic): go on from what another process has come to, if this one has not.

        `is_recovery`: whether its holder died.
        """
        with self._lock:
            if self._calls is not None and not self._has_begun:
                self._calls.resume(self._timing.calls)
            if self._ids is not None and not self._has_begun:
                self._ids.resume(self._timing.ids)
            if self._ids is not None and is_recovery:
                self._ids.hurt(at)
            self._has_begun = True

    def note(self, ids: int, took: float) -> None:
        """A call with so many ids ended well after so many seconds."""
        with self._lock:
            if self._calls is not None:
                self._calls.note(ids, took)
            if self._ids is not None:
                self._ids.note(ids, took)

    def settled(self, settled: Settled) -> None:
        """Outcomes were written: decide, and keep it with the timing."""
        with self._lock:
            if self._processor is not None:
                worked = self._processor()
                share = (worked - self._worked) / settled.busy if settled.busy > 0 else None
                settled, self._worked = msgspec.structs.replace(settled, computing=share), worked
            if self._calls is not None:
                if self._calls.settled(settled):
                    text = "%s: concurrency stays at its bound of %d, though slots are full and more is due"
                    logger.info(text, self._queue_name, self._calls.calls)
                self._timing.calls = self._calls.calls
            if self._ids is not None:
                self._ids.settled(settled)
                self._timing.ids = self._ids.ids
