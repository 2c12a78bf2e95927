"""Cancel and pause of single ids beside what else a queue does: moves, tenants, versions, equal payloads, damage."""

from typing import TYPE_CHECKING, Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import REQUESTS, ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.looks import ids_of, left_behind
from tests.kit.workers import declare, jobs_of, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable


def requests_of(app: Lowkiq, worker: type[Worker]) -> dict[str, tuple[str, str, float | None]]:
    """Kind, name and end of each request, by id."""
    return {one.id: (one.kind, one.by, one.until) for one in app.operate(worker).requests()}


@pytest.mark.parametrize("is_between_groups", [True, False])
def test_pauses_hold_in_the_middle_of_a_move(
    make_app: MakeApp, clock: ManualClock, queue_name: str, *, is_between_groups: bool
) -> None:
    """Of ids that have moved, that have not, and that are on their way: nothing of them runs before the end."""
    app, notes, told = make_app(), Notes(), list[object]()
    worker = declare(app, queue_name, notes, shards_count=2)
    ids = [str(number) for number in range(30)]
    worker.push_many(jobs_of(ids[:20], payload=1))
    app.operate(worker).pause_jobs(ids, 600, by="ann")
    before = requests_of(app, worker)
    moves = app.operate(worker).resharding()
    moves.begin(4)
    looks = iter([1.0] * 3)
    is_over = (lambda: not told) if is_between_groups else (lambda: next(looks, 0.0))
    assert not moves.go_on(lambda *outcome: told.append(outcome), is_over)
    app.core.queues.of(worker).doubt()

    pushed = worker.push_many(jobs_of(ids, payload=2))
    assert {} == app.drain()
    if is_between_groups:
        assert (1, {True}) == (len(told), {one.paused for one in pushed})
        resumed = app.operate(worker).resume_jobs(ids[10:])
        assert ({*ids[10:]}, []) == ({*resumed.at_once}, resumed.gone)
    assert moves.go_on(lambda *_: None)

    other = make_app()
    moved = declare(other, queue_name, notes, shards_count=4)
    if not is_between_groups:
        other.operate(moved).resume_jobs(ids[10:])
    assert {job_id: before[job_id] for job_id in ids[:10]} == requests_of(other, moved)
    assert {"done": 20} == other.drain()
    clock.advance(601)
    assert {"done": 10} == other.drain()
    done = {job_id: given for batch in notes.batches for job_id, given in batch.items()}
    assert {job_id: [1, 2] if int(job_id) < 20 else [2] for job_id in ids} == done
    assert ({}, {}) == (left_behind(other, moved), requests_of(other, moved))


def test_a_cancel_moves_with_what_a_dead_holder_had(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """It takes what had come by then, by the arrival numbers of the new shard; what was pushed since runs there."""
    app, mortal_app, notes = make_app(), make_app(), Notes()
    mortal = Mortal(mortal_app)
    dying = declare(mortal_app, queue_name, mortal.die, shards_count=2)
    worker = declare(app, queue_name, notes, shards_count=2)
    ids = ["a", "b", "c", "d"]
    dying.push_many(jobs_of(ids, payload=1))
    # The numbers of the shards are not alike.
    worker.push_many({"id": "a", "payload": number, "delay": 600} for number in range(2, 9))
    assert mortal.drain() is None
    running = ids_of(app.operate(worker).in_flight.list())
    answer = app.operate(worker).cancel(ids)
    assert running == answer.in_flight
    worker.push_many(jobs_of(ids, payload=1))
    outlive(app, clock, worker)
    app.operate(worker).reshard(to=3)

    other = make_app()
    moved = declare(other, queue_name, notes, shards_count=3)
    clock.advance(600)
    other.drain()
    assert {job_id: [[1]] for job_id in ids} == {
        job_id: [batch[job_id] for batch in notes.batches if job_id in batch] for job_id in ids
    }
    assert ({}, {}) == (left_behind(other, moved), requests_of(other, moved))


def test_a_paused_id_keeps_back_no_other_of_its_tenant(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its lane goes on with others, also where it is the first or the only one of it, and goes back to its place."""
    notes = Notes()
    worker = declare(app, queue_name, notes, tenants="home", batch_size=1)
    worker.push_many(jobs_of(["acme:1", "acme:2", "globex:1", "initech:1"]))
    desk = app.operate(worker)
    desk.pause_jobs(["acme:1", "globex:1"], 60)
    pushed = worker.push_many(jobs_of(["acme:1", "acme:3"], payload=2))

    assert [True, False] == [one.paused for one in pushed]
    assert {"done": 3} == app.drain()
    assert {"acme:2", "acme:3", "initech:1"} == {job_id for batch in notes.batches for job_id in batch}
    desk.cancel(["globex:1"])
    desk.resume_jobs(["acme:1"])
    assert {"done": 1} == app.drain()
    assert ["acme:1"] == [*notes.batches[-1]]
    desk.resume_jobs(["globex:1"])
    clock.advance(61)
    assert ({}, {}, {}) == (app.drain(), left_behind(app, worker), requests_of(app, worker))


def test_a_paused_id_takes_newer_versions_and_no_older_ones(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """With `merge="latest"` one payload waits for the end of the pause; a version that is not done leaves no mark."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge="latest")
    worker.push("a", "v2", score=2)
    desk = app.operate(worker)
    desk.pause_jobs(["a"], 60)

    newer, older = worker.push("a", "v3", score=3), worker.push("a", "v1", score=1)
    assert [(True, True, False), (True, False, True)] == [
        (one.paused, one.merged, one.superseded) for one in (newer, older)
    ]
    assert newer.due_at == older.due_at == pytest.approx(app.core.backend.now(shard_of(app, worker, "a")) + 60, abs=1)
    assert {} == app.drain()
    desk.cancel(["a"])
    assert worker.push("a", "v1", score=1).paused
    clock.advance(61)
    app.drain()
    assert [{"a": ["v1"]}] == notes.batches
    assert not worker.push("a", "v2", score=2).superseded
    app.drain()
    assert ({}, {}) == (left_behind(app, worker), requests_of(app, worker))


def test_a_version_that_was_cancelled_while_it_ran_may_come_again(app: Lowkiq, queue_name: str) -> None:
    """It was not done, so that the same version counts, and a newer one that came meanwhile runs next."""
    ran: list[Any] = []

    def perform(batch: Batch) -> None:
        ran.append(batch["a"])
        if len(ran) == 1:
            worker.push("a", "v3", score=3)
            app.operate(worker).cancel(["a"])
            batch.fail("a", "broken")

    worker = declare(app, queue_name, perform, merge="latest")
    worker.push("a", "v2", score=2)

    # What waited behind the run has gone with it.
    assert {"cancelled": 1} == app.drain()
    assert not worker.push("a", "v2", score=2).superseded
    assert {"done": 1} == app.drain()
    assert [["v2"], ["v2"]] == ran


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_an_equal_payload_that_came_later_is_spared(app: Lowkiq, queue_name: str, merge: str) -> None:
    """Behind the run that is cancelled, and where it became one with what waited when the operator looked."""
    ran: list[Any] = []

    def perform(batch: Batch) -> None:
        ran.append({job_id: batch[job_id] for job_id in batch})
        if len(ran) == 1:
            app.operate(worker).cancel(["a"])
            worker.push("a", 1)
            batch.fail("a", "broken")

    worker = declare(app, queue_name, perform, merge=merge)
    worker.push("a", 1)
    assert {"cancelled": 1, "done": 1} == app.drain()
    assert [{"a": [1]}, {"a": [1]}] == ran

    worker.push_many([{"id": "b", "payload": number} for number in (1, 2)])
    backend = app.core.backend
    run = backend.run

    def push_before(name: str, *args: Any, **options: Any) -> Any:
        if name == "cancel":
            backend.run = run  # type: ignore[method-assign]  # the act happens once
            worker.push("b", 1)
        return run(name, *args, **options)

    backend.run = push_before  # type: ignore[method-assign]  # the last moment before the script
    app.operate(worker).cancel(["b"])
    app.drain()
    assert 1 in ran[-1]["b"]


def poison(shard: ShardRef, app: Lowkiq, value: bytes | None) -> None:
    """A hand writes this for an id that runs or waits; None: the key becomes one of another type."""
    client = app.core.backend.client
    key = shard.key(REQUESTS)
    if value is None:
        client.delete(key)
        client.rpush(key, "alien")
    else:
        client.hset(key, mapping={"a": value, "b": value})


GARBAGE = [
    pytest.param(None, id="another type"),
    pytest.param(b"\xc1garbage", id="bytes"),
    pytest.param(b"\x80", id="an empty map"),
    pytest.param(b"\x81\xa1p\x81\xa4ends\xa3xyz", id="an end that is a text"),
    pytest.param(b"\x81\xa1c\xc0\x01", id="more behind it"),
]


@pytest.mark.unverified("records are damaged by hand")
@pytest.mark.parametrize("value", GARBAGE)
@pytest.mark.parametrize("meets", ["claim", "settle", "push", "look", "act", "page of a task"])
def test_damage_loses_nothing(
    app: Lowkiq, clock: ManualClock, queue_name: str, value: bytes | None, meets: str
) -> None:
    """Whoever meets it sets it aside and goes on; people are told, and each payload is performed."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    task = app.task("export")
    task.push_many(worker, jobs_of("abc", payload=1))
    desk = app.operate(worker)
    desk.pause_jobs(["c"])
    shard = shard_of(app, worker, "a").using((REQUESTS,))
    if meets == "settle":
        notes.then = lambda _batch: poison(shard, app, value) if len(notes.batches) == 1 else None
    else:
        poison(shard, app, value)

    meet: dict[str, Callable[[], object]] = {
        "claim": app.drain,
        "settle": app.drain,
        "push": lambda: worker.push_many(jobs_of("ab", payload=2)),
        "look": lambda: (desk.requests(), desk.explain("a")),
        "act": lambda: (desk.pause_jobs(["a"], 10), desk.resume_jobs(["a"])),
        "page of a task": lambda: task.items("enqueued"),
    }
    meet[meets]()
    desk.repair()
    worker.push_many(jobs_of("ab", payload=3))
    app.drain()

    damaged = {(one.key, one.id): one.why for one in desk.damaged()}
    why = "no request of an operator"
    found = {("requests", "a"): why, ("requests", "b"): why}
    assert ({("requests", ""): damaged.get(("requests", ""))} if value is None else found) == damaged
    ran = [job_id for batch in notes.batches for job_id in batch]
    assert {"a", "b"} <= {*ran}
    # The pause without an end is forgotten with the whole key, and the id keeps its time: it can be made due.
    assert ([] if value is None else ["c"]) == [one.id for one in desk.requests()]
    desk.resume_jobs(["c"])
    desk.waiting.run_now(everything=True)
    clock.advance(1)
    app.drain()
    assert {"a": 2 + (meets == "push"), "b": 2 + (meets == "push"), "c": 1} == {
        job_id: sum(len(batch[job_id]) for batch in notes.batches if job_id in batch) for job_id in "abc"
    }
    assert {} == left_behind(app, worker)
