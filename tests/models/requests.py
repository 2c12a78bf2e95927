"""A model of acts on one id: two operators cancel, pause, edit and undo while holders run it, and its shard moves.

What one script does is one step here. A holder loses its lease, and settles late all the same. An operator looks, and
acts as late as it likes: a push, a claim or the other operator may come between. No two payloads are equal.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

NONE: Final = -1
OUTCOMES: Final = ("done", "returned", "failed")

Guard: TypeAlias = Literal[
    "honoured at the end",
    "honoured on recovery",
    "upto",
    "newer",
    "touched",
    "held back",
    "rests while in flight",
    "own time",
    "a row goes",
    "still waits",
    "failed since",
    "died since",
    "as it was seen",
    "requests travel",
]
"""What keeps the promises to operators: without one the model has to find what it prevents."""


class PlacedPayload(NamedTuple):
    """A payload in its place: its arrival number, its number, which edit it is of, and how often it failed."""

    arrival: int
    number: int
    version: int = 0
    failed: int = 0


class UndoRow(NamedTuple):
    """By which an act can be undone. `stamp`: the last change then; `was`: the one before. `at_rest`: never due."""

    run: int
    kind: Literal["put", "take", "edit"]
    entries: tuple[PlacedPayload, ...]
    old: PlacedPayload = PlacedPayload(0, 0)
    stamp: int = 0
    was: int = 0
    abandoned: bool = False
    at_rest: bool = False


class RequestedShard(NamedTuple):
    """`session`: who holds it, 0 nobody; `cancel`: up to which arrival number, or NONE. `late`: due at no time."""

    waiting: tuple[PlacedPayload, ...] = ()
    touched: int = 0
    flight: tuple[PlacedPayload, ...] = ()
    session: int = 0
    is_lost: bool = False
    cancel: int = NONE
    paused: bool = False
    abandoned: bool = False
    late: bool = False
    arrival: int = 0
    rows: tuple[UndoRow, ...] = ()
    run: int = 0


class ModelLook(NamedTuple):
    """What an operator saw: the last arrival number, and the first payload that waited."""

    arrival: int
    seen: PlacedPayload


NO_LOOK: Final = ModelLook(NONE, PlacedPayload(0, 0))


class RequestedWorld(NamedTuple):
    """The shard, and what is true of it: `done` and `gone` payloads, those that a cancel `doomed`, and `versions`."""

    shard: RequestedShard = RequestedShard()
    looks: tuple[ModelLook, ModelLook] = (NO_LOOK, NO_LOOK)
    pushed: int = 0
    sessions: int = 0
    running: frozenset[int] = frozenset()
    """The sessions that have not settled."""
    acts: int = 0
    fails: int = 0
    moves: int = 0
    done: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    doomed: frozenset[int] = frozenset()
    versions: tuple[tuple[int, int], ...] = ()
    edits: int = 0
    broken: str = ""


class RequestBounds(NamedTuple):
    """How far the model goes: pushes, sessions, acts of operators, failures, and moves."""

    pushes: int = 2
    sessions: int = 2
    acts: int = 3
    fails: int = 1
    moves: int = 0


def fault(world: RequestedWorld) -> str | None:
    """The promise that is broken, if any."""
    if world.broken:
        return world.broken
    places = [one.number for one in (*world.shard.waiting, *world.shard.flight)]
    places += [*world.done, *world.gone]
    if len(places) != len({*places}):
        return "a payload is in two places"
    if len(places) < world.pushed:
        return "a payload is lost"
    return "a job waits for ever" if world.shard.late and not world.shard.paused else None


def simpler(world: RequestedWorld, bounds: RequestBounds) -> RequestedWorld:
    """Without what makes no difference: which operator looked, and, once nobody acts any more, what they know."""
    if world.acts == bounds.acts:
        return world._replace(shard=world.shard._replace(rows=()), looks=(NO_LOOK, NO_LOOK))
    first, second = sorted(world.looks)
    return world._replace(looks=(first, second))


def steps(
    world: RequestedWorld, *, bounds: RequestBounds, without: Guard | None = None
) -> Iterator[tuple[str, RequestedWorld]]:
    """Each step that is possible."""
    shard = world.shard
    if world.pushed < bounds.pushes:
        yield "a push", _push(world, without)
    if (shard.session == 0 or shard.is_lost) and world.sessions < bounds.sessions:
        yield from _comes(world, without)
    if shard.session and not shard.is_lost and world.sessions < bounds.sessions + 1:
        yield "the lease is lost", world._replace(shard=shard._replace(is_lost=True))
    for session in world.running:
        for outcome in OUTCOMES:
            if outcome != "failed" or world.fails < bounds.fails:
                yield from _settled(world, session, outcome, without)
    if world.acts < bounds.acts:
        yield from _acts(world, without)
    if world.moves < bounds.moves and (shard.session == 0 or shard.is_lost):
        yield "the shard moves", _moved(world, without)


def _comes(world: RequestedWorld, without: Guard | None) -> Iterator[tuple[str, RequestedWorld]]:
    """For all that waits, or for the first payload of it: what is left behind keeps its record."""
    if not (world.shard.flight or _may_run(world.shard)):
        yield "a holder finds nothing to do", world
        return
    recovered = _recovered(world, without)._replace(sessions=world.sessions + 1)
    yield "a holder comes", _claimed(recovered, len(recovered.shard.waiting))
    if len(recovered.shard.waiting) > 1:
        yield "a holder comes for one payload", _claimed(recovered, 1)


def _may_run(shard: RequestedShard) -> bool:
    return bool(shard.waiting) and not shard.late


def _waits(shard: RequestedShard, waiting: tuple[PlacedPayload, ...], without: Guard | None) -> RequestedShard:
    """As wait.lua: an id that is paused is due at its end."""
    late = shard.paused and without != "held back"
    return shard._replace(waiting=tuple(sorted(waiting)), late=late)


def _push(world: RequestedWorld, without: Guard | None) -> RequestedWorld:
    shard, number = world.shard, world.pushed + 1
    entry = PlacedPayload(shard.arrival + 1, number)
    waiting = (*shard.waiting, entry)
    after = shard._replace(waiting=waiting) if shard.waiting else _waits(shard, waiting, without)
    return world._replace(
        shard=after._replace(arrival=entry.arrival), pushed=number, versions=(*world.versions, (number, 0))
    )


def _claimed(world: RequestedWorld, count: int) -> RequestedWorld:
    shard, broken = world.shard, world.broken
    if not _may_run(shard):
        return world
    handed, left = shard.waiting[:count], shard.waiting[count:]
    if shard.paused:
        broken = "a paused job runs"
    elif {one.number for one in handed} & world.doomed:
        broken = "a cancelled job runs again"
    elif {(one.number, one.version) for one in handed} - {*world.versions}:
        broken = "a job runs with another payload than people were told"
    claimed = shard._replace(waiting=left, flight=handed, session=world.sessions, cancel=NONE)
    if not left:
        claimed = claimed._replace(touched=0)
    return world._replace(shard=claimed, running=world.running | {world.sessions}, broken=broken)


def _recovered(world: RequestedWorld, without: Guard | None) -> RequestedWorld:
    """Nobody holds the shard, and what a dead holder had waits again."""
    if world.shard.flight:
        if world.shard.cancel != NONE and without != "honoured on recovery":
            world = _honoured(world, without)
        else:
            shard = world.shard
            world = world._replace(
                shard=_waits(shard, (*shard.flight, *shard.waiting), without)._replace(
                    flight=(), abandoned=True, cancel=NONE
                )
            )
    return world._replace(shard=world.shard._replace(session=0, is_lost=False))


def _honoured(world: RequestedWorld, without: Guard | None) -> RequestedWorld:
    """As honour.lua: what had come when the cancel was asked for goes, and the rest begins anew."""
    shard = world.shard
    gone = [one for one in shard.flight if one.arrival <= shard.cancel or without == "upto"]
    world = _dropped(world, gone, shard.cancel)
    left = [one for one in shard.flight if one not in gone]
    after = shard._replace(flight=(), cancel=NONE, abandoned=False)
    return world._replace(shard=_waits(after, (*left, *after.waiting), without) if left else after)


def _dropped(world: RequestedWorld, gone: list[PlacedPayload], upto: int) -> RequestedWorld:
    numbers = {one.number for one in gone}
    broken = "a cancel takes what came later" if any(one.arrival > upto for one in gone) else world.broken
    return world._replace(gone=world.gone | numbers, doomed=world.doomed - numbers, broken=broken)


def _settled(
    world: RequestedWorld, session: int, outcome: str, without: Guard | None
) -> Iterator[tuple[str, RequestedWorld]]:
    shard, world = world.shard, world._replace(running=world.running - {session})
    if shard.session != session:
        yield f"holder {session} settles {outcome}, too late", world
        return
    flight = shard.flight
    numbers = frozenset(one.number for one in flight)
    freed = shard._replace(session=0, is_lost=False)
    if outcome == "done":
        after = freed._replace(flight=(), cancel=NONE, abandoned=False)
        yield (
            f"holder {session} settles done",
            world._replace(shard=after, done=world.done | numbers, doomed=world.doomed - numbers),
        )
        return
    if shard.cancel != NONE and without != "honoured at the end":
        honoured = _honoured(world._replace(shard=freed), without)
        yield f"holder {session} settles {outcome}, and it is cancelled", honoured
        return
    fails = outcome == "failed"
    if fails:
        flight = (flight[0]._replace(failed=flight[0].failed + 1), *flight[1:])
    held = "held back" if without == "rests while in flight" else without
    after = _waits(freed, (*flight, *shard.waiting), held)._replace(flight=(), cancel=NONE)
    yield f"holder {session} settles {outcome}", world._replace(shard=after, fails=world.fails + fails)


def _acts(world: RequestedWorld, without: Guard | None) -> Iterator[tuple[str, RequestedWorld]]:
    shard, acted = world.shard, world._replace(acts=world.acts + 1)
    for number, look in enumerate(world.looks):
        name = f"operator {number + 1}"
        if look == NO_LOOK:
            seen = ModelLook(shard.arrival, shard.waiting[0] if shard.waiting else PlacedPayload(0, 0))
            yield f"{name} looks", _looking(world, number, seen)
        else:
            after = _looking(acted, number, NO_LOOK)
            yield from _cancelled(after, name, look, without)
            if look.seen.number:
                yield from _edited(after, name, look.seen, without)
    if shard.paused:
        resumed = shard._replace(paused=False, late=False)
        yield "a resume", acted._replace(shard=resumed)
    else:
        yield "a pause", acted._replace(shard=shard._replace(paused=True, late=bool(shard.waiting)))
    for row in shard.rows:
        yield from _undone(acted, row, without)


def _looking(world: RequestedWorld, number: int, look: ModelLook) -> RequestedWorld:
    first, second = world.looks
    return world._replace(looks=(look, second) if number == 0 else (first, look))


def _kept(shard: RequestedShard, row: UndoRow) -> RequestedShard:
    run = shard.run + 1
    return shard._replace(rows=(*shard.rows, row._replace(run=run)), run=run)


def _cancelled(
    world: RequestedWorld, name: str, look: ModelLook, without: Guard | None
) -> Iterator[tuple[str, RequestedWorld]]:
    shard = world.shard
    spared = shard.touched > look.arrival and without != "touched"
    gone = [one for one in shard.waiting if not spared and (one.arrival <= look.arrival or without == "newer")]
    broken = "a cancel takes what was changed later" if gone and shard.touched > look.arrival else ""
    after = _dropped(world, gone, look.arrival)
    left = tuple(one for one in shard.waiting if one not in gone)
    if gone:
        at_rest = shard.late and without == "own time"
        row = UndoRow(0, "put", tuple(gone), abandoned=shard.abandoned, at_rest=at_rest)
        shard = _kept(shard._replace(waiting=left), row)
        if not left:
            shard = shard._replace(touched=0, late=False, abandoned=shard.abandoned and bool(shard.flight))
    word = "gone"
    if shard.flight:
        word, upto = "asked", max(look.arrival, shard.cancel)
        shard = shard._replace(cancel=upto)
        doomed = {one.number for one in shard.flight if one.arrival <= look.arrival}
        after = after._replace(doomed=after.doomed | doomed)
    elif gone:
        word = "done"
    yield f"{name} cancels: {word}", after._replace(shard=shard, broken=after.broken or broken)


def _edited(
    world: RequestedWorld, name: str, seen: PlacedPayload, without: Guard | None
) -> Iterator[tuple[str, RequestedWorld]]:
    shard, edits = world.shard, world.edits + 1
    if any(one.arrival == seen.arrival for one in shard.flight):
        yield f"{name} edits: runs", world
        return
    there = [one for one in shard.waiting if one.arrival == seen.arrival]
    if not there:
        yield f"{name} edits: gone", world
        return
    if there[0].version != seen.version and without != "as it was seen":
        yield f"{name} edits: changed", world
        return
    broken = "" if dict(world.versions)[seen.number] == seen.version else "an edit undoes another one"
    new = there[0]._replace(version=edits)
    after = _replaced(world, there[0], new)
    row = UndoRow(0, "edit", (new,), there[0], after.shard.touched, abandoned=shard.abandoned)
    yield f"{name} edits: waiting", after._replace(shard=_kept(after.shard, row), edits=edits, broken=broken)


def _replaced(world: RequestedWorld, old: PlacedPayload, new: PlacedPayload) -> RequestedWorld:
    """Another payload is in the place, and who looked before does not touch it."""
    shard, versions = world.shard, {**dict(world.versions), new.number: new.version}
    waiting = tuple(new if one == old else one for one in shard.waiting)
    arrival = shard.arrival + 1
    return world._replace(
        shard=shard._replace(waiting=waiting, arrival=arrival, touched=arrival), versions=tuple(versions.items())
    )


def _undone(world: RequestedWorld, row: UndoRow, without: Guard | None) -> Iterator[tuple[str, RequestedWorld]]:
    shard = world.shard
    if without != "a row goes":
        shard = shard._replace(rows=tuple(one for one in shard.rows if one != row))
    world, label = world._replace(shard=shard), f"an undo of {row.run}, a {row.kind}"
    if row.kind == "put":
        numbers = {one.number for one in row.entries}
        shard = _put(shard, row, without)
        yield label, world._replace(shard=shard, gone=world.gone - numbers, doomed=world.doomed - numbers)
        return
    reason = _changed_since(shard, row, without)
    if reason:
        yield f"{label}: {reason}", world
        return
    broken = _untrue(shard, row)
    there = {one.number: one for one in shard.waiting}
    if row.kind == "edit":
        now = there.get(row.old.number, row.entries[0])
        old = now._replace(version=row.old.version)
        after = _replaced(world, now, old)
        inverse = UndoRow(0, "edit", (old,), now, after.shard.touched, abandoned=after.shard.abandoned)
        yield label, after._replace(shard=_kept(after.shard, inverse), broken=broken)
        return
    gone = tuple(there[one.number] for one in row.entries if one.number in there)
    left = tuple(one for one in shard.waiting if one not in gone)
    inverse = UndoRow(0, "put", gone, abandoned=shard.abandoned, at_rest=shard.late and without == "own time")
    shard = _kept(shard._replace(waiting=left, touched=row.was), inverse)
    if not left:
        shard = shard._replace(touched=0, late=False, abandoned=shard.abandoned and bool(shard.flight))
    yield label, world._replace(shard=shard, gone=world.gone | {one.number for one in gone}, broken=broken)


def _put(shard: RequestedShard, row: UndoRow, without: Guard | None) -> RequestedShard:
    keeps_own = bool(shard.flight) or any(one.failed for one in shard.waiting[:1])
    abandoned = shard.abandoned if keeps_own else row.abandoned or shard.abandoned
    arrival = shard.arrival + 1
    after = _waits(shard, (*row.entries, *shard.waiting), without)
    after = after._replace(arrival=arrival, touched=arrival, abandoned=abandoned, late=after.late or row.at_rest)
    return _kept(after, UndoRow(0, "take", row.entries, stamp=arrival, was=shard.touched, abandoned=abandoned))


def _changed_since(shard: RequestedShard, row: UndoRow, without: Guard | None) -> str:
    there = {(one.number, one.version): one for one in shard.waiting}
    found = [there.get((one.number, one.version)) for one in row.entries]
    if not all(found) and without != "still waits":
        return "ran meanwhile"
    if shard.touched != row.stamp and without != "still waits":
        return "changed since"
    before = {one.number: one.failed for one in row.entries}
    if any(one and one.failed > before[one.number] for one in found) and without != "failed since":
        return "ran meanwhile"
    if shard.abandoned and not row.abandoned and without != "died since":
        return "ran meanwhile"
    return ""


def _untrue(shard: RequestedShard, row: UndoRow) -> str:
    """Why the row may not be undone, though it is."""
    there = {one.number: one for one in shard.waiting}
    for one in row.entries:
        now = there.get(one.number)
        if now is None or now.version != one.version:
            return "an undo changes what has changed since"
        if now.failed > one.failed:
            return "an undo takes what has failed since"
    return "an undo takes what a dead holder had" if shard.abandoned and not row.abandoned else ""


def _moved(world: RequestedWorld, without: Guard | None) -> RequestedWorld:
    """All of it lies in another shard; who looked before has to look again, as numbers are others there."""
    world = _recovered(world, without)
    shard = world.shard
    if without == "requests travel":
        shard = shard._replace(late=False)
    return world._replace(shard=shard, looks=(NO_LOOK, NO_LOOK), moves=world.moves + 1)
