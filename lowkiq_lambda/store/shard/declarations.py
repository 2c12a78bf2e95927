"""The drift guard: a queue keeps the declaration it was made with, and rejects any other.

With another `shards_count` an id would land in another shard while its older payloads wait in the first; with another
codec the queued payloads could not be read; with another `merge` equal payloads would be looked up under the wrong
names. The declaration lies in a key of the queue, and each shard is *opened* under it: a push to a shard that is not
open makes the pusher read the declaration again. docs/lease.md has the proof.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import asdict

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError, QueueMismatch, ShardClosed
from lowkiq_lambda.declare.declaring import MAX_SHARDS
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, is_wrong_type, unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import MARKS, PREFIX, TENANTS, ShardRef, declaration_key
from lowkiq_lambda.store.shard.layout import NO_SHARDS, Layout, QueueShards, settled
from lowkiq_lambda.store.shard.scripts import StatusReply

LAYOUT: Final = 1
LAYOUT_WITH_TENANTS: Final = 2
HASH: Final = "crc32"
HASH_OF_TENANT: Final = "crc32:tenant"
LAYOUTS: Final = (LAYOUT, LAYOUT_WITH_TENANTS)
HASHES: Final = (HASH, HASH_OF_TENANT)
LATEST: Final = "latest"
"""The merge by which of an id one payload waits, the latest; the others have no marks."""
_MICROS: Final = 1_000_000
_REPLACE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
"""
_RESHARDING: Final = "resharding"
_PAYLOAD: Final = "payload"
_AUTO: Final = "auto"
_ABOUT: Final = frozenset({"generation", "changing", "nonce", _RESHARDING, _PAYLOAD, _AUTO})
"""Fields of the stored declaration that are not terms of it."""


class Declaration(msgspec.Struct, frozen=True):
    """The terms that all producers and drains of a queue must share."""

    shards_count: int
    codec: str
    merge: str = "min"
    hash: str = HASH
    layout: int = LAYOUT


class AutoDeclaration(Declaration, frozen=True):
    """The terms of code that leaves the count of shards to the queue: its `shards_count` is that of a new queue."""


def shards_of(
    queue_name: str, made_with: Mapping[str, Any], layout: Layout | None = None, prefix: str = PREFIX
) -> QueueShards:
    """The shards of a queue that was made with this declaration; `prefix`: of the app's keys."""
    features = (TENANTS,) if made_with["layout"] == LAYOUT_WITH_TENANTS else ()
    if made_with["merge"] == LATEST:
        features = (*features, MARKS)
    by_tenant = made_with["hash"] == HASH_OF_TENANT
    layout = layout or settled(made_with["shards_count"])
    refs = (
        ShardRef(queue_name, home.shards_count, home.index, features, by_tenant, number, prefix)
        for number, home in enumerate(layout.homes)
    )
    return QueueShards(refs, layout)


@dataclass(frozen=True)
class Registered:
    """The declaration of a queue as it lies in Redis.

    `generation` is larger than that of every earlier declaration. While `changing`, the shards are about to be closed
    for another declaration, and must not be opened.
    """

    made_with: Mapping[str, Any]
    generation: int
    changing: bool = False
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    """Distinguishes equal declarations that two clients write at once."""
    layout: Layout | None = None
    """The shards of ids, for a queue that is being resharded, or was."""
    payload: str = field(default="", compare=False)
    """The type of payloads that code has declared last, and the digits of its schema: for people, and no term."""
    is_auto: bool = field(default=False, compare=False)
    """Whether some code has left the count of shards to the queue, so that no code's count has to be the queue's."""
    stored: bytes = field(default=b"", compare=False)
    """The bytes in Redis, if it was read from there."""

    @cached_property
    def encoded(self) -> bytes:
        """The bytes to store."""
        about = {"generation": self.generation, "changing": self.changing, "nonce": self.nonce}
        moves = {} if self.layout is None else {_RESHARDING: self.layout}
        types = {_PAYLOAD: self.payload} if self.payload else {}
        counts = {_AUTO: True} if self.is_auto else {}
        return self.stored or msgspec.json.encode({**self.made_with, **about, **moves, **types, **counts})

    @property
    def is_readable(self) -> bool:
        """Whether the stored bytes are a declaration."""
        return bool(self.made_with)

    @property
    def is_moving(self) -> bool:
        """Whether the queue is being resharded."""
        return self.layout is not None and self.layout.is_moving

    def is_made_with(self, declaration: Declaration) -> bool:
        """Whether the queue has just these terms."""
        return dict(self.made_with) == asdict(declaration)

    def agrees(self, declaration: Declaration) -> bool:
        """Whether the queue was made with this declaration, or may be declared so since it was resharded."""
        declared = asdict(declaration)
        is_free = self.is_auto or isinstance(declaration, AutoDeclaration)
        if self.is_readable and (is_free or (self.layout and declaration.shards_count in self.layout.accepts)):
            declared["shards_count"] = self.made_with["shards_count"]
        return dict(self.made_with) == declared

    def shards(self, queue_name: str, prefix: str) -> QueueShards:
        """The shards that the queue has; `prefix`: of the app's keys."""
        return shards_of(queue_name, self.made_with, self.layout, prefix)

    def settled(self, declaration: Declaration) -> "Registered":
        """The end of this change: the new declaration, under the same generation."""
        return replace(self, made_with=asdict(declaration), changing=False, stored=b"")


class _RequiredFields(msgspec.Struct, frozen=True):
    """The fields without which a stored declaration is unreadable."""

    shards_count: Annotated[int, msgspec.Meta(ge=1)]
    merge: str
    generation: Annotated[int, msgspec.Meta(ge=0)]
    changing: bool
    nonce: str
    resharding: Layout | None = None
    payload: str = ""
    auto: bool = False


def registered(stored: object) -> Registered:
    """The declaration in the key's bytes; one that is unreadable, even in part, agrees with no other."""
    text = stored if isinstance(stored, bytes) else b""
    try:
        made_with = msgspec.json.decode(text, type=dict[str, Any])
        fields = msgspec.json.decode(text, type=_RequiredFields)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Registered({}, 0, stored=text)
    about = {name: value for name, value in made_with.items() if name not in _ABOUT}
    return Registered(
        about,
        fields.generation,
        fields.changing,
        fields.nonce,
        fields.resharding,
        fields.payload,
        fields.auto,
        text,
    )


def declare(
    backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float, *, reopen: bool = False
) -> Registered:
    """Register the declaration of the queue and open its shards, or compare it with the registered one, and return it.

    With `reopen`, shards are opened even if the declaration was registered before, in one round trip for each node.
    Raises QueueMismatch; BackendError, and BackendFull if there is no memory to register it.
    """
    there, is_new = register(backend, shards, declaration, retry_for)
    if not there.agrees(declaration):
        raise mismatch(shards[0].queue_name, declaration, there, shards[0].prefix)
    if (is_new or reopen) and not there.changing:
        open_each(backend, there.shards(shards[0].queue_name, shards[0].prefix), there, retry_for)
    return there


def declare_anew(
    backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float
) -> Registered:
    """As `declare`, for a client that met a shard that is not open; it is open when this returns, or is being moved.

    Raises what `declare` does; ShardClosed while the queue is being declared anew.
    """
    there, _ = register(backend, shards, declaration, retry_for)
    if not there.agrees(declaration):
        raise mismatch(shards[0].queue_name, declaration, there, shards[0].prefix)
    all_open = not there.changing and open_each(
        backend, there.shards(shards[0].queue_name, shards[0].prefix), there, retry_for
    )
    if not (all_open or there.is_moving):
        raise ShardClosed(
            f"Queue {shards[0].queue_name!r} is being declared anew. If that broke off, call app.redeclare again, "
            "with the worker as it was or as it is to be.",
            queue_name=shards[0].queue_name,
        )
    return there


def register(
    backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float
) -> tuple[Registered, bool]:
    """The registered declaration, and whether this call registered it. Raises BackendError."""
    key = declaration_key(shards[0].queue_name, shards[0].prefix)

    def once() -> tuple[Registered, bool]:
        # Read first: a full Redis refuses the write, and drains must go on there.
        stored = _stored(backend, key)
        if stored is not None:
            return registered(stored), False
        mine = Registered(asdict(declaration), next_generation(backend, shards[0], 0))
        unless_error(*send_each(backend.client, [(key, ("SET", key, mine.encoded, "NX"))]))
        stored = _stored(backend, key)
        return registered(stored), stored == mine.encoded

    return backend.retrying(retry_for, once)


def read_registered(backend: Backend, queue_name: str, retry_for: float) -> Registered | None:
    """The registered declaration; None if there is none. Raises BackendError."""
    stored = backend.retrying(retry_for, lambda: _stored(backend, declaration_key(queue_name, backend.prefix)))
    return None if stored is None else registered(stored)


def read_each_registered(backend: Backend, queue_names: Sequence[str], retry_for: float) -> list[Registered | None]:
    """The registered declaration of each queue, in one round trip for each node. Raises BackendError."""
    keys = [declaration_key(name, backend.prefix) for name in queue_names]
    commands = [(key, ("GET", key)) for key in keys]

    def once() -> list[Registered | None]:
        return [registered_in(answer) for answer in send_each(backend.client, commands)]

    return backend.retrying(retry_for, once)


def registered_in(answer: object) -> Registered | None:
    """The declaration in what the server answered to GET; None if there is none. Raises what redis-py does."""
    stored = _unless_wrong_type(answer)
    return None if stored is None else registered(stored)


def _stored(backend: Backend, key: str) -> object:
    try:
        return unless_error(*send_each(backend.client, [(key, ("GET", key))]))
    except REDIS_ERRORS as error:
        return _unless_wrong_type(error)


def _unless_wrong_type(answer: object) -> object:
    # No version of this library wrote that: it is unreadable, too.
    return b"" if is_wrong_type(answer) else unless_error(answer)


def open_each(backend: Backend, shards: QueueShards, there: Registered, retry_for: float) -> bool:
    """Open the shards under this declaration; whether none knew a later one. Raises BackendError.

    Of a queue that is being resharded only those that have ids now: the others are the movers'. These have given the
    shards of the groups at hand a later generation, so that this opens none that they have closed.
    """
    retry_until = backend.clock.monotonic() + retry_for
    args = [there.generation, there.made_with["merge"]]
    statuses = []
    live = [shards[number] for number in shards.layout.live]
    for shard, first in zip(live, backend.run_each([("open", shard, args) for shard in live]), strict=True):
        reply, left = first, retry_until - backend.clock.monotonic()
        if isinstance(reply, BackendUnavailable) and left > 0:
            reply = backend.run("open", shard, args, retry_for=left)
        if isinstance(reply, LowkiqError):
            raise reply
        statuses.append(StatusReply.of(reply).status)
    return all(status == b"OK" for status in statuses)


def replace_registered(
    backend: Backend, queue_name: str, before: Registered, after: Registered, retry_for: float
) -> bool:
    """Replace the declaration, unless another call has: whether this one's is there now. Raises BackendError."""
    client, key = backend.client, declaration_key(queue_name, backend.prefix)
    # A repeat after a lost reply finds the new declaration in place.
    there = backend.retrying(retry_for, lambda: client.eval(_REPLACE, 1, key, before.encoded, after.encoded))
    return registered(there) == after


def next_generation(backend: Backend, shard: ShardRef, last: int) -> int:
    """Larger than every earlier one: by the counter, and after a flush by the clock. Raises BackendError."""
    return max(last + 1, int(backend.now(shard) * _MICROS))


def mismatch(queue_name: str, declaration: Declaration, there: Registered, prefix: str) -> QueueMismatch:
    """The error for a queue that was made with another declaration, or whose declaration is unreadable."""
    if not there.is_readable:
        return QueueMismatch(
            f"The declaration of queue {queue_name!r} cannot be read, so it cannot be compared with the worker's. "
            "The jobs are untouched. If the worker's declaration is the one that the queue was made with, delete the "
            f"key {declaration_key(queue_name, prefix)!r}: the next push or drain writes it again.",
            queue_name=queue_name,
        )
    here, then = asdict(declaration), there.made_with
    names = sorted(name for name in {*here, *then} if here.get(name) != then.get(name))
    declared = ", ".join(f"{name}={here.get(name)!r}" for name in names)
    made_with = ", ".join(f"{name}={then.get(name)!r}" for name in names)
    return QueueMismatch(
        f"Queue {queue_name!r} is declared with {declared}, but it was made with {made_with}. Restore the "
        "declaration; or give the worker another queue_name and let a worker with the old declaration push the "
        f"remaining jobs to it; {_reshard_advice(queue_name, names, here)}or, if the queue is drained and nobody "
        "pushes, call app.redeclare with the worker.",
        queue_name=queue_name,
        declared=declared,
        stored=made_with,
    )


def _reshard_advice(queue_name: str, names: Sequence[str], declared: Mapping[str, Any]) -> str:
    """The advice if the declarations differ in their count of shards alone."""
    if names != ["shards_count"]:
        return ""
    return f"or run `lowkiq reshard {queue_name} --to {declared['shards_count']}`, with its jobs; "


def readable_shards(queue_name: str, there: Registered, prefix: str) -> QueueShards:
    """Its shards; none of a queue that a library with another layout has made: what is in its keys cannot be told."""
    made_with = there.made_with
    count = made_with.get("shards_count")
    is_known = made_with.get("layout") in LAYOUTS and made_with.get("hash") in HASHES
    if not (is_known and isinstance(count, int) and 1 <= count <= MAX_SHARDS):
        return NO_SHARDS
    return there.shards(queue_name, prefix)
