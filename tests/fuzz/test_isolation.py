"""State that is put back, connections that two processes would share, doubles, and user code."""

import gc
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lowkiq_lambda import Batch, ConfigError, Lowkiq
from lowkiq_lambda.testing import AppUnderTest, app_under_test
from lowkiq_lambda.testing.fuzz.isolation import OpenConnections, restorer
from lowkiq_lambda.testing.fuzz.options import all_options, codes_of
from lowkiq_lambda.testing.fuzz.points import CodePlace, PointCounter, UserCode, counted
from lowkiq_lambda.testing.fuzz.run import FuzzRun, fuzz
from tests.fuzz import planted
from tests.fuzz.payloads import STATUSES
from tests.fuzz.planted import MailMended, send_mail

ROOT = Path(__file__).parents[2]


def test_objects_are_put_back_in_place() -> None:
    """Others hold them, too: dicts, lists, sets and objects stay the same objects."""
    orders, mails, ids, shop = {"1": ["new"]}, ["a"], {1}, SimpleNamespace(open=True)
    restore = restorer((orders, mails, ids, shop))

    orders["1"].append("paid")
    mails.clear()
    ids.add(2)
    shop.open, shop.more = False, 1
    restore()

    assert ({"1": ["new"]}, ["a"], {1}, {"open": True}) == (orders, mails, ids, vars(shop))


def test_a_database_is_put_back(tmp_path: Path) -> None:
    """For each connection to its file, and more than once."""
    path = tmp_path / "shop.db"
    one, other = sqlite3.connect(path), sqlite3.connect(path)
    one.execute("CREATE TABLE orders (id)")
    one.commit()
    restore = restorer(one)

    for _ in range(2):
        other.execute("INSERT INTO orders VALUES (1)")
        other.commit()
        one.execute("INSERT INTO orders VALUES (2)")
        with pytest.raises(sqlite3.OperationalError):
            # It waits for the transaction of the first, which is rolled back.
            other.execute("PRAGMA busy_timeout = 0").connection.execute("INSERT INTO orders VALUES (3)")
        restore()
        assert [] == other.execute("SELECT * FROM orders").fetchall()
    one.close()
    other.close()


def test_what_cannot_be_put_back_is_refused() -> None:
    """With what helps."""
    with pytest.raises(ConfigError, match="write reset="):
        restorer(int)
    with pytest.raises(ConfigError, match="as a tuple"):
        restorer([{}, []])


def test_connections_of_modules_are_shared_and_those_of_threads_are_not() -> None:
    """Both are rolled back when a process dies."""
    connection, own = sqlite3.connect(":memory:"), threading.local()
    own.connection = sqlite3.connect(":memory:")
    for one in (connection, own.connection):
        one.execute("CREATE TABLE orders (id)")
        one.execute("INSERT INTO orders VALUES (1)")
    connections = OpenConnections([{"database": connection, "own": own, "kind": sqlite3.Connection, "n": 1}])

    connections.roll_back()

    assert ["database"] == connections.shared()
    assert [False, False] == [one.in_transaction for one in (connection, own.connection)]
    connection.close()
    own.connection.close()


database = SimpleNamespace()


@pytest.fixture
def shared() -> Iterator[SimpleNamespace]:
    """A handler that uses a connection of its module."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE orders (id TEXT PRIMARY KEY)")
    globals()["shared_connection"] = connection
    yield SimpleNamespace(app=Lowkiq(), connection=connection)
    del globals()["shared_connection"]
    connection.close()


def _note(batch: Batch[Any]) -> None:
    connection: sqlite3.Connection = globals()["shared_connection"]
    with connection:
        for id in batch:
            connection.execute("INSERT OR IGNORE INTO orders VALUES (?)", [id])


def test_a_shared_connection_leaves_freezes_out(lowkiq_test_server: Any, shared: SimpleNamespace) -> None:
    """Two processes would be in one transaction, which no two real ones are: the report says so."""
    worker = shared.app.worker(queue_name="shared")(_note)
    with app_under_test(shared.app, lowkiq_test_server) as kit:
        report = kit.fuzz(
            worker,
            payloads=["a", "b"],
            isolate=shared.connection,
            state=lambda: {*shared.connection.execute("SELECT id FROM orders")},
            scenarios=60,
        )

    assert "freeze" not in report.faults
    assert report.faults["die"] > 0
    assert "processes that stand still: shared_connection is a connection" in report.left_out[0]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A database in a file, which a module of this file names."""
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, n INTEGER)")
    connection.commit()
    connection.close()
    database.path = path
    yield path
    del database.path


def _write(batch: Batch[Any]) -> None:
    connection = sqlite3.connect(database.path, timeout=database.timeout)
    connection.execute("PRAGMA synchronous = OFF")
    for id in batch:
        connection.execute("INSERT OR REPLACE INTO orders VALUES (?, 1)", [id])
    connection.commit()
    connection.close()


def _fuzzed_file(server: Any, file: Path, **options: Any) -> FuzzRun:
    app = Lowkiq()
    worker = app.worker(queue_name="file", merge="latest")(_write)

    def rows(statement: str) -> set[Any]:
        with closing(sqlite3.connect(file)) as connection, connection:
            return {*connection.execute(statement)}

    given: Any = {
        "payloads": ["a"],
        "state": lambda: rows("SELECT * FROM orders"),
        "reset": lambda: rows("DELETE FROM orders"),
        **options,
    }
    with app_under_test(app, server) as kit:
        run = FuzzRun(kit.app, kit.clock, worker.worker, all_options(worker.worker, given), lambda *_: None)
        run.run()
    return run


def test_a_dead_process_holds_no_lock(lowkiq_test_server: Any, file: Path) -> None:
    """A connection in a variable of the handler ends with it, as its process does: the next one waits for nobody."""
    database.timeout = 0.0
    plan = '[["push","1","a",1.0],["drain","die",0,"test_isolation.py:_write+5"]]'

    # Else the collector might come in time by chance.
    gc.disable()
    try:
        run = _fuzzed_file(lowkiq_test_server, file, plan=plan)
    finally:
        gc.enable()

    assert {"die": 1} == dict(run._report.faults)
    assert [] == run._oracle.last.errors
    assert [] == run._report.findings


def test_a_frozen_process_that_holds_a_lock_goes_on_early(lowkiq_test_server: Any, file: Path) -> None:
    """Another one waits for the lock, and would wait for ever."""
    database.timeout = 60.0
    plan = '[["push","1","a",1.0],["drain","freeze",0,"test_isolation.py:_write+5"],["drain"],["thaw"]]'

    run = _fuzzed_file(lowkiq_test_server, file, plan=plan)

    assert {"freeze": 1} == dict(run._report.faults)
    assert run._oracle.last.was_waited_for
    assert [] == run._report.findings


def test_no_process_dies_within_a_double(lowkiq: AppUnderTest) -> None:
    """A provider of mail does not die with the process that calls it; its name will do, too."""
    for outside in ([send_mail], ["tests.fuzz.planted:send_mail"], ["tests.fuzz.planted.send_mail"]):
        report = fuzz(
            lowkiq.app,
            lowkiq.clock,
            MailMended,
            {"payloads": STATUSES, "outside": outside, "reset": planted.reset, "scenarios": 15},
        )
        first = send_mail.__code__.co_firstlineno
        assert not {line for _, line in report.lines[""]} & {*range(first, first + 5)}


def test_a_class_is_outside_with_its_methods() -> None:
    """And so is a module with its functions."""
    assert MailMended.perform.__code__ in [*codes_of([MailMended])]
    assert send_mail.__code__ in [*codes_of([planted.__name__])]


def test_the_lines_of_a_call_are_counted_in_their_order() -> None:
    """Those of functions of the project that it calls, too; hits of a line have numbers."""
    places: list[str] = []
    counter = PointCounter(lambda _number, place: places.append(place.name))

    with counted(UserCode(ROOT), counter):
        _add_up([1, 2])

    assert places == [place.name for place in counter.places]
    if sys.version_info >= (3, 12) and "in_their_order" in places[0]:
        # A frame that has begun before has lines, too.
        del places[0]
    assert [
        "test_isolation.py:_add_up+1",
        "test_isolation.py:_add_up+2",
        "test_isolation.py:_add_up+3",
        "test_isolation.py:_twice+1",
        "test_isolation.py:_add_up+2#1",
        "test_isolation.py:_add_up+3#1",
        "test_isolation.py:_twice+1#1",
        "test_isolation.py:_add_up+2#2",
        "test_isolation.py:_add_up+4",
    ] == places
    assert "test_isolation.py:" in counter.places[0].text


def _add_up(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += _twice(number)
    return total


def _twice(number: int) -> int:
    return 2 * number


def leave_blocks(lock: threading.Lock) -> int:
    """In each way in which Python leaves a block."""
    total = 0
    for number in range(2):
        with lock:
            total = number
    try:
        with lock:
            int("no number")
    except ValueError:
        with lock:
            return total
    return -1


def test_a_block_is_left_whatever_line_a_process_dies_before() -> None:
    """No exception comes between the end of a block and its exit: a lock would be held for ever, and the fuzz hang."""
    lock, user_code = threading.Lock(), UserCode(ROOT)
    places: list[str] = []

    def die_before(number: int) -> bool:
        def act(at: int, place: CodePlace) -> None:
            places.append(place.text)
            if at == number:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt), counted(user_code, PointCounter(act)):
            leave_blocks(lock)
            return False
        return True

    deaths = list(takewhile(bool, map(die_before, range(100))))

    assert 7 < len(deaths) < 100
    assert not lock.locked()
    assert any("no number" in place for place in places)
