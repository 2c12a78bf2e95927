"""Recurring work: duties, their verdicts on queues, schedule entries, and moves to another number of shards."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lowkiq_lambda.declare.duty import ALERTS
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import DATA, NOTHING_LOST
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import several, time
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.verify.record import VerifyRecord
from lowkiq_lambda.reshard.duty import STANDS_STILL
from lowkiq_lambda.schedules.records import ScheduleView, late_by, rows_by_entry, views
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.duty_claims import DutyState
from lowkiq_lambda.store.shard.entries import EntryRow, EntryStore
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.views.verification import Verified

_START: Final = "Start the daemon, or deploy the function that does housekeeping."
_NO_FUNCTION: Final = "Start a daemon: functions send no alerts. A stack has alarms, which tell its AlarmTopicArn."


def duty_findings(duties: Sequence[DutyState], now: float) -> Iterator[Finding]:
    """The findings on recurring work that is late, or fails."""
    for duty in duties:
        advice = _NO_FUNCTION if duty.name == ALERTS else _START
        if duty.failures:
            sentence = f"its last {several(duty.failures, 'run')} failed: {duty.last_error}"
            yield _found("duties", "warning", sentence, "Correct it; the log has more.", duty.name)
        elif duty.last_run is None:
            sentence = "it has never run: no daemon and no housekeeping run of this app has come"
            yield _found("duties", "warning", sentence, advice, duty.name)
        elif not duty.is_running and now - duty.next_run > LATE:
            sentence = f"it is late by {time(now - duty.next_run)}: no daemon and no housekeeping run of this app comes"
            yield _found("duties", "broken", sentence, advice, duty.name)


def verify_findings(records: Mapping[str, VerifyRecord | None], states: Sequence[QueueState]) -> Iterator[Finding]:
    """A finding for each queue that housekeeping verifies."""
    for state in states:
        # A queue without a record: the finding about duties says whether the duty comes.
        if (record := records.get(state.name)) is not None:
            yield _of_verified(state.name, record.verified(state.now))


def _of_verified(name: str, verified: Verified) -> Finding:
    mark: Mark = "broken" if verified.found else "warning" if verified.deleted else "ok"
    sentence, advice = verified.says, ""
    if verified.violations:
        last = verified.violations[-1]
        sentence = f"{sentence}; the last violation: {last}"
        kept = f"; the journal is kept in {last.evidence}" if last.evidence else ""
        advice = f"See docs/runbooks/violations.md{kept}."
    elif verified.deleted:
        advice = "Find out who deletes keys on this server: a deleted journal proves nothing."
    return Finding(
        section="work",
        check="verify",
        mark=mark,
        says=sentence,
        advice=advice,
        about=name,
        promises=DATA if verified.found else (),
    )


def schedule_findings(operations: Operations, states: Sequence[QueueState], backend: Backend) -> Iterator[Finding]:
    """The findings on schedule entries that do not fire. Raises BackendError."""
    now = {state.name: state.now for state in states}
    shards = [shard for state in states for shard in state.shards]
    rows = EntryStore(backend, operations.core.config.redis_retry_for).rows(with_timetable(shards))
    schedules = operations.schedules
    by_name = rows_by_entry(rows)
    for view in views((*schedules.declared, *schedules.broken), rows, now):
        trouble = _trouble_of(view, by_name.get(view.key, []), now[view.queue_name])
        if trouble:
            mark, sentence, advice = trouble
            yield _found("schedules", mark, sentence, advice, f"{view.queue_name}/{view.name}")


def _trouble_of(view: ScheduleView, rows: Sequence[EntryRow], now: float) -> tuple[Mark, str, str] | None:
    if view.problem:
        return "broken", f"it cannot fire: {view.problem}", "Correct its declaration."
    if not view.is_on and view.is_switched:
        return "warning", "it is switched off", "Switch it on: app.schedules.enable(worker, name)."
    if view.entry is None or not view.is_on:
        # Of other code, or off as it is declared.
        return None
    late = late_by(view, rows, now)
    if late is None:
        sentence = "no process that fires entries has declared it yet"
        return "warning", sentence, "Deploy this code to the daemon, or to the function that does housekeeping."
    if late <= LATE:
        return None
    return (
        "broken",
        f"it stands still: the time of {time(late)} ago is not decided",
        ("Start the daemon, or deploy the function that does housekeeping; LOWKIQ_SCHEDULES must not be false there."),
    )


def _found(check: str, mark: Mark, sentence: str, advice: str, about: str) -> Finding:
    return Finding(section="work", check=check, mark=mark, says=sentence, advice=advice, about=about)


def move_findings(states: Sequence[QueueState]) -> Iterator[Finding]:
    """A finding for each that moves."""
    for state in states:
        if state.shards.layout.is_moving:
            yield _of_move(state)


def _of_move(state: QueueState) -> Finding:
    layout = state.shards.layout
    groups, still_for = layout.groups - len(layout.left), state.now - layout.at
    way = f"from {layout.before} to {layout.after} shards: {groups} of {layout.groups} groups have moved"
    if still_for <= STANDS_STILL:
        return Finding(section="moves", check="moves", mark="ok", says=f"on its way {way}", about=state.name)
    return Finding(
        section="moves",
        check="moves",
        mark="warning",
        says=f"on its way {way}, and nothing has moved for {time(still_for)}",
        advice=f"Go on with it: lowkiq reshard {state.name} --to {layout.after}.",
        about=state.name,
        promises=(NOTHING_LOST,),
    )
