"""The troubles that a load may have, by name, each with the lines that it puts on the list of what needs somebody."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from local.load.app import BLOCKING, FAILING, HANGING, LIMITED, MOVING, PLANNED, WITH_TENANTS

GONE: Final = "packer-2:4711"
HUNG: Final = "packer-1:1702"


class Trouble(NamedTuple):
    """What is planted, and the checks of its lines, each with the queue, or the entry, that it is about."""

    says: str
    lines: tuple[tuple[str, str], ...]


TROUBLES: Final[Mapping[str, Trouble]] = {
    "entry-impossible": Trouble("an entry for each 31st of February", (("schedules", f"{PLANNED}/impossible"),)),
    "entry-unreadable": Trouble(
        "an entry that another version of the code has made", (("schedules", f"{PLANNED}/unreadable"),)
    ),
    "entry-off": Trouble("an entry that somebody has switched off", (("schedules", f"{PLANNED}/off"),)),
    "hung-handler": Trouble("a handler that has run for 20 minutes", (("hung", HANGING),)),
    "failures": Trouble("20,000 failures of 12 kinds, in three queues", tuple(("failing", name) for name in FAILING)),
    "blocked-ids": Trouble("ids behind a payload that failed for the last time", (("blocked ids", BLOCKING),)),
    "move": Trouble("a move from 8 to 12 shards that stands still half-way", (("moves", MOVING),)),
    "dead-process": Trouble("a daemon that died twelve minutes ago, with jobs in flight", (("gone", ""),)),
    "paused-tenant": Trouble("a tenant that was paused 23 minutes ago", (("paused tenants", WITH_TENANTS),)),
    "limit": Trouble("a queue that may begin 30 ids a day, and has 60", (("limits", LIMITED),)),
}
"""In the order in which their lines stand, worst first; broken ones before those that are to be looked at."""


def lines_of(names: list[str]) -> list[tuple[str, str]]:
    """The lines of these troubles."""
    return [line for name, trouble in TROUBLES.items() if name in names for line in trouble.lines]
