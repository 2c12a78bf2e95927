"""The calls of a move of ids between shards. Each may be sent twice, and by any number of movers at once.

docs/resharding.md has the protocol and why it holds.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.keys import (
    EXPIRY,
    HEADERS,
    RECEIPTS,
    REQUESTS,
    TIMETABLE,
    TRACKING,
    UNDO,
    ShardRef,
)
from lowkiq_lambda.store.shard.layout import CHUNK_RECORDS
from lowkiq_lambda.store.shard.replicas import Replicas
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape

TRAVELLING: Final = (TIMETABLE, RECEIPTS, TRACKING, HEADERS, EXPIRY, UNDO, REQUESTS)
"""Features whose keys travel with the ids, and that a declaration does not tell of."""
MARGIN: Final = 2**31
"""How many more pushes than were told a group of shards may get until it is closed."""
SLOT: Final = 2 * MARGIN
"""How many pushes each shard that a move fills may get with numbers that no other of them gives."""
MOST_ARRIVALS: Final = 2**47
"""Beyond this no move begins: an arrival number has 48 bits, and a move that has begun has room to turn round."""
CHUNK_BYTES: Final = 1024 * 1024
"""The most bytes that one call carries, in up to `CHUNK_RECORDS` records."""


class Overtaken(LowkiqError):
    """A later move has given the shard an order: this one has nothing to say any more."""


class Floors(NamedTuple):
    """The least numbers for later pushes and leases; entries of a shard have arrival numbers larger than `above`.

    Shards of the same `kin` were filled by one move of a group, and two of them never share a number; empty if the
    group is unknown.
    """

    arrival: int
    last_score: bytes
    token: bytes
    above: int
    kin: bytes = b""

    @classmethod
    def over(cls, several: Sequence["Floors"], margin: int) -> "Floors":
        """Those of a shard that takes up the ids of several."""
        return cls(
            max(one.arrival + base for one, base in zip(several, bases_of(several), strict=True)) + margin,
            max((one.last_score for one in several), key=float),
            max((one.token for one in several), key=int),
            min(one.above for one in several),
        )


def bases_of(several: Sequence[Floors]) -> list[int]:
    """The number to add to the arrival numbers of each shard, so that two of them never share a number.

    Only shards whose numbers may meet are moved apart. An empty shard has no number, and those of one kin differ
    already.
    """
    kins = [one.kin or b"%d" % number for number, one in enumerate(several)]
    bases: dict[bytes, int] = {}
    last = 0
    for kin in dict.fromkeys(kins):
        held = [one for own, one in zip(kins, several, strict=True) if own == kin and one.arrival > one.above]
        bases[kin] = max(0, last - min((one.above for one in held), default=last))
        last = max((one.arrival + bases[kin] for one in held), default=last)
    return [bases[kin] for kin in kins]


class Told(NamedTuple):
    """The reply of a shard that is to be closed: the seconds for which it is held, and the settings of operators."""

    is_sealed: bool
    held: float
    floors: Floors
    settings: Mapping[bytes, bytes]


class Sealed(NamedTuple):
    """A shard that is closed: its floors, and what it has counted."""

    floors: Floors
    counters: Sequence[bytes]


class Load(NamedTuple):
    """A part of a move: of one kind, under an id or without one; the old shard gets `drop` once the part has come."""

    kind: bytes
    name: bytes
    drop: bytes
    packed: bytes


class Cargo(NamedTuple):
    """The rows that a shard gave to be carried away; whether it is empty."""

    rows: Sequence[Load]
    is_empty: bool


class TellReply(ReplyShape, frozen=True):
    """The reply of still.lua."""

    scripts = ("still",)
    status: bytes
    held: bytes
    arrival: bytes
    last_score: bytes
    token: bytes
    above: bytes
    kin: bytes
    settings: list[bytes]


class SealReply(ReplyShape, frozen=True):
    """The reply of seal.lua, once the shard is closed."""

    scripts = ("seal",)
    status: bytes
    arrival: bytes
    last_score: bytes
    token: bytes
    above: bytes
    kin: bytes
    counters: list[bytes]


class CarryReply(ReplyShape, frozen=True):
    """The reply of carry.lua."""

    scripts = ("carry",)
    status: bytes
    rows: list[bytes]
    is_empty: int


class PrepareReply(ReplyShape, frozen=True):
    """The reply of prepare.lua: with SOON also in how many seconds."""

    scripts = ("prepare",)
    status: bytes
    seconds: bytes = b"0"


class DeathTerms(NamedTuple):
    """The terms by which closing a shard kills ids, as a claim does: limits of the morgue, the error of a crashing id.

    `dead_head` decides about the rest of an id whose oldest payload is dead.
    """

    limits: tuple[Argument, Argument, Argument]
    crashed: bytes
    dead_head: str


class MovingShards:
    """The calls of one move, by its epoch. Raises Overtaken if a later one has begun, and BackendError."""

    def __init__(
        self, backend: Backend, epoch: int, merge: str, retry_for: float, replicas: Replicas | None = None
    ) -> None:
        """`replicas` must have the data that the next step relies on; None to go on without them."""
        self._backend = backend
        self._epoch = epoch
        self._merge = merge
        self._retry_for = retry_for
        self._replicas = replicas

    def tell(self, shards: Sequence[ShardRef], seconds: float = 0.0) -> list[Told]:
        """The state of each shard; `seconds` keeps all holders out for so long, and ends the present ones."""
        return [_told(TellReply.of(reply)) for reply in self._each("still", shards, [self._backend.lease_ttl, seconds])]

    def prepare(self, shards: Sequence[ShardRef], floors: Floors, settings: Mapping[bytes, bytes], group: int) -> float:
        """Make the shards receive; 0.0, or in how many seconds to try again, as they were closed just now.

        Pushes to each of them get numbers of its own from then on.
        """
        packed, calls = msgspec.msgpack.encode(_texts(settings)), list[Call]()
        for number, shard in enumerate(shards):
            first = floors.arrival + number * SLOT
            kin = f"{self._epoch} {group} {first}"
            arguments = (first, floors.last_score, floors.token, floors.above, kin)
            calls.append(("prepare", shard, [self._epoch, *arguments, self._merge, packed]))
        replies = [PrepareReply.of(reply) for reply in self._all(calls)]
        if occupied := [shard for shard, reply in zip(shards, replies, strict=True) if reply.status == b"JOBS"]:
            names = ", ".join(f"{shard.index} of {shard.shards_count}" for shard in occupied)
            raise LowkiqError(f"Queue {shards[0].queue_name!r} cannot move to shards that are in use: {names}.")
        return max(float(reply.seconds) for reply in replies)

    def seal(self, shard: ShardRef, death_terms: DeathTerms) -> Sealed | None:
        """Close a shard that is still; None while it has a holder."""
        dead_head = [] if death_terms.dead_head == "skip" else [death_terms.dead_head]
        how = (self._merge, *death_terms.limits, death_terms.crashed, *dead_head)
        (reply,) = self._each("seal", [shard], [self._backend.lease_ttl, *how])
        if reply[0] == b"HELD":
            return None
        if self._replicas:
            self._replicas.have([shard])
        sealed = SealReply.of(reply)
        return Sealed(_floors(sealed, SLOT), sealed.counters)

    def carry(self, orders: Sequence[tuple[ShardRef, int, Sequence[Load]]]) -> list[Cargo]:
        """The next rows of each shard; `orders` has the number to add to its arrivals, and the rows it may drop."""
        calls: list[Call] = [
            ("carry", shard, [self._epoch, CHUNK_RECORDS, CHUNK_BYTES, base, *_dropped(rows)])
            for shard, base, rows in orders
        ]
        return [_cargo(CarryReply.of(reply)) for reply in self._all(calls)]

    def receive(self, loads: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        """Give the shards what is theirs."""
        calls: list[Call] = [
            ("receive", shard, [self._epoch, self._merge, *(part for row in rows for part in (row.kind, row.packed))])
            for shard, rows in loads
        ]
        self._all(calls)
        if self._replicas:
            # Before the old shards drop the rows.
            self._replicas.have([shard for shard, _ in loads])

    def open(self, shard: ShardRef, counters: Sequence[bytes], bases: Mapping[str, int]) -> None:
        """Open a shard that has received all. `bases`: what was added to the arrival numbers of each old shard."""
        sources = [{"from": source, "base": base} for source, base in bases.items()]
        # As texts: Lua's msgpack knows no other strings.
        self._each(
            "open_received",
            [shard],
            [
                msgspec.msgpack.encode(shard_sources)
                for shard_sources in ([part.decode() for part in counters], sources)
            ],
        )

    def forget_counters(self, shards: Sequence[ShardRef]) -> None:
        """Reset the counters of these shards: others count from now on."""
        self._each("carry", shards, [1, 1, 0, "counters", "", ""])

    def reopen(self, shards: Sequence[ShardRef]) -> None:
        """Let shards be taken again that are only still; of an earlier move none can be closed from then on."""
        self._each("reopen", shards, [])

    def _each(self, name: str, shards: Sequence[ShardRef], args: Sequence[Argument]) -> list[Reply]:
        return self._all([(name, shard, [self._epoch, *args]) for shard in shards])

    def _all(self, calls: Sequence[Call]) -> list[Reply]:
        """The answers; what could not be asked is asked again by itself."""
        calls = [(name, _with_all(shard), args) for name, shard, args in calls]
        replies: list[Reply] = []
        for (name, shard, args), first in zip(calls, self._backend.run_each(calls), strict=True):
            reply = first
            if isinstance(reply, LowkiqError):
                reply = self._backend.run(name, shard, args, retry_for=self._retry_for)
            if reply[0] == b"OVER":
                raise Overtaken
            replies.append(reply)
        return replies


def raise_floors(backend: Backend, shards: Sequence[ShardRef], floors: bytes, retry_for: float) -> bool:
    """Keep later pushes to these shards behind those of a shard that a move has closed, by the `floors` in its reply.

    For producers. False if a later move has begun: then the layout has to be read again. Raises BackendError.
    """
    epoch, arrival, last_score, token = floors.split()
    # The jobs in the same shard have numbers of their own: the mover has taken care of those of later jobs.
    del arrival
    settings = msgspec.msgpack.encode({})
    replies = [
        backend.run(
            "prepare", _with_all(shard), [epoch, 0, last_score, token, 0, "", "", settings], retry_for=retry_for
        )
        for shard in shards
    ]
    return all(PrepareReply.of(reply).status == b"OK" for reply in replies)


def _with_all(shard: ShardRef) -> ShardRef:
    return shard.using((*shard.features, *TRAVELLING))


def _floors(reply: TellReply | SealReply, slot: int) -> Floors:
    """As the shard says; its kin while its own numbers are within so many."""
    arrival, (*move, first) = int(reply.arrival), reply.kin.split() or (b"",)
    is_kin = bool(first) and int(first) <= arrival <= int(first) + slot
    return Floors(arrival, reply.last_score, reply.token, int(reply.above), b" ".join(move) if is_kin else b"")


def _told(reply: TellReply) -> Told:
    floors = _floors(reply, SLOT - MARGIN)
    settings = dict(zip(reply.settings[::2], reply.settings[1::2], strict=True))
    return Told(
        reply.status == b"SEALED", float(reply.held), floors, {name: value for name, value in settings.items() if value}
    )


def _texts(settings: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in settings.items()}


def _dropped(rows: Sequence[Load]) -> list[Argument]:
    return [part for row in rows for part in (row.kind, row.name, row.drop)]


def _cargo(reply: CarryReply) -> Cargo:
    rows = [Load(*reply.rows[at : at + 4]) for at in range(0, len(reply.rows), 4)]
    return Cargo(rows, bool(reply.is_empty))
