"""Database connections of the threads that perform jobs go back after each batch."""

import threading
from types import ModuleType
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.contrib.django.apps import ConnectionsOfBatch
from tests.kit.apps import MakeApp
from tests.kit.beside import Gathering

pytestmark = pytest.mark.xdist_group("django")


def query() -> Any:
    """Use the database, and return the connection of this thread."""
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return connection


@pytest.fixture
def app(make_app: MakeApp, site: ModuleType) -> Lowkiq:
    """An app that gives connections back as that of the site does."""
    assert site.app
    app = make_app()
    app.server_middlewares.append(ConnectionsOfBatch())
    return app


def test_a_batch_gives_its_connection_back(app: Lowkiq, queue_name: str) -> None:
    """Behind each batch none is open, be it that it failed."""
    used: list[Any] = []

    @app.worker(queue_name=queue_name, shards_count=1)
    def ship(batch: Batch) -> None:
        used.append(query())
        assert_open.append(used[-1].connection is not None)
        if "bad" in batch:
            raise ValueError("bad")

    assert_open: list[bool] = []
    ship.push_many([{"id": "good"}, {"id": "bad"}])
    app.drain()

    assert [True, True] == assert_open
    assert [None, None] == [connection.connection for connection in used]


def test_a_connection_that_may_be_kept_is_kept_until_it_breaks(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONN_MAX_AGE counts as it does for requests, and a thread whose database went away gets another connection."""
    kept = connections["default"]
    monkeypatch.setitem(kept.settings_dict, "CONN_MAX_AGE", None)
    kept.close()
    used: list[object] = []

    @app.worker(queue_name=queue_name, shards_count=1)
    def ship(_batch: Batch) -> None:
        used.append(query().connection)

    for _ in range(2):
        ship.push("a")
        app.drain()
    # As a query leaves it that the server did not answer.
    kept.errors_occurred = True
    monkeypatch.setattr(kept, "is_usable", lambda: False)
    ship.push("a")
    app.drain()

    assert [0, 0, 1] == [[*dict.fromkeys(used)].index(one) for one in used]
    kept.close()


def test_a_drain_inside_a_transaction_leaves_it_open(app: Lowkiq, queue_name: str) -> None:
    """A test of Django's TestCase drains inside one: its connection is not closed under it."""

    @app.worker(queue_name=queue_name, shards_count=1)
    def ship(_batch: Batch) -> None:
        query()

    ship.push("a")
    with transaction.atomic():
        before = query().connection
        app.drain()

        assert before is connections["default"].connection


def test_coroutine_handlers_have_connections_of_their_own(app: Lowkiq, queue_name: str) -> None:
    """Two batches that run at once do not share one, and none is open behind them; nor is a thread left."""
    used: list[tuple[int, Any]] = []
    meet: Any = Gathering(2)

    def use() -> None:
        used.append((threading.get_ident(), query()))
        meet(None)

    @app.worker(queue_name=queue_name, shards_count=1, concurrency=2)
    async def ship(_batch: Batch) -> None:
        await sync_to_async(use)()

    ship.push_many([{"id": "a"}, {"id": "b"}])
    counts = app.drain()

    assert 2 == counts["done"]
    assert 2 == len({thread for thread, _ in used})
    assert [None, None] == [connection.connection for _, connection in used]
