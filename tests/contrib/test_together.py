"""Many writers, several sweeps: each job takes effect once, and those of an id in the order of their commits."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.contrib.outbox import rows
from tests.contrib.shop import OrderShop, engine_for, opened
from tests.kit.apps import closing_app

WRITERS, CHANGES = 4, 30
ORDERS = ("a", "b", "c")


@contextmanager
def busy_shop(redis_url: str, database_url: str, queue_name: str) -> Iterator[OrderShop]:
    """A shop with orders, in whose queue a repeated push would show, and whose time is the machine's."""
    with (
        closing_app(Lowkiq(Config(redis_url=redis_url))) as app,
        opened(OrderShop(app, engine_for(database_url), queue_name), *ORDERS) as shop,
    ):
        yield shop


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def busy(request: pytest.FixtureRequest, server_url: str, queue_name: str) -> Iterator[OrderShop]:
    """Such a shop on a file, and one on a server."""
    with busy_shop(server_url, request.getfixturevalue(request.param), queue_name) as shop:
        yield shop


def write(shop: OrderShop, seed: int) -> None:
    """Change orders, and now and then roll a change back."""
    rng = Random(seed)
    for _ in range(CHANGES):
        order = rng.choice(ORDERS)
        if rng.random() < 0.2:
            session = shop.sessions()
            shop.outbox.push_many(session, shop.worker, [{"id": order, "payload": "taken back"}])
            session.rollback()
        shop.change(order)


def sweep_until(done: threading.Event, shop: OrderShop) -> None:
    """Sweep by hand, beside the relay."""
    while not done.is_set():
        shop.outbox.sweep()


def test_p3_many_writers_and_sweeps_keep_each_ids_order(busy: OrderShop) -> None:
    """While writers commit, the relay runs and an operator sweeps: versions 1, 2, 3 ... of each order, each once."""
    done = threading.Event()
    with ThreadPoolExecutor() as pool:
        sweeping = pool.submit(sweep_until, done, busy)
        try:
            writing = [pool.submit(write, busy, seed) for seed in range(WRITERS)]
            while not all(writer.done() for writer in writing):
                busy.app.drain(1.0)
            for writer in writing:
                writer.result()
        finally:
            done.set()
        sweeping.result()
    busy.outbox.sweep()
    busy.app.drain()

    assert {*ORDERS} == busy.payloads.keys()
    assert {order: list(range(1, len(versions) + 1)) for order, versions in busy.payloads.items()} == busy.payloads
    assert WRITERS * CHANGES == sum(map(len, busy.payloads.values()))
    assert 0 == busy.rows


def test_p3_a_smaller_serial_that_is_committed_later_goes_first(
    server_url: str, postgres_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay has gone past it, and finds it all the same before the next change of the same order."""
    monkeypatch.setattr(rows, "CHUNK_ROWS", 1)
    with busy_shop(server_url, postgres_url, queue_name) as shop:
        with shop.sessions.begin() as session:
            shop.outbox.push_many(session, shop.worker, [{"id": "a", "payload": 1}])
            session.flush()
            shop.change("b")
            chunks = shop.outbox._relay.chunks()
            next(chunks)
        shop.outbox.push_many(session := shop.sessions(), shop.worker, [{"id": "a", "payload": 2}])
        session.commit()
        next(chunks)

        (waiting,) = shop.app.operate(shop.worker).waiting.fetch(["a"])
        assert [1] == [payload for payload, _ in waiting.payloads]


def test_a_slow_sweep_that_comes_too_late_changes_nothing(busy: OrderShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read rows that the relay pushes, has performed and removes before it pushes them itself."""
    busy.push({"id": "a", "payload": 1}, {"id": "a", "payload": 2})
    push = busy.app.core.pushes.push_past_middlewares

    def overtaken(worker: Any, jobs: Any) -> Any:
        monkeypatch.undo()
        busy.app.drain()
        busy.push({"id": "a", "payload": 3})
        busy.app.drain()
        return push(worker, jobs)

    monkeypatch.setattr(busy.app.core.pushes, "push_past_middlewares", overtaken)
    busy.outbox.sweep()
    busy.app.drain()

    assert {"a": [1, 2, 3]} == busy.payloads


def test_an_async_session_pushes_too(server_url: str, postgres_url: str, queue_name: str) -> None:
    """`run_sync` gives the outbox its session, and the commit wakes the relay without blocking the loop."""
    with busy_shop(server_url, postgres_url, queue_name) as shop:

        async def request() -> None:
            engine = create_async_engine(postgres_url)
            async with AsyncSession(engine) as session:
                await session.run_sync(shop.outbox.push_many, shop.worker, [{"id": "a", "payload": 1}])
                await session.commit()
            await engine.dispose()

        asyncio.run(request())
        shop.app.drain()

        assert {"a": [1]} == shop.payloads


def test_a_conflict_takes_the_job_back(busy: OrderShop) -> None:
    """Where the database refuses the transaction, the job is gone with it, and the session can be used again."""
    session = busy.sessions()
    busy.outbox.push_many(session, busy.worker, [{"id": "a", "payload": 1}])
    with pytest.raises(DBAPIError):
        session.connection().exec_driver_sql("INSERT INTO orders (id, version) VALUES ('a', 1)")
    session.rollback()
    busy.outbox.push_many(session, busy.worker, [{"id": "a", "payload": 2}])
    session.commit()
    busy.app.drain()

    assert {"a": [2]} == busy.payloads
