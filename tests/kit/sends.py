"""What clients of Redis send, counted: a round trip is a command, or a pipeline of many."""

from typing import Any

import pytest
from redis.connection import AbstractConnection


def counted_sends(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Has from now on a connection for each time that something is sent by it."""
    sent = list[object]()
    send: Any = AbstractConnection.send_packed_command

    def note_and_send(connection: AbstractConnection, *args: Any, **options: Any) -> None:
        sent.append(connection)
        send(connection, *args, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", note_and_send)
    return sent
