"""A task is cancelled while its queue moves to another number of shards."""

from itertools import count

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare

ITEMS = 60


class HalfMoved:
    """A task whose items are partly in the old shards, and partly in the new one, of a move that broke off."""

    def __init__(self, app: Lowkiq, queue_name: str) -> None:
        self.notes = Notes()
        self.worker = declare(app, queue_name, self.notes, shards_count=2)
        self.task = app.task("import")
        self.task.push_many(self.worker, [{"id": number} for number in range(ITEMS)])
        self.moves = app.operate(self.worker).resharding()
        self.moves.begin(3)
        looks = count()
        assert not self.moves.go_on(lambda *_: None, lambda: 5 - next(looks))


@pytest.fixture
def half(make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> HalfMoved:
    """Such a task."""
    monkeypatch.setattr("lowkiq_lambda.store.shard.moving.CHUNK_RECORDS", 5)
    return HalfMoved(make_app(), queue_name)


def test_a_cancel_waits_for_what_is_on_its_way(
    half: HalfMoved, make_app: MakeApp, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is between two shards is deleted where it arrives: no item is performed, and none is left."""
    sleep, moved = clock.sleep, list[bool]()

    def sleep_and_move(seconds: float) -> None:
        sleep(seconds)
        if not moved:
            moved.append(half.moves.go_on(lambda *_: None))

    monkeypatch.setattr(clock, "sleep", sleep_and_move)
    assert 0 == half.task.cancel()
    assert [True] == moved

    app = make_app()
    declare(app, half.worker.queue_name, half.notes, shards_count=3)
    app.drain()
    assert ([], ITEMS) == (half.notes.batches, half.task.progress().counts["cancelled"])


def test_a_cancel_tells_how_many_items_are_left(half: HalfMoved) -> None:
    """Where its time is over, or nobody goes on with the move, they wait on: the duty deletes them."""
    left = half.task.cancel(seconds=1)

    assert 0 < left == half.task.progress().counts["enqueued"]
    assert left == half.task.cancel()
    assert half.moves.go_on(lambda *_: None)
    assert (0, ITEMS) == (half.task.cancel(), half.task.progress().counts["cancelled"])


def test_a_cancel_at_rest_leaves_nothing(app: Lowkiq, queue_name: str) -> None:
    """0 says that nothing waits any more; without time all is left."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    task = app.task("import")
    task.push_many(worker, [{"id": number} for number in range(ITEMS)])

    assert [ITEMS, 0] == [task.cancel(seconds=0), task.cancel()]
