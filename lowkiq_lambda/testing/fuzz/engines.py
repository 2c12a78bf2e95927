"""An engine of SQLAlchemy in a fuzz: its statements and commits have points, and its connections end with a process.

Imported only if a test has an engine.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Engine, event
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.process import FuzzProcess, current
from lowkiq_lambda.testing.fuzz.stored_tables import PostgresTables, SqliteTables, TablesUnderTest, written_tables
from lowkiq_lambda.testing.fuzz.watch import note

_LONGEST: Final = 60
"""Characters of a statement in the name of a point."""
_WRITES_FOR: Final = 0.05
"""Seconds after which a statement waits for the lock that another process has."""


class EngineUnderTest:
    """`restores`: its tables are put back. `points`: processes die around its statements and commits."""

    def __init__(self, engine: Engine, *, restores: bool, points: bool) -> None:
        self._engine = engine
        self._restores = restores
        self._points = points
        self._tables: TablesUnderTest | None = None
        self._owners: dict[int, tuple[Any, FuzzProcess]] = {}
        """The connections that handlers have taken from the pool, and the process of each."""
        self._writing: tuple[int, float] | None = None
        """The thread that writes, and since when."""
        self.is_shared: Final = isinstance(engine.pool, StaticPool | SingletonThreadPool)
        """Whether two processes would have one connection, or a database each."""
        self.name: Final = f"the engine {engine.url.render_as_string(hide_password=True)}"
        if points and self.is_shared:
            raise ConfigError(
                f"watch=: {self.name} has a database in memory, which ends with its connection: use a file."
            )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """In the block, what it does is watched. Raises ConfigError if its tables cannot be put back."""
        self._tables = self._tables_of()
        listeners: list[tuple[Any, str, Callable[..., Any]]] = [
            (self._engine, "before_cursor_execute", self._before_statement),
            (self._engine, "after_cursor_execute", self._after_statement),
            (self._engine, "handle_error", self._after_failure),
            (self._engine, "checkout", self._on_checkout),
            (self._engine, "checkin", self._on_checkin),
        ]
        with ExitStack() as stack:
            if self._tables is not None:
                stack.callback(self._tables.close)
            for listener in listeners:
                event.listen(*listener)
                stack.callback(event.remove, *listener)
            if self._points:
                stack.enter_context(self._commits_watched())
            yield

    def restore(self) -> None:
        """Put the tables back."""
        for connection, _ in [*self._owners.values()]:
            _roll_back(connection)
        self._owners.clear()
        if self._restores and self._tables is not None:
            self._tables.restore()

    def release(self) -> None:
        """Roll back the connections of dead processes."""
        for number, (connection, process) in [*self._owners.items()]:
            if process.is_dead:
                _roll_back(connection)
                self._owners.pop(number, None)

    def begin_in_child(self) -> None:
        """Leave the connections to the parent, which has copied the tables, and puts them back."""
        self._tables = None
        self._engine.dispose(close=False)

    def after_child(self) -> None:
        """A child may have written."""
        if self._tables is not None:
            self._tables.mark_written()

    def lock_is_awaited(self) -> bool | None:
        """Whether a connection waits for a lock; None if the database cannot say that."""
        if isinstance(self._tables, PostgresTables):
            return self._tables.lock_is_awaited()
        writing = self._writing
        if self._engine.dialect.name != "sqlite" or writing is None:
            return None
        thread, began_at = writing
        # There is one lock for all that write.
        return time.monotonic() - began_at > _WRITES_FOR and any(
            process.handling_thread != thread and connection.in_transaction
            for connection, process in [*self._owners.values()]
        )

    def _tables_of(self) -> TablesUnderTest | None:
        dialect = self._engine.dialect.name
        if dialect == "postgresql":
            return PostgresTables(self._engine)
        if dialect == "sqlite" and self._restores:
            return SqliteTables(self._engine, is_shared=self.is_shared)
        if self._restores:
            raise ConfigError(f"isolate= puts back SQLite and PostgreSQL, and {self.name} is another: write reset=.")
        return None

    def _before_statement(self, _conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:  # noqa: ANN401 - an event
        note(f"the statement {_brief(statement)}" if self._points else None)
        if self._restores and self._tables is not None:
            self._tables.note(statement)
        if written_tables(statement):
            self._writing = threading.get_ident(), time.monotonic()

    def _after_statement(self, _conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:  # noqa: ANN401 - as above
        self._writing = None
        if self._points:
            note(f"the answer of the statement {_brief(statement)}")

    def _after_failure(self, _context: object) -> None:
        self._writing = None

    def _on_checkout(self, connection: Any, *_rest: Any) -> None:  # noqa: ANN401 - as above
        process = current.get()
        if process is not None:
            self._owners[id(connection)] = connection, process

    def _on_checkin(self, connection: Any, *_rest: Any) -> None:  # noqa: ANN401 - as above
        self._owners.pop(id(connection), None)

    @contextmanager
    def _commits_watched(self) -> Iterator[None]:
        # No event comes between a commit and what follows it.
        dialect: Any = self._engine.dialect
        commit = dialect.do_commit

        def do_commit(connection: Any) -> None:  # noqa: ANN401 - of a driver
            try:
                note("the commit")
            except BaseException:
                # As the server does for a client that is gone; SQLAlchemy takes it for ended.
                _roll_back(connection)
                raise
            commit(connection)
            note("the answer of the commit")

        dialect.do_commit = do_commit
        try:
            yield
        finally:
            del dialect.do_commit


def _brief(statement: str) -> str:
    return " ".join(statement.split())[:_LONGEST].rstrip()


def _roll_back(connection: Any) -> None:  # noqa: ANN401 - of a driver
    # It may be closed.
    with suppress(Exception):
        connection.rollback()
