"""The table that the demo's handlers write: the files as they stand, and the book of what was applied when.

The book is how the demo proves more than an equal end: nothing was skipped, and nothing newer ran before
something older of the same file.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from local.demo.history import Change, Files
from lowkiq_lambda.base.errors import LowkiqError

_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS applied;
CREATE TABLE files (path TEXT PRIMARY KEY, blob TEXT, seq INTEGER NOT NULL, token INTEGER NOT NULL);
CREATE TABLE applied (path TEXT, seq INTEGER, times INTEGER NOT NULL, PRIMARY KEY (path, seq)) WITHOUT ROWID;
"""

# What a handler's own database needs to refuse a holder that overslept its lease: compare and write at once.
_WRITE = """
INSERT INTO files (path, blob, seq, token) VALUES (:path, :blob, :seq, :token)
ON CONFLICT (path) DO UPDATE SET blob = :blob, seq = :seq, token = :token WHERE token <= :token
"""

_ENTER = """
INSERT INTO applied (path, seq, times) VALUES (:path, :seq, 1)
ON CONFLICT (path, seq) DO UPDATE SET times = times + 1
"""

# A change that was applied before may come again, and then so must those after it, one by one.
_ORDER = """
SELECT
    EXISTS (SELECT 1 FROM applied WHERE path = :path AND seq = :seq),
    EXISTS (SELECT 1 FROM applied WHERE path = :path AND seq > :seq),
    EXISTS (SELECT 1 FROM applied WHERE path = :path AND seq < :seq
            AND seq > coalesce((SELECT seq FROM files WHERE path = :path), 0))
"""


class StaleToken(LowkiqError):
    """A holder with a newer token has written this file: the write came too late and was refused."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A file whose content is not what it should be; None where there is no such file."""

    path: str
    expected: str | None
    found: str | None


class Table:
    """The files and the book, in one SQLite file that starts empty. Safe to use from several threads."""

    def __init__(self, file: Path) -> None:
        self._lock = Lock()
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._connection.executescript(_TABLES)
        self._applied = 0
        self._repeated = 0
        self._out_of_order = 0

    @property
    def applied(self) -> int:
        """How many different changes were applied."""
        return self._applied

    @property
    def repeated(self) -> int:
        """How many applications were repeats: the price of at least once."""
        return self._repeated

    @property
    def out_of_order(self) -> int:
        """How many changes were applied after a newer one of their file, or skipped an older one."""
        return self._out_of_order

    def load(self, files: Files, seq: int) -> None:
        """Fill in what was there before the first change: the files of commit `seq`."""
        with self._transaction():
            self._connection.executemany(
                "INSERT INTO files (path, blob, seq, token) VALUES (?, ?, ?, 0)",
                ((path, blob, seq) for path, blob in files.items()),
            )

    def apply(self, change: Change, token: int) -> None:
        """Write one change under a fencing token; `StaleToken` where a newer one has written the file."""
        values = {"path": change.path, "blob": change.blob, "seq": change.seq, "token": token}
        with self._transaction():
            known, newer, skipped = self._connection.execute(_ORDER, values).fetchone()
            if self._connection.execute(_WRITE, values).rowcount == 0:
                raise StaleToken(f"{change.path}: token {token} is older than the one that wrote last")
            self._connection.execute(_ENTER, values)
            self._out_of_order += skipped or (newer and not known)
            self._repeated += known
            self._applied += not known

    def files(self) -> Files:
        """The files as they stand."""
        with self._lock:
            return dict(self._connection.execute("SELECT path, blob FROM files WHERE blob IS NOT NULL"))

    def missing(self, changes: Iterable[Change]) -> list[Change]:
        """Those of `changes` that were never applied."""
        with self._lock:
            applied = set(self._connection.execute("SELECT path, seq FROM applied"))
        return [change for change in changes if (change.path, change.seq) not in applied]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> list[Difference]:
    """Where the two differ, by path."""
    return [
        Difference(path, expected.get(path), found.get(path))
        for path in sorted(expected.keys() | found.keys())
        if expected.get(path) != found.get(path)
    ]
