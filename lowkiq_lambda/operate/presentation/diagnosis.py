"""Explains in one sentence why a job is not running, from data that was read at one moment."""

import math
from typing import Final

import msgspec

from lowkiq_lambda.operate.presentation.diagnosis_words import (
    CAUSES,
    GOES_ON,
    MOVING,
    NO_JOB,
    after_crash,
    ago,
    decided_by,
    ended,
    error_of,
    expiry,
    failed,
    has_failed,
    held_for,
    ids,
    no_holder,
    owner,
    retry,
    suspicion,
    times,
    why_dead,
)
from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.operate.presentation.limit_words import tenant_waits, wait_of_tenant, why_limited
from lowkiq_lambda.operate.presentation.requests import request_words
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.limits import LimitsView
from lowkiq_lambda.views.shards import ShardDetails

MAX_CRASHES: Final = 3
"""As in recover.lua: so many counted crashes kill a payload."""
_LATELY: Final = 60.0
"""If a drain came within so many seconds, another is expected."""
_TELL_THE_FAILURE: Final = frozenset({"head blocked", "retry later"})
"""Kinds of answers that tell by themselves how the id failed; what is blocked has no retry to come."""
_SOON: Final = 5.0
"""After so many seconds without a drain the answer names possible causes."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The explanation: a sentence, more sentences, and the time of the next expected event in Unix seconds."""

    kind: str
    sentence: str
    next_at: float | None = None
    more: tuple[str, ...] = ()


def diagnose(
    situation: JobExplanation,
    concurrency: int,
    limits: LimitsView | None = None,
    max_retry_count: int | None = None,
) -> Diagnosis:
    """The reason why the job is or is not running, whose worker has this `concurrency` and, it may be, limits.

    `max_retry_count`: that of the worker, if it is known.
    """
    answer = _answer(situation, concurrency, limits, max_retry_count)
    if situation.requests:
        requests = tuple([request_words(request, situation.shard.at) for request in situation.requests])
        answer = msgspec.structs.replace(answer, more=answer.more + requests)
    if answer.kind in _TELL_THE_FAILURE:
        return answer
    return msgspec.structs.replace(answer, more=answer.more + has_failed(situation, max_retry_count))


def _paused_until(situation: JobExplanation) -> float:
    """The end of the pause of the id, as long as that lasts; else 0."""
    ends = [FOREVER if one.until is None else one.until for one in situation.requests if one.kind == "pause"]
    return max((at for at in ends if at > situation.shard.at), default=0.0)


def _answer(
    situation: JobExplanation, concurrency: int, limits: LimitsView | None, max_retry_count: int | None
) -> Diagnosis:
    if concurrency == 1:
        # If batches run one after the other, each suspect runs alone.
        situation = msgspec.structs.replace(situation, runs_together=False)
    if situation.in_flight:
        return _in_flight(situation)
    if situation.due_at is None:
        return _not_waiting(situation)
    if until := _paused_until(situation):
        return Diagnosis("job paused", "The job itself is paused.", None if until >= FOREVER else until)
    if situation.closed:
        return Diagnosis(
            "closed",
            "Its shard is closed: the queue was declared again with other settings, and no drain reads shards of the "
            "old declaration.",
        )
    if situation.blocked_since is not None:
        return Diagnosis(
            "head blocked",
            "Its oldest payload has failed for the last time. It has been blocked for "
            f"{ago(situation.shard, situation.blocked_since)}, and all payloads of its id wait behind it. "
            "It runs again only if an operator unblocks it.",
            more=tuple(
                f"Its error was {error_of(failure)}{decided_by(failure)}." for failure in situation.failures[:1]
            ),
        )
    answer = _obstacle(situation, situation.due_at, max_retry_count)
    if answer is None and situation.shard.role != "open":
        answer = Diagnosis("moving", MOVING, None, (GOES_ON,))
    answer = answer or _free(situation, situation.due_at, limits)
    return msgspec.structs.replace(answer, more=answer.more + _remarks(situation))


def _in_flight(situation: JobExplanation) -> Diagnosis:
    shard = situation.shard
    waits = () if situation.due_at is None else ("More payloads wait under this id and run after those in flight.",)
    if situation.progress is not None:
        waits = ("It is started: below is its progress at its last checkpoint.", *waits)
    if not shard.is_held:
        return Diagnosis(
            "holder died",
            f"It was in flight when its holder, {owner(shard)}, left without settling it{ended(shard)}. The next "
            "drain of the shard recovers it first.",
            _later_of_pause(shard),
            after_crash(situation) + _whether_drained(shard) + waits,
        )
    if shard.gave_up:
        return Diagnosis(
            "fenced",
            f"It is in flight, but {no_holder(shard)}. The lease ends in {duration(shard.lease_left)}; then the next "
            "drain of the shard recovers it.",
            shard.held_until,
            waits,
        )
    return Diagnosis(
        "in flight",
        f"It is in flight right now: {owner(shard)} has held its shard{held_for(shard)} and has claimed "
        f"{ids(shard.in_flight)}.",
        None,
        (_renewed(shard), *suspicion(situation), *waits),
    )


def _renewed(shard: ShardDetails) -> str:
    return f"The lease ends in {duration(shard.lease_left)} unless its holder renews it."


def _not_waiting(situation: JobExplanation) -> Diagnosis:
    if situation.dead_since is not None:
        return Diagnosis(
            "in the morgue",
            f"It has been in the morgue for {ago(situation.shard, situation.dead_since)}: "
            f"{why_dead(situation, situation.dead_since)}. It runs again only if an operator requeues it.",
        )
    return Diagnosis("unknown", NO_JOB)


def _obstacle(situation: JobExplanation, due_at: float, max_retry_count: int | None) -> Diagnosis | None:
    """A pause, a later due time, or a holder."""
    shard = situation.shard
    is_suspect = situation.suspects_ahead is not None
    due_at = shard.at if is_suspect else max(due_at, shard.at)
    if shard.is_paused and (shard.paused_until or 0.0) >= due_at:
        return _paused(shard, due_at)
    if not is_suspect and situation.tenant and (wait := tenant_waits(situation.tenant, shard.at, due_at)):
        return Diagnosis(*wait)
    if due_at > shard.at:
        return _due_later(situation, due_at, max_retry_count)
    if shard.is_held and shard.gave_up:
        return Diagnosis(
            "held",
            f"Its shard is held, but {no_holder(shard)}. The lease ends in {duration(shard.lease_left)}.",
            shard.held_until,
        )
    if shard.is_held:
        return Diagnosis(
            "suspect" if is_suspect else "held",
            f"Its shard has been held by {owner(shard)}{held_for(shard)}, and {_turn(situation)}.",
            None,
            (_renewed(shard),),
        )
    return None


def _paused(shard: ShardDetails, due_at: float) -> Diagnosis:
    until = shard.paused_until or 0.0
    due = "it is due" if due_at <= shard.at else f"it is due in {duration(due_at - shard.at)}"
    if math.isinf(until):
        return Diagnosis("paused", f"Its queue is paused until an operator resumes it; {due}.")
    return Diagnosis("paused", f"Its queue is paused for another {duration(until - shard.at)}; {due}.", until)


def _due_later(situation: JobExplanation, due_at: float, max_retry_count: int | None) -> Diagnosis:
    left = duration(due_at - situation.shard.at)
    if situation.retry_count < 0 and situation.progress is not None:
        reason = situation.progress.reason.rstrip(". ")
        because = f": {reason}" if reason else ""
        return Diagnosis("goes on later", f"It is started, and goes on in {left}{because}.", due_at)
    if situation.put_off:
        return Diagnosis("goes on later", f"It was put off, and goes on in {left}: {situation.put_off}.", due_at)
    if situation.retry_count < 0 and situation.debounced_until is not None:
        latest = duration(max(0.0, situation.debounced_until - situation.shard.at))
        return Diagnosis(
            "debouncing",
            f"It waits for more pushes: it is due in {left}, or later if another push comes, but in {latest} at the "
            "latest.",
            due_at,
        )
    if situation.retry_count < 0:
        return Diagnosis("due later", f"It is not due yet: it waits for another {left}.", due_at)
    sentence = f"It {failed(situation)} and will be retried in {left}: {retry(situation, max_retry_count)}."
    return Diagnosis("retry later", sentence, due_at)


def _free(situation: JobExplanation, due_at: float, limits: LimitsView | None) -> Diagnosis:
    """The job is due, and its shard has no holder."""
    shard = situation.shard
    due = f"It has been due for {duration(max(0.0, shard.at - due_at))}" if due_at <= shard.at else "It may run"
    if limits is not None and (limited := why_limited(limits, shard.index)):
        kind, reason, next_at, more = limited
        return Diagnosis(kind, f"{due}, but {reason}", next_at, (*more, f"In the next visit {_turn(situation)}."))
    if shard.lost_its_holder:
        return Diagnosis(
            "holder died",
            f"{due}, but the holder of its shard, {owner(shard)}, left with {ids(shard.in_flight)} in flight"
            f"{ended(shard)}. The next drain of the shard recovers them first.",
            None,
            (f"Then {_turn(situation)}.", *_whether_drained(shard)),
        )
    if shard.woken_until is not None and shard.woken_until > shard.at:
        return Diagnosis(
            "woken",
            f"{due}, and a drain was just started. If it does not acquire the shard within "
            f"{duration(shard.woken_until - shard.at)}, another may be started.",
            shard.woken_until,
            (f"In that drain {_turn(situation)}.",),
        )
    if shard.acquired_at is None:
        return Diagnosis(
            "not drained",
            f"{due}, but no drain has ever acquired its shard, neither of a daemon nor a scheduled one.",
            None,
            (*_causes(situation), f"In the next drain {_turn(situation)}."),
        )
    return _not_drained(situation, due_at, shard.acquired_at, due)


def _not_drained(situation: JobExplanation, due_at: float, acquired_at: float, due: str) -> Diagnosis:
    shard = situation.shard
    ahead = "behind others" if _ahead(situation) else "next"
    kind = ahead if situation.suspects_ahead is None else "suspect"
    took = f"{ago(shard, acquired_at)} ago{ended(shard)}"
    sentence = f"{due}. {owner(shard)} acquired its shard {took} and released it. No drain has acquired it since."
    last: tuple[str, ...] = ()
    if acquired_at < due_at:
        sentence = f"{due}, and no drain has acquired its shard since."
        last = (f"{owner(shard)} acquired it last, {took}.",)
    return Diagnosis(
        "not drained" if shard.at - acquired_at >= _LATELY else kind,
        sentence,
        None,
        (*last, *_causes(situation), f"In the next drain {_turn(situation)}."),
    )


def _causes(situation: JobExplanation) -> tuple[str, ...]:
    """Possible causes, if the job has been due for longer than a drain takes to come."""
    since = max(situation.due_at or 0.0, situation.shard.acquired_at or 0.0)
    return (CAUSES,) if situation.shard.at - since >= _SOON else ()


def _remarks(situation: JobExplanation) -> tuple[str, ...]:
    remarks = []
    if situation.progress is not None:
        remarks.append("It goes on from its cursor. Newer payloads of the id run after it.")
    remarks += [*expiry(situation), *suspicion(situation)]
    if situation.crash_count:
        remarks.append(
            f"The process was lost {times(situation.crash_count)} while one of its payloads ran alone; the third time, "
            "that payload goes to the morgue."
        )
    if situation.dead_since is not None:
        remarks.append(f"Other payloads of this id died {ago(situation.shard, situation.dead_since)} ago.")
    if situation.least_version is not None:
        remarks.append(f"Only libraries with contract version {situation.least_version} or newer can drain its shard.")
    return tuple(remarks)


def _turn(situation: JobExplanation) -> str:
    ahead = _ahead(situation)
    if not ahead:
        return "it is next"
    if situation.suspects_ahead is not None:
        together = ", but runs together with them" if situation.runs_together else ""
        return f"it waits behind {exact(ahead)} other suspect{'s' if ahead > 1 else ''}{together}"
    if situation.tenant is not None:
        return wait_of_tenant(situation.tenant, situation.shard.suspects)
    suspects = situation.shard.suspects
    first = f", {exact(suspects)} of them suspects that run first" if suspects else ""
    return f"it waits behind {exact(ahead)} other{'s' if ahead > 1 else ''}{first}"


def _ahead(situation: JobExplanation) -> int:
    if situation.suspects_ahead is not None:
        return situation.suspects_ahead
    if situation.tenant is None:
        return situation.ahead
    return situation.tenant.tenants_ahead + situation.tenant.ahead + situation.shard.suspects


def _whether_drained(shard: ShardDetails) -> tuple[str, ...]:
    if shard.is_paused:
        until = shard.paused_until or 0.0
        left = "until an operator resumes it" if math.isinf(until) else f"for another {duration(until - shard.at)}"
        return (f"Its queue is paused {left}.",)
    since = shard.at - max(shard.held_until, shard.acquired_at or 0.0)
    if since < _LATELY:
        return ()
    return (f"No drain has acquired the shard for {duration(since)}, neither of a daemon nor a scheduled one.",)


def _later_of_pause(shard: ShardDetails) -> float | None:
    return shard.paused_until if shard.is_paused and not math.isinf(shard.paused_until or 0.0) else None
