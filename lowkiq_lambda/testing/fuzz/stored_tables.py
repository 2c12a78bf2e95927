"""The tables of an engine, as they were when a fuzz began: a copy of what is written, and its way back.

Rows are put back, not the transaction: two processes need two connections, and true commits.
"""

import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from contextlib import closing
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from sqlalchemy import Engine

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.isolation import restorer

_NAME: Final = r'(?:"[^"]+"|[\w$]+)'
_WRITES: Final = re.compile(
    r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?|COPY)\s+(?:ONLY\s+)?"
    rf"({_NAME}(?:\.{_NAME})?)",
    re.IGNORECASE,
)
_WAITS_AT_MOST: Final = "5s"
"""For a lock on a table that is to be put back."""
_NEW: Final = """
    WITH RECURSIVE tables (oid) AS (
        SELECT to_regclass('{name}')::oid
        UNION SELECT conrelid FROM pg_constraint JOIN tables ON confrelid = tables.oid WHERE contype = 'f'
    )
    SELECT oid, oid::regclass::text FROM tables WHERE oid IS NOT NULL
"""
"""The table, if there is one of that name, and those that refer to it."""
_REFERENCES: Final = "SELECT conrelid, confrelid FROM pg_constraint WHERE contype = 'f' AND conrelid <> confrelid"
_SEQUENCES: Final = """
    SELECT objid::regclass::text FROM pg_depend JOIN pg_class ON pg_class.oid = objid AND relkind = 'S'
    WHERE refobjid = {oid} AND deptype IN ('a', 'i')
"""
_AWAITED: Final = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@cache
def written_tables(statement: str) -> tuple[str, ...]:
    """The names after the words that write; some of them, as in DO UPDATE SET, are not tables."""
    return tuple(dict.fromkeys(_WRITES.findall(statement)))


class TablesUnderTest(ABC):
    """What an engine's database had at the beginning."""

    @abstractmethod
    def note(self, statement: str) -> None:
        """A statement is about to run."""

    @abstractmethod
    def mark_written(self) -> None:
        """Another process may have written."""

    @abstractmethod
    def restore(self) -> None:
        """Put it back."""

    @abstractmethod
    def close(self) -> None:
        """Put it back for the last time."""


class SqliteTables(TablesUnderTest):
    """The whole database."""

    def __init__(self, engine: Engine, *, is_shared: bool) -> None:
        self._connection = engine.raw_connection()
        driver = self._connection.driver_connection
        if not is_shared:
            # One that is of no pool, so that none is taken from the handlers.
            self._connection.detach()
        if not isinstance(driver, sqlite3.Connection):
            raise ConfigError("isolate= puts back SQLite by the module sqlite3 alone: write reset=.")
        if not is_shared:
            driver.execute("PRAGMA synchronous = OFF")
        self._put_back = restorer(driver)

    def note(self, statement: str) -> None:
        """All that it writes is put back."""

    def mark_written(self) -> None:
        """The same."""

    def restore(self) -> None:
        """Put it back."""
        self._put_back()

    def close(self) -> None:
        """Put it back, and close the connection."""
        self.restore()
        self._connection.close()


class PostgresTables(TablesUnderTest):
    """The tables that statements write, and those that refer to them, with their sequences."""

    def __init__(self, engine: Engine) -> None:
        self._connection: Any = engine.raw_connection()
        self._connection.detach()
        # A process that stands still looks for locks while another one runs.
        self._one_call = threading.Lock()
        self._names: set[str] = set()
        self._tables: dict[int, str] = {}
        self._sequences: dict[str, tuple[int, bool]] = {}
        self._is_written = False
        self._statements: list[str] = []
        """What puts them back."""
        self._run(f"SET lock_timeout = '{_WAITS_AT_MOST}'")

    def note(self, statement: str) -> None:
        """Copy the tables that it writes, unless they are copied."""
        names = written_tables(statement)
        if not names:
            return
        self._is_written = True
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._copy(name)

    def mark_written(self) -> None:
        """The copied tables may be written."""
        self._is_written = True

    def restore(self) -> None:
        """Put back what was written since the last time. Raises ConfigError if a table is locked."""
        if not self._is_written:
            return
        try:
            self._run(*self._statements)
        except Exception as error:
            raise ConfigError(
                f"isolate= cannot put back {', '.join(sorted(self._tables.values()))}: {error}. A transaction may be "
                "open that is not of the handler."
            ) from error
        self._is_written = False

    def close(self) -> None:
        """Put them back, and end the connection, and with it the copies."""
        try:
            self.restore()
        finally:
            self._connection.close()

    def lock_is_awaited(self) -> bool:
        """Whether a connection to the database waits for a lock."""
        return bool(self._run(_AWAITED)[0][0])

    def _copy(self, name: str) -> None:
        quoted = name.replace("'", "''")
        new = {oid: table for oid, table in self._run(_NEW.format(name=quoted)) if oid not in self._tables}
        for oid, table in new.items():
            self._run(f"CREATE TEMP TABLE lowkiq_fuzz_{oid} AS SELECT * FROM {table}")  # noqa: S608 - as the server writes it
            for (sequence,) in self._run(_SEQUENCES.format(oid=oid)):
                [(value, is_called)] = self._run(f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608 - as above
                self._sequences[sequence] = value, is_called
        if new:
            self._tables |= new
            self._statements = self._restoring()

    def _restoring(self) -> list[str]:
        """Raises ConfigError for tables that refer to each other in a circle."""
        after: dict[int, set[int]] = {oid: set() for oid in self._tables}
        for referring, referred in self._run(_REFERENCES):
            if referring in after and referred in after:
                after[referring].add(referred)
        try:
            order = [*TopologicalSorter(after).static_order()]
        except CycleError as error:
            names = ", ".join(self._tables[oid] for oid in error.args[1])
            raise ConfigError(f"isolate= cannot put back {names}, which refer to each other: write reset=.") from error
        deletions = [f"DELETE FROM {self._tables[oid]}" for oid in reversed(order)]  # noqa: S608 - as above
        copies = [
            f"INSERT INTO {self._tables[oid]} OVERRIDING SYSTEM VALUE SELECT * FROM lowkiq_fuzz_{oid}"  # noqa: S608 - as above
            for oid in order
        ]
        return [
            *deletions,
            *copies,
            *(
                f"SELECT setval('{sequence}', {value}, {is_called})"
                for sequence, (value, is_called) in self._sequences.items()
            ),
        ]

    def _run(self, *statements: str) -> list[Any]:
        """The rows of the last statement; all of them in one transaction."""
        rows: list[Any] = []
        with self._one_call, closing(self._connection.cursor()) as cursor:
            try:
                for statement in statements:
                    cursor.execute(statement)
                    rows = [*cursor.fetchall()] if cursor.description is not None else []
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()
        return rows
