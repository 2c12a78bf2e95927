"""One look at all entries: it fires the due ones, and notes missed times. Any process may, as often as it likes."""

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.errors import BackendError, DeclarationError, JobError
from lowkiq_lambda.declare.duty import SCHEDULES, RunAgain
from lowkiq_lambda.declare.worker import count_of, refuse_without_score
from lowkiq_lambda.push.checking import Checker
from lowkiq_lambda.schedules.agenda import AgendaReader, Candidate, Problems, named
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.misfire import MOST_MISSED, SKIP_GRACE, Decision, decide
from lowkiq_lambda.schedules.waves import EntryPlan, Ticked, Waves
from lowkiq_lambda.store.shard.timetables import Firing

if TYPE_CHECKING:
    from datetime import timedelta

    from lowkiq_lambda.core import Core
    from lowkiq_lambda.schedules.entry import Timetable
    from lowkiq_lambda.settings.config import Config
    from lowkiq_lambda.store.shard.waking import Waker


logger = logging.getLogger(__name__)

LOG_AGAIN: Final = 60.0
"""Seconds after which a problem that lasts is logged again."""


CLAIM_TTL: Final = 0.5
"""Seconds for which one process looks alone. Two at a time fire nothing twice, so a process that died in the middle of
a look holds the others up no longer than that."""


class EntryTicker:
    """Fires the entries of one app."""

    def __init__(self, core: "Core", timetable: "Timetable", waker: "Waker | None") -> None:
        self._core = core
        self._timetable = timetable
        self._agenda = AgendaReader(core, timetable)
        self._waker = waker
        self._logged_at: dict[str, float] = {}

    def tick(self, remaining: Callable[[], float]) -> Ticked:
        """Decide what is due, while `remaining` (seconds) is more than 0. Raises BackendError if no shard answers.

        Nothing is retried: what Redis did not take is found again by the next tick.
        """
        ticked, problems = Ticked(), Problems()
        for broken in self._timetable.broken:
            problems.note(named(broken.queue_name, broken.name), broken.problem)
        plans = []
        for candidate in self._agenda.candidates(problems):
            try:
                plans.append(self._plan(candidate))
            except (DeclarationError, JobError) as error:
                problems.note(candidate.label, error)
        waves = Waves(self._core, ticked, problems)
        while (due := [plan for plan in plans if plan.left]) and remaining() > 0:
            waves.fire(due)
        for next_in in [plan.next_in for plan in plans] + [0.0] * bool(due):
            if next_in is not None:
                ticked.wait_at_most(next_in)
        waves.tell(self._waker)
        ticked.problems = problems.sentences
        self._log(problems.sentences)
        return ticked

    def _log(self, sentences: Sequence[str]) -> None:
        """Warn of problems, of one that lasts once a minute."""
        now = self._core.backend.clock.monotonic()
        lasting = {sentence: at for sentence, at in self._logged_at.items() if sentence in sentences}
        for sentence in sentences:
            if now - lasting.get(sentence, -math.inf) >= LOG_AGAIN:
                lasting[sentence] = now
                logger.warning("a schedule entry does not fire: %s", sentence)
        self._logged_at = lasting

    def _plan(self, candidate: Candidate) -> EntryPlan:
        refuse_without_score(candidate.queue.worker, "its worker takes no schedule entries")
        entry, now = candidate.entry, self._core.backend.now(candidate.shard)
        decision = decide(entry.times, candidate.floor, now, entry.missed, entry.grace)
        left = [self._firing(candidate, planned) for planned in decision.fire]
        earlier = decision.missed
        # A firing decides what came before it; but each of several may be refused.
        if earlier and (not left or entry.missed == "all"):
            newest = Firing(candidate.shard, entry.name, candidate.digest, earlier[-1], let_go=len(earlier) - 1)
            left.insert(0, newest)
        elif left:
            left[0] = left[0]._replace(let_go=len(earlier))
        missed = _missed_in_absence(candidate, decision, now)
        return EntryPlan(candidate, now, left, missed, len(earlier) - missed, decision.next_at)

    def _firing(self, candidate: Candidate, planned: float) -> Firing:
        entry, worker = candidate.entry, candidate.queue.worker
        job = {
            "id": entry.id,
            "payload": entry.payload,
            "score": planned,
            "due_at": planned + entry.jitter_of(planned),
        }
        if entry.expires_in is not None:
            job["expires_in"] = entry.expires_in
        checker = checker_of(self._core.config, count_of(worker), worker.expires_in)
        ((new,),) = checker.check_all([job]).by_shard.values()
        skips = entry.overlap == "skip"
        return Firing(candidate.shard, entry.name, candidate.digest, planned, new, worker.merge, skips)


def _missed_in_absence(candidate: Candidate, decision: Decision, now: float) -> int:
    """How many times were missed because no tick ran; at most as many as a decision lists."""
    # A time that was due between two ticks, and was replaced by a newer one, is not a sign of an absence.
    absent_before = now - SKIP_GRACE if decision.fire else now
    if len(decision.missed) == MOST_MISSED and next(candidate.entry.times.after(candidate.floor)) < absent_before:
        return MOST_MISSED
    return sum(planned < absent_before for planned in decision.missed)


class FireDuty:
    """One tick at least once a minute, and at the next planned time where a daemon runs it."""

    name: Final = SCHEDULES
    every: Final = 60.0

    def __init__(self, tick: Callable[[Callable[[], float]], Ticked]) -> None:
        self._tick = tick

    def run(self, remaining: Callable[[], float]) -> RunAgain:
        """Fire the entries that are due. Problems go into the summary and into the log.

        A problem is not a failure of the duty: its back-off would grow and delay every entry.
        """
        try:
            ticked = self._tick(remaining)
        except BackendError as error:
            logger.warning("no schedule entry could be looked at: %s", error)
            return RunAgain(Ticked(problems=[str(error)]).summary(), None)
        return RunAgain(ticked.summary(), ticked.next_in)


def checker_of(config: "Config", shards_count: int, expires_in: "float | timedelta | None" = None) -> Checker:
    """Checks the jobs of entries, as those of a push are."""
    return Checker(
        shards_count, config.dump_payload, config.max_payload_bytes, now=lambda: math.nan, expires_in=expires_in
    )


def problem_of(entry: ScheduleEntry, config: "Config") -> str | None:
    """Why the entry cannot fire, in a sentence that names it, or None. Asks no Redis."""
    try:
        entry.check()
        checker_of(config, 1).check_all([{"id": entry.id, "payload": entry.payload}])
    except DeclarationError as error:
        return str(error)
    except JobError as error:
        return f"{entry.label}: {error}"
    return None
