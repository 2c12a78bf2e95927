"""Engines of SQLAlchemy: tables that are put back, points around SQL, and locks; on PostgreSQL, too, if it is there."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from lowkiq_lambda import Batch, ConfigError, Lowkiq, Worker
from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.databases import Databases
from lowkiq_lambda.testing.fuzz.options import all_options
from lowkiq_lambda.testing.fuzz.report import FuzzReport
from lowkiq_lambda.testing.fuzz.run import FuzzRun, fuzz
from lowkiq_lambda.testing.fuzz.stored_tables import written_tables
from tests.fuzz import on_engine
from tests.fuzz.on_engine import MENDED, PLANTED, options_of

IN_EACH_CHECK = 24


@pytest.fixture
def lowkiq_app() -> Lowkiq:
    """The app of these handlers."""
    return on_engine.app


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database in a file."""
    return f"sqlite:///{tmp_path / 'shop.db'}"


def _opened(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    on_engine.use(engine)
    on_engine.mails.clear()
    on_engine.provider.clear()
    try:
        yield engine
    finally:
        on_engine.drop()
        engine.dispose()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """On SQLite."""
    yield from _opened(url)


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Engine]:
    """On PostgreSQL."""
    yield from _opened(postgres_url)


@pytest.fixture(params=["engine", "on_postgres"])
def any_engine(request: pytest.FixtureRequest) -> Engine:
    """On both."""
    engine: Engine = request.getfixturevalue(request.param)
    return engine


def fuzzed(kit: AppUnderTest, name: str, **options: Any) -> FuzzReport:
    """The report of a handler."""
    return fuzz(kit.app, kit.clock, getattr(on_engine, name), options_of(name, **options))


def classes(report: FuzzReport) -> list[str]:
    """The classes of what was found."""
    return [finding.fault_class for finding in report.findings]


SCHEMA = """
    CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE children (id {serial} PRIMARY KEY, parent INTEGER REFERENCES parents);
    CREATE TABLE others (id INTEGER);
    INSERT INTO parents VALUES (1, 'first');
    INSERT INTO children (parent) VALUES (1)
"""


@pytest.fixture
def family(any_engine: Engine) -> Iterator[Engine]:
    """Tables with rows, of which one refers to another."""
    serial = "SERIAL" if any_engine.dialect.name == "postgresql" else "INTEGER"
    run(any_engine, *SCHEMA.format(serial=serial).split(";"))
    yield any_engine
    run(any_engine, *(f"DROP TABLE {name}" for name in ("children", "parents", "others")))


def run(engine: Engine, *statements: str) -> list[Any]:
    """The rows of the last one."""
    rows: list[Any] = []
    with engine.begin() as connection:
        for statement in statements:
            result = connection.execute(text(statement))
            rows = [tuple(row) for row in result] if result.returns_rows else []
    return rows


def test_tables_are_put_back(family: Engine) -> None:
    """With the rows that they had, those that refer to them, and numbers that count on from where they were."""
    databases = Databases([family], [], [])
    with databases.opened():
        for _ in range(2):
            run(family, "INSERT INTO children (parent) VALUES (1)", "DELETE FROM children")
            run(family, "UPDATE parents SET name = 'second'", "INSERT INTO parents VALUES (2, 'new')")
            databases.restore()
            assert [(1, "first")] == run(family, "SELECT * FROM parents")
            assert [(1, 1)] == run(family, "SELECT * FROM children")
            number = "INSERT INTO children (parent) VALUES (1) RETURNING id"
            assert [(2,)] == run(family, number)
            databases.restore()
        run(family, "INSERT INTO others VALUES (1)")

    assert [] == run(family, "SELECT * FROM others")


def test_written_tables_are_found_in_statements() -> None:
    """Words that are no tables do no harm: the server knows its tables."""
    assert ("orders", "SET") == written_tables("INSERT INTO orders VALUES (1) ON CONFLICT DO UPDATE SET x = 1")
    assert ('shop."Orders"',) == written_tables('WITH one AS (DELETE FROM shop."Orders" RETURNING *) SELECT * FROM one')
    assert () == written_tables("SELECT * FROM orders")


def test_a_table_that_is_locked_is_told(on_postgres: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a transaction that no process of the fuzz has."""
    monkeypatch.setattr("lowkiq_lambda.testing.fuzz.stored_tables._WAITS_AT_MOST", "10ms")
    databases = Databases([on_postgres], [], [])
    with databases.opened():
        run(on_postgres, "INSERT INTO fuzz_sent VALUES ('a')")
        with on_postgres.connect() as connection:
            connection.execute(text("LOCK TABLE fuzz_sent"))
            with pytest.raises(ConfigError, match="isolate= cannot put back fuzz_sent: "):
                databases.restore()

    assert [] == run(on_postgres, "SELECT * FROM fuzz_sent")


COMMITS = [("MailOnEngine", "the commit"), ("MailAfterCommitOnEngine", "the answer of the commit")]


@pytest.mark.parametrize(("name", "point"), COMMITS)
def test_a_death_around_a_commit(lowkiq: AppUnderTest, engine: Engine, name: str, point: str) -> None:
    """No line is before a commit at the end of a block, or between a commit and a call in the same line."""
    plan = f'[["push","1",{{"status":"new"}},1.0],["drain","die",0,"{point}"]]'

    [finding] = fuzzed(lowkiq, name, watch=[engine], plan=plan).findings

    assert PLANTED[name] == finding.fault_class
    assert f"  2. drain, and the process dies before {point}" == finding.story[1]
    # Without the point each line is tried in its place.
    assert [] == classes(fuzzed(lowkiq, name, plan=plan))


def test_a_mended_handler_passes(lowkiq: AppUnderTest, any_engine: Engine) -> None:
    """With points around its SQL, and the tables are as they were in the end."""
    report = fuzzed(lowkiq, "LastWinsOnEngineMended", watch=[any_engine], scenarios=IN_EACH_CHECK)

    places = {place for place, line in report.lines[""] if not line}
    assert [] == report.findings
    assert {"the commit", "the answer of the commit"} < places
    assert any(place.startswith("the statement INSERT INTO fuzz_orders (id, status") for place in places)
    assert [] == run(any_engine, "SELECT * FROM fuzz_orders")


@pytest.mark.nightly("hundreds of scenarios that wait for locks; a few of them are in each check")
@pytest.mark.parametrize("name", [*PLANTED, *MENDED])
def test_planted_and_mended_handlers_on_an_engine(lowkiq: AppUnderTest, any_engine: Engine, name: str) -> None:
    """Each planted fault is found in its class, and mended handlers pass 300 scenarios."""
    report = fuzzed(lowkiq, name, watch=[any_engine], scenarios=100 if name in PLANTED else 300)

    assert [PLANTED[name]] == [one for one in classes(report) if one == PLANTED.get(name)] if name in PLANTED else True
    assert name in PLANTED or [] == report.findings


FROZEN = (
    '[["push","1",{"change":"a","points":5},1.0],'
    '["drain","freeze",0,"on_engine.py:CounterOnEngineMended.perform+6"],["drain"],["thaw"]]'
)


def test_a_process_waits_for_the_lock_of_one_that_stands_still(lowkiq: AppUnderTest, any_engine: Engine) -> None:
    """So that one goes on, and both end as they have to."""
    options = options_of("CounterOnEngineMended", plan=FROZEN, isolate=any_engine)
    worker = on_engine.CounterOnEngineMended
    run = FuzzRun(lowkiq.app, lowkiq.clock, worker, all_options(worker, options), lambda *_: None)

    report = run.run()

    assert {"freeze": 1} == dict(report.faults)
    assert run._oracle.last.was_waited_for
    assert [] == report.findings


@pytest.fixture
def in_memory() -> Iterator[Engine]:
    """On SQLite, in memory."""
    yield from _opened("sqlite://")


def test_a_database_in_memory(lowkiq: AppUnderTest, in_memory: Engine) -> None:
    """Two processes would share its connection: freezes are left out, and points, which would end it, are refused."""
    report = fuzzed(lowkiq, "CounterOnEngineMended", scenarios=20)
    with pytest.raises(ConfigError, match="has a database in memory, which ends with its connection: use a file"):
        fuzzed(lowkiq, "CounterOnEngineMended", watch=[in_memory])

    assert ([], 0) == (report.findings, report.faults["freeze"])
    assert "processes that stand still: the engine sqlite:// is a connection" in report.left_out[0]


def test_what_cannot_be_put_back_says_so(engine: Engine) -> None:
    """An engine of a loop, and another database."""
    loop = create_async_engine("postgresql+psycopg://nowhere")
    with pytest.raises(ConfigError, match="not an AsyncEngine: write reset="):
        Databases([loop], [], [])
    asyncio.run(loop.dispose())
    engine.dialect.name = "other"
    with pytest.raises(ConfigError, match="puts back SQLite and PostgreSQL"), Databases([engine], [], []).opened():
        pass
    engine.dialect.name = "sqlite"


sessions: Any = scoped_session(sessionmaker())
NOTE = text("INSERT INTO fuzz_sent VALUES (:key) ON CONFLICT DO NOTHING")
COUNT = "SELECT count(*) FROM fuzz_sent"


@on_engine.app.worker
class LeavesOpen(Worker[Any]):
    """It has a session for each thread, and writes as it ends, whatever its end is."""

    def perform(self, batch: Batch[Any]) -> None:
        """Note whether it runs again."""
        is_again = any(batch.job(id).repeated for id in batch)
        try:
            sessions.merge(on_engine.StoredMail(key=f"run again {is_again}"))
            sessions.flush()
            sessions.commit()
        finally:
            with on_engine.place.engine.begin() as connection:
                connection.execute(NOTE, {"key": f"end again {is_again}"})


@pytest.fixture
def sessions_of_threads(engine: Engine) -> Iterator[None]:
    """Sessions of this engine."""
    sessions.configure(bind=engine)
    yield
    sessions.remove()


@pytest.mark.usefixtures("sessions_of_threads")
@pytest.mark.parametrize("line", [4, 5, 6])
def test_a_dead_process_writes_nothing_and_leaves_nothing_open(lowkiq: AppUnderTest, engine: Engine, line: int) -> None:
    """Neither in its last block, nor by a session of its thread, which the next process would commit."""
    plan = f'[["push","1","a",1.0],["drain","die",0,"test_databases.py:LeavesOpen.perform+{line}"]]'
    options: Any = {
        "isolate": engine,
        "payloads": ["a"],
        "state": lambda: run(engine, "SELECT count(*) FROM fuzz_sent"),
    }

    report = lowkiq.fuzz(LeavesOpen, plan=plan, **options)

    assert {"die": 1} == dict(report.faults)
    assert [] == report.findings


@pytest.mark.usefixtures("sessions_of_threads")
def test_a_session_that_two_processes_would_share(lowkiq: AppUnderTest, engine: Engine) -> None:
    """As a connection in a variable of a module is."""
    session = Session(engine)
    globals()["shared_session"] = session
    try:
        report = lowkiq.fuzz(LeavesOpen, isolate=engine, payloads=["a"], scenarios=3)
    finally:
        del globals()["shared_session"]

    assert "processes that stand still: shared_session is a connection" in report.left_out[0]


def test_a_fuzz_without_an_engine_imports_no_sqlalchemy() -> None:
    """Nor a library for HTTP."""
    code = "import sys, lowkiq_lambda.testing.fuzz.run; print({'sqlalchemy', 'httpx', 'requests'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "set()\n" == done.stdout
