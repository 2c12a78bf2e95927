"""The drift guard: a queue keeps what it was made with, and refuses who declares it otherwise.

With another `shards_count` an id would land in another shard while its older payloads wait in the first; with
another codec nobody could read what is queued.
"""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

import msgspec

from lowkiq_lambda.errors import QueueMismatch
from lowkiq_lambda.store.backend import Backend
from lowkiq_lambda.store.connection import Client
from lowkiq_lambda.store.keys import ShardRef, declaration_key

LAYOUT: Final = 1
HASH: Final = "crc32"
_REPLACE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
"""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What every producer and every drain of a queue must agree on."""

    shards_count: int
    codec: str
    hash: str = HASH
    layout: int = LAYOUT


def declare(backend: Backend, queue_name: str, declaration: Declaration, patience: float) -> None:
    """Register the declaration, or compare it with the registered one. Raises QueueMismatch, BackendError."""
    mine = _encoded(declaration)
    stored = backend.patiently(patience, lambda: _register(backend.client, declaration_key(queue_name), mine))
    if stored != mine:
        raise _mismatch(queue_name, declaration, stored)


def redeclare(backend: Backend, queue_name: str, declaration: Declaration, patience: float) -> None:
    """Replace the registered declaration of a queue without jobs by one with another `shards_count`.

    The shards of the old count are closed first, each if it is empty, so that nobody who still goes by the old
    declaration can push or drain: two counts are never in use at once. What broke off half-way is finished by another
    call. Raises QueueMismatch where jobs are left or more than `shards_count` differs, and nothing is changed then;
    BackendError.
    """
    key, mine = declaration_key(queue_name), _encoded(declaration)
    stored = backend.patiently(patience, lambda: _register(backend.client, key, mine))
    before = msgspec.json.decode(stored)
    if before | {"shards_count": declaration.shards_count} != asdict(declaration):
        raise _mismatch(queue_name, declaration, stored)
    if stored != mine:
        _close_all(backend, queue_name, before["shards_count"], patience)
    for shard in _shards(queue_name, declaration.shards_count):
        _set_closed(backend, shard, patience, closed=False)
    if stored != mine:
        stored = backend.patiently(patience, lambda: backend.client.eval(_REPLACE, 1, key, stored, mine))
    if stored != mine:
        raise _mismatch(queue_name, declaration, stored)


def agrees(declaration: Declaration, stored: object) -> bool:
    """Whether what a queue was made with, as it lies in Redis, is this; where nothing is known, it may be."""
    return not isinstance(stored, bytes) or stored == _encoded(declaration)


@cache
def _encoded(declaration: Declaration) -> bytes:
    return msgspec.json.encode(asdict(declaration))


def _close_all(backend: Backend, queue_name: str, shards_count: int, patience: float) -> None:
    """Close the shards, or none where jobs are left. Raises QueueMismatch, BackendError."""
    shards = _shards(queue_name, shards_count)
    left = [shard for shard in shards if not _set_closed(backend, shard, patience, closed=True)]
    if not left:
        return
    for shard in shards:
        _set_closed(backend, shard, patience, closed=False)
    indexes = ", ".join(str(shard.index) for shard in left)
    raise QueueMismatch(
        f"Queue {queue_name!r} still has jobs, waiting, in flight or in the morgue (shards {indexes}): let them be "
        f"drained with shards_count={shards_count}, and requeue or delete what is in the morgue.",
        queue_name=queue_name,
    )


def _set_closed(backend: Backend, shard: ShardRef, patience: float, *, closed: bool) -> bool:
    """Whether the shard is closed now: it is not while it has jobs."""
    reply = backend.run("close", shard, ["1" if closed else ""], patience=patience)
    return not reply[1]


def _shards(queue_name: str, shards_count: int) -> list[ShardRef]:
    return [ShardRef(queue_name, shards_count, index) for index in range(shards_count)]


def _register(client: Client, key: str, mine: bytes) -> bytes:
    # Read first: a full Redis refuses the write, and drains must go on there.
    stored = client.get(key)
    if stored is None:
        client.set(key, mine, nx=True)
        stored = client.get(key)
    return stored if isinstance(stored, bytes) else b"{}"


def _mismatch(queue_name: str, declaration: Declaration, stored: bytes) -> QueueMismatch:
    there = msgspec.json.decode(stored)
    here = asdict(declaration)
    names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    declared = ", ".join(f"{name}={here.get(name)!r}" for name in names)
    made_with = ", ".join(f"{name}={there.get(name)!r}" for name in names)
    return QueueMismatch(
        f"Queue {queue_name!r} is declared with {declared}, but it was made with {made_with}. Restore the "
        "declaration; or give the worker another queue_name and let a worker with the old declaration push what "
        "is left over to it; or, if it is drained and nobody pushes, call app.redeclare with the worker.",
        queue_name=queue_name,
        declared=declared,
        stored=made_with,
    )
