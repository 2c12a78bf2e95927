"""A model of a tenant's rate: one lane of a shard that moves, and holders that claim its ids, begin, settle and die.

A claim charges the lane for what may begin, and what it has claimed goes into the log once it is settled or recovered.
Each call knows the server's time but for an error. Calls come once: the lease of the shard sees to that
(tests/models/lease.py).
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

PER: Final = 4
ERROR: Final = 1
"""How far the time of a call may be off: half a round trip."""
NEAR: Final = 2 * ERROR
"""What the log adds to the time of a call, as in shard.lua."""
TTL: Final = 2
ERRORS: Final = {"": 0, ", its time is ahead": ERROR, ", its time is behind": -ERROR}

Guard: TypeAlias = Literal["rate", "charged at the end", "near", "recovery", "kept", "in flight", "moves"]
"""What keeps the rate: each can be left out, and then the model has to find what it prevents."""


class TenantLane(NamedTuple):
    """As `served` has it: when ids ended that began, how many are claimed, and until when the lane has to stay."""

    log: tuple[int, ...] = ()
    begun: int = 0
    kept: int = 0


class LaneHolder(NamedTuple):
    """Who claimed last: until when it trusts its lease, when that ends, and how many ids it has not begun."""

    left: int = 0
    trust: int = 0
    till: int = 0
    is_dead: bool = False


class TenantWorld(NamedTuple):
    """`flight`: ids in flight; `claimed_at`: the time of their claim. `begun`: when ids began, in the last `PER`."""

    time: int = 0
    lane: TenantLane | None = None
    flight: int = 0
    claimed_at: int = 0
    latest: int = 0
    holder: LaneHolder = LaneHolder()
    begun: tuple[int, ...] = ()
    claims: int = 0
    errors: int = 2


class TenantBounds(NamedTuple):
    """How far the model goes: time, claims, and ids of the tenant in any `PER`."""

    end: int
    claims: int
    rate: int


def fault(world: TenantWorld, rate: int) -> str | None:
    """Whether more ids began than may."""
    return "rate" if len(world.begun) > rate else None


def steps(
    world: TenantWorld, *, bounds: TenantBounds, without: Guard | None = None
) -> Iterator[tuple[str, TenantWorld]]:
    """Each step that is possible."""
    holder = world.holder
    if holder.left and not holder.is_dead and world.time < holder.trust:
        began = holder._replace(left=holder.left - 1)
        yield "an id begins", world._replace(holder=began, begun=(*world.begun, world.time))
    if world.flight and not holder.is_dead:
        yield "the holder dies, or freezes", world._replace(holder=holder._replace(is_dead=True))
        if holder.left:
            # Its heartbeat renews the lease while a handler runs.
            renewed = holder._replace(trust=world.time + TTL, till=world.time + TTL)
            yield "the lease is renewed", world._replace(holder=renewed)
    for label, error in ERRORS.items():
        if not error or world.errors:
            yield from _calls(world._replace(errors=world.errors - bool(error)), label, error, bounds, without)
    if world.time < bounds.end:
        time = world.time + 1
        yield "time goes by", world._replace(time=time, begun=tuple(at for at in world.begun if at > time - PER))


def _calls(
    world: TenantWorld, label: str, error: int, bounds: TenantBounds, without: Guard | None
) -> Iterator[tuple[str, TenantWorld]]:
    now = world.time + error
    world = world._replace(latest=max(now, world.latest))
    is_recovery = bool(world.flight and world.holder.till <= world.time)
    if world.flight and not is_recovery and not world.holder.is_dead:
        yield f"the holder settles{label}", _ended(world, now, without, recovers=False)
    if world.claims < bounds.claims and (is_recovery or not world.flight):
        whose = "the next holder recovers and claims" if is_recovery else "a holder claims"
        # A shard that was moved may have ids that a dead holder began before that.
        is_owed = is_recovery or (world.lane is not None and world.lane.begun)
        free = _ended(world, now, without, recovers=True) if is_owed else world
        yield f"{whose}{label}", _claimed(free, now, bounds, without)
    if is_recovery and world.lane:
        begun = 0 if without == "moves" else world.lane.begun
        moved = world._replace(lane=world.lane._replace(begun=begun), flight=0, claimed_at=0, holder=LaneHolder())
        yield f"the shard of a dead holder moves{label}", moved
    if world.lane and _is_forgotten(world.lane, now, without):
        yield f"a call forgets the lane{label}", world._replace(lane=None)


def _claimed(world: TenantWorld, now: int, bounds: TenantBounds, without: Guard | None) -> TenantWorld:
    """As `take_fairly` and `serve`: all that the rate allows at the time of the call."""
    lane = world.lane or TenantLane()
    log = tuple(at for at in lane.log if at > now - PER)
    taken = bounds.rate if without == "rate" else bounds.rate - len(log)
    if taken < 1:
        return world._replace(lane=lane._replace(log=log), claims=world.claims + 1)
    return world._replace(
        lane=TenantLane(log, taken, now + PER),
        flight=taken,
        claimed_at=now,
        holder=LaneHolder(taken, world.time + TTL, world.time + TTL),
        claims=world.claims + 1,
    )


def _ended(world: TenantWorld, now: int, without: Guard | None, *, recovers: bool) -> TenantWorld:
    """As `note_ended`: nothing is in flight any more, and what was counts from now on."""
    lane = world.lane or TenantLane()
    at = world.claimed_at if without == "charged at the end" else world.latest
    ended = () if recovers and without == "recovery" else (at + (0 if without == "near" else NEAR),) * lane.begun
    log = tuple(sorted((*(at for at in lane.log if at > now - PER), *ended)))
    return world._replace(
        lane=TenantLane(log, 0, log[-1] + PER if log else 0), flight=0, claimed_at=0, holder=LaneHolder()
    )


def _is_forgotten(lane: TenantLane, now: int, without: Guard | None) -> bool:
    """As `set_served_from`, of a lane that has no ids."""
    return (lane.kept <= now or without == "kept") and (not lane.begun or without == "in flight")
