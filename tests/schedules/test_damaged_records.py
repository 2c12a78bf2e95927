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
KNOWN_IS_A_LIST = b"\x81\xa5known\x90"
KNOWN_HAS_THREE_TIMES = b"\x81\xa5known\x81\xa1d\x93\x01\x01\x01"
KNOWN_BEFORE_1970 = b"\x81\xa5known\x81\xa1d\x92\xff\x01"
HISTORY_IS_A_MAP = b"\x81\xa7history\x80"
HISTORY_HAS_A_GAP = b"\x81\xa7history\x81\x05\x93\x01\x01\xa1x"


@pytest.mark.parametrize("damage", [NO_MSGPACK, LAST_IS_NO_NUMBER, SEEN_IS_NO_NUMBER, NO_RECORD])
def test_a_damaged_record_is_set_aside(app: Lowkiq, clock: ManualClock, queue_name: str, damage: bytes) -> None:
    """An entry of code is new again, so it fires at its next planned time; others lose none."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    for name in ("ill", "well"):
        app.every(MINUTE, worker, id=name)
    app.schedules.tick()
    (shard,) = with_timetable(app.core.queues.agreed(worker).shards)
    clock.advance(60.0)
    app.core.backend.client.hset(shard.key("timetable"), "ill", damage)
    seen = [fired(app.schedules.tick())]
    clock.advance(60.0)
    seen.append(fired(app.schedules.tick()))
    assert [[("well", 60.0, "pushed")], [("ill", 120.0, "pushed"), ("well", 120.0, "merged")]] == seen
    assert {("timetable", "ill", damage)} == {(one.key, one.id, one.data) for one in app.operate(worker).damaged()}


def test_a_key_of_another_type_is_set_aside(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nobody reads it, and entries go on as new ones."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    (shard,) = with_timetable(app.core.queues.agreed(worker).shards)
    app.core.backend.client.set(shard.key("timetable"), "text")
    app.schedules.tick()
    clock.advance(60.0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())
    assert ["poll"] == [*records(app, worker)]


@pytest.mark.parametrize(
    "damage", [KNOWN_IS_A_LIST, KNOWN_HAS_THREE_TIMES, KNOWN_BEFORE_1970, HISTORY_IS_A_MAP, HISTORY_HAS_A_GAP]
)
def test_a_record_that_only_scripts_can_read_is_set_aside(
    app: Lowkiq, clock: ManualClock, queue_name: str, damage: bytes
) -> None:
    """Else pages, switches and `redeclare` would fail until somebody repairs the record by hand."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="well")
    app.schedules.tick()
    (shard,) = with_timetable(app.core.queues.agreed(worker).shards)
    app.core.backend.client.hset(shard.key("timetable"), "ill", damage)
    assert ["well"] == [view.name for view in app.schedules.all()]
    assert [("ill", damage)] == [(one.id, one.data) for one in app.operate(worker).damaged()]
