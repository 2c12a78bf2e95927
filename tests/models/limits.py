"""A model of the limits of a queue: visits of two processes ask for a permit, and for ids that may begin.

Each call arrives twice, as late as it likes, or never; so do answers. A visit may leave at any moment; one whose
process dies is one whose leaving never arrives. One `now` runs ahead, by what a visit does not trust. Offers and the
wait list, which only let fewer in, have a model of their own: wait_list.py.
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

PER: Final = 3
SLACK: Final = 2
"""Time within which granted ids may begin: a tenth of `per` in the library, and coarse here."""
TTL: Final = 3
MARGIN: Final = 1
"""Of the permit and of the slack, that a visit does not trust."""
DELIVERIES: Final = 2
NAMES: Final = "AB"

Guard: TypeAlias = Literal[
    "permits",
    "rate",
    "slack",
    "margin",
    "trust from the sending",
    "nonce",
]
"""What keeps the limits: each can be left out, and then the model has to find what it prevents."""


class ModelPermit(NamedTuple):
    """As the queue has it: when it ends, its last call, ids granted by that, and until when these may begin."""

    nonce: int
    till: int
    number: int
    granted: int
    at: int


class LimitedQueue(NamedTuple):
    """`now`: the latest time that was seen. `log`: until when ids may begin, and how many, the oldest first."""

    now: int = 0
    permits: tuple[ModelPermit, ...] = ()
    log: tuple[tuple[int, int], ...] = ()


class AskingVisit(NamedTuple):
    """A visit: until when it believes in its permit, and until when it may begin `left` ids. `asks`: for an answer."""

    nonce: int = 0
    number: int = 0
    asks: bool = False
    sent: int = 0
    trust: int = 0
    left: int = 0
    begins_until: int = 0


class PermitCall(NamedTuple):
    """A call on its way. `wrong`: how far its `now` is off. `unused`: ids of the grant before that did not begin."""

    process: int
    op: Literal["enter", "stay", "leave"]
    nonce: int
    number: int
    sent: int
    unused: int = 0
    wrong: int = 0
    deliveries: int = DELIVERIES


class LimitsWorld(NamedTuple):
    """`begun`: when ids began, in the last `PER`. `visits` counts those that began to ask."""

    time: int = 0
    queue: LimitedQueue = LimitedQueue()
    processes: tuple[AskingVisit, AskingVisit] = (AskingVisit(), AskingVisit())
    calls: frozenset[PermitCall] = frozenset()
    begun: tuple[int, ...] = ()
    visits: int = 0
    lies: int = 1

    def with_process(self, number: int, process: AskingVisit) -> "LimitsWorld":
        """The same, but for one of the processes."""
        first, second = self.processes
        return self._replace(processes=(process, second) if number == 0 else (first, process))


class LimitBounds(NamedTuple):
    """How far the model goes: time and visits; the two limits, and the ids that a call wants, 0 without a rate."""

    end: int
    visits: int
    permits: int
    rate: int
    want: int
    stays: int = 1
    """Calls of a visit between its first and its last."""


def forget(world: LimitsWorld) -> LimitsWorld:
    """Without calls that can change nothing any more: of visits that have no permit, and will get none."""
    can_enter = {call.nonce for call in world.calls if call.op == "enter"}
    alive = can_enter | {permit.nonce for permit in world.queue.permits}
    kept = (call for call in world.calls if call.nonce in alive or call.sent + call.wrong > world.queue.now)
    return world._replace(calls=frozenset(kept))


def symmetric(world: LimitsWorld) -> LimitsWorld:
    """The one of two worlds that differ in the names of the processes alone."""
    first, second = world.processes
    if first <= second:
        return world
    calls = frozenset(call._replace(process=1 - call.process) for call in world.calls)
    return world._replace(processes=(second, first), calls=calls)


def fault(world: LimitsWorld, bounds: LimitBounds) -> str | None:
    """The limit that is exceeded, if any."""
    if sum(process.trust > world.time for process in world.processes) > bounds.permits:
        return "permits"
    if len(world.begun) > bounds.rate:
        return "rate"
    return None


def steps(
    world: LimitsWorld, *, bounds: LimitBounds, without: Guard | None = None
) -> Iterator[tuple[str, LimitsWorld]]:
    """Each step that is possible."""
    for number, process in enumerate(world.processes):
        yield from _of_process(world, number, process, bounds)
    for call in world.calls:
        yield from _arrivals(world, call, bounds, without)
    if world.time < bounds.end:
        time = world.time + 1
        yield "time goes by", world._replace(time=time, begun=tuple(at for at in world.begun if at > time - PER))


def _of_process(
    world: LimitsWorld, number: int, process: AskingVisit, bounds: LimitBounds
) -> Iterator[tuple[str, LimitsWorld]]:
    name = NAMES[number]
    if not process.nonce and world.visits < bounds.visits:
        nonce = world.visits + 1
        asking = AskingVisit(nonce, 0, asks=True, sent=world.time)
        for label, after in _sent(world, number, asking, PermitCall(number, "enter", nonce, 0, world.time)):
            yield f"{name} enters{label}", after._replace(visits=nonce)
    if process.left and process.trust > world.time and process.begins_until > world.time:
        began = process._replace(left=process.left - 1)
        yield f"{name} begins an id", world.with_process(number, began)._replace(begun=(*world.begun, world.time))
    if process.nonce and not process.asks and process.number < bounds.stays:
        at = process.number + 1
        stay = PermitCall(number, "stay", process.nonce, at, world.time, process.left)
        asking = process._replace(number=at, asks=True, sent=world.time, left=0)
        for label, after in _sent(world, number, asking, stay):
            yield f"{name} stays{label}", after
    if process.nonce:
        at = process.number + (not process.asks)
        leave = PermitCall(number, "leave", process.nonce, at, world.time, process.left)
        for label, after in _sent(world, number, AskingVisit(), leave):
            yield f"{name} leaves{label}", after


def _sent(world: LimitsWorld, number: int, process: AskingVisit, call: PermitCall) -> Iterator[tuple[str, LimitsWorld]]:
    for wrong in (0, 1) if world.lies and call.op == "enter" else (0,):
        after = world.with_process(number, process)._replace(lies=world.lies - bool(wrong))
        yield f" {wrong:+d}" if wrong else "", after._replace(calls=world.calls | {call._replace(wrong=wrong)})


def _arrivals(
    world: LimitsWorld, call: PermitCall, bounds: LimitBounds, without: Guard | None
) -> Iterator[tuple[str, LimitsWorld]]:
    rest = world.calls - {call}
    if call.deliveries > 1:
        rest |= {call._replace(deliveries=call.deliveries - 1)}
    queue, granted = _answer(world.queue, call, bounds, without)
    what = f"{NAMES[call.process]}'s {call.op} {call.number} of {call.sent} arrives"
    after = world._replace(queue=queue, calls=rest)
    yield f"{what}, its answer is lost", after
    process = world.processes[call.process]
    if process.asks and (process.nonce, process.number) == (call.nonce, call.number):
        yield f"{what}, is answered {granted}", _answered(after, call, granted, without)


def _answered(world: LimitsWorld, call: PermitCall, granted: int | None, without: Guard | None) -> LimitsWorld:
    if granted is None:
        return world.with_process(call.process, AskingVisit())
    since = world.time if without == "trust from the sending" else call.sent
    trust = since + TTL - (0 if without == "margin" else MARGIN)
    begins_until = since + SLACK - MARGIN + 1
    visit = AskingVisit(call.nonce, call.number, asks=False, sent=0, trust=trust, left=granted)
    return world.with_process(call.process, visit._replace(begins_until=begins_until))


def _answer(
    queue: LimitedQueue, call: PermitCall, bounds: LimitBounds, without: Guard | None
) -> tuple[LimitedQueue, int | None]:
    """The queue behind the call, and the ids that it grants, None if the visit may not begin or go on."""
    # Time does not go back from call to call.
    now = max(call.sent + call.wrong, queue.now)
    lasting = {permit.nonce: permit for permit in queue.permits if permit.till > now}
    log = tuple(entry for entry in queue.log if entry[0] > now - PER)
    mine = lasting.get(call.nonce)
    if without == "nonce" and call.op != "enter":
        mine = mine or next(iter(lasting.values()), None)
    is_new = call.op == "enter" and not mine
    if is_new and (len(lasting) < bounds.permits or without == "permits") and _left(log, bounds, without):
        return _granted(now, lasting, log, call, bounds, without)
    if not mine or (call.op != "enter" and call.number not in (mine.number, mine.number + 1)):
        return _kept(now, lasting, log), None
    if call.op == "enter" or (call.op == "stay" and call.number == mine.number):
        return _kept(now, lasting, log), mine.granted
    if mine.at > now - PER:
        log = _given_back(log, mine.granted if call.number == mine.number else call.unused)
    if call.op == "stay":
        return _granted(now, lasting, log, call, bounds, without)
    del lasting[mine.nonce]
    return _kept(now, lasting, log), None


def _left(log: tuple[tuple[int, int], ...], bounds: LimitBounds, without: Guard | None) -> int:
    """Ids that may be granted to a call; with no rate any number, as none are counted."""
    if not bounds.want:
        return 1
    left = bounds.rate if without == "rate" else bounds.rate - sum(count for _, count in log)
    return max(0, min(bounds.want, left))


def _granted(  # noqa: PLR0913, PLR0917 - as the script has them
    now: int,
    lasting: dict[int, ModelPermit],
    log: tuple[tuple[int, int], ...],
    call: PermitCall,
    bounds: LimitBounds,
    without: Guard | None,
) -> tuple[LimitedQueue, int]:
    granted, at = _left(log, bounds, without) if bounds.want else 0, now
    if granted:
        at = now + (0 if without == "slack" else SLACK)
        at = max(at, log[-1][0]) if log else at
        log = (*log, (at, granted))
    permit = ModelPermit(call.nonce, now + TTL, call.number, granted, at)
    return _kept(now, {**lasting, call.nonce: permit}, log), granted


def _given_back(log: tuple[tuple[int, int], ...], count: int) -> tuple[tuple[int, int], ...]:
    kept = []
    for at, granted in log:
        part = min(count, granted)
        count -= part
        if granted > part:
            kept.append((at, granted - part))
    return tuple(kept)


def _kept(now: int, permits: dict[int, ModelPermit], log: tuple[tuple[int, int], ...]) -> LimitedQueue:
    return LimitedQueue(now, tuple(sorted(permits.values())), log)
