"""Sessions of the dashboard that somebody has ended before their time; forgotten when they would have ended anyway."""

from math import ceil
from typing import Any

from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import dashboard_key, escape


def sign_out(backend: Backend, retry_for: float, session_id: str, seconds: float) -> None:
    """Keeps the id for so many seconds. Raises BackendError."""
    _send(backend, retry_for, session_id, "SET", "", "EX", max(1, ceil(seconds)))


def is_signed_out(backend: Backend, retry_for: float, session_id: str) -> bool:
    """Whether the id is kept. Raises BackendError."""
    return bool(_send(backend, retry_for, session_id, "EXISTS"))


def _send(backend: Backend, retry_for: float, session_id: str, command: str, *more: str | int) -> Any:  # noqa: ANN401 - as Redis answers
    key = dashboard_key(f"signed_out:{escape(session_id)}", backend.prefix)
    (answer,) = backend.retrying(
        retry_for, lambda: [unless_error(each) for each in send_each(backend.client, [(key, (command, key, *more))])]
    )
    return answer
