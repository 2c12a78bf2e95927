"""The duty that verifies a share of a queue's time: it draws shards, has them recorded for a while, and judges them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.declare.duty import VERIFY
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.operate.acts.shards import pause_ends, set_pause
from lowkiq_lambda.operate.inspect.journal import read_levels
from lowkiq_lambda.operate.inspect.journal_level import set_journal_level
from lowkiq_lambda.operate.verify.record import Recording, VerifyRecord, keep_evidence, read_records, write_record
from lowkiq_lambda.operate.verify.rules import Violation
from lowkiq_lambda.operate.verify.verifier import Verifier
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.verification import DeletedJournal

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core

logger = logging.getLogger(__name__)

LENGTH: Final = 90.0
"""Seconds for which a drawn shard is recorded at most: the next run ends that sooner, if there is one."""
_REST: Final = 1_800.0
"""Seconds after which the record of a queue is written, though nothing was recorded."""
_DAY: Final = 86_400.0
_LONGEST_PAUSE: Final = 3_600.0
"""Seconds without a run that count at most: the first run after a night does not record for all of it."""
_LOGGED: Final = 10
"""So many violations of a shard have a line of the log each."""
_SAME_TIME: Final = 1.0
"""Seconds by which two ends of one recording may differ."""


class Verdict(msgspec.Struct):
    """What a run did, for the summary of a housekeeping run."""

    judged: int = 0
    payloads: int = 0
    violations: int = 0
    drawn: int = 0


class VerifyDuty:
    """Once a minute: judges the shards that are recorded, and draws others, so that `share` of all time is recorded."""

    name: Final = VERIFY
    every: Final = 60.0

    def __init__(self, core: "Core", rng: Random | None = None) -> None:
        self._core = core
        self._rng = rng or Random()  # noqa: S311 - a sample

    def run(self, remaining: Callable[[], float]) -> dict[str, int]:
        """What was judged, found and drawn, of all queues. Raises BackendError."""
        core, verdict = self._core, Verdict()
        backend, retry_for = core.backend, core.config.redis_retry_for
        queues, _ = core.queues.all_current()
        names = list(queues)
        for name, record in zip(names, read_records(backend, names, retry_for), strict=True):
            if remaining() <= 0:
                break
            reader = ShardReader(backend, retry_for, queues[name].shards)
            run = _QueueRun(name, reader, record, core.config.verify, self._rng)
            run.go(verdict, remaining)
            if run.found and core.config.on_violation == "pause":
                run.pause()
        return msgspec.structs.asdict(verdict)


class _Running(NamedTuple):
    """A shard whose recording is to be judged, and what the record has of it."""

    shard: ShardRef
    recording: Recording


class _QueueRun:
    """One run for one queue."""

    def __init__(self, name: str, reader: ShardReader, record: VerifyRecord | None, share: float, rng: Random) -> None:
        self._name, self._reader, self._rng, self._share = name, reader, rng, share
        self._live = [reader.shards[number] for number in reader.shards.layout.live]
        self._now = reader.backend.now(self._live[0])
        self._is_new = record is None
        self._record = VerifyRecord(self._now, since=self._now) if record is None else record
        self.found = 0
        """How many violations this run has found."""

    def go(self, verdict: Verdict, remaining: Callable[[], float]) -> None:
        """Judge, draw, and store what came of it, if anything did."""
        record, passed = self._record, self._now - self._record.credited_at
        elapsed = max(0.0, passed)
        allowed = record.credit + self._share * len(self._live) * min(elapsed, _LONGEST_PAUSE)
        # A clock that was set back would earn nothing until it is there again.
        if not (self._is_new or record.recordings or allowed >= LENGTH or elapsed >= _REST or passed < 0):
            return
        record.credit, record.credited_at = allowed, self._now
        record.hour(self._now).passed += min(elapsed, _DAY) * len(self._live)
        self._judge(verdict, remaining)
        drawn = self._drawn()
        # Written before it begins: a process that dies between the two has recorded less than it may.
        until = self._now + LENGTH
        record.recordings = [
            Recording(shard.shards_count, shard.index, written, until) for shard, written in drawn.items()
        ]
        record.credit -= LENGTH * len(drawn)
        write_record(self._reader.backend, self._name, record, self._reader.retry_for)
        if drawn:
            set_journal_level(self._reader, "all", LENGTH, [*drawn])
        verdict.drawn += len(drawn)

    def pause(self) -> None:
        """Pause the queue until an operator resumes it. Raises BackendError."""
        set_pause(self._reader, None, pause_ends(None))
        text = "the queue is paused, as a promise of it was violated: `lowkiq resume` lets it go on"
        logger.critical(text, extra={"queue": self._name})

    def _judge(self, verdict: Verdict, remaining: Callable[[], float]) -> None:
        """Judge what is recorded, one shard after the other, and end that.

        The rest of its time is recorded elsewhere. Shards that no time is left for count as not recorded.
        """
        running = self._running()
        for each in running:
            if remaining() > 0:
                self._judge_one(each, verdict)
        if running:
            self._end(running)

    def _judge_one(self, running: _Running, verdict: Verdict) -> None:
        record, shard = self._record, running.shard
        verifier = Verifier(self._reader, {shard: running.recording.after})
        report = verifier.report()
        hour = record.hour(self._now)
        hour.judged += report.seconds
        hour.payloads += report.payloads
        hour.events += report.events
        record.looked_at = self._now
        if report.deleted:
            record.deleted.append(DeletedJournal(self._now, shard.number, shard.shards_count))
            text = "a journal was deleted while it was recorded: the time before that cannot be verified"
            logger.warning(text, extra={"queue": self._name, "shard": shard.number})
        if report.violations:
            self._tell(shard, verifier, report.violations)
        verdict.judged += report.shards
        verdict.payloads += report.payloads
        verdict.violations += len(report.violations)
        self.found += len(report.violations)

    def _running(self) -> list[_Running]:
        """The recordings of shards that the queue still has; a move to others ends those of the old ones."""
        homes = {(shard.shards_count, shard.index): shard for shard in self._reader.shards}
        return [
            _Running(homes[at], recording)
            for recording in self._record.recordings
            if (at := (recording.shards_count, recording.index)) in homes
        ]

    def _end(self, running: Sequence[_Running]) -> None:
        levels = read_levels(self._reader, [each.shard for each in running])
        ours = [
            each
            for each, level in zip(running, levels, strict=True)
            # An operator who records the shard goes on with it.
            if level.until > self._now and abs(level.until - each.recording.until) < _SAME_TIME
        ]
        set_journal_level(self._reader, "trouble", LENGTH, [each.shard for each in ours])
        self._record.credit += sum(each.recording.until - self._now for each in ours)

    def _drawn(self) -> dict[ShardRef, int]:
        """The shards to record next, each with the number of its last entry.

        None while the queue moves: a recording would move with its shard.
        """
        if self._reader.shards.layout.is_moving:
            return {}
        count = min(len(self._live), int(self._record.credit // LENGTH))
        shards = self._rng.sample(self._live, count)
        levels = read_levels(self._reader, shards) if shards else []
        pairs = zip(shards, levels, strict=True)
        return {shard: level.written for shard, level in pairs if level.until <= self._now}

    def _tell(self, shard: ShardRef, verifier: Verifier, violations: Sequence[Violation]) -> None:
        backend, entries, key = self._reader.backend, verifier.entries_of(shard), ""
        # A server without room for it must not keep the violation secret.
        with suppress(BackendError):
            key = keep_evidence(backend, shard, self._now, entries, self._reader.retry_for)
        self._record.note(self._now, violations, key)
        for one in violations[:_LOGGED]:
            fields = {
                "queue": self._name,
                "rule": one.rule,
                "id": one.id,
                "shard": one.shard,
                "entry": one.number,
                "evidence": key,
            }
            logger.critical("a promise of the queue was violated: %s", one, extra=fields)


def verify_runner(core: "Core", clock: "Clock") -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(core, [VerifyDuty(core)], clock, name=VERIFY)
