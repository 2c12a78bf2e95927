"""Apps with schedule entries, and what their ticks fired."""

from collections.abc import Mapping
from typing import Final

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.schedules.waves import Ticked
from lowkiq_lambda.store.shard.entries import EntryRecord, EntryStore
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.testing import ManualClock

NOON: Final = 1_800_014_400.0
"""2027-01-15T12:00:00Z: on all grids that tests use, and later than a new clock."""
MINUTE: Final = 60.0


def at_noon(clock: ManualClock, later: float = 0.0) -> None:
    """Move the clock to noon, or so many seconds after it."""
    clock.advance(NOON + later - clock.time())


def fired(ticked: Ticked) -> list[tuple[str, float, str]]:
    """Name, seconds after noon, and outcome of each firing."""
    assert [] == ticked.problems
    return [(one.name, one.planned - NOON, one.outcome) for one in ticked.fired]


def records(app: Lowkiq, worker: type[Worker]) -> Mapping[str, EntryRecord]:
    """What the queue's shards know of its entries, by name."""
    shards = with_timetable(app.core.queues.agreed(worker).shards)
    return {row.name: row.record for row in EntryStore(app.core.backend, 5.0).rows(shards)}


def outcomes(app: Lowkiq, worker: type[Worker], name: str) -> list[tuple[float, str]]:
    """The history of an entry, oldest first: seconds after noon, and outcome."""
    return [(one.planned - NOON, one.outcome) for one in reversed(app.schedules.history(worker, name))]
