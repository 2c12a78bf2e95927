"""A model of the lease of a shard with one id: two processes acquire, perform, settle, die and stand still.

Each call is sent twice, and arrives as late as it likes or never; so do answers. One process may die, one may stand
still, and once a key is evicted or a `now` runs ahead. Time goes by in steps of half a lease.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

TTL: Final = 2
MARGIN: Final = 1
"""Of the lease, that its holder does not trust: it stands for a tenth, as time has coarse steps here."""
DRIFT: Final = 1
"""How late a slow clock may be within a lease."""
AHEAD: Final = 2
DELIVERIES: Final = 2
NONCES: Final = 10
"""Sessions of the first process count from here, those of the second from twice of it."""

Guard: TypeAlias = Literal[
    "lease",
    "until",
    "key",
    "nonce and token",
    "token",
    "call number",
    "recovery",
    "recovery in order",
    "margin",
    "trust from the sending",
]
"""What keeps the promises: each can be left out, and then the model has to find what it prevents."""
Phase: TypeAlias = Literal["idle", "asks", "runs", "ran", "dead", "frozen", "late"]
"""`late`: it stood still in its handler, and goes on behind the end of its trust."""


class LeaseShard(NamedTuple):
    """`key`: when the key with a time to live ends, 0 if it is not there. `done`: what was acknowledged, in order."""

    nonce: int = 0
    call: int = 0
    token: int = 0
    until: int = 0
    key: int = 0
    flight: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    done: tuple[int, ...] = ()


class LeaseProcess(NamedTuple):
    """`sent`: when its last call was sent; `trust`: until when it believes in its lease."""

    phase: Phase = "idle"
    nonce: int = 0
    call: int = 0
    token: int = 0
    sent: int = 0
    trust: int = 0
    claim: tuple[int, ...] = ()
    sessions: int = 0

    def ended(self, phase: Phase = "idle") -> "LeaseProcess":
        """Its session is over."""
        return LeaseProcess(phase, sessions=self.sessions)


class LeaseCall(NamedTuple):
    """A call on its way, and how often it may still arrive. Number 0 acquires, all others settle and claim."""

    process: int
    nonce: int
    number: int
    token: int
    sent: int
    left: int = DELIVERIES


class LeaseWorld(NamedTuple):
    """`ran`: payloads whose handler ended; `handed`: payloads as they were handed out first. Deaths and such: left."""

    time: int = 0
    shard: LeaseShard = LeaseShard()
    processes: tuple[LeaseProcess, LeaseProcess] = (LeaseProcess(), LeaseProcess())
    calls: frozenset[LeaseCall] = frozenset()
    pushed: int = 0
    ran: tuple[int, ...] = ()
    handed: tuple[int, ...] = ()
    deaths: int = 1
    freezes: int = 1
    lies: int = 1

    def with_process(self, number: int, process: LeaseProcess) -> "LeaseWorld":
        """The same, but for one of the processes."""
        first, second = self.processes
        return self._replace(processes=(process, second) if number == 0 else (first, process))


def symmetric(world: LeaseWorld) -> LeaseWorld:
    """The one of two worlds that differ in the names of the processes alone."""
    first, second = world.processes
    if (first._replace(nonce=0), first.nonce % NONCES) <= (second._replace(nonce=0), second.nonce % NONCES):
        return world
    renamed = (second._replace(nonce=_renamed(second.nonce)), first._replace(nonce=_renamed(first.nonce)))
    calls = frozenset(call._replace(process=1 - call.process, nonce=_renamed(call.nonce)) for call in world.calls)
    return world._replace(processes=renamed, calls=calls, shard=world.shard._replace(nonce=_renamed(world.shard.nonce)))


def _renamed(nonce: int) -> int:
    return nonce and nonce + (NONCES if nonce < 2 * NONCES else -NONCES)


def fault(world: LeaseWorld) -> str | None:
    """The promise that is broken, if any."""
    shard = world.shard
    running = [set(process.claim) for process in world.processes if process.phase == "runs"]
    if len(running) == 2 and running[0] & running[1]:
        return "P1"
    if {*shard.done} - {*world.ran}:
        return "P2"
    if {*shard.waiting, *shard.flight, *shard.done} != {*range(1, world.pushed + 1)}:
        return "P2"
    if world.handed != tuple(sorted(world.handed)) or len({*shard.done}) != len(shard.done):
        return "P3"
    return None


def fault_of_end(world: LeaseWorld) -> str | None:
    """Where no step leads on no more is asked for than anywhere."""
    return fault(world)


def answer(
    world: LeaseWorld, call: LeaseCall, ahead: int, without: Guard | None
) -> tuple[LeaseShard, tuple[int, ...] | None]:
    """What the shard becomes by a call, and the claim that it answers: empty where it lets go, None for a refusal."""
    shard, now = world.shard, world.time + ahead
    if call.number == 0:
        return _acquired(world, call, now, without)
    is_another = shard.nonce != call.nonce or (shard.token != call.token and without != "token")
    if is_another and without != "nonce and token":
        return shard, None
    if call.number == shard.call and without != "call number":
        # A repeat renews, unless the shard was let go.
        held = shard._replace(until=max(shard.until, now + TTL), key=world.time + TTL)
        return held if shard.until else shard, shard.flight
    if call.number != shard.call + 1 and without not in ("call number", "nonce and token"):
        return shard, None
    settled = shard._replace(call=call.number, done=shard.done + shard.flight, flight=shard.waiting, waiting=())
    if shard.waiting:
        return settled._replace(until=max(shard.until, now + TTL), key=world.time + TTL), shard.waiting
    return settled._replace(until=0, key=0), ()


def _acquired(
    world: LeaseWorld, call: LeaseCall, now: int, without: Guard | None
) -> tuple[LeaseShard, tuple[int, ...] | None]:
    shard = world.shard
    if shard.nonce == call.nonce:
        is_first = shard.call == 0 and now < shard.until
        return shard, shard.flight if is_first and shard.flight else None
    is_free = (now >= shard.until or without == "until") and (world.time >= shard.key or without == "key")
    if not is_free and without != "lease":
        return shard, None
    claim = shard.waiting
    if without == "recovery in order":
        claim += shard.flight
    elif without != "recovery":
        claim = tuple(sorted(claim + shard.flight))
    if not claim:
        return shard, None
    taken = LeaseShard(call.nonce, 0, shard.token + 1, now + TTL, world.time + TTL, claim, (), shard.done)
    return taken, claim
