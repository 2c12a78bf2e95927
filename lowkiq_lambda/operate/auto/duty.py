"""The duty that looks once a minute at queues with a count of their own, and proposes, or makes, another count."""

import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec.structs import replace

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.declare.duty import AUTO
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.operate.auto.kept import KeptByAnother, KeptChange, read_kept, write_kept
from lowkiq_lambda.operate.auto.look import AutoLook, Decided
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.operate.auto.rule import Proposal
from lowkiq_lambda.operate.inspect.activity import record_action
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.operate.lateness.causes import ENOUGH
from lowkiq_lambda.reshard.duty import resharding_of
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.activity import NOTED, ActivityEntry
from lowkiq_lambda.views.auto import AutoDecision

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.reshard.resharding import Resharding

logger = logging.getLogger(__name__)

WHO: Final = "auto"
"""The actor, in the activity."""
AN_HOUR: Final = 3_600.0
"""Seconds from one line about a queue to the next that says the same."""
POSTPONED: Final = 600.0
"""Seconds for which a move may stand still, as a batch that runs long holds a shard, before it is turned round."""
REST: Final = 6 * 3_600.0
"""Seconds for which a queue rests after that."""


class ShardSchedules(Protocol):
    """The schedules of an app whose function is invoked for single shards."""

    @property
    def whose(self) -> Literal["none", "own", "foreign"]:
        """Nobody needs them, this process may make them, or only somebody else may."""
        ...

    def before(self, queue_name: str, to: int) -> None:
        """Make those that are missing for so many shards. Raises LowkiqError."""
        ...

    def after(self, queue_name: str, counts: Mapping[str, int]) -> None:
        """Delete those that no queue needs with so many shards of each. Raises LowkiqError."""
        ...


class AutoDuty:
    """Once a minute: three round trips, three more for each such queue, and some ten for each that is late."""

    name: Final = AUTO
    every: Final = 60.0

    def __init__(self, core: "Core", schedules: ShardSchedules | None = None) -> None:
        self._core = core
        self._schedules = schedules

    def run(self, remaining: Callable[[], float]) -> dict[str, str]:
        """What is said of queues that do not keep their target, by their names.

        One that cannot be looked at, or moved, keeps no other from it: moves go on behind all looks. Raises
        LowkiqError, the first, at the end.
        """
        core = self._core
        current, _ = core.queues.all_current()
        queues = [queue for queue in current.values() if queue.auto is not None]
        if not queues:
            return {}
        backend, retry_for = core.backend, core.config.redis_retry_for
        reader = ShardReader(backend, retry_for)
        read = queue_metrics(reader, [queue.shards for queue in queues])
        metrics = [*apart(reader, [queue.worker for queue in queues], read)]
        processes = Processes(backend, retry_for)
        whose: Literal["none", "own", "foreign"] = "none" if self._schedules is None else self._schedules.whose
        lines, errors, moves = {}, list[LowkiqError](), list["tuple[Queue, Resharding]"]()
        for queue, numbers in zip(queues, metrics, strict=True):
            if remaining() <= 0:
                break
            name = queue.worker.queue_name
            try:
                kept = read_kept(backend, name, retry_for)
                look = AutoLook(core, queue, numbers, processes, kept, whose)
                step = DutyStep(core, queue, self._schedules, kept.stored)
                decision = step.take(look.decided(), look.bounds, remaining, moves)
            except KeptByAnother as error:
                logger.info("%s", error, extra={"queue": name})
                continue
            except LowkiqError as error:
                errors.append(error)
                continue
            if decision.answer != "nothing":
                lines[name] = decision.says
        for behind, (queue, resharding) in zip(range(len(moves) - 1, -1, -1), moves, strict=True):
            _go_on(queue, resharding, _part(remaining, behind))
        if errors:
            raise errors[0]
        return lines


def _part(remaining: Callable[[], float], behind: int) -> Callable[[], float]:
    """Of the time, as much as each of those behind will have: a move that a batch holds up takes all that it may."""
    left = remaining() * behind / (behind + 1)
    return lambda: remaining() - left


def _go_on(queue: "Queue", resharding: "Resharding", remaining: Callable[[], float]) -> None:
    """Move groups while there is time; the duty `moves` goes on with what is left, also after an error."""
    try:
        resharding.go_on(lambda *_: None, remaining)
    except LowkiqError as error:
        logger.warning("a move breaks off: %s", error, extra={"queue": queue.worker.queue_name})
    queue.doubt()


class DutyStep:
    """What is done about one queue behind a look at it. `stored`: its memory, as the look found it."""

    def __init__(self, core: "Core", queue: "Queue", schedules: ShardSchedules | None, stored: bytes) -> None:
        self._core, self._queue, self._schedules, self._stored = core, queue, schedules, stored
        self._name = queue.worker.queue_name

    def take(
        self,
        decided: Decided,
        bounds: Auto,
        remaining: Callable[[], float],
        moves: "list[tuple[Queue, Resharding]]",
    ) -> AutoDecision:
        """Do what was decided, or say it; the decision. A move that is to go on is added to `moves`.

        Raises KeptByAnother where another process does it.
        """
        if decided.decision.answer != "moving" and decided.memory.is_beginning(decided.decision.at):
            raise KeptByAnother(f"Another process is about to move {self._name}.")
        decided = decided._replace(memory=self._tidied(decided.memory))
        if decided.memory.untold:
            # The process that began the move has died.
            decided = decided._replace(memory=self._told(decided.memory))
        resharding = resharding_of(self._core, self._queue.worker, unreplicated=bounds.unreplicated)
        if decided.decision.answer == "moving":
            memory = self._gone_on(decided.memory, resharding, remaining, moves)
        elif isinstance(decided.verdict, Proposal) and not decided.verdict.bars:
            decided, memory = self._moved(decided, resharding, moves)
        else:
            memory = self._said(decided)
        self._keep(memory, decided.decision)
        return decided.decision

    def _tidied(self, memory: Memory) -> Memory:
        """Delete the schedules that are too many once a move back has ended; the memory of it."""
        last = memory.last
        if self._schedules is None or last is None or last.ended_at is None or last.to >= last.shards:
            return memory
        if memory.tidied_at == last.at:
            return memory
        # A queue that moves needs those of both counts: some were just made for it.
        layouts = {name: each.shards.layout for name, each in self._core.queues.items()}
        counts = {name: max(layout.before, layout.after) for name, layout in layouts.items()}
        try:
            self._schedules.after(self._name, counts)
        except LowkiqError as error:
            logger.warning("schedules that no shard needs were not deleted: %s", error, extra={"queue": self._name})
            return memory
        return replace(memory, tidied_at=last.at)

    def _keep(self, memory: Memory, decision: AutoDecision | None = None) -> None:
        core, declared = self._core, self._queue.auto
        bounds = None if declared is None or decision is None else (decision.at, declared)
        change = KeptChange(memory=memory, decision=decision, bounds=bounds)
        self._stored = write_kept(core.backend, self._name, core.config.redis_retry_for, change, self._stored)

    def _moved(
        self, decided: Decided, resharding: "Resharding", moves: "list[tuple[Queue, Resharding]]"
    ) -> tuple[Decided, Memory]:
        decision, to = decided.decision, decided.decision.to or 0
        before = decided.memory
        began = before.begins(decision.at, decision.shards, to)
        memory = replace(began, told=_key(decision), told_at=decision.at, untold=decision.says)
        # Before the move, so that one whose beginner dies is known as this one's.
        self._keep(memory)
        if self._schedules is not None and to > decision.shards:
            try:
                self._schedules.before(self._name, to)
            except LowkiqError as error:
                bar = f"its schedules could not be made: {error}"
                logger.warning("%s", bar, extra={"queue": self._name})
                barred = replace(decision, bars=(bar,), says=f"{decision.says}; {bar}")
                decided = decided._replace(decision=barred, memory=before)
                return decided, self._said(decided)
        try:
            layout = resharding.begin(to, epoch=self._queue.shards.layout.epoch)
        except LowkiqError as error:
            text = "a move to another number of shards was not begun: %s"
            logger.warning(text, error, extra={"queue": self._name})
            return decided, before
        moves.append((self._queue, resharding))
        memory = replace(memory, epoch=layout.epoch)
        return decided, self._told(memory) if resharding.has_begun else replace(memory, untold="")

    def _told(self, memory: Memory) -> Memory:
        """Write the line of the last move; the memory of it."""
        self._record("reshard", memory.untold, memory.moves[-1].to)
        memory = replace(memory, untold="")
        self._keep(memory)
        return memory

    def _gone_on(
        self,
        memory: Memory,
        resharding: "Resharding",
        remaining: Callable[[], float],
        moves: "list[tuple[Queue, Resharding]]",
    ) -> Memory:
        """Go on with a move that was begun here; one that has stood still for too long is turned round."""
        layout, last, now = self._queue.shards.layout, memory.last, self._core.backend.now(self._queue.shards[0])
        if last is None or last.ended_at is not None or not {layout.before, layout.after} <= {last.shards, last.to}:
            return memory
        stands = now - layout.at >= POSTPONED or last.is_turned
        if stands and not layout.is_returning:
            memory = memory.turns(now, REST)
            self._keep(memory)
            try:
                turned = resharding.abort(lambda *_: None, remaining)
            except LowkiqError as error:
                logger.warning("a move was not turned round: %s", error, extra={"queue": self._name})
                return memory
            memory = replace(memory, epoch=turned.epoch)
            line = (
                f"{last.shards} → {last.to} shards was turned round: for {POSTPONED / 60:.0f} min a batch held a shard"
            )
            self._record("reshard", line, last.shards)
        moves.append((self._queue, resharding))
        return memory

    def _said(self, decided: Decided) -> Memory:
        """Say a proposal, or a refusal with a reason, at most once an hour; the memory of it."""
        decision, memory = decided.decision, decided.memory
        is_proposal = decision.answer == "proposal"
        if not is_proposal and not (decision.answer == "refusal" and decision.cause and decision.minutes >= ENOUGH):
            return memory
        if decision.cause == "somebody is at it":
            # They know, and so does the activity.
            return memory
        is_new = is_proposal and memory.told != _key(decision)
        if not is_new and decision.at - memory.told_at < AN_HOUR:
            return memory
        self._record(NOTED, decision.says, 0)
        return replace(memory, told=_key(decision), told_at=decision.at)

    def _record(self, action: str, line: str, changed: int) -> None:
        logger.info("%s: %s", self._name, line, extra={"queue": self._name})
        host = f"{socket.gethostname()}:{os.getpid()}"
        at = self._core.backend.clock.time()
        entry = ActivityEntry(
            at=at, who=WHO, action=action, queue=self._name, target=line, changed=changed, address=host
        )
        record_action(self._core.backend, entry)


def _key(decision: AutoDecision) -> str:
    return f"{decision.answer} {decision.to}"


def auto_runner(core: "Core", clock: "Clock", schedules: ShardSchedules | None = None) -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(core, [AutoDuty(core, schedules)], clock, name=AUTO)
