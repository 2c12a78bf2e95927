"""Arrival numbers have 48 bits: moves up and down take up room for what is carried, and for nothing else."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, LowkiqError
from lowkiq_lambda.store.shard.moving import MARGIN, MOST_ARRIVALS, SLOT, Floors, bases_of
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare
from tests.reshard.filled import Fill

REST = 121.0


def floors(arrival: int, above: int, kin: bytes = b"") -> Floors:
    """Of a shard with these numbers."""
    return Floors(arrival, b"0", b"0", above, kin)


def arrivals(app: Lowkiq, worker: Any, server: Server) -> list[int]:
    """Of all shards."""
    return [
        int(server.admin.hget(shard.key("meta"), "arrival") or 0) for shard in app.core.queues.agreed(worker).shards
    ]


@pytest.mark.parametrize("waits", [pytest.param(False, marks=pytest.mark.nightly("with jobs in each check")), True])
def test_two_hundred_moves_up_and_down_take_little_room(
    make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str, *, waits: bool
) -> None:
    """With jobs that wait over a move to more shards and the one back, and without any; each is performed in order."""
    notes, app = Notes(), make_app()
    worker = declare(app, queue_name, notes, shards_count=1, merge="never")
    ids = ["a", "b", "c", "d"]
    app.drain()
    for cycle in range(200):
        if waits:
            worker.push_many([{"id": one, "payload": (cycle, turn)} for turn in range(2) for one in ids])
        for to in (2, 1):
            clock.advance(REST)
            app.operate(worker).reshard(to=to)
        app.drain()

    of_a = [payload for batch in notes.batches for payload in batch.get("a", [])]
    assert ([[cycle, turn] for cycle in range(200) for turn in range(2)] if waits else []) == [[*one] for one in of_a]
    assert max(arrivals(app, worker, server)) <= 200 * (2 * MARGIN + SLOT) + 10_000


@pytest.mark.parametrize("above", ["nothing", "all"])
def test_ten_thousand_moves_up_and_down_fit(above: str) -> None:
    """Between one count and its double, whether all shards hold something or none does."""
    one = floors(0, 0)
    for cycle in range(10_000):
        first = Floors.over([one], MARGIN).arrival
        two = [
            floors(first + slot * SLOT, 0 if above == "nothing" else first + slot * SLOT, b"%d" % cycle)
            for slot in (0, 1)
        ]
        one = Floors.over(two, MARGIN)
        one = floors(one.arrival, 0 if above == "nothing" else one.arrival)

    assert one.arrival < MOST_ARRIVALS


@pytest.mark.parametrize(
    ("several", "expected"),
    [
        ([floors(9, 0), floors(7, 0), floors(5, 0)], [0, 9, 16]),
        ([floors(9, 9), floors(7, 0), floors(5, 5)], [0, 0, 0]),
        ([floors(9, 0), floors(7, 7), floors(5, 0)], [0, 0, 9]),
        ([floors(9, 4), floors(9, 4)], [0, 5]),
        ([floors(9, 4), floors(30, 20)], [0, 0]),
        ([floors(9, 0), floors(30, 20, b"k"), floors(19, 10, b"k")], [0, 0, 0]),
        ([floors(9, 0), floors(30, 20, b"k"), floors(7, 0), floors(19, 5, b"k")], [0, 4, 34, 4]),
    ],
)
def test_what_shards_hold_gets_numbers_of_its_own(several: list[Floors], expected: list[int]) -> None:
    """Those of one shard begin behind those of the one before it, as far as both hold anything."""
    assert expected == bases_of(several)
    held = [
        range(one.above + base + 1, one.arrival + base + 1)
        for one, base in zip(several, expected, strict=True)
        if one.arrival > one.above
    ]
    assert sum(map(len, held)) == len(set().union(*held))
    assert Floors.over(several, 1).arrival > max(map(max, held))


def test_a_move_that_would_not_fit_changes_nothing(fill: Fill, server: Server) -> None:
    """It is refused before its first write, and the queue goes on as it was."""
    filled = fill(2)
    was = filled.held()
    for shard in filled.app.core.queues.agreed(filled.worker).shards:
        server.admin.hset(shard.key("meta"), "arrival", MOST_ARRIVALS // 2 + 1)
    with pytest.raises(LowkiqError, match=r"would not fit\. Nothing was changed"):
        filled.app.operate(filled.worker).reshard(to=1)

    assert not filled.app.operate(filled.worker).resharding().layout.is_moving
    assert was == filled.held()


def test_a_move_that_no_longer_fits_names_the_way_out(
    make_app: MakeApp, server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its numbers have come too far since it began, the error says how to turn round, and that works."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many([{"id": one} for one in "abcdef"])
    monkeypatch.setattr("lowkiq_lambda.reshard.group.GroupMove.check", lambda _self: None)
    for shard in app.core.queues.agreed(worker).shards:
        server.admin.hset(shard.key("meta"), "arrival", MOST_ARRIVALS)
    with pytest.raises(LowkiqError, match=r"would not fit\. Turn the move round \(--abort\)"):
        app.operate(worker).reshard(to=1)

    turned = app.operate(worker).resharding()
    turned.abort(lambda *_: None)
    assert turned.go_on(lambda *_: None)
    assert {"done": 6} == app.drain()
