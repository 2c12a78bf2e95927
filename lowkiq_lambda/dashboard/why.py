"""Why a job is not running: one sentence, made of what was read of it at one moment."""

import math
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.formatting import duration, exact
from lowkiq_lambda.dashboard.why_words import CAUSES, ago, ended, held_for, ids, no_holder, owner, times
from lowkiq_lambda.views import JobExplanation, ShardDetails

STRIKES: Final = 3
"""In recover.lua, too: strikes that send a payload to the morgue."""
_LATELY: Final = 60.0
"""Seconds within which somebody came by who may be expected to come again."""
_SOON: Final = 5.0
"""Seconds after which it is worth a look why nobody comes."""


class Answer(msgspec.Struct, frozen=True):
    """`sentence` answers; `more` adds to it; `next_at` is when something is to be expected, in Unix seconds."""

    kind: str
    sentence: str
    next_at: float | None = None
    more: tuple[str, ...] = ()


def why(seen: JobExplanation) -> Answer:
    """Why the job of this situation is not running, or that it is."""
    if seen.in_flight:
        return _in_flight(seen)
    if seen.perform_in is None:
        return _not_waiting(seen)
    if seen.closed:
        return Answer(
            "closed",
            "Its shard is closed: the queue was declared anew with another declaration, and nobody drains this "
            "one under the old declaration.",
        )
    answer = _obstacle(seen, seen.perform_in) or _free(seen, seen.perform_in)
    return msgspec.structs.replace(answer, more=answer.more + _remarks(seen))


def _in_flight(seen: JobExplanation) -> Answer:
    shard = seen.shard
    waits = () if seen.perform_in is None else ("More payloads wait under this id: they run after those in flight.",)
    if not shard.is_held:
        return Answer(
            "holder died",
            f"It was in flight when its holder, {owner(shard)}, left without settling it{ended(shard)}. Whoever "
            "drains the shard next puts it back first.",
            _later_of_pause(shard),
            _whether_drained(shard) + waits,
        )
    if shard.gave_up:
        return Answer(
            "let go",
            f"It is in flight, but {no_holder(shard)}. The shard is free in {duration(shard.lease_left)}; then it is "
            "handed over again.",
            shard.held_until,
            waits,
        )
    return Answer(
        "in flight",
        f"It is in flight right now: {owner(shard)} has held its shard{held_for(shard)}, with {ids(shard.in_flight)} "
        "claimed.",
        None,
        waits,
    )


def _not_waiting(seen: JobExplanation) -> Answer:
    if seen.buried_at is not None:
        return Answer(
            "in the morgue",
            f"It has been in the morgue for {ago(seen.shard, seen.buried_at)}: its retries are used up, or somebody "
            "sent it there. It runs again only when somebody puts it back.",
        )
    return Answer(
        "unknown",
        "Nothing waits, runs or lies in the morgue under this id: it was performed, it was deleted, or it was never "
        "pushed.",
    )


def _obstacle(seen: JobExplanation, perform_in: float) -> Answer | None:
    """What lies outside of the shard's ordinary course."""
    shard = seen.shard
    is_suspect = seen.suspects_ahead is not None
    due_at = shard.at if is_suspect else max(perform_in, shard.at)
    if shard.is_paused and (shard.paused_until or 0.0) >= due_at:
        return _paused(shard, due_at)
    if due_at > shard.at:
        return _due_later(seen, due_at)
    if shard.is_held and shard.gave_up:
        return Answer(
            "held",
            f"Its shard is still set apart, though {no_holder(shard)}. It is free in {duration(shard.lease_left)}.",
            shard.held_until,
        )
    if shard.is_held:
        return Answer(
            "suspect" if is_suspect else "held",
            f"Its shard has been held by {owner(shard)}{held_for(shard)}, and {_turn(seen)}.",
            None,
            (f"The lease ends in {duration(shard.lease_left)} unless its holder renews it.",),
        )
    return None


def _paused(shard: ShardDetails, due_at: float) -> Answer:
    until = shard.paused_until or 0.0
    due = "it is due" if due_at <= shard.at else f"it is due in {duration(due_at - shard.at)}"
    if math.isinf(until):
        return Answer("paused", f"Its queue is paused until somebody resumes it; {due}.")
    return Answer("paused", f"Its queue is paused for another {duration(until - shard.at)}; {due}.", until)


def _due_later(seen: JobExplanation, due_at: float) -> Answer:
    left = duration(due_at - seen.shard.at)
    if seen.retry_count < 0:
        return Answer("due later", f"It is not due yet: it waits for another {left}.", due_at)
    failed = times(int(seen.retry_count) + 1)
    return Answer("retry later", f"It failed {failed} and is tried again in {left}.", due_at)


def _free(seen: JobExplanation, perform_in: float) -> Answer:
    """Nobody holds the shard, and the job's time has come."""
    shard = seen.shard
    due = f"It has been due for {duration(max(0.0, shard.at - perform_in))}" if perform_in <= shard.at else "It may run"
    if shard.lost_its_holder:
        return Answer(
            "holder died",
            f"{due}, but the holder of its shard, {owner(shard)}, left with {ids(shard.in_flight)} in flight"
            f"{ended(shard)}. Whoever drains the shard next puts them back first.",
            None,
            (f"Then {_turn(seen)}.", *_whether_drained(shard)),
        )
    if shard.woken_until is not None and shard.woken_until > shard.at:
        return Answer(
            "woken",
            f"{due}, and a drain was just told to start; if none comes within "
            f"{duration(shard.woken_until - shard.at)}, another may be started.",
            shard.woken_until,
            (f"When it comes, {_turn(seen)}.",),
        )
    if shard.acquired_at is None:
        return Answer(
            "nobody drains",
            f"{due}, but nobody has ever drained its shard: no daemon and no scheduled drain has been seen.",
            None,
            (*_causes(seen), f"When one comes, {_turn(seen)}."),
        )
    return _nobody_came(seen, perform_in, shard.acquired_at, due)


def _nobody_came(seen: JobExplanation, perform_in: float, acquired_at: float, due: str) -> Answer:
    shard = seen.shard
    ahead = "behind others" if _ahead(seen) else "next"
    kind = ahead if seen.suspects_ahead is None else "suspect"
    took = f"{ago(shard, acquired_at)} ago{ended(shard)}"
    sentence = f"{due}. {owner(shard)} took its shard {took} and left it; no free process has come since."
    last: tuple[str, ...] = ()
    if acquired_at < perform_in:
        sentence = f"{due}, and no free process has come for its shard since."
        last = (f"{owner(shard)} took it last, {took}.",)
    return Answer(
        "nobody drains" if shard.at - acquired_at >= _LATELY else kind,
        sentence,
        None,
        (*last, *_causes(seen), f"When one comes, {_turn(seen)}."),
    )


def _causes(seen: JobExplanation) -> tuple[str, ...]:
    """What may be the matter, where it has lasted for longer than a process takes to come."""
    since = max(seen.perform_in or 0.0, seen.shard.acquired_at or 0.0)
    return (CAUSES,) if seen.shard.at - since >= _SOON else ()


def _remarks(seen: JobExplanation) -> tuple[str, ...]:
    remarks = []
    if seen.suspects_ahead is not None:
        remarks.append(
            "It is a suspect: it failed in company, or its process died while it was in flight. So it runs alone, "
            "ahead of what is no suspect."
        )
    if seen.strikes:
        remarks.append(
            f"Nothing more was heard of its process {times(seen.strikes)} while it ran alone; after the third "
            "time it goes to the morgue."
        )
    if seen.buried_at is not None:
        remarks.append(f"Other payloads of it came to the morgue {ago(seen.shard, seen.buried_at)} ago.")
    if seen.least_version is not None:
        remarks.append(f"Only libraries with contract version {seen.least_version} or newer may drain its shard.")
    return tuple(remarks)


def _turn(seen: JobExplanation) -> str:
    ahead = _ahead(seen)
    if not ahead:
        return "it is the next in turn"
    if seen.suspects_ahead is not None:
        return f"as a suspect it waits for its turn behind {exact(ahead)} other{'s' if ahead > 1 else ''}"
    suspects = seen.shard.suspects
    alone = f", {exact(suspects)} of them suspects that run alone first" if suspects else ""
    return f"it waits behind {exact(ahead)} other{'s' if ahead > 1 else ''}{alone}"


def _ahead(seen: JobExplanation) -> int:
    return seen.ahead if seen.suspects_ahead is None else seen.suspects_ahead


def _whether_drained(shard: ShardDetails) -> tuple[str, ...]:
    if shard.is_paused:
        until = shard.paused_until or 0.0
        left = "until somebody resumes it" if math.isinf(until) else f"for another {duration(until - shard.at)}"
        return (f"Its queue is paused {left}.",)
    since = shard.at - max(shard.held_until, shard.acquired_at or 0.0)
    if since < _LATELY:
        return ()
    return (f"Nobody has come for {duration(since)}: no daemon and no scheduled drain has been seen there since.",)


def _later_of_pause(shard: ShardDetails) -> float | None:
    return shard.paused_until if shard.is_paused and not math.isinf(shard.paused_until or 0.0) else None
