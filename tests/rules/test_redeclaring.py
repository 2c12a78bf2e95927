"""L-68: a queue without jobs can be given another number of shards, and two numbers are never in use at once."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from lowkiq_lambda import Batch, Lowkiq, QueueMismatch
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import SHARD_KEYS, ShardRef
from tests.kit.apps import MakeApp
from tests.kit.servers import Server

Given = ParamSpec("Given")
Result = TypeVar("Result")

JOBS = [{"id": number, "payload": number} for number in range(20)]


def declared(app: Lowkiq, queue_name: str, shards_count: int, performed: list[str] | None = None) -> FunctionWorker:
    """A worker of the app that notes the ids it gets."""

    def note(batch: Batch) -> None:
        if performed is not None:
            performed.extend(batch)

    return app.worker(queue_name=queue_name, shards_count=shards_count, max_retry_count=0)(note)


def fail(_batch: object) -> None:
    """What kills each job."""
    raise ValueError("no")


def test_l68_a_drained_queue_gets_other_shards(make_app: MakeApp, queue_name: str) -> None:
    """L-68: drained and declared anew, all is pushed to and drained from the new shards."""
    old, new, performed = make_app(), make_app(), list[str]()
    before, after = declared(old, queue_name, 3), declared(new, queue_name, 8, performed)
    before.push_many(JOBS)
    old.drain()

    with pytest.raises(QueueMismatch, match=r"call app\.redeclare"):
        after.push_many(JOBS)
    new.operate(after).redeclare()
    after.push_many(JOBS)

    assert {"done": len(JOBS)} == new.drain()
    assert sorted(str(job["id"]) for job in JOBS) == sorted(performed)


def test_l68_nothing_is_left_in_shards_of_the_old_number(make_app: MakeApp, server: Server, queue_name: str) -> None:
    """What another version left of failures that are over goes with its shard."""
    old, new = make_app(), make_app()
    before, after = declared(old, queue_name, 3), declared(new, queue_name, 8)
    before.push_many(JOBS)
    old.drain()
    shard = ShardRef(queue_name, 3, 1)
    server.admin.hset(shard.key("failures"), "left", b"\x90")
    new.operate(after).redeclare()

    assert [name for name in SHARD_KEYS if server.admin.exists(shard.key(name))] == ["meta"]


def test_l68_who_goes_by_the_old_number_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """A process that knew the queue before neither pushes nor drains, so no job lies where nobody looks."""
    old, new = make_app(), make_app()
    before, after = declared(old, queue_name, 3), declared(new, queue_name, 8)
    before.push_many(JOBS)
    old.drain()
    new.operate(after).redeclare()

    with pytest.raises(QueueMismatch, match="made with shards_count=8"):
        before.push_many(JOBS)
    assert 0 == new.operate.stats()["total"]["length"]


@pytest.mark.parametrize("perform", [None, fail], ids=["waiting", "dead"])
def test_l68_a_queue_with_jobs_stays_as_it_is(
    make_app: MakeApp, queue_name: str, perform: Callable[[object], None] | None
) -> None:
    """Jobs that wait, or lie in the morgue, are named by their shards, and the old declaration goes on."""
    old, new, performed = make_app(), make_app(), list[str]()
    before, after = declared(old, queue_name, 3, performed), declared(new, queue_name, 8)
    if perform:
        old.server_middlewares.append(lambda _worker, batch, _call_next: perform(batch))
    before.push_many([{"id": "a"}])
    if perform:
        old.drain()
        old.server_middlewares.clear()

    with pytest.raises(QueueMismatch, match=r"still has jobs.*\(shards \d\)"):
        new.operate(after).redeclare()

    before.push_many([{"id": "b"}, {"id": "c"}, {"id": "d"}])
    old.drain()
    assert {"b", "c", "d"} <= set(performed)


def test_l68_and_back_again(make_app: MakeApp, queue_name: str) -> None:
    """The first number can come back: its shards are opened again, and those of the second are closed."""
    old, new = make_app(), make_app()
    before, after = declared(old, queue_name, 3), declared(new, queue_name, 8)
    before.push_many(JOBS)
    old.drain()
    new.operate(after).redeclare()

    old.operate(before).redeclare()

    before.push_many(JOBS)
    with pytest.raises(QueueMismatch):
        after.push_many(JOBS)
    assert {"done": len(JOBS)} == old.drain()


@pytest.mark.parametrize("finisher", [3, 8])
def test_l68_what_broke_off_is_finished_by_another_call(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch, finisher: int
) -> None:
    """Wherever it breaks off, nobody pushes under two numbers, and a call with either of them makes the queue whole."""
    old, new = make_app(), make_app()
    workers = {3: declared(old, queue_name, 3), 8: declared(new, queue_name, 8)}
    workers[3].push_many(JOBS)
    old.drain()
    for calls in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(Backend, "run", breaking_off(Backend.run, after=calls))
            with pytest.raises(BackendUnavailable):
                new.operate(workers[8]).redeclare()
        with pytest.raises(QueueMismatch):
            workers[8].push_many([{"id": "too early"}])
        if finisher == 3:
            old.operate(workers[3]).redeclare()
            workers[3].push_many(JOBS)
            assert {"done": len(JOBS)} == old.drain()
    app = {3: old, 8: new}[finisher]

    app.operate(workers[finisher]).redeclare()

    workers[finisher].push_many(JOBS)
    assert {"done": len(JOBS)} == app.drain()


def breaking_off(function: Callable[Given, Result], after: int) -> Callable[Given, Result]:
    """The function, until Redis is out of reach after so many calls."""
    calls = 0

    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        nonlocal calls
        calls += 1
        if calls > after:
            raise BackendUnavailable("gone")
        return function(*args, **kwargs)

    return called


def test_another_codec_is_no_matter_of_shards(make_app: MakeApp, queue_name: str) -> None:
    """What was queued with another codec is refused as ever: only the number of shards can be declared anew."""
    old = make_app()
    declared(old, queue_name, 3).push_many(JOBS)
    old.drain()
    new = make_app(dump_payload=lambda payload: str(payload).encode(), load_payload=bytes.decode)
    after = declared(new, queue_name, 8)

    with pytest.raises(QueueMismatch, match="codec"):
        new.operate(after).redeclare()
