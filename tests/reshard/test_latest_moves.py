"""Queues of merge = "latest", and blocked ids, whose shards are replaced (E-93, P3)."""

from collections.abc import Sequence

import pytest

from lowkiq_lambda import Pushed
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.moving import Load, MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, failing
from tests.kit.looks import counters, ids_of
from tests.kit.started import put_off
from tests.kit.workers import declare


def test_marks_move_with_their_ids(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """P3: what was done in an old shard is not done again by an older version; and of what waits the newest runs."""
    notes, old, new = Notes(), make_app(), make_app()
    worker = declare(old, queue_name, notes, shards_count=2, merge="latest")
    ids = [f"id {number}" for number in range(20)]

    def version(score: int) -> list[dict[str, object]]:
        return [{"id": one, "payload": score, "score": score} for one in ids]

    worker.push_many(version(5))
    old.drain()
    worker.push_many(version(7))
    old.operate(worker).reshard(to=3)
    clock.advance(60)
    after = declare(new, queue_name, notes, shards_count=3, merge="latest")
    below, between = after.push_many(version(4)), after.push_many(version(6))
    notes.clear()
    new.drain()

    assert [True] * 40 == [one.superseded for one in [*below, *between]]
    assert {one: [7] for one in ids} == {one: given for batch in notes.batches for one, given in batch.items()}


def test_an_older_version_that_comes_before_the_mark_is_not_done(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3: a new shard takes pushes before the move brings what it knows of the id: that supersedes what waits."""
    notes, app = Notes(), make_app()
    worker = declare(app, queue_name, notes, shards_count=2, merge="latest")
    ids = [f"id {number}" for number in range(20)]
    worker.push_many([{"id": one, "payload": 5, "score": 5} for one in ids])
    app.drain()
    notes.clear()
    receive, pushed = MovingShards.receive, list[Pushed]()

    def push_and_receive(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        names = {row.name.decode() for _, rows in brought for row in rows}
        pushed.extend(
            worker.push_many([{"id": one, "payload": 4, "score": 4} for one in ids if names.issuperset({one})])
        )
        receive(shards, brought)

    monkeypatch.setattr(MovingShards, "receive", push_and_receive)
    app.operate(worker).reshard(to=3)
    app.drain()

    assert [False] * 20 == [one.superseded for one in pushed]
    assert [] == notes.batches


def test_a_started_job_that_comes_twice_supersedes_nothing(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2: of an id one started job waits, and the second copy of it finds no other version there, but itself."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=2, merge="latest")
    worker.push_many([{"id": "a", "payload": 5, "score": 5}])
    put_off(app, worker, "a", JobProgress())
    was = app.operate(worker).waiting.fetch(["a"])
    receive = MovingShards.receive

    def twice(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        receive(shards, brought)
        receive(shards, brought)

    monkeypatch.setattr(MovingShards, "receive", twice)
    app.operate(worker).reshard(to=3)

    assert was == app.operate(worker).waiting.fetch(["a"])
    assert 0 == counters(app, worker).get("superseded", 0)


def test_blocked_ids_stay_blocked(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """E-79: no move frees a head, and it can be unblocked where it is then."""
    notes, old, new = Notes(failing(*"abcd")), make_app(), make_app()
    fields = {"max_retry_count": 0, "dead_head": "block"}
    worker = declare(old, queue_name, notes, shards_count=2, **fields)
    worker.push_many([{"id": one, "payload": n, "score": n} for one in "abcd" for n in (1, 2)])
    old.drain()

    old.operate(worker).reshard(to=3)
    clock.advance(60)
    after = declare(new, queue_name, notes, shards_count=3, **fields)
    new.drain()
    blocked, counted = sorted(ids_of(new.operate(after).waiting.blocked())), new.operate.metrics()[queue_name].blocked
    new.operate(after).unblock([*"abcd"], "skip")
    notes.clear()
    notes.then = None
    new.drain()

    assert ([*"abcd"], 4, 0) == (blocked, counted, new.operate.metrics()[queue_name].blocked)
    assert {one: [2] for one in "abcd"} == {one: given for batch in notes.batches for one, given in batch.items()}
