"""Why a job is not running: one sentence, made of what was read of it at one moment."""

import math
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.formatting import duration, exact
from lowkiq_lambda.views import ShardView, Situation

STRIKES: Final = 3
"""How often an id's process may die while it runs alone."""
_LATELY: Final = 60.0
"""Seconds within which somebody came by who may be expected to come again."""


class Answer(msgspec.Struct, frozen=True):
    """`sentence` answers; `more` adds to it; `next_at` is when something is to be expected, in Unix seconds."""

    kind: str
    sentence: str
    next_at: float | None = None
    more: tuple[str, ...] = ()


def why(seen: Situation) -> Answer:
    """Why the job of this situation is not running, or that it is."""
    if seen.in_flight:
        return _in_flight(seen)
    if seen.perform_in is None:
        return _not_waiting(seen)
    if seen.closed:
        return Answer(
            "closed",
            "Its shard is closed: the queue was declared anew with another number of shards, and nobody drains this "
            "one under the old declaration.",
        )
    answer = _obstacle(seen, seen.perform_in) or _free(seen, seen.perform_in)
    return msgspec.structs.replace(answer, more=answer.more + _remarks(seen))


def _in_flight(seen: Situation) -> Answer:
    shard = seen.shard
    waits = () if seen.perform_in is None else ("More payloads wait under this id: they run after those in flight.",)
    if not shard.is_held:
        return Answer(
            "holder died",
            f"It was in flight when its holder, {_owner(shard)}, left without settling it{_ended(shard)}. Whoever "
            "drains the shard next puts it back first.",
            _later_of_pause(shard),
            _whether_drained(shard) + waits,
        )
    if shard.gave_up:
        return Answer(
            "let go",
            f"It is in flight, but {_no_holder(shard)}. The shard is free in {duration(shard.lease_left)}; then it is "
            "handed over again.",
            shard.held_until,
            waits,
        )
    return Answer(
        "in flight",
        f"It is in flight right now: {_owner(shard)} has held its shard{_for(shard)}, with {_ids(shard.busy)} claimed.",
        None,
        waits,
    )


def _not_waiting(seen: Situation) -> Answer:
    if seen.buried_at is not None:
        return Answer(
            "in the morgue",
            f"It has been in the morgue for {_ago(seen.shard, seen.buried_at)}: its retries are used up, or somebody "
            "sent it there. It runs again only when somebody puts it back.",
        )
    return Answer(
        "unknown",
        "Nothing waits, runs or lies in the morgue under this id: it was performed, it was deleted, or it was never "
        "pushed.",
    )


def _obstacle(seen: Situation, perform_in: float) -> Answer | None:
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
            f"Its shard is still set apart, though {_no_holder(shard)}. It is free in {duration(shard.lease_left)}.",
            shard.held_until,
        )
    if shard.is_held:
        return Answer(
            "suspect" if is_suspect else "held",
            f"Its shard has been held by {_owner(shard)}{_for(shard)}, and {_turn(seen)}.",
            None,
            (f"The lease ends in {duration(shard.lease_left)} unless its holder renews it.",),
        )
    return None


def _paused(shard: ShardView, due_at: float) -> Answer:
    until = shard.paused_until or 0.0
    due = "it is due" if due_at <= shard.at else f"it is due in {duration(due_at - shard.at)}"
    if math.isinf(until):
        return Answer("paused", f"Its queue is paused until somebody resumes it; {due}.")
    return Answer("paused", f"Its queue is paused for another {duration(until - shard.at)}; {due}.", until)


def _due_later(seen: Situation, due_at: float) -> Answer:
    left = duration(due_at - seen.shard.at)
    if seen.retry_count < 0:
        return Answer("due later", f"It is not due yet: it waits for another {left}.", due_at)
    times = _times(int(seen.retry_count) + 1)
    return Answer("retry later", f"It failed {times} and is tried again in {left}.", due_at)


def _free(seen: Situation, perform_in: float) -> Answer:
    """Nobody holds the shard, and the job's time has come."""
    shard = seen.shard
    due = f"It has been due for {duration(max(0.0, shard.at - perform_in))}" if perform_in <= shard.at else "It may run"
    if shard.lost_its_holder:
        return Answer(
            "holder died",
            f"{due}, but the holder of its shard, {_owner(shard)}, left with {_ids(shard.busy)} in flight"
            f"{_ended(shard)}. Whoever drains the shard next puts them back first.",
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
            (f"When one comes, {_turn(seen)}.",),
        )
    if shard.at - shard.acquired_at < _LATELY:
        kind = "suspect" if seen.suspects_ahead is not None else "behind others" if _ahead(seen) else "next"
        last = f"{_owner(shard)} was the last to come, {_ago(shard, shard.acquired_at)} ago."
        return Answer(kind, f"{due}; nobody holds its shard at this moment, and {_turn(seen)}.", None, (last,))
    return Answer(
        "nobody drains",
        f"{due}, but nobody drains its shard: {_owner(shard)} was the last to come, {_ago(shard, shard.acquired_at)} "
        "ago. No daemon and no scheduled drain has been seen there since.",
        None,
        (f"When one comes, {_turn(seen)}.",),
    )


def _remarks(seen: Situation) -> tuple[str, ...]:
    remarks = []
    if seen.suspects_ahead is not None:
        remarks.append(
            "It is a suspect: it failed in company, or its process died while it was in flight. So it runs alone, "
            "ahead of what is no suspect."
        )
    if seen.strikes:
        remarks.append(
            f"Nothing more was heard of its process {_times(seen.strikes)} while it ran alone; after the {STRIKES}rd "
            "time it goes to the morgue."
        )
    if seen.buried_at is not None:
        remarks.append(f"Other payloads of it came to the morgue {_ago(seen.shard, seen.buried_at)} ago.")
    if seen.least_version is not None:
        remarks.append(f"Only libraries with contract version {seen.least_version} or newer may drain its shard.")
    return tuple(remarks)


def _turn(seen: Situation) -> str:
    ahead = _ahead(seen)
    if not ahead:
        return "it is the next in turn"
    if seen.suspects_ahead is not None:
        return f"as a suspect it waits for its turn behind {exact(ahead)} other{'s' if ahead > 1 else ''}"
    suspects = seen.shard.suspects
    alone = f", {exact(suspects)} of them suspects that run alone first" if suspects else ""
    return f"it waits behind {exact(ahead)} other{'s' if ahead > 1 else ''}{alone}"


def _ahead(seen: Situation) -> int:
    return seen.ahead if seen.suspects_ahead is None else seen.suspects_ahead


def _whether_drained(shard: ShardView) -> tuple[str, ...]:
    if shard.is_paused:
        until = shard.paused_until or 0.0
        left = "until somebody resumes it" if math.isinf(until) else f"for another {duration(until - shard.at)}"
        return (f"Its queue is paused {left}.",)
    since = shard.at - max(shard.held_until, shard.acquired_at or 0.0)
    if since < _LATELY:
        return ()
    return (f"Nobody has come for {duration(since)}: no daemon and no scheduled drain has been seen there since.",)


def _later_of_pause(shard: ShardView) -> float | None:
    return shard.paused_until if shard.is_paused and not math.isinf(shard.paused_until or 0.0) else None


def _owner(shard: ShardView) -> str:
    return shard.owner or "somebody"


def _no_holder(shard: ShardView) -> str:
    # One mark stands for both, as both have the same consequences.
    return f"nothing that its holder, {_owner(shard)}, writes is accepted any more: it gave up, or was evicted"


def _for(shard: ShardView) -> str:
    return "" if shard.acquired_at is None else f" for {_ago(shard, shard.acquired_at)}"


def _ended(shard: ShardView) -> str:
    return f" (its lease ended {_ago(shard, shard.held_until)} ago)" if shard.held_until else ""


def _ago(shard: ShardView, moment: float) -> str:
    return duration(max(0.0, shard.at - moment))


def _ids(count: int) -> str:
    return f"{exact(count)} id{'s' if count != 1 else ''}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{exact(count)} times")
