"""What people are told of a queue's past: values that `app.recovered` and `app.queries` return."""

from typing import Any

import msgspec


class JournalEntry(msgspec.Struct, frozen=True):
    """What happened in a shard, as its journal has it: docs/journal.md tells the kinds and their items.

    `at` is Unix seconds by the server's clock. `token` and `call` are those of the holder, or `token` is that of who
    else asked for it, a push or an operator's action.
    """

    shard: int
    number: int
    kind: str
    at: float
    token: bytes
    call: str
    items: list[Any]
