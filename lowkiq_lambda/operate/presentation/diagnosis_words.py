"""Phrases of the answers to "Why is it not running?", and what an id's record says of its failures."""

from typing import Final

from lowkiq_lambda.engine.survivors import CRASHED
from lowkiq_lambda.jobs.job import Failure
from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.shards import ShardDetails

CAUSES: Final = (
    "Possible causes: no process runs; a scheduled drain is not due yet; or all processes that may drain this shard "
    "are busy with other shards, also of other queues. Check that a process runs, read its log, and check which "
    "shards are held and for how long."
)

MOVING: Final = (
    "Its queue gets another number of shards, and the group of its shard is on its way: no job of the group begins "
    "before the whole group has moved."
)
GOES_ON: Final = (
    "If the process that moves it is gone, a daemon or a housekeeping run goes on with it, a minute after the last "
    "step; the same `lowkiq reshard` does at once."
)

NO_JOB: Final = (
    "The queue has no job of this id: it is done, ended with `Rejected`, was discarded or deleted, has expired, or was "
    "never pushed."
)

KEPT: Final = "Rejected(keep=True)"
"""The rule of payloads that a handler rejected and kept, as include/outcomes.lua notes it."""

EXPIRED: Final = "expired"
"""In place of a rule, of payloads whose time was over."""

_SAYS_WHY: Final = {KEPT: "it ended with {}, which said keep=True", EXPIRED: "it {}"}
"""Why a payload died whose failure has this in the place of a rule."""

_SUSPECT: Final = (
    "It is a suspect: it failed in a batch with other jobs, or its process died while it was in flight. So it runs "
    "alone, before jobs that are not suspects."
)
_TOGETHER: Final = (
    "It is a suspect: its process died while it was in flight, and another job may have ended it. So it runs once "
    "more, side by side with the other suspects, before all other jobs. If the process dies again, each of "
    "them runs alone."
)


def suspicion(situation: JobExplanation) -> tuple[str, ...]:
    """Why it runs before others, and beside which; nothing where it is not a suspect."""
    if situation.suspects_ahead is None:
        return ()
    return (_TOGETHER if situation.runs_together else _SUSPECT,)


def after_crash(situation: JobExplanation) -> tuple[str, ...]:
    """How the job will run after its holder died, if it does not run alone, or no longer does."""
    if not situation.runs_together:
        return ()
    if situation.suspects_ahead is None:
        return ("Then it runs once more, side by side with the other jobs that were in flight.",)
    return ("It ran together with other suspects when its process died, so from now on it runs alone.",)


def owner(shard: ShardDetails) -> str:
    """The current or the last holder of the shard."""
    return shard.owner or "an unknown process"


def no_holder(shard: ShardDetails) -> str:
    """A holder whose writes are rejected. Redis has one flag for both causes."""
    return f"Redis rejects the writes of the holder, {owner(shard)}, which was evicted or gave up"


def held_for(shard: ShardDetails) -> str:
    """The time since the holder acquired the shard."""
    return "" if shard.acquired_at is None else f" for {ago(shard, shard.acquired_at)}"


def ended(shard: ShardDetails) -> str:
    """The time since the lease ended; empty after a release."""
    return f" (its lease ended {ago(shard, shard.held_until)} ago)" if shard.held_until else ""


def ago(shard: ShardDetails, moment: float) -> str:
    """The time from a moment until the shard was read."""
    return duration(max(0.0, shard.at - moment))


def ids(count: int) -> str:
    """A number of ids."""
    return f"{exact(count)} id{'s' if count != 1 else ''}"


def times(count: int) -> str:
    """A number of times."""
    return {1: "once", 2: "twice"}.get(count, f"{exact(count)} times")


def expiry(situation: JobExplanation) -> tuple[str, ...]:
    """For how long the oldest payload may still be handed over; nothing if that has no end."""
    if situation.expires_at is None:
        return ()
    left = situation.expires_at - situation.shard.at
    if left < 0:
        return (f"Its oldest payload expired {duration(-left)} ago: it leaves the queue when it is claimed.",)
    return (f"Its oldest payload expires in {duration(left)}: a drain that comes later does not perform it.",)


_LONGEST: Final = 200
"""Characters of an error in a sentence."""


def error_of(failure: Failure) -> str:
    """The type and the message of the error."""
    line = next(iter(failure.error.strip().splitlines()), "").rstrip(". ")
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line


def decided_by(failure: Failure) -> str:
    """The rule that decided about it. The error of what has expired says so itself."""
    return f"; {failure.rule} decided about it" if failure.rule not in {"", EXPIRED} else ""


def failed(situation: JobExplanation) -> str:
    """How often it has failed, with which error, and how long ago: "failed once (…)"."""
    count = times(int(situation.retry_count) + 1)
    if not situation.failures:
        return f"failed {count}"
    last = situation.failures[0]
    which = "" if situation.retry_count < 1 else "the last time "
    return f"failed {count} ({which}with {error_of(last)}, {ago(situation.shard, last.at)} ago{decided_by(last)})"


def retry(situation: JobExplanation, max_retry_count: int | None) -> str:
    """Which of its retries is the next."""
    number = int(situation.retry_count) + 1
    return f"retry {number}" if max_retry_count is None else f"retry {number} of {max(number, max_retry_count)}"


def has_failed(situation: JobExplanation, max_retry_count: int | None) -> tuple[str, ...]:
    """A sentence on what waits, or is in flight, after a failure."""
    if situation.retry_count < 0:
        return ()
    return (f"It {failed(situation)}; this is {retry(situation, max_retry_count)}.",)


def why_dead(situation: JobExplanation, dead_since: float) -> str:
    """Why its last payload died: a failure is noted at the time of the death that it led to."""
    last = next((failure for failure in situation.failures if failure.at == dead_since), None)
    if last is not None and last.error == CRASHED:
        return "the process died each time this job ran alone"
    if last is not None and last.rule in _SAYS_WHY:
        return _SAYS_WHY[last.rule].format(error_of(last))
    if last is not None:
        count = int(last.retry_count) + 1
        tries = "its only try failed, with" if count == 1 else f"all {count:,} tries failed, the last one with"
        rule = f"; {last.rule} decided that there is no other" if last.rule else ""
        return f"{tries} {error_of(last)}{rule}"
    if not situation.failures:
        return "an operator killed it before it had ever failed"
    newest = situation.failures[0]
    if newest.at > dead_since:
        # The note is of another payload of the id: the note of this one is gone.
        return f"its error is kept with it in the morgue; since then the id failed with {error_of(newest)}"
    return f"an operator killed it; before, it had failed with {error_of(newest)}"
