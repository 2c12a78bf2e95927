"""A type of payloads."""

import msgspec


class OrderChanged(msgspec.Struct, frozen=True):
    """A change of an order."""

    status: str
    version: int = 1
