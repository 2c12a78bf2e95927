"""Records of entries that a hand has damaged: they are set aside, and the other entries fire."""

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.testing import ManualClock
from tests.kit.firing import MINUTE, at_noon, fired, records
from tests.kit.handlers import Notes
from tests.kit.workers import declare

NO_MSGPACK = b"\xc1"
LAST_IS_NO_NUMBER = b"\x81\xa4last\xa1x"
SEEN_IS_NO_NUMBER = b"\x81\xa5known\x81\xa1d\x92\xa1x\xa1y"
NO_RECORD = b"\x01"


@pytest.mark.parametrize("damage", [NO_MSGPACK, LAST_IS_NO_NUMBER, SEEN_IS_NO_NUMBER, NO_RECORD])
def test_a_damaged_record_is_set_aside(app: Lowkiq, clock: ManualClock, queue_name: str, damage: bytes) -> None:
    """An entry of code is new again, so it fires at its next planned time; others lose none."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    for name in ("ill", "well"):
        app.every(MINUTE, worker, id=name)
    app.schedules.tick()
    (shard,) = with_timetable(app.queue_of(worker).shards)
    clock.advance(60.0)
    app.backend.client.hset(shard.key("timetable"), "ill", damage)
    seen = [fired(app.schedules.tick())]
    clock.advance(60.0)
    seen.append(fired(app.schedules.tick()))
    assert [[("well", 60.0, "pushed")], [("ill", 120.0, "pushed"), ("well", 120.0, "merged")]] == seen
    assert {("timetable", "ill", damage)} == {(one.key, one.id, one.data) for one in app.queries(worker).damaged()}


def test_a_key_of_another_type_is_set_aside(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nobody reads it, and entries go on as new ones."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    (shard,) = with_timetable(app.queue_of(worker).shards)
    app.backend.client.set(shard.key("timetable"), "text")
    app.schedules.tick()
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())
    assert ["poll"] == [*records(app, worker)]
