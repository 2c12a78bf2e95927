"""A drain of several shards: a loop with a budget, and its report.

One thread runs the loop and writes the report. It makes the visits itself, one after the other. If several visits may
run at once and more than one shard is due, each visit has a thread, and the loop waits for their ends.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from lowkiq_lambda.base.errors import BackendError, LowkiqError, QueueMismatch
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import STOP_REASONS, Budget, StopReason, VisitResult
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.engine.shard_queue import CHECKS, Rests
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

if TYPE_CHECKING:
    from lowkiq_lambda.engine.visits import VisitsAtOnce

Visited: TypeAlias = tuple[VisitResult, float | None]
"""How a visit ended, and in how many seconds its shard has work, if that is known."""


PATIENCE: Final = 5.0
"""Seconds in a row for which a drain that has nothing else to do waits for a permit of a limited queue, at most."""


class Loop:
    """Fills while it runs; may run again, to go on."""

    def __init__(self, drainer: Drainer, select: Callable[[], Sequence[ShardRef]], *, at_once: int = 1) -> None:
        """`select`: the shards to visit among the drainer's; called again if a queue is being resharded.

        `at_once`: how many shards are visited at the same time, at most.
        """
        config = drainer.config
        self.drainer = drainer
        self._select = select
        self._layout = drainer.layout
        self.shards: Sequence[ShardRef] = tuple(select())
        self.board = ShardBoard(self.shards, drainer.clock, config.poll_interval, Rests.of_drain(config.poll_interval))
        self.board.weigh(drainer.weights)
        self.counts: Counter[str] = Counter()
        """Ids by outcome."""
        self.reasons: dict[ShardRef, StopReason] = {}
        """Why each shard was left, as of late."""
        self.errors: dict[ShardRef, LowkiqError] = {}
        """The errors that keep shards from being drained: of those that were not drained since."""
        self.exits: dict[ShardRef, BaseException] = {}
        """The exceptions that ended handlers without being failures (SystemExit): the last of each shard."""
        self.lags_at_start: Mapping[ShardRef, float] | None = None
        self.lags: dict[ShardRef, float] = {}
        """Seconds that the oldest due job of each had waited at the last probe."""
        self.has_probed_last = False
        """Whether nothing was visited since the last probe."""
        self.probed_at = -math.inf
        self.on_first_probe: Callable[[Loop], object] = _ignore
        """Called before anything is visited."""
        self.before_probe: Callable[[Loop], object] = _ignore
        self.after_probe: Callable[[Loop], object] = _ignore
        """Called before and after each look, in the thread that runs the drain."""
        self.is_notified = False
        """Whether notifications of pushes reach the board, so that fewer probes are needed."""
        self._work: dict[ShardRef, None] = {}
        self.stale_at = -math.inf
        """When the last probe has told enough (monotonic)."""
        self._unanswered: set[ShardRef] = set()
        """Shards that failed, and that no probe has reached since: a visit would keep the others waiting."""
        self.predictions: dict[str, float] = {}
        """Of queues of which no further batch was predicted to fit: how many seconds one was expected to take."""
        self._patience = PATIENCE
        """The rest of the patience since the last progress."""
        self._most_at_once = at_once
        self._at_once = max(1, min(at_once, len(self.shards)))
        self._visits: VisitsAtOnce[Visited] | None = None

    @property
    def reason(self) -> StopReason:
        """Why it ended: of the shards' reasons the one that says most about what is left; "empty" comes last."""
        return min(self.reasons.values(), key=STOP_REASONS.index, default="empty")

    @property
    def left(self) -> list[ShardRef]:
        """The shards that had work, and no holder, when the drain ended."""
        return list(self._work)

    def run(self, budget: Budget, wait: "Wait | None" = None) -> Self:
        """Visit shards, the most urgent first, until no shard is due or the budget ends.

        If no shard is due, the loop calls `wait`, and goes on if that returns true. An error of one shard does not stop
        the others: it is in the report. No visit is under way after a return or an exception.
        """
        self.board.put_off_risk(budget.remaining())
        try:
            while not (reason := budget.against_batch(0.0)):
                if shard := self._due(budget):
                    self._visit(shard, budget)
                elif not self._await_more(budget, wait):
                    return self
            while self._under_way:
                self._note_ended()
            self._end(reason)
        except BaseException:
            if self._visits:
                self._visits.break_off()
            raise
        finally:
            self.drainer.history.flush()
        return self

    def totals(self) -> dict[str, int]:
        """Ids by outcome. Raises what a handler exited with, or what kept a shard from being drained."""
        for error in (*self.exits.values(), *self.errors.values()):
            raise error
        return dict(self.counts)

    def probe(self, budget: Budget) -> None:
        """Ask what there is to do, in one round trip for each node; shards that just failed are left alone."""
        clock, board, config = self.drainer.clock, self.board, self.drainer.config
        # Only at first: later, retries for an unreachable server would keep the other shards waiting.
        retry_for = 0.0 if self.reasons else min(config.redis_retry_for, budget.remaining())
        self.before_probe(self)
        event, asked_at = board.events, clock.monotonic()
        results = self.drainer.probe_each(self.to_probe(), retry_for)
        self.probed_at = clock.monotonic()
        # Probing very many shards takes its time: nine tenths are for the work.
        interval = config.poll_interval / (1 if self.is_notified else CHECKS)
        self.stale_at = self.probed_at + max(interval, 9 * (self.probed_at - asked_at))
        if self.drainer.layout != self._layout:
            self._follow()
            self.probe(budget)
            return
        self._note_probe(results, event)
        self.after_probe(self)

    def to_probe(self) -> list[ShardRef]:
        """The shards that are worth a probe: all but those that just failed, or are visited."""
        failed = {shard for shard in self.errors if self.board.is_resting(shard)}
        return [shard for shard in self.shards if shard not in failed and shard not in self._under_way]

    def _follow(self) -> None:
        """Go over to the shards that there are now, as a queue has been resharded, or is."""
        self._layout = self.drainer.layout
        self.shards = tuple(self._select())
        self._at_once = max(1, min(self._most_at_once, len(self.shards)))
        self.board.deal_anew(self.shards)
        for by_queue in (self._work, self.reasons, self.errors, self.lags):
            for shard in by_queue.keys() - set(self.shards):
                del by_queue[shard]

    @property
    def is_busy(self) -> bool:
        """Whether something runs, or would run next, as far as is known."""
        return bool(self._under_way) or self.board.others_have_work()

    @property
    def _under_way(self) -> Collection[ShardRef]:
        """The shards that other threads visit."""
        return self._visits.shards if self._visits else ()

    def _due(self, budget: Budget) -> ShardRef | None:
        """The shard to visit next, after a look if it is time for one; None if none is due, or enough are visited."""
        under_way = len(self._under_way)
        if under_way >= self._at_once:
            return None
        if self.drainer.clock.monotonic() >= self.stale_at or not all(map(self.board.is_resting, self._unanswered)):
            self.probe(budget)
        return self.board.next(beside=under_way > 0)

    def _await_more(self, budget: Budget, wait: "Wait | None") -> bool:
        """Wait until a visit ends, or a shard may be due; False if nothing more is waited for."""
        under_way = len(self._under_way)
        if under_way >= self._at_once:
            self._note_ended(budget.remaining())
        elif under_way:
            self._note_ended(min(self._seconds_until_more(), budget.remaining()))
        elif not (self.has_probed_last or self.is_notified):
            self.probe(budget)
        else:
            return self._wait_for_permit(budget) or (wait is not None and wait(self, budget))
        return True

    def _visit(self, shard: ShardRef, budget: Budget) -> None:
        """Visit the shard, in another thread if others are visited beside it, and note how that ended."""
        turn = budget.for_turn(self._turn(), partial(self.board.note_claim, shard))
        turn.patience = math.inf if self.is_notified else min(self._patience, budget.remaining())
        may_have_thread = bool(self._under_way) or (self._at_once > 1 and self.board.may_go_beside(shard))
        if may_have_thread and self._begin(shard, turn):
            return
        try:
            result = self.drainer.visit(shard, turn)
            ready_in = self.drainer.ready_in(shard, result)
        except (BackendError, QueueMismatch) as error:
            self._fail(shard, error)
        else:
            self._note_end(shard, result, ready_in)

    def _turn(self) -> Callable[[], bool]:
        """A visit begins: asked whether it ends at its next claim, though its shard has work."""
        return self.board.turn()

    def _begin(self, shard: ShardRef, budget: Budget) -> bool:
        """Start the visit in another thread; if there is none, there will be none later."""
        if self._visits is None:
            from lowkiq_lambda.engine.visits import VisitsAtOnce  # noqa: PLC0415 - imported lazily: cold start

            self._visits = VisitsAtOnce(self.drainer.slot_pool.threads)
        if self._visits.begin(shard, self._make_visit, budget):
            return True
        self._at_once = max(1, len(self._under_way))
        return False

    def _make_visit(self, shard: ShardRef, budget: Budget) -> Visited:
        result = self.drainer.visit(shard, budget)
        return result, self.drainer.ready_in(shard, result)

    def _wait_for_permit(self, budget: Budget) -> bool:
        """Wait until a limited queue may let a shard in; False, at once, if no sign shows that it does in time."""
        limited = [shard for shard, reason in self.reasons.items() if reason == "limited"]
        if self.is_notified or not limited:
            return False
        clock = self.drainer.clock
        wait = max(0.0, self.board.wait_until(limited) - clock.monotonic())
        if wait > min(self._patience, budget.remaining()):
            return False
        clock.sleep(wait)
        self._patience -= wait
        return True

    def _seconds_until_more(self) -> float:
        """Seconds until a shard without a visit may have work: by the clock, or by the next probe."""
        polls_at = max(self.stale_at, self.probed_at + self.drainer.config.poll_interval)
        return min(self.board.more_ready_at(), polls_at) - self.drainer.clock.monotonic()

    def _note_ended(self, seconds: float | None = None) -> None:
        """Note the visits in other threads that have ended; wait for one so long, or for ever."""
        for shard, end in self._visits.wait(seconds) if self._visits else ():
            try:
                result, ready_in = end()
            except (BackendError, QueueMismatch) as error:
                self._fail(shard, error)
            else:
                self._note_end(shard, result, ready_in, beside=True)

    def _note_end(self, shard: ShardRef, result: VisitResult, ready_in: float | None, *, beside: bool = False) -> None:
        """A visit has ended, `beside` others or alone."""
        self.has_probed_last = False
        self.board.visited(shard, result, ready_in)
        if beside and result.reason == "held" and result.token is not None:
            self.board.visit_alone(shard)
        self._note_visit(shard, result)

    def _fail(self, shard: ShardRef, error: LowkiqError) -> None:
        self.has_probed_last = False
        self.errors[shard] = error
        self.reasons[shard] = "failed"
        self._work.pop(shard, None)
        self.board.failed(shard, error)
        self._unanswered.add(shard)

    def _note_visit(self, shard: ShardRef, result: VisitResult) -> None:
        self.counts += result.counts
        if result.counts:
            self._patience = PATIENCE
        is_left = result.reason == "turn over" and shard.queue_name in self.predictions
        self.reasons[shard] = "out of time" if is_left else result.reason
        self.errors.pop(shard, None)
        if result.exit is not None:
            self.exits[shard] = result.exit
        elif result.reason == "out of time":
            # No further batch of this queue is predicted to fit; one of another queue may.
            self.predictions[shard.queue_name] = result.predicted or 0.0
            self.board.exclude(self._siblings(shard))
            self.reasons.update(dict.fromkeys(self._work.keys() & self._siblings(shard), result.reason))
        elif result.reason == "limited":
            self.reasons.update(dict.fromkeys(self._work.keys() & self._siblings(shard), result.reason))
        if result.reason in ("empty", "paused") or (result.reason == "held" and result.token is None):
            self._work.pop(shard, None)

    def _siblings(self, shard: ShardRef) -> set[ShardRef]:
        """The shards of its queue, itself too."""
        return {one for one in self.shards if one.queue_name == shard.queue_name}

    def _note_probe(self, results: Mapping[ShardRef, ProbeResult | LowkiqError], event: int) -> None:
        self.board.update((result for result in results.values() if isinstance(result, ProbeResult)), event)
        for shard, result in results.items():
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
            # The loss of the lease is the better reason: other holders may have worked in the shard since.
            self.reasons[shard] = result.obstacle

    def _end(self, reason: StopReason) -> None:
        """The budget is over: what has work, or was never probed, was left for that reason."""
        # There what is left has exited: more time would not help.
        left = [shard for shard in self._work if self.reasons.get(shard) != "exited"]
        self.reasons.update(dict.fromkeys(left, reason))
        self.reasons = {**dict.fromkeys(self.shards, reason), **self.reasons}


Wait: TypeAlias = Callable[[Loop, Budget], bool]
"""Waits, if nothing is due now; whether the drain is to go on."""


def _ignore(_loop: Loop) -> None:
    pass
