"""A queue whose counters are recorded rather than made, on a clock that is a number: the rule, minute for minute."""

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec.structs import replace

from lowkiq_lambda import Auto
from lowkiq_lambda.operate.auto.facts import AutoFacts, load_of, rises_of
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.operate.auto.rule import Fine, Proposal, Unmoved, decide
from lowkiq_lambda.operate.lateness.causes import failures, judge
from lowkiq_lambda.operate.lateness.kept import KEPT
from lowkiq_lambda.operate.lateness.minutes import Present
from lowkiq_lambda.operate.lateness.samples import Sample, ShardSample, minute_between
from lowkiq_lambda.store.shard.layout import Layout, settled

if TYPE_CHECKING:
    from lowkiq_lambda.views.auto import AutoMove

MINUTE: Final = 60.0
BOUNDS: Final = Auto(least=5, most=80, lag=5.0)


class MinuteOf(NamedTuple):
    """What a minute is like: the share of slots that were busy, of outcomes that failed, the lag at its end (s)."""

    busy: float = 0.97
    failed: float = 0.0
    lag: float = 300.0
    hot: float = 0.5
    waiting: int = 3_000
    is_known: bool = True
    falls: bool = False
    """Whether counters fall, as after a failover that lost writes."""


CALM: Final = MinuteOf(busy=0.2, lag=0.0, waiting=0)
FULL: Final = MinuteOf()


class Recorded:
    """Plays minutes; `moves` are those that the rule has made by itself."""

    def __init__(self, bounds: Auto = BOUNDS, mode: Literal["propose", "act"] = "act") -> None:
        self.now = 1_800_000_000.0
        self.bounds, self.mode = bounds, mode
        self.layout = settled(bounds.least)
        self.memory = Memory()
        self.moves: list[AutoMove] = []
        self.failed_at = -1e9
        self._ended = self._failed = 0
        self._busy = 0.0
        self._samples: deque[Sample] = deque(maxlen=KEPT)

    @property
    def shards(self) -> int:
        """That the queue has."""
        return self.layout.after

    def minutes(self, count: int, like: MinuteOf = FULL) -> Proposal | Unmoved | Fine:
        """So many of them; the last verdict."""
        verdict: Proposal | Unmoved | Fine = Fine()
        for _ in range(count):
            verdict = self.minute(like)
        return verdict

    def minute(self, like: MinuteOf) -> Proposal | Unmoved | Fine:
        """One of them."""
        self.now += MINUTE
        if like.is_known:
            self._record(like)
        facts = self._facts(like)
        self.memory = self.memory.sees(self.layout, self.now).with_lag(self.now, like.lag).judged(self.now)
        if facts.failing:
            self.memory = replace(self.memory, failed_at=self.now)
            self.failed_at = self.now
        verdict = decide(facts, self.memory, lambda _to: None)
        if isinstance(verdict, Proposal) and not verdict.bars:
            self._move(verdict.to)
        return verdict

    def by_hand(self, to: int) -> None:
        """Somebody moves the queue."""
        self.layout = Layout(before=to, after=to, epoch=self.layout.epoch + 1, at=self.now)

    def _move(self, to: int) -> None:
        self.memory = self.memory.begins(self.now, self.shards, to)
        self.layout = Layout(before=to, after=to, epoch=self.layout.epoch + 1, at=self.now)
        self.memory = self.memory.sees(self.layout, self.now)
        self.moves.append(self.memory.moves[-1])

    def _record(self, like: MinuteOf) -> None:
        if like.falls:
            self._ended = self._failed = 0
            self._busy = 0.0
        ends = 100
        self._failed += round(ends * like.failed)
        self._ended += round(ends * (1 - like.failed))
        self._busy += MINUTE * like.busy
        calls = self._ended + self._failed
        shard = ShardSample(calls, self._busy, self._busy / max(like.busy, 0.01) * 0.98, like.lag, like.lag, 1)
        self._samples.append(
            Sample(
                at=self.now,
                shape=self.layout.shape,
                ended=self._ended,
                failed=self._failed,
                dead=0,
                payloads=self._ended,
                calls=calls,
                busy=self._busy * self.shards,
                computing=self._busy * self.shards / 2,
                held=self._busy,
                length=like.waiting,
                retries=0,
                held_back=0.0,
                cpu=0.4,
                cores=1.0,
                threads=80,
                shards=(shard,) * self.shards,
            )
        )

    def _facts(self, like: MinuteOf) -> AutoFacts:
        samples = [*self._samples]
        minutes = [minute_between(before, after, 1) for before, after in pairwise(samples)]
        if not like.is_known:
            minutes = []
        present = Present(limit=self.bounds.lag, shards=self.shards, hot=like.hot)
        usable = [minute for minute in minutes if minute is not None]
        verdict = judge([*[None] * 8, *minutes][-8:], present)
        is_late = like.lag > self.bounds.lag
        return AutoFacts(
            now=self.now,
            shards=self.shards,
            bounds=replace(self.bounds, unreplicated=True),
            mode=self.mode,
            is_late=is_late,
            cause=verdict.cause if is_late else None,
            minutes=verdict.minutes,
            looked=verdict.looked,
            lag=like.lag,
            rises=rises_of(self.memory.lags[-len(usable) :] if usable else ()),
            load=load_of(usable, 1, like.waiting),
            threads=80,
            ids=like.waiting,
            length=like.waiting,
            failing=any(failures(minute, present) for minute in usable),
        )
