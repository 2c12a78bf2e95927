"""Ways to spoil a sound history, each with the claim that it breaks."""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from tests.proof.generated import EXPIRING, FAILING
from tests.proof.history import Event
from tests.proof.history.events import What

Events = list[Event]


class Spoiling(NamedTuple):
    """What is done to a history; None if it has no place for that."""

    claim: str
    act: Callable[[random.Random, Events], Events | None]


def changed(event: Event, **fields: object) -> Event:
    """The same event but for these fields."""
    return msgspec.structs.replace(event, **fields)


def places(events: Events, what: What, **fields: object) -> list[int]:
    """The positions of the good ids' events of a kind that have these fields."""
    return [
        at
        for at, event in enumerate(events)
        if event.what == what
        and not event.id.startswith(FAILING)
        and all(getattr(event, name) == value for name, value in fields.items())
    ]


def answered(events: Events) -> set[tuple[str, int]]:
    """The payloads whose push was answered, with their ids."""
    return {(e.id, n) for e in events if e.what == "push-end" and e.outcome == "ok" for n in e.numbers}


def behind(events: Events, what: Callable[[Event], bool], at: int) -> int | None:
    """The position of the next event like that."""
    return next((place for place in range(at + 1, len(events)) if what(events[place])), None)


def _same_run(one: Event, other: Event) -> bool:
    return (one.id, one.process, one.token) == (other.id, other.process, other.token)


def settled_run(rng: random.Random, events: Events) -> tuple[int, int, int] | None:
    """The begin, the end and the settling of some run."""
    settled = [at for at in places(events, "settled") if events[at].id]
    if not settled:
        return None
    at = rng.choice(settled)
    begin = next(n for n in reversed(range(at)) if events[n].what == "begin" and _same_run(events[n], events[at]))
    end = behind(events, lambda event: event.what == "end" and _same_run(event, events[at]), begin)
    assert end is not None
    return begin, end, at


def drop(rng: random.Random, events: Events) -> Events | None:
    """A payload whose push was answered is in no run."""
    pushes = [at for at in places(events, "push-end", outcome="ok") if events[at].id != EXPIRING]
    if not pushes:
        return None
    push = events[rng.choice(pushes)]
    number = rng.choice(push.numbers)
    return [
        changed(event, numbers=[n for n in event.numbers if n != number])
        if event.id == push.id and event.what == "begin"
        else event
        for event in events
    ]


def invent(rng: random.Random, events: Events) -> Events | None:
    """A handler gets what nobody has pushed."""
    at = rng.choice(places(events, "begin"))
    return [*events[:at], changed(events[at], numbers=[*events[at].numbers, 999]), *events[at + 1 :]]


def double(rng: random.Random, events: Events) -> Events | None:
    """A run comes again that was settled."""
    if (run := settled_run(rng, events)) is None:
        return None
    begin, end, at = run
    later = events[at].at + 0.001
    return [
        *events[: at + 1],
        changed(events[begin], at=later, repeated=True),
        changed(events[end], at=later + 0.001),
        *events[at + 1 :],
    ]


def untell(rng: random.Random, events: Events) -> Events | None:
    """A run is not told that it repeats another."""
    again = places(events, "begin", repeated=True)
    if not again:
        return None
    at = rng.choice(again)
    return [*events[:at], changed(events[at], repeated=False), *events[at + 1 :]]


def leave_twice(rng: random.Random, events: Events) -> Events | None:
    """A dead payload lies in the morgue twice."""
    dead = [at for at, event in enumerate(events) if event.what == "left" and event.numbers]
    if not dead:
        return None
    at = rng.choice(dead)
    return [*events[: at + 1], events[at], *events[at + 1 :]]


def leave_reversed(rng: random.Random, events: Events) -> Events | None:
    """What is left of an id lies in the wrong order."""
    pushes = [at for at in places(events, "push-end", outcome="unknown") if len(events[at].numbers) > 1]
    begun = {(event.id, number) for event in events if event.what == "begin" for number in event.numbers}
    open_pushes = [at for at in pushes if not begun & {(events[at].id, n) for n in events[at].numbers}]
    if not open_pushes:
        return None
    push = events[rng.choice(open_pushes)]
    return [*events, changed(push, what="left", at=events[-1].at, outcome="waiting", numbers=push.numbers[::-1])]


def settle_nothing(rng: random.Random, events: Events) -> Events | None:
    """An end is acknowledged that no handler has noted."""
    at = rng.choice(places(events, "begin"))
    return [*events[:at], changed(events[at], what="settled", numbers=[]), *events[at:]]


def swap(rng: random.Random, events: Events) -> Events | None:
    """Two runs of an id have each other's payloads."""
    pairs = []
    last: dict[str, int] = {}
    dead = {(event.id, number) for event in events if event.what == "left" for number in event.numbers}
    written = answered(events) - dead
    for at in places(events, "begin"):
        before = last.get(events[at].id)
        is_next = before is not None and events[before].numbers[-1] < events[at].numbers[0]
        if before is not None and is_next and {(events[at].id, n) for n in events[before].numbers} <= written:
            pairs.append((before, at))
        last[events[at].id] = at
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    spoilt = [*events]
    spoilt[one] = changed(events[one], numbers=events[other].numbers)
    spoilt[other] = changed(events[other], numbers=events[one].numbers, repeated=True)
    return spoilt


def reverse(rng: random.Random, events: Events) -> Events | None:
    """The payloads of a run do not ascend."""
    many = [at for at in places(events, "begin") if len(events[at].numbers) > 1]
    if not many:
        return None
    at = rng.choice(many)
    return [*events[:at], changed(events[at], numbers=events[at].numbers[::-1]), *events[at + 1 :]]


def overlap(rng: random.Random, events: Events) -> Events | None:
    """Another process has the same id in the middle of a run."""
    if (run := settled_run(rng, events)) is None:
        return None
    begin, end, _ = run
    other = changed(events[begin], at=events[begin].at + 0.001, process=77, repeated=True)
    return [
        *events[: begin + 1],
        other,
        changed(events[end], at=other.at + 0.001, process=77),
        *events[begin + 1 :],
    ]


def _overlaps(rng: random.Random, events: Events) -> tuple[int, int, int] | None:
    """The begin and the end of a run that has outlived its lease, and the begin of another one between them."""
    stale = places(events, "end", outcome="stale")
    for end in rng.sample(stale, len(stale)):
        begin = next(n for n in reversed(range(end)) if events[n].what == "begin" and _same_run(events[n], events[end]))
        others = [n for n in places(events, "begin", id=events[end].id) if begin < n < end]
        if others:
            return begin, others[0], end
    return None


def hold_on(rng: random.Random, events: Events) -> Events | None:
    """A run still holds its lease while another one has begun, though it says later that it had lost it."""
    if (places_of := _overlaps(rng, events)) is None:
        return None
    begin, other, end = places_of
    seen = changed(events[begin], what="holds", numbers=[], at=events[other].at + 0.001)
    return [*events[: other + 1], seen, *events[other + 1 : end], *events[end:]]


def excuse_wrongly(rng: random.Random, events: Events) -> Events | None:
    """Of two runs that overlap the younger holder says that it had lost its lease, and the older one does not."""
    if (places_of := _overlaps(rng, events)) is None:
        return None
    _, other, end = places_of
    younger = behind(events, lambda event: event.what == "end" and _same_run(event, events[other]), other)
    assert younger is not None
    spoilt = [*events]
    spoilt[end], spoilt[younger] = changed(events[end], outcome="done"), changed(events[younger], outcome="stale")
    return spoilt


def overlap_itself(rng: random.Random, events: Events) -> Events | None:
    """One holder has an id twice at once, and says of both that it had lost its lease."""
    if (run := settled_run(rng, events)) is None:
        return None
    begin, end, _ = run
    twins = [changed(events[end], outcome="stale", at=events[end].at + step) for step in (0.0, 0.001)]
    again = changed(events[begin], at=events[begin].at + 0.001, repeated=True)
    return [*events[: begin + 1], again, *events[begin + 1 : end], *twins, *events[end + 1 :]]


def fall(rng: random.Random, events: Events) -> Events | None:
    """A run has a lower token than one before it."""
    for _ in range(20):
        if (run := settled_run(rng, events)) is None:
            return None
        begin = events[run[0]]
        earlier = [n for n in places(events, "begin", id=begin.id) if n < run[0]]
        # An eviction would take the lease from all lower tokens.
        evicted = [event for event in events[: run[0]] if event.what == "evicted" and event.scope == begin.scope]
        if earlier and not evicted:
            return [changed(event, token=-1) if n in run else event for n, event in enumerate(events)]
    return None


def write_late(rng: random.Random, events: Events) -> Events | None:
    """A store takes an older payload last."""
    newest = dict(sorted(answered(events)))
    old = [at for at in places(events, "write") if events[at].numbers[-1] < newest.get(events[at].id, 0)]
    if not old:
        return None
    at = rng.choice(old)
    return [*events, changed(events[at], at=events[-1].at + 1.0, token=999)]


def crowd(rng: random.Random, events: Events) -> Events | None:
    """Two more holders have ids at once."""
    at = rng.choice(places(events, "begin"))
    more = [changed(events[at], at=events[at].at + 0.001, id=f"more-{n}", process=70 + n, numbers=[]) for n in range(2)]
    more.append(changed(more[0], id="more-2", process=72))
    ends = [changed(each, what="end", at=each.at + 0.001, outcome="done") for each in more]
    return [*events[: at + 1], *more, *ends, *events[at + 1 :]]


def hurry(rng: random.Random, events: Events) -> Events | None:
    """More ids begin at once than the rate allows."""
    at = rng.choice(places(events, "begin"))
    more = [changed(events[at], at=events[at].at + 0.001, id=f"more-{n}", process=70, numbers=[]) for n in range(7)]
    return [*events[: at + 1], *more, *events[at + 1 :]]


def end_item_twice(rng: random.Random, events: Events) -> Events | None:
    """An item of a task ends twice."""
    at = rng.choice(places(events, "item-end"))
    return [*events[:at], events[at], *events[at:]]


def end_item_otherwise(_rng: random.Random, events: Events) -> Events | None:
    """An item ends with another status than it has to."""
    (at,) = places(events, "item-end", outcome="done")
    return [*events[:at], changed(events[at], outcome="failed"), *events[at + 1 :]]


def forget_item(rng: random.Random, events: Events) -> Events | None:
    """A task completes though an item is open."""
    at = rng.choice(places(events, "item-end"))
    return [*events[:at], *events[at + 1 :]]


def complete_twice(_rng: random.Random, events: Events) -> Events | None:
    """A task's callback comes twice."""
    (at,) = places(events, "completed")
    return [*events[:at], events[at], *events[at:]]


def fire_twice(rng: random.Random, events: Events) -> Events | None:
    """A planned time fires twice."""
    at = rng.choice(places(events, "fired"))
    return [*events[:at], events[at], *events[at:]]


def leave_out(rng: random.Random, events: Events) -> Events | None:
    """A planned time does not fire."""
    at = rng.choice(places(events, "fired"))
    return [*events[:at], *events[at + 1 :]]


def chance(rng: random.Random, events: Events, *, more: bool) -> Events | None:
    """A payload that always fails has one chance more, or less."""
    runs = [at for at, event in enumerate(events) if event.what == "begin" and event.id.startswith(FAILING)]
    runs = [at for at in runs if (events[at].id, events[at].numbers[0]) in answered(events)]
    if not runs:
        return None
    at = rng.choice(runs)
    end = behind(events, lambda event: event.what == "end" and _same_run(event, events[at]), at)
    assert end is not None
    if not more:
        return [event for n, event in enumerate(events) if n not in (at, end)]
    again = [changed(events[n], at=events[end].at + 0.001, repeated=True) for n in (at, end)]
    return [*events[: end + 1], *again, *events[end + 1 :]]


def hand_over_late(rng: random.Random, events: Events) -> Events | None:
    """A payload is handed over that was over before."""
    ((at, expires),) = [(n, e.expires) for n, e in enumerate(events) if e.what == "push-begin" and _is_over(e, events)]
    (begin,) = places(events, "begin", id=EXPIRING)
    late = rng.choice(events[at].numbers)
    assert expires is not None
    assert events[begin].at > expires
    return [*events[:begin], changed(events[begin], numbers=[late, *events[begin].numbers]), *events[begin + 1 :]]


def drop_early(_rng: random.Random, events: Events) -> Events | None:
    """A payload is dropped whose time is not over at the end."""
    (begin,) = places(events, "begin", id=EXPIRING)
    numbers = events[begin].numbers[:-1]
    return [*events[:begin], changed(events[begin], numbers=numbers), *events[begin + 1 :]]


def _is_over(push: Event, events: Events) -> bool:
    performed = {number for at in places(events, "begin", id=push.id) for number in events[at].numbers}
    return push.expires is not None and not performed & {*push.numbers}


SPOILINGS: Final = {
    "drop": Spoiling("P2", drop),
    "invent": Spoiling("P2", invent),
    "double": Spoiling("P2", double),
    "untold repeat": Spoiling("P2", untell),
    "dead twice": Spoiling("P2", leave_twice),
    "settled unnoted": Spoiling("P2", settle_nothing),
    "swap": Spoiling("P3", swap),
    "reverse": Spoiling("P3", reverse),
    "left in disorder": Spoiling("P3", leave_reversed),
    "overlap": Spoiling("P1", overlap),
    "overlap of who still holds": Spoiling("P1", hold_on),
    "overlap that the wrong one excuses": Spoiling("P1", excuse_wrongly),
    "overlap with itself": Spoiling("P1", overlap_itself),
    "token falls": Spoiling("P4", fall),
    "stale write": Spoiling("P4", write_late),
    "one chance more": Spoiling("P7", lambda rng, events: chance(rng, events, more=True)),
    "one chance less": Spoiling("P7", lambda rng, events: chance(rng, events, more=False)),
    "expired, and handed over": Spoiling("expiry", hand_over_late),
    "dropped before its time": Spoiling("P2", drop_early),
    "too many at once": Spoiling("limits", crowd),
    "too many in a window": Spoiling("limits", hurry),
    "item ends twice": Spoiling("tasks", end_item_twice),
    "item ends otherwise": Spoiling("tasks", end_item_otherwise),
    "item never ends": Spoiling("tasks", forget_item),
    "task completes twice": Spoiling("tasks", complete_twice),
    "time fires twice": Spoiling("schedules", fire_twice),
    "time left out": Spoiling("schedules", leave_out),
}
