"""What cannot be pushed stays with all that has to come after it, is told, and blocks nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import insert

from lowkiq_lambda import JobError, PushInterrupted
from lowkiq_lambda.contrib.outbox import OutboxBlocked, rows
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.testing import ManualClock
from tests.contrib.shop import OrderShop
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows are a chunk."""
    monkeypatch.setattr(rows, "CHUNK_ROWS", 2)


def spoil(shop: OrderShop, job_id: str) -> None:
    """Write a row whose payload cannot be decoded."""
    with shop.sessions.begin() as session:
        row = {"queue": shop.worker.queue_name, "job_id": job_id, "payload": b"{", "fields": "{}", "written_at": 0.0}
        session.execute(insert(shop.outbox.table), [row])


def orders(*ids: str) -> Sequence[dict[str, Any]]:
    """A job for each, its place as the payload."""
    return [{"id": job_id, "payload": number} for number, job_id in enumerate(ids)]


def test_p3_a_spoilt_row_holds_its_id_and_no_other(shop: OrderShop) -> None:
    """Later rows of the id wait, so that order holds when it is mended; all others are pushed, in any chunk."""
    shop.push(*orders("a", "b"))
    spoil(shop, "a")
    shop.push(*orders("c", "a", "d", "a"))

    with pytest.raises(OutboxBlocked, match="id 'a': DecodeError") as blocked:
        shop.outbox.sweep()
    shop.app.drain()

    assert str(blocked.value).startswith(f"Rows of the outbox cannot be pushed. {shop.worker.queue_name!r}, id 'a': ")
    assert {"a": [0], "b": [1], "c": [0], "d": [2]} == shop.payloads
    assert 3 == shop.rows


def test_a_mended_row_goes_first(shop: OrderShop) -> None:
    """Once it can be pushed, the id goes on where it stopped."""
    spoil(shop, "a")
    shop.push(*orders("a", "a"))
    with pytest.raises(OutboxBlocked):
        shop.outbox.sweep()

    with shop.sessions.begin() as session:
        session.execute(shop.outbox.table.update().where(shop.outbox.table.c.payload == b"{").values(payload=b'"new"'))
    shop.app.drain()

    assert {"a": ["new", 0, 1]} == shop.payloads


def test_the_relay_fails_with_the_reason_and_new_rows_pass(shop: OrderShop, clock: ManualClock) -> None:
    """The error stands at the relay's job, which tries again within ten seconds; what is new goes along then."""
    spoil(shop, "a")
    shop.push(*orders("b"))
    shop.app.drain()
    [job] = shop.app.operate(shop.outbox.worker).waiting.fetch(["outbox"])
    shop.push(*orders("c"))
    clock.advance(10.0)
    shop.app.drain()

    assert "id 'a': DecodeError" in str(job.error)
    assert {"b", "c"} == shop.payloads.keys()


def test_a_row_that_settings_forbid_by_now_is_blocked(shop: OrderShop, make_app: MakeApp, clock: ManualClock) -> None:
    """It was written when payloads might be larger: its neighbours of the same push pass, its followers do not."""
    shop.push(*orders("a"), {"id": "b", "payload": "long" * 100}, *orders("b", "c"))
    deployed = OrderShop(make_app(max_payload_bytes=100), shop.engine, shop.worker.queue_name, clock)

    with pytest.raises(OutboxBlocked, match=r"id 'b': JobError: job .: payload: has 402 bytes"):
        deployed.outbox.sweep()
    deployed.app.drain()

    assert {"a", "c"} == deployed.payloads.keys()
    assert 2 == shop.rows


def test_an_error_that_names_no_job_holds_its_queue(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows which row is at fault: none is passed over, and all are there."""

    def refuse(_worker: Any, _jobs: Any) -> list[Pushed]:
        raise JobError("of some job")

    shop.push(*orders("a", "b"))
    monkeypatch.setattr(shop.app.core.pushes, "push_past_middlewares", refuse)

    with pytest.raises(OutboxBlocked, match=f"queue '{shop.worker.queue_name}': JobError: of some job"):
        shop.outbox.sweep()

    assert 2 == shop.rows


def test_rows_without_a_worker_stay_and_are_counted(shop: OrderShop) -> None:
    """A queue that the app does not have (any more) is told by name; when it has it again, its rows go in order."""
    gone = f"gone-{shop.worker.queue_name}"
    with shop.sessions.begin() as session:
        row = {"job_id": "a", "fields": "{}", "written_at": 0.0, "queue": gone}
        session.execute(insert(shop.outbox.table), [{**row, "payload": b"%d" % number} for number in range(3)])
    shop.push(*orders("b"))

    with pytest.raises(OutboxBlocked, match=r"queue 'gone-.*': 3 rows, and the app has no worker for it\."):
        shop.outbox.sweep()
    again = Notes()
    declare(shop.app, gone, again)
    shop.outbox.sweep()
    shop.app.drain()

    assert {"b": [0]} == shop.payloads
    assert [{"a": [0, 1, 2]}] == again.batches


def test_p3_nothing_overtakes_what_redis_did_not_take(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue whose push broke off gets nothing more in this run, another one does; of the push the written rows go."""
    other = Notes()
    second = declare(shop.app, f"second-{shop.worker.queue_name}", other)
    push, calls = shop.app.core.pushes.push_past_middlewares, []

    def broken(worker: Any, jobs: Any) -> list[Pushed]:
        calls.append((worker, [job["id"] for job in jobs]))
        if len(calls) == 1:
            push(worker, jobs[:1])
            raise PushInterrupted("broken off", written=[0], unknown=[1])
        return push(worker, jobs)

    shop.push(*orders("a", "b", "a", "b"))
    with shop.sessions.begin() as session:
        shop.outbox.push_many(session, second, orders("a"))
    monkeypatch.setattr(shop.app.core.pushes, "push_past_middlewares", broken)

    with pytest.raises(OutboxBlocked, match="broken off"):
        shop.outbox.sweep()

    assert [(shop.worker, ["a", "b"]), (second, ["a"])] == calls
    assert 3 == shop.rows
    shop.outbox.sweep()
    shop.app.drain()
    assert ({"a": [0, 2], "b": [1, 3]}, [{"a": [0]}]) == (shop.payloads, other.batches)


def test_what_only_waits_in_the_client_keeps_its_row(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that buffers would lose it with its process."""

    def buffered(_worker: Any, jobs: Any) -> list[Pushed]:
        return [Pushed(job["id"], 0, merged=False, due_at=0.0, buffered=job["id"] == "b") for job in jobs]

    shop.push(*orders("a", "b"))
    monkeypatch.setattr(shop.app.core.pushes, "push_past_middlewares", buffered)
    with pytest.raises(OutboxBlocked, match="Redis cannot serve now"):
        shop.outbox.sweep()

    assert 1 == shop.rows


def test_p5_a_relay_stops_with_its_drain_and_goes_on(
    shop: OrderShop, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """A backlog that one drain has no time for is pushed by several, in order, without a failure."""
    push = shop.app.core.pushes.push_past_middlewares

    def slow(worker: Any, jobs: Any) -> list[Pushed]:
        clock.advance(2.0)
        return push(worker, jobs)

    shop.push(*orders(*"aaaaaaaaaa"))
    monkeypatch.setattr(shop.app.core.pushes, "push_past_middlewares", slow)
    counts = shop.app.drain(5.0)
    left = shop.rows
    while shop.rows:
        shop.app.drain(5.0)
    shop.app.drain()

    assert 0 < left < 10
    assert 0 == counts.get("retried", 0)
    assert {"a": [*range(10)]} == shop.payloads


def test_large_payloads_make_small_chunks(shop: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk ends with the row that fills it: memory holds about so many bytes, however many rows wait."""
    monkeypatch.setattr(rows, "CHUNK_ROWS", 100)
    monkeypatch.setattr(rows, "CHUNK_BYTES", 20)
    shop.push(*({"id": f"{number}", "payload": "0123456789"} for number in range(5)))

    assert (3, 0) == (shop.outbox.sweep(), shop.rows)


def test_many_obstacles_are_told_in_few_words(shop: OrderShop) -> None:
    """The error names five, and counts the others."""
    for number in range(8):
        spoil(shop, f"{number}")

    with pytest.raises(OutboxBlocked, match=r"; and 3 more\.$"):
        shop.outbox.sweep()
