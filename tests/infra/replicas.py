"""A scaler of Kubernetes over a day, as its documentation has the formula, and a queue whose shards it serves.

The scaler asks every 15 seconds. Up it goes at once; down it goes by so many pods in a period, to the largest number
that it has recommended within its window.
"""

import math
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

STEP: Final = 15.0
"""Seconds."""
DAY: Final = 86_400.0
TOLERANCE: Final = 0.1
"""Of the target: so far from it nothing changes."""


class Rules(NamedTuple):
    """What a manifest says. `look_back`: seconds of which the metric is the largest number; 0: the last one alone."""

    threads: float
    least: int
    most: int
    look_back: float
    window: float
    period: float
    step_down: int


class Largest:
    """The largest number of the last seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: deque[tuple[float, int]] = deque()

    def of(self, now: float, number: int) -> int:
        """With this one."""
        while self._kept and self._kept[-1][1] <= number:
            self._kept.pop()
        self._kept.append((now, number))
        while self._kept[0][0] <= now - max(self._seconds, STEP):
            self._kept.popleft()
        return self._kept[0][1]


class Scaler:
    """The pods that it wants."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._metric, self._recommended = Largest(rules.look_back), Largest(rules.window)
        self._went_down_at = -math.inf
        self.pods = rules.least

    def ask(self, now: float, wanted: int) -> None:
        """Look at the metric, and change the pods."""
        rules, metric = self._rules, self._metric.of(now, wanted)
        is_near = abs(metric / (self.pods * rules.threads) - 1) <= TOLERANCE
        desired = self.pods if is_near else math.ceil(metric / rules.threads)
        desired = max(rules.least, min(rules.most, desired))
        lowest = self._recommended.of(now, desired)
        if desired > self.pods:
            self.pods = min(desired, max(2 * self.pods, self.pods + 4))
        elif lowest < self.pods and now - self._went_down_at >= rules.period:
            self.pods, self._went_down_at = max(lowest, self.pods - rules.step_down), now


class ShardedLoad:
    """Shards with jobs of a second, served by the threads that there are; a shard is served by one thread."""

    def __init__(self, shards: int, seed: int) -> None:
        self._chance = Random(seed)
        self._left = [0.0] * shards
        self._gust = 1.0

    def step(self, now: float, threads: float) -> int:
        """Let a step pass; how many shards are held or have work."""
        chance = self._chance
        if now % 300 == 0:
            self._gust = max(0.3, chance.gauss(1.0, 0.15))
        load = min(0.95, (0.325 - 0.275 * math.cos(2 * math.pi * now / DAY)) * self._gust)
        room = threads * STEP
        for shard in sorted(range(len(self._left)), key=self._left.__getitem__, reverse=True):
            self._left[shard] += self._arrivals(load * STEP)
            served = min(self._left[shard], STEP, room)
            self._left[shard] -= served
            room -= served
        # A shard without a backlog is held for its share of the time.
        return sum(left > 0 or chance.random() < load for left in self._left)

    @property
    def longest(self) -> float:
        """Seconds of work in the fullest shard."""
        return max(self._left)

    def _arrivals(self, mean: float) -> int:
        least, number, product = math.exp(-mean), 0, self._chance.random()
        while product > least:
            number += 1
            product *= self._chance.random()
        return number


class Day(NamedTuple):
    """The pods at each step of a day, and for how many seconds a shard had more than half a minute of work."""

    pods: list[int]
    late: float

    @property
    def turns(self) -> int:
        """How often they went down after they had gone up, or up after down."""
        ways = [later > before for before, later in pairwise(self.pods) if later != before]
        return sum(later != before for before, later in pairwise(ways))


def second_day(rules: Rules, shards: int, seed: int) -> Day:
    """The second of two days: the first one fills the windows."""
    scaler, load = Scaler(rules), ShardedLoad(shards, seed)
    pods, late = [], 0.0
    for now in _steps():
        scaler.ask(now, load.step(now, scaler.pods * rules.threads))
        if now >= DAY:
            pods.append(scaler.pods)
            late += STEP * (load.longest > 30.0)
    return Day(pods, late)


def _steps() -> Iterator[float]:
    return (number * STEP for number in range(round(2 * DAY / STEP)))
