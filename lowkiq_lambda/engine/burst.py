"""A drain that is the overflow and the safety net of daemons: `Config.burst_after`.

It visits a shard whose oldest due job has waited for so many seconds without a holder. A daemon takes such a shard
within its poll interval, so work that is as old shows that no daemon has a thread for it, or that none lives. Where a
daemon has come back meanwhile, the drain gives way to it at the end of a turn.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

import msgspec

from lowkiq_lambda.base.errors import BackendError, LowkiqError
from lowkiq_lambda.engine.board import TURN
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.loop import Loop, Wait
from lowkiq_lambda.store.shard.heartbeats import known_processes
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

LOOK: Final = 5.0
"""Seconds for which a look at the processes holds: daemons tell every ten what they do."""
POLLS: Final = 2
"""Poll intervals for which a shard is left to a daemon that has nothing to do."""


class BurstLoop(Loop):
    """Fills while it runs, as any drain does; what it leaves to daemons is empty to it."""

    def __init__(
        self, drainer: Drainer, select: Callable[[], Sequence[ShardRef]], *, after: float, at_once: int = 1
    ) -> None:
        """`after`: seconds that a shard's oldest due job has to wait without a holder before the shard is visited."""
        super().__init__(drainer, select, at_once=at_once)
        self._after = after
        self._given_way: dict[ShardRef, float] = {}
        """Until when shards are left to a daemon that has nothing to do (monotonic)."""
        self._believes = True
        """Whether no daemon has said that it has nothing to do, and then let a shard lie."""
        self._idle = False
        self._looked_at = -LOOK
        self._lock = Lock()

    def _due(self, budget: Budget) -> ShardRef | None:
        if not self.has_probed_last:
            # What is left behind a visit may be younger than what it found.
            self.stale_at = self.drainer.clock.monotonic()
        return super()._due(budget)

    def _await_more(self, budget: Budget, wait: Wait | None) -> bool:
        if self._given_way and self.has_probed_last and not self._under_way:
            clock = self.drainer.clock
            seconds = max(0.0, min(self._given_way.values()) - clock.monotonic())
            if seconds >= budget.remaining():
                return False
            clock.sleep(seconds)
            self.probe(budget)
            # A shard that the probe has not reached is waited for no more: the next wait would take no time.
            now = clock.monotonic()
            self._given_way = {shard: until for shard, until in self._given_way.items() if until > now}
            return True
        return super()._await_more(budget, wait)

    def _note_probe(self, results: Mapping[ShardRef, ProbeResult | LowkiqError], event: int) -> None:
        super()._note_probe(
            {
                shard: result if isinstance(result, LowkiqError) or self._takes(result) else _left(result)
                for shard, result in results.items()
            },
            event,
        )

    def _takes(self, result: ProbeResult) -> bool:
        """Whether the shard is for this drain: its work is old enough, and no daemon is waited for."""
        if not result.has_work or result.lag < self._after:
            self._given_way.pop(result.ref, None)
            return False
        left_until = self._given_way.get(result.ref)
        if left_until is None:
            return True
        if self.drainer.clock.monotonic() < left_until:
            return False
        # It may be of another app, or has no connection to Redis.
        self._believes = False
        del self._given_way[result.ref]
        return True

    def _turn(self) -> Callable[[], bool]:
        clock, others_wait = self.drainer.clock, super()._turn()
        over_at = clock.monotonic() + TURN
        return lambda: others_wait() or (clock.monotonic() >= over_at and self._has_idle_daemon())

    def _note_visit(self, shard: ShardRef, result: VisitResult) -> None:
        super()._note_visit(shard, result)
        if result.reason == "turn over" and self._has_idle_daemon():
            rest = POLLS * self.drainer.config.poll_interval
            self._given_way[shard] = self.drainer.clock.monotonic() + rest

    def _has_idle_daemon(self) -> bool:
        """Whether a daemon lives that has a thread without work, as of some seconds ago."""
        if not self._believes:
            return False
        with self._lock:
            now = self.drainer.clock.monotonic()
            if now - self._looked_at >= LOOK:
                self._looked_at, self._idle = now, self._look()
            return self._idle

    def _look(self) -> bool:
        try:
            processes = known_processes(self.drainer.backend, 0.0)
        except BackendError:
            return False
        able = [one for one in processes if one.kind == "daemon" and not (one.is_gone or one.quiet)]
        return any(len(one.doing) < one.threads for one in able)


def _left(result: ProbeResult) -> ProbeResult:
    """As of a shard that has nothing for this drain, neither now nor at a time that is known."""
    obstacle = result.obstacle or "empty"
    return msgspec.structs.replace(result, has_work=False, ready_in=None, next_at=None, obstacle=obstacle)
