"""A drain of several shards by one thread: a loop with a budget, and the report of what came of it."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import STOP_REASONS, Budget, StopReason
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.shard_queue import CHECKS, Rests
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.errors import BackendError, LowkiqError, QueueMismatch
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult


class Drain:
    """Fills while it runs; may run again, to go on."""

    def __init__(self, drainer: Drainer, shards: Iterable[ShardRef]) -> None:
        config = drainer.config
        self.drainer = drainer
        self.shards: Sequence[ShardRef] = tuple(shards)
        self.board = ShardBoard(self.shards, drainer.clock, config.poll_interval, Rests.of_drain(config.poll_interval))
        self.counts: Counter[str] = Counter()
        """Ids by outcome."""
        self.reasons: dict[ShardRef, StopReason] = {}
        """Why each shard was left, as of late."""
        self.errors: dict[ShardRef, LowkiqError] = {}
        """What keeps shards from being drained: of those that were not drained since."""
        self.exits: dict[ShardRef, BaseException] = {}
        """What ended handlers without being a failure (SystemExit): the last of each shard."""
        self.lags_at_start: Mapping[ShardRef, float] | None = None
        self.lags: dict[ShardRef, float] = {}
        """Seconds that the oldest due job of each had waited at the last probe."""
        self.has_probed_last = False
        """Whether nothing was visited since the last probe."""
        self.probed_at = -math.inf
        self.on_first_probe: Callable[[Drain], object] = _ignore
        """Called before anything is visited."""
        self.is_notified = False
        """Whether the board is told of pushes, so that fewer probes are needed."""
        self._work: dict[ShardRef, None] = {}
        self.stale_at = -math.inf
        """When the last probe has told enough (monotonic)."""
        self._unanswered: set[ShardRef] = set()
        """Shards that failed, and that no probe has reached since: a visit would keep the others waiting."""

    @property
    def reason(self) -> StopReason:
        """Why it ended: of the shards' reasons the one that says most about what is left; "empty" comes last."""
        return min(self.reasons.values(), key=STOP_REASONS.index, default="empty")

    @property
    def left(self) -> list[ShardRef]:
        """The shards that had work when it ended, and nobody who does it."""
        return list(self._work)

    def run(self, budget: Budget, wait: "Wait | None" = None) -> "Drain":
        """Visit shards, the most lagging first, until nothing is due or the budget ends.

        Where nothing is due `wait` is called, and the drain goes on if it says so. An error of one shard does not stop
        the others: it is in the report.
        """
        self.board.put_off_risk(budget.remaining())
        try:
            self._run(budget, wait)
        finally:
            self.drainer.history.flush()
        return self

    def probe(self, budget: Budget) -> None:
        """Ask what there is to do, in one round trip for each node; shards that just failed are left alone."""
        clock, board, config = self.drainer.clock, self.board, self.drainer.config
        # Only at first: later, what is out of reach would keep the others waiting.
        retry_for = 0.0 if self.reasons else min(config.retry_for, budget.remaining())
        asked, asked_at = board.events, clock.monotonic()
        found = self.drainer.probe_each(self.to_probe(), retry_for)
        self.probed_at = clock.monotonic()
        # Probing very many shards takes its time: nine tenths are for the work.
        interval = config.poll_interval / (1 if self.is_notified else CHECKS)
        self.stale_at = self.probed_at + max(interval, 9 * (self.probed_at - asked_at))
        self._note_probe(found, asked)

    def to_probe(self) -> list[ShardRef]:
        """The shards that are worth a probe: all but those that just failed."""
        return [shard for shard in self.shards if not (shard in self.errors and self.board.is_resting(shard))]

    def _run(self, budget: Budget, wait: "Wait | None") -> None:
        while not (reason := budget.against_batch(0.0)):
            if self.drainer.clock.monotonic() >= self.stale_at or not all(map(self.board.is_resting, self._unanswered)):
                self.probe(budget)
            if shard := self.board.next():
                self._visit(shard, budget)
            elif not (self.has_probed_last or self.is_notified):
                self.probe(budget)
            elif not (wait and wait(self, budget)):
                return
        self._end(reason)

    def _visit(self, shard: ShardRef, budget: Budget) -> None:
        self.has_probed_last = False
        try:
            result = self.drainer.visit(shard, budget.for_turn(self.board.turn()))
            ready_in = self.drainer.ready_in(shard, result)
        except (BackendError, QueueMismatch) as error:
            self._fail(shard, error)
        else:
            self.board.visited(shard, result, ready_in)
            self._note_visit(shard, result)

    def _fail(self, shard: ShardRef, error: LowkiqError) -> None:
        self.errors[shard] = error
        self.reasons[shard] = "failed"
        self._work.pop(shard, None)
        self.board.failed(shard, error)
        self._unanswered.add(shard)

    def _note_visit(self, shard: ShardRef, result: DrainResult) -> None:
        self.counts += result.counts
        self.reasons[shard] = result.reason
        self.errors.pop(shard, None)
        if result.exit is not None:
            self.exits[shard] = result.exit
        elif result.reason == "out of time":
            # No further batch of this queue is predicted to fit; one of another queue may.
            siblings = {one for one in self.shards if one.queue_name == shard.queue_name}
            self.board.exclude(siblings)
            self.reasons.update(dict.fromkeys(self._work.keys() & siblings, result.reason))
        if result.reason in ("empty", "held", "paused"):
            self._work.pop(shard, None)

    def _note_probe(self, found: Mapping[ShardRef, ProbeResult | LowkiqError], asked: int) -> None:
        self.board.update((result for result in found.values() if isinstance(result, ProbeResult)), asked)
        for shard, result in found.items():
            if isinstance(result, ProbeResult):
                self._note_result(result)
            else:
                self._fail(shard, result)
        self.has_probed_last = True
        if self.lags_at_start is None:
            self.lags_at_start = dict(self.lags)
            self.on_first_probe(self)

    def _note_result(self, result: ProbeResult) -> None:
        shard = result.ref
        self.lags[shard] = result.lag
        self._unanswered.discard(shard)
        if result.obstacle is None:
            self._work[shard] = None
            return
        self._work.pop(shard, None)
        self.errors.pop(shard, None)
        if self.reasons.get(shard) != "lease lost":
            # That this holder lost the shard says more about it than what others have made of it since.
            self.reasons[shard] = result.obstacle

    def _end(self, reason: StopReason) -> None:
        """The budget is over: what has work, or was never probed, was left for that reason."""
        # There what is left has exited: more time would not help.
        left = [shard for shard in self._work if self.reasons.get(shard) != "exited"]
        self.reasons.update(dict.fromkeys(left, reason))
        self.reasons = {**dict.fromkeys(self.shards, reason), **self.reasons}


Wait: TypeAlias = Callable[[Drain, Budget], bool]
"""Waits, where nothing is due now; whether the drain is to go on."""


def _ignore(_drain: Drain) -> None:
    pass
