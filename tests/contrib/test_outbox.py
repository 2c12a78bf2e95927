"""A job is pushed if its transaction commits, and as if it had been pushed directly."""

import ast
import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from sqlalchemy import MetaData, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import scoped_session
from sqlalchemy.schema import CreateTable

from lowkiq_lambda import Config, DeclarationError, JobError, Lowkiq
from lowkiq_lambda.contrib.outbox import OutboxBlocked, Waiting
from lowkiq_lambda.contrib.outbox.outbox import REST, SWEEP_EVERY
from lowkiq_lambda.contrib.outbox.rows import OutboxTable
from lowkiq_lambda.testing import ManualClock
from tests.contrib.shop import Order, OrderShop, engine_for, opened, session_with
from tests.kit.apps import MakeApp, closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import MakeServer, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare


def test_a_job_is_pushed_once_its_transaction_has_committed(shop: OrderShop) -> None:
    """Before the commit nobody sees it; after it the relay is woken, pushes it and removes the row."""
    session = session_with(shop, {"id": "7", "payload": {"status": "paid"}})
    assert (0, False) == (shop.rows, shop.woken)
    session.commit()
    assert (1, True) == (shop.rows, shop.woken)

    shop.app.drain()

    assert {"7": [{"status": "paid"}]} == shop.payloads
    assert 0 == shop.rows


def test_a_rollback_pushes_nothing(shop: OrderShop) -> None:
    """Neither the job nor a wake-up is left, also where the session commits something else later."""
    session = session_with(shop, {"id": "7"})
    session.rollback()
    shop.outbox.push_many(session, shop.worker, [{"id": "8"}])
    with session.begin_nested():
        shop.outbox.push_many(session, shop.worker, [{"id": "9"}])
    session.rollback()
    session.execute(select(Order))
    session.commit()

    assert (0, False) == (shop.rows, shop.woken)
    assert 0 == shop.outbox.sweep()
    assert {} == shop.state()["waiting"]


def test_a_savepoint_wakes_nobody(shop: OrderShop) -> None:
    """Its release is no commit, and what it took back is not pushed."""
    with shop.sessions() as session:
        with session.begin_nested():
            shop.outbox.push_many(session, shop.worker, [{"id": "kept"}])
        nested = session.begin_nested()
        shop.outbox.push_many(session, shop.worker, [{"id": "taken back"}])
        nested.rollback()
        woken_before = shop.woken
        session.commit()

    shop.app.drain()

    assert (False, {"kept": [""]}) == (woken_before, shop.payloads)


@pytest.mark.parametrize(
    "bad", [{"id": 1.5}, {"id": "1", "skore": 1}, {"id": "1", "payload": {1}}, {"id": "1", "delay": -1}, {"key": "k"}]
)
def test_a_bad_job_is_refused_before_the_commit(shop: OrderShop, bad: dict[str, Any]) -> None:
    """As by a direct push: the error is the same, names the position, and nothing of the call is written."""
    with pytest.raises(JobError) as direct:
        shop.app.push_many(shop.worker, [{"id": "good"}, bad])

    with shop.sessions() as session:
        with pytest.raises(JobError) as refused:
            shop.outbox.push_many(session, shop.worker, [{"id": "good"}, bad])
        session.commit()

    assert (str(direct.value), 1) == (str(refused.value), refused.value.position)
    assert 0 == shop.rows


def test_rows_that_a_full_queue_refuses_stay(
    make_app: MakeApp, sqlite_url: str, queue_name: str, clock: ManualClock
) -> None:
    """And go once there is room; the commit did not fail for it."""
    with opened(OrderShop(make_app(), engine_for(sqlite_url), queue_name, clock)) as shop:
        shop.worker.max_waiting = 2
        shop.push({"id": 1}, {"id": 2}, {"id": 3})
        with pytest.raises(OutboxBlocked, match="takes no new id"):
            shop.outbox.sweep()
        assert 1 == shop.rows
        shop.app.drain()
        shop.outbox.sweep()
        assert 0 == shop.rows
        shop.app.drain()
        assert {"1": [""], "2": [""], "3": [""]} == shop.payloads


MIDNIGHT: Final = datetime(2026, 11, 27, tzinfo=UTC)
JOBS: Sequence[dict[str, Any]] = (
    {"id": 7},
    {"id": "a", "payload": {"b": [1, 2.5, None, "ß"], "a": True}, "score": 17},
    {"id": "a", "payload": {"b": 1}, "score": 16.5},
    {"id": "late", "payload": 1, "due_at": 1_900_000_000.5, "score": 2**53},
    {"id": "later", "payload": 2, "delay": 60, "score": -1},
    {"id": "delta", "payload": 3, "delay": timedelta(minutes=2), "score": 0},
    {"id": "keyed", "payload": 4, "key": "k", "key_ttl": timedelta(hours=1), "score": MIDNIGHT},
    {"id": "short", "payload": 5, "expires_in": timedelta(hours=1), "score": 2},
    {"id": "lasting", "payload": 6, "delay": 60, "expires_at": datetime(2030, 1, 1, tzinfo=UTC), "score": 3},
)


CODEC: dict[str, Any] = {
    "dump_payload": lambda payload: repr(payload).encode(),
    "load_payload": lambda dumped: ast.literal_eval(dumped.decode()),
}


@pytest.mark.parametrize("settings", [{}, CODEC], ids=["json", "own codec"])
def test_what_is_pushed_equals_a_direct_push(
    make_app: MakeApp, sqlite_url: str, queue_name: str, clock: ManualClock, settings: dict[str, Any]
) -> None:
    """Ids, payloads, scores and times are in Redis as if `push_many` had been called at the time of the insert."""
    app = make_app(**settings)
    direct = declare(app, f"direct-{queue_name}", Notes())
    with opened(OrderShop(app, engine_for(sqlite_url), queue_name, clock)) as shop:
        app.push_many(direct, [{"score": number, **job} for number, job in enumerate(JOBS, 1)])
        shop.push(*JOBS)
        clock.advance(50.0)
        shop.outbox.sweep()

        [expected, actual] = [shop.state(worker)["waiting"] for worker in (direct, shop.worker)]

    # What has no time of its own is due when it comes to Redis.
    came_at = clock.time()
    due = {job_id: came_at if at == came_at - 50.0 else at for job_id, (_, at, *_rest) in expected.items()}
    assert {job_id: (job[0], due[job_id], *job[2:]) for job_id, job in expected.items()} == actual
    assert {"7", "a", "late", "later", "delta", "keyed", "short", "lasting"} == actual.keys()
    over = [{id_: app.operate(worker).explain(id_).expires_at for id_ in actual} for worker in (direct, shop.worker)]
    assert over[0] == over[1]
    assert 2 == len({*over[0].values()} - {None})


def test_a_key_counts_through_the_outbox(shop: OrderShop) -> None:
    """A job with the key of one that was pushed before changes nothing, whichever way the two went."""
    shop.push({"id": "7", "payload": 1, "key": "evt-1"}, {"id": "7", "payload": 2, "key": "evt-1"})
    shop.outbox.sweep()

    [pushed] = shop.app.push_many(shop.worker, [{"id": "7", "payload": 3, "key": "evt-1"}])
    shop.app.drain()

    assert pushed.repeated
    assert {"7": [1]} == shop.payloads


def test_a_push_through_the_outbox_asks_when_it_is_pushed(shop: OrderShop) -> None:
    """It is dropped if its id has work then; what cannot be kept in a row is refused in the transaction."""
    shop.app.push(shop.worker, "7", "old", delay=60)
    shop.push(
        {"id": "7", "payload": "dropped", "unless": "busy", "on_conflict": "raise"},
        {"id": "8", "payload": "stored", "unless": "busy"},
    )
    assert 1 == shop.outbox.sweep()
    (waiting,) = shop.app.operate(shop.worker).waiting.fetch(["7"])
    assert (["old"], 0) == ([payload for payload, _ in waiting.payloads], shop.rows)

    with pytest.raises(JobError, match="another process pushes this job later"):
        shop.push({"id": "7", "on_conflict": print})


def test_headers_travel_through_the_outbox(shop: OrderShop) -> None:
    """What the job was given in the transaction is told to its handler: traces go on behind the outbox.

    The key is of a class of the program's own, as a member of an enumeration is.
    """

    class Name(str):
        __slots__ = ()

    shop.push({"id": "7", "headers": {"traceparent": "00-1"}, "key": Name("k")})
    shop.app.drain()

    assert [{"traceparent": "00-1"}] == list(shop.notes.last.headers)


def test_serials_are_the_order_of_an_id(shop: OrderShop) -> None:
    """Without scores the payloads of an id come in the order of their rows, also where retries mix them."""
    for number in range(5):
        shop.push({"id": "7", "payload": number}, {"id": "7", "payload": number + 100})
    shop.app.drain()

    assert {"7": [0, 100, 1, 101, 2, 102, 3, 103, 4, 104]} == shop.payloads


def test_no_serial_is_given_twice(shop: OrderShop) -> None:
    """A row that comes when all were removed is behind those: its id may wait with payloads of theirs."""
    for number in range(3):
        shop.push({"id": "7", "payload": number})
        shop.outbox.sweep()

    entries = shop.state()["waiting"]["7"][0]

    assert [1.0, 2.0, 3.0] == [entry.score for entry in entries]


def test_a_restored_database_loses_no_job(shop: OrderShop) -> None:
    """Serials that are given again, after a backup was read in, do not make new jobs look like repeated ones."""
    shop.push({"id": "7", "payload": "before"})
    shop.app.drain()
    shop.metadata.drop_all(shop.engine)
    shop.metadata.create_all(shop.engine)

    shop.push({"id": "7", "payload": "after"})
    shop.app.drain()

    assert {"7": ["before", "after"]} == shop.payloads


def test_what_the_session_changed_is_locked_before_the_row_gets_its_serial(shop: OrderShop) -> None:
    """The entity's UPDATE goes to the database before the INSERT of the job, though nobody flushed."""
    shop.make_tables("7")
    statements: list[str] = []
    with shop.sessions(autoflush=False) as session:
        order = session.get_one(Order, "7")
        order.version = 8
        event.listen(shop.engine, "before_cursor_execute", lambda *args: statements.append(args[2].split()[0]))
        shop.outbox.push_many(session, shop.worker, [{"id": "7"}])
        session.commit()

    assert ["UPDATE", "INSERT"] == statements


def test_what_waits_can_be_asked(shop: OrderShop, clock: ManualClock) -> None:
    """How many rows there are, and for how long the oldest has waited."""
    with shop.sessions() as session:
        empty = shop.outbox.waiting(session)
    shop.push({"id": "1"})
    clock.advance(30.0)
    shop.push({"id": "2"}, {"id": "3"})
    clock.advance(5.0)

    with shop.sessions() as session:
        waiting = shop.outbox.waiting(session)

    assert (Waiting(0, 0.0), Waiting(3, 35.0)) == (empty, waiting)


def test_client_middlewares_run_in_the_transaction_and_not_again(shop: OrderShop) -> None:
    """They see the request that pushes, may change the jobs, and learn that Redis does not have them yet."""
    seen: list[tuple[list[Any], list[bool]]] = []

    def stamp(worker: Any, jobs: Any, call_next: Any) -> Any:
        stamped = [{**job, "payload": "stamped"} for job in jobs]
        pushed = call_next(worker, stamped)
        seen.append((list(jobs), [one.buffered for one in pushed]))
        return pushed

    shop.app.client_middlewares.append(stamp)
    with shop.sessions.begin() as session:
        [pushed] = shop.outbox.push_many(session, shop.worker, [{"id": "7", "payload": 1}])
    shop.app.drain()

    assert [([{"id": "7", "payload": 1}], [True])] == seen
    assert ("7", 0, True) == (pushed.id, pushed.shard, pushed.buffered)
    assert {"7": ["stamped"]} == shop.payloads


def test_a_session_of_another_kind_and_a_foreign_worker_are_refused(shop: OrderShop, make_app: MakeApp) -> None:
    """A scoped session will do; what is no session, or a worker of another app, is told in a sentence."""
    foreign = declare(make_app(), "foreign", Notes())
    scoped = scoped_session(shop.sessions)
    shop.outbox.push_many(scoped, shop.worker, [{"id": "7"}])
    waiting = shop.outbox.waiting(scoped)
    scoped.commit()

    assert (1, True) == (waiting.rows, shop.woken)
    with pytest.raises(TypeError, match="an outbox takes a Session, not str"):
        shop.outbox.push_many("session", shop.worker, [])  # type: ignore[arg-type]  # that is the mistake
    with shop.sessions() as session:
        with pytest.raises(DeclarationError, match="is not a worker of this app"):
            shop.outbox.push_many(session, foreign, [{"id": "7"}])
        with pytest.raises(JobError, match="takes a list of jobs"):
            shop.outbox.push_many(session, shop.worker, {"id": "7"})  # type: ignore[dict-item]  # as above


@pytest.fixture
def away(make_server: MakeServer) -> Server:
    """A server that is not there yet."""
    server = make_server()
    server.stop()
    return server


def test_a_wake_up_that_fails_loses_nothing(
    away: Server, sqlite_url: str, queue_name: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Without Redis transactions commit; one of them tries to wake the relay, and a later wake-up brings all jobs."""
    with (
        closing_app(Lowkiq(Config(redis_url=away.url), clock=clock)) as app,
        opened(OrderShop(app, engine_for(sqlite_url), queue_name, clock)) as shop,
    ):
        with caplog.at_level(logging.WARNING, "lowkiq_lambda.contrib.outbox"):
            shop.push({"id": "1"})
            shop.push({"id": "2"})
        told = [record.getMessage() for record in caplog.records if record.name.startswith("lowkiq_lambda.contrib")]
        away.start()
        assert 2 == shop.rows
        clock.advance(REST)
        shop.push({"id": "3"})
        woken = shop.woken
        app.drain()

        assert 1 == len(told), told
        assert (True, {"1", "2", "3"}) == (woken, set(shop.payloads))


def test_the_schedule_brings_what_no_wake_up_did(shop: OrderShop, clock: ManualClock) -> None:
    """A process died between commit and wake-up: a minute later at most the relay runs all the same."""
    shop.app.schedules.tick()
    shop.push({"id": "7"})
    shop.app.operate(shop.outbox.worker).waiting.delete(["outbox"])
    clock.advance(SWEEP_EVERY)

    shop.app.schedules.tick()
    shop.app.drain()

    assert ({"7": [""]}, 0) == (shop.payloads, shop.rows)


def test_a_commit_on_an_event_loop_does_not_wait_for_redis(shop: OrderShop) -> None:
    """The wake-up is pushed in another thread, and without a warning about the loop."""

    async def request() -> None:
        shop.push({"id": "7"})

    asyncio.run(request())

    eventually(lambda: shop.woken)


def test_the_table_is_one_for_each_database() -> None:
    """Serials of 64 bits, that no database gives twice; on SQLite that needs its own word."""
    table = OutboxTable("lowkiq_outbox", MetaData()).table

    on_postgresql = str(CreateTable(table).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]  # has no types
    on_sqlite = str(CreateTable(table).compile(dialect=sqlite.dialect()))

    assert "serial BIGSERIAL NOT NULL" in on_postgresql
    assert "payload BYTEA NOT NULL" in on_postgresql
    assert "serial INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT" in on_sqlite
