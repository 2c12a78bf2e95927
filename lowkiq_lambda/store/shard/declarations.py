"""The drift guard: a queue keeps what it was made with, and refuses any other declaration.

With another `shards_count` an id would land in another shard while its older payloads wait in the first; with
another codec nobody could read what is queued; with another `merge` equal payloads would be looked for where they
are not. The declaration lies in a key of the queue, and each shard is *opened* under it: what is pushed to a shard
that is not open makes the pusher read the declaration again. docs/lease.md says why that holds.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Final

import msgspec

from lowkiq_lambda.errors import BackendUnavailable, LowkiqError, QueueMismatch, ShardClosed
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, is_wrong_type
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef, declaration_key

LAYOUT: Final = 1
HASH: Final = "crc32"
_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Declaration:
    """What every producer and every drain of a queue must agree on."""

    shards_count: int
    codec: str
    merge: str = "min"
    hash: str = HASH
    layout: int = LAYOUT


@dataclass(frozen=True)
class Registered:
    """What a queue was made with, as it lies in Redis.

    `generation` is larger than that of every declaration before. While `changing`, the shards are about to be closed
    for another declaration, and nobody may open them.
    """

    made_with: Mapping[str, Any]
    generation: int
    changing: bool = False
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    """So that two who write the same do not take the other's for their own."""
    stored: bytes = field(default=b"", compare=False)
    """The bytes that it was read from."""

    @cached_property
    def encoded(self) -> bytes:
        """As it is kept."""
        about = {"generation": self.generation, "changing": self.changing, "nonce": self.nonce}
        return self.stored or msgspec.json.encode({**self.made_with, **about})

    @property
    def is_readable(self) -> bool:
        """Whether it says what the queue was made with."""
        return bool(self.made_with)

    def agrees(self, declaration: Declaration) -> bool:
        """Whether it was made with this."""
        return dict(self.made_with) == asdict(declaration)

    def settled(self, declaration: Declaration) -> "Registered":
        """The same change, come to its end with this declaration."""
        return replace(self, made_with=asdict(declaration), changing=False, stored=b"")


class _Order(msgspec.Struct, frozen=True):
    """What must be there, each of its type, for anybody to go by it."""

    shards_count: Annotated[int, msgspec.Meta(ge=1)]
    merge: str
    generation: Annotated[int, msgspec.Meta(ge=0)]
    changing: bool
    nonce: str


def registered(stored: object) -> Registered:
    """What the key holds; what cannot be read, be it a part of it, agrees with nothing."""
    text = stored if isinstance(stored, bytes) else b""
    try:
        made_with = msgspec.json.decode(text, type=dict[str, Any])
        order = msgspec.json.decode(text, type=_Order)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Registered({}, 0, stored=text)
    about = {name: value for name, value in made_with.items() if name not in {"generation", "changing", "nonce"}}
    return Registered(about, order.generation, order.changing, order.nonce, text)


def agrees(declaration: Declaration, stored: object) -> bool:
    """Whether what a queue was made with, as it lies in Redis, is this; where nothing is known, it may be."""
    return not isinstance(stored, bytes) or registered(stored).agrees(declaration)


def declare(
    backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float, *, reopen: bool = False
) -> None:
    """Register the declaration of the queue and open its shards, or compare it with the registered one.

    With `reopen` shards are opened that are not, though the declaration is registered: it is one round trip for each
    node. Raises QueueMismatch; BackendError, and BackendFull where it cannot be registered.
    """
    there, is_new = register(backend, shards, declaration, retry_for)
    if not there.agrees(declaration):
        raise mismatch(shards[0].queue_name, declaration, there)
    if (is_new or reopen) and not there.changing:
        open_each(backend, shards, there, retry_for)


def declare_anew(backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float) -> None:
    """As `declare`, for who met a shard that is not open; it is open when this returns.

    Raises what `declare` does; ShardClosed while the queue is being declared anew.
    """
    there, _ = register(backend, shards, declaration, retry_for)
    if not there.agrees(declaration):
        raise mismatch(shards[0].queue_name, declaration, there)
    if there.changing or not open_each(backend, shards, there, retry_for):
        raise ShardClosed(
            f"Queue {shards[0].queue_name!r} is being declared anew. If that broke off, call app.redeclare again, "
            "with the worker as it was or as it is to be.",
            queue_name=shards[0].queue_name,
        )


def register(
    backend: Backend, shards: Sequence[ShardRef], declaration: Declaration, retry_for: float
) -> tuple[Registered, bool]:
    """What is registered, and whether that was done just now. Raises BackendError."""
    key = declaration_key(shards[0].queue_name)

    def once() -> tuple[Registered, bool]:
        # Read first: a full Redis refuses the write, and drains must go on there.
        stored = _stored(backend, key)
        if stored is not None:
            return registered(stored), False
        mine = Registered(asdict(declaration), next_generation(backend, shards[0], 0))
        backend.client.set(key, mine.encoded, nx=True)
        stored = _stored(backend, key)
        return registered(stored), stored == mine.encoded

    return backend.retrying(retry_for, once)


def _stored(backend: Backend, key: str) -> object:
    try:
        return backend.client.get(key)
    except REDIS_ERRORS as error:
        if is_wrong_type(error):
            # No version of this library wrote that: it cannot be read either.
            return b""
        raise


def open_each(backend: Backend, shards: Sequence[ShardRef], there: Registered, retry_for: float) -> bool:
    """Open the shards under the declaration that was seen; whether none knew a later one. Raises BackendError."""
    retry_until = backend.clock.monotonic() + retry_for
    args = [there.generation, there.made_with["merge"]]
    statuses = []
    for shard, first in zip(shards, backend.run_each([("open", shard, args) for shard in shards]), strict=True):
        reply, left = first, retry_until - backend.clock.monotonic()
        if isinstance(reply, BackendUnavailable) and left > 0:
            reply = backend.run("open", shard, args, retry_for=left)
        if isinstance(reply, LowkiqError):
            raise reply
        statuses.append(reply[0])
    return all(status == b"OK" for status in statuses)


def next_generation(backend: Backend, shard: ShardRef, last: int) -> int:
    """Larger than every one before: by the counter, and, where all was flushed, by the clock. Raises BackendError."""
    return max(last + 1, int(backend.now(shard) * _MICROS))


def mismatch(queue_name: str, declaration: Declaration, there: Registered) -> QueueMismatch:
    """What to do about a queue that was made with another declaration, or of which nobody can tell with what."""
    if not there.is_readable:
        return QueueMismatch(
            f"The declaration of queue {queue_name!r} cannot be read, so nobody can tell whether it is still declared "
            f"as it was made; its jobs are as they were. If it is, delete the key {declaration_key(queue_name)!r}: "
            "the next push or drain writes it again.",
            queue_name=queue_name,
        )
    here, then = asdict(declaration), there.made_with
    names = sorted(name for name in {*here, *then} if here.get(name) != then.get(name))
    declared = ", ".join(f"{name}={here.get(name)!r}" for name in names)
    made_with = ", ".join(f"{name}={then.get(name)!r}" for name in names)
    return QueueMismatch(
        f"Queue {queue_name!r} is declared with {declared}, but it was made with {made_with}. Restore the "
        "declaration; or give the worker another queue_name and let a worker with the old declaration push what "
        "is left over to it; or, if it is drained and nobody pushes, call app.redeclare with the worker.",
        queue_name=queue_name,
        declared=declared,
        stored=made_with,
    )
