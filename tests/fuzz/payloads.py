"""Payloads of the planted handlers, in a module without a connection."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class AddPoints:
    """A change of an account."""

    change: str
    points: int


@dataclass(frozen=True)
class Status:
    """The state of an order."""

    status: Literal["new", "paid", "sent"]


ADDED = [AddPoints("a", 5), AddPoints("b", 7), AddPoints("c", 1)]
STATUSES = [Status("new"), Status("paid"), Status("sent")]
