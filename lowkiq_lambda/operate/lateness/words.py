"""Why a queue is late, in words: one sentence for each cause, the numbers behind it, and what helps."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.operate.lateness.causes import ENOUGH, IDLE, LOOKED, held_minutes
from lowkiq_lambda.operate.lateness.minutes import Minute, Present
from lowkiq_lambda.views.lateness import Cause, Lateness

_SHORT, _TWO_MINUTES, _TWO_HOURS = 10.0, 120.0, 7_200.0
NOT_WATCHED: Final = (
    "Look again in some minutes; with LOWKIQ_HISTORY_DAYS=30 the minutes that tell the cause are always kept."
)


def lasting(seconds: float) -> str:
    """A duration for a sentence.

    >>> lasting(0.01234), lasting(3), lasting(95), lasting(600), lasting(9_000)
    ('12.3 ms', '3.0 s', '95 s', '10 minutes', '2.5 hours')
    """
    if seconds < 1:
        return f"{seconds * 1_000:.3g} ms"
    if seconds < _TWO_MINUTES:
        return f"{seconds:.1f} s" if seconds < _SHORT else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < _TWO_HOURS else f"{seconds / 3_600:.1f} hours"


class LateWords(NamedTuple):
    """A clause with the cause, the numbers that it is judged by, and what helps."""

    clause: str
    evidence: tuple[str, ...] = ()
    advice: str = ""


def in_words(cause: Cause | None, minutes: Sequence[Minute], present: Present, looked: int) -> LateWords:
    """The words for a cause, by the minutes that are known; `looked`: how many of them were judged, 0 for none."""
    last = minutes[-1] if minutes else None
    if cause == "somebody is at it":
        return LateWords(present.at_it, (), "Wait until that is over: what is measured until then may be its effect.")
    if cause is None or last is None:
        if looked < LOOKED - 1:
            return LateWords(f"{looked} of the last {LOOKED} minutes are known", _numbers(last, present), NOT_WATCHED)
        return LateWords(_nearest(minutes[-looked:], present), _numbers(last, present))
    clause, advice = _OF_CAUSE[cause](last, present)
    return LateWords(clause, _numbers(last, present), advice)


def lines_of(late: Lateness) -> list[str]:
    """All of it for a terminal: the sentence, in how many minutes it held, the numbers, and what helps."""
    lines = [late.says]
    if late.cause is not None:
        held = f"in {late.minutes} of the last {late.looked} minutes" if late.looked else "by the present moment alone"
        lines.append(f"Cause: {late.cause}, {held}.")
    lines += [f"  {line}" for line in late.evidence]
    return [*lines, f"-> {late.advice}"] if late.advice else lines


def _nearest(minutes: Sequence[Minute], present: Present) -> str:
    """Of the causes that do not hold for long enough, that which holds for longest; of equal ones the first."""
    cause, count = max(held_minutes(minutes, present), key=lambda each: each[1])
    if not count:
        return "no known cause holds"
    return f'the cause "{cause}" holds for {count} of {len(minutes)} minutes, and {ENOUGH} are needed'


def _failures(last: Minute, present: Present) -> tuple[str, str]:
    advice = "See its errors, and mend the handler: more calls on what fails make it worse."
    ends = last.ended + last.failed
    if last.failed and ends:
        return f"{last.failed * 100 / ends:.0f}% of its outcomes are failures", advice
    if present.suspects:
        return f"{present.suspects} ids run alone, as they failed in company or their process died", advice
    return f"{last.retries:,} of its {last.length:,} waiting ids have failed and are tried again", advice


def _limits(_last: Minute, present: Present) -> tuple[str, str]:
    advice = "Raise that limit if what it protects has room: on the page Limits, or by app.operate(worker).limits.set."
    return f"{present.limits or 'a limit'} sets the pace", advice


def _slow(last: Minute, present: Present) -> tuple[str, str]:
    usual = "" if present.usual is None else f", and usually {lasting(present.usual)}"
    advice = "Look at what the handler calls: more calls on a sick service make it sicker."
    return f"a call takes {lasting(last.took or 0.0)}{usual}", advice


def _processor(last: Minute, _present: Present) -> tuple[str, str]:
    used = f"{(last.processors or 0.0) * 100:.0f}% of the processors that they may use"
    advice = "More processes or more memory of the function, and not more shards or threads."
    return f"its processes are at {used}", advice


def _compute(last: Minute, present: Present) -> tuple[str, str]:
    late = last.late(present.limit)
    waiting = sum(shard.lacks_holder(present.waits) for shard in late)
    advice = "Start more processes or threads, or more schedules on AWS: more shards would only wait elsewhere."
    if not waiting:
        return f"{last.threads} threads drain {last.working} shards with work", advice
    nobody = "no process drains" if not last.threads else f"{last.threads} threads drain all queues"
    return f"{waiting} of its {len(late)} late shards wait for a process that takes them, and {nobody}", advice


def _hot(_last: Minute, present: Present) -> tuple[str, str]:
    share = f"{(present.hot or 0.0) * 100:.0f}%"
    part = f"the id {present.hottest!r} has {present.part:.0%} of what is due in its shard"
    clause = f"{part}, and twice the shards would leave {share}"
    advice = "Spread its work over several ids, raise payloads_at_once, or make the handler faster: shards do not help."
    return f"{clause} of the busiest shard's load in one", advice


def _slots(last: Minute, present: Present) -> tuple[str, str]:
    computing = last.computing if present.computing is None else present.computing
    clause = f"the slots of its shards are full of calls that wait: {(computing or 0.0) * 100:.0f}% of their time is"
    advice = f"Set the worker's concurrency above {present.concurrency}: nothing moves"
    if present.most is not None:
        advice = f"Wait: holders raise its concurrency, {present.concurrency} now, to {present.most} at most"
    return f"{clause} computing", f"{advice} (below {IDLE:.0%} that costs little)."


def _shards(last: Minute, present: Present) -> tuple[str, str]:
    full = sum(shard.is_full for shard in last.late(present.limit))
    clause = f"{full} of its {present.shards} shards are full, and nothing else is short"
    return clause, f"Give it more shards: lowkiq reshard QUEUE --to {2 * present.shards}."


_OF_CAUSE: Final = {
    "failures": _failures,
    "limits": _limits,
    "slow handlers": _slow,
    "processor": _processor,
    "compute": _compute,
    "hot ids": _hot,
    "slots": _slots,
    "shards": _shards,
}


def _numbers(last: Minute | None, present: Present) -> tuple[str, ...]:
    """The last minute in numbers."""
    if last is None:
        return ()
    late = last.late(present.limit)
    lines = [f"late shards: {len(late)} of {len(last.shards)}"]
    if late and last.seconds:
        busy, held = (sum(values) / len(late) for values in ([s.busy for s in late], [s.held for s in late]))
        lines.append(f"of these shards, slots busy {min(1.0, busy):.0%}, under a lease {held:.0%} of the minute")
    if last.seconds:
        lines.append(f"ended {last.ended:,}, failed {last.failed:,} ids in {lasting(last.seconds)}")
    if last.took is not None and last.fill is not None:
        lines.append(f"a call took {lasting(last.took)} and had {last.fill:.1f} ids")
    if last.computing is not None:
        lines.append(f"computing {last.computing:.0%} of a call")
    if last.processors is not None:
        lines.append(f"processors of the holders {last.processors:.0%} at work")
    lines.append(f"threads {last.threads}, shards with work {last.working}")
    return tuple(lines)
