"""Saved views of the dashboard: addresses of its pages, by the names that people gave them.

Apps of a namespace share them, as they share tasks and processes: so an app that gets another queue keeps its views.
"""

from collections.abc import Sequence
from typing import Any, Final

from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import dashboard_key

MOST: Final = 50
"""So many are kept."""


def read_views(backend: Backend, retry_for: float) -> dict[str, str]:
    """Addresses by name. Raises BackendError."""
    (flat,) = _send(backend, retry_for, ("HGETALL",))
    views = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {_text(name): _text(address) for name, address in views}


def save_view(backend: Backend, retry_for: float, name: str, address: str) -> bool:
    """Keep it in place of one with that name. False: there are so many others already. Raises BackendError."""
    count, is_kept = _send(backend, retry_for, ("HLEN",), ("HEXISTS", name))
    if count >= MOST and not is_kept:
        return False
    _send(backend, retry_for, ("HSET", name, address))
    return True


def delete_view(backend: Backend, retry_for: float, name: str) -> bool:
    """Forget it. False: there is none. Raises BackendError."""
    (deleted,) = _send(backend, retry_for, ("HDEL", name))
    return bool(deleted)


def _send(backend: Backend, retry_for: float, *commands: Sequence[str]) -> list[Any]:
    key = dashboard_key("views", backend.prefix)
    calls = [(key, (name, key, *more)) for name, *more in commands]
    return backend.retrying(retry_for, lambda: [unless_error(each) for each in send_each(backend.client, calls)])


def _text(stored: bytes) -> str:
    return stored.decode(errors="replace")
