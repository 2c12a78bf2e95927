"""The drift guard: a queue keeps what it was made with, and refuses who declares it otherwise.

With another `shards_count` an id would land in another shard while its older payloads wait in the first; with
another codec nobody could read what is queued.
"""

from dataclasses import asdict, dataclass
from typing import Final

import msgspec

from lowkiq_lambda.errors import QueueMismatch
from lowkiq_lambda.store.backend import Backend
from lowkiq_lambda.store.connection import Client
from lowkiq_lambda.store.keys import declaration_key

LAYOUT: Final = 1
HASH: Final = "crc32"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What every producer and every drain of a queue must agree on."""

    shards_count: int
    codec: str
    hash: str = HASH
    layout: int = LAYOUT


def declare(backend: Backend, queue_name: str, declaration: Declaration, patience: float) -> None:
    """Register the declaration, or compare it with the registered one. Raises QueueMismatch, BackendError."""
    mine = msgspec.json.encode(asdict(declaration))
    stored = backend.patiently(patience, lambda: _register(backend.client, declaration_key(queue_name), mine))
    if stored != mine:
        raise _mismatch(queue_name, declaration, stored)


def agrees(declaration: Declaration, stored: object) -> bool:
    """Whether what a queue was made with, as it lies in Redis, is this; where nothing is known, it may be."""
    return not isinstance(stored, bytes) or stored == msgspec.json.encode(asdict(declaration))


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
        "is left over to it.",
        queue_name=queue_name,
        declared=declared,
        stored=made_with,
    )
