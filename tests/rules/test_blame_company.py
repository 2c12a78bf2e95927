"""Who shares a batch with whom after a failure, and payloads that cannot be decoded (E-51, LB-9)."""

import asyncio
from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import outlive
from tests.kit.handlers import Broken, Notes, failing, raising_with
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of, shard_of


def test_a_blamed_id_stays_out_of_batches_with_fresh_ones(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """An id whose last failure was its own runs alone, so that it takes no fresh ones down with it."""
    notes = Notes(raising_with("b"))
    worker = declare(app, queue_name, notes, batch_size=5)
    worker.push_many(jobs_of("ab"))
    app.drain()
    clock.advance(10)
    notes.clear()
    clock.advance(1)
    worker.push_many(jobs_of("cde"))

    assert {"done": 3, "failed": 1, "retried": 1} == app.drain()
    assert [["b"], ["c", "d", "e"]] == notes.ids


def test_two_blamed_ids_share_no_batch(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Each of those that failed by themselves runs alone again."""
    notes = Notes(failing("a", "b"))
    worker = declare(app, queue_name, notes, batch_size=5)
    worker.push_many(jobs_of("ab"))
    app.drain()
    clock.advance(10)
    app.drain()

    assert [["a", "b"], ["a"], ["b"]] == notes.ids


def test_a_success_ends_the_blame(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Once it succeeded, the id is in batches with others again."""
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, batch_size=5)
    worker.push_many(jobs_of("ab"))
    app.drain()
    clock.advance(10)
    notes.then = None
    app.drain()
    worker.push_many(jobs_of("ab"))
    app.drain()

    assert [["a", "b"], ["a"], ["a", "b"]] == notes.ids
    assert {} == left_behind(app, worker)


def test_others_in_retry_share_batches(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Ids in retry that are not to blame share batches with each other, not with fresh ones."""
    notes = Notes(raising_with("a", "b", "c"))
    worker = declare(app, queue_name, notes, batch_size=6, isolate=False)
    worker.push_many(jobs_of("abc"))
    app.drain()
    clock.advance(11)
    worker.push_many(jobs_of("xyz"))
    notes.clear()
    notes.then = None
    app.drain()

    assert [["a", "b", "c"], ["x", "y", "z"]] == notes.ids


def undecodable_until_upgraded(upgraded: list[bool]) -> dict[str, object]:
    """Settings of a codec that cannot read a payload before it is upgraded."""

    def load(dumped: bytes) -> object:
        if b"newer" in dumped and not upgraded:
            raise LookupError("unknown version")
        return load_json(dumped)

    return {"dump_payload": lambda payload: f'"{payload}"'.encode(), "load_payload": load}


def test_an_undecodable_payload_is_a_failure_of_its_id(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """E-51, LB-9: its id fails with retries, the others of the batch run, and a newer codec gets it through."""
    upgraded: list[bool] = []
    app, notes = make_app(**undecodable_until_upgraded(upgraded)), Notes()
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many([{"id": "a", "payload": "old"}, {"id": "b", "payload": "newer"}, {"id": "c"}])

    assert {"done": 2, "failed": 1, "retried": 1} == app.drain()
    (waiting,) = app.operate(worker).waiting.fetch(["b"])
    assert "a payload cannot be decoded: LookupError: unknown version" == waiting.error
    upgraded.append(True)
    clock.advance(10)
    app.drain()

    assert [{"a": ["old"], "c": [""]}, {"b": ["newer"]}] == notes.batches


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_p6_a_codec_that_exits_fails_the_id_and_stops_no_shard(
    make_app: MakeApp, queue_name: str, kind: type[BaseException]
) -> None:
    """P6: the id is retried and dies as for any other error of its codec, and the others of its shard are done."""

    def load(dumped: bytes) -> object:
        if b"poison" in dumped:
            raise kind("codec")
        return load_json(dumped)

    notes = Notes()
    app = make_app(dump_payload=lambda payload: f'"{payload}"'.encode(), load_payload=load)
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=0)
    worker.push_many([{"id": "a", "payload": "poison"}, *jobs_of("bcd")])

    assert {"done": 3, "failed": 1, "dead": 1} == app.drain()
    (dead,) = notes.dead
    assert f"a payload cannot be decoded: {kind.__name__}: codec" == dead.error
    assert b'"poison"' == dead.payloads[0].payload
    assert {} == left_behind(app, worker)


def test_a_signal_while_a_payload_is_decoded_ends_the_drain_and_counts_nothing(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """An interruption from outside that meets the codec is none of the codec's errors."""
    signals = [SystemExit("once")]

    def load(dumped: bytes) -> object:
        if signals:
            raise signals.pop()
        return load_json(dumped)

    app, notes = make_app(dump_payload=lambda _payload: b"null", load_payload=load), Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))

    with pytest.raises(SystemExit):
        app.drain()
    outlive(app, clock, worker)
    assert {"recovered": 1, "done": 1} == app.drain()
    assert -1.0 == notes.last.retry_count


def test_an_undecodable_payload_dies_as_raw_bytes(make_app: MakeApp, queue_name: str) -> None:
    """E-51: when its retries are used up it lies in the morgue as it was stored; the rest of its id goes on."""
    app, notes = make_app(**undecodable_until_upgraded([])), Notes()
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate(("newer", "old"))])

    app.drain()

    assert [("a", [(b'"newer"', 0.0)])] == [(job.id, [tuple(one) for one in job.payloads]) for job in notes.dead]
    assert [{"a": ["old"]}] == notes.batches


def test_lb9_corrupt_bytes_stop_no_shard(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-9: bytes that are no payload at all harm their own id only, however often the process starts."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2, max_retry_count=1)
    worker.push_many(jobs_of("ab"))
    key = shard_of(app, worker, "a").key("jobs")
    record = app.core.backend.client.hget(key, "a")
    assert isinstance(record, bytes)
    app.core.backend.client.hset(key, "a", record[:-2] + b"\xff{")

    assert {"done": 1, "failed": 1, "retried": 1} == app.drain()
    clock.advance(10)
    assert {"failed": 1, "dead": 1} == app.drain()

    assert ["a"] == [job.id for job in notes.dead]
    assert look(app, worker, "a") is None


def test_ids_that_are_performed_one_by_one_are_not_blamed(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Where each job is performed by itself, those that failed come in one batch again: company does them no harm."""
    batches: list[list[str]] = []

    def noting(_worker: Worker, batch: Batch, call_next: Callable[[], object]) -> object:
        batches.append(list(batch))
        return call_next()

    def perform_job(_self: Worker, job: BatchJob) -> None:
        if job.retry_count < 0:
            raise Broken(job.id)

    app.server_middlewares.append(noting)
    worker = declare(app, queue_name, Notes(), batch_size=5, perform_job=perform_job)
    worker.push_many(jobs_of("abc"))
    assert {"failed": 3, "retried": 3} == app.drain()
    clock.advance(10)

    assert {"done": 3} == app.drain()
    assert [["a", "b", "c"]] * 2 == batches
