"""What keeps the jobs: Valkey, as for all benchmarks, or for procrastinate PostgreSQL, which writes nothing to disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.usage import processor_time
from tests.kit.servers import Server
from tests.kit.servers.postgres import Postgres, postgres_programs


class Backend(NamedTuple):
    """Its URL; what throws all data away; what says how many seconds of the processor it has had."""

    url: str
    clear: Callable[[], object]
    processor: Callable[[], float]


@contextmanager
def redis_backend() -> Iterator[Backend]:
    """A server of its own."""
    with Server() as server:
        yield Backend(server.url, server.admin.flushall, lambda: processor_time(server.admin))


@contextmanager
def postgres_backend() -> Iterator[Backend]:
    """A server of its own; `has_postgres` says whether there can be one."""
    programs = postgres_programs()
    if programs is None:
        raise RuntimeError("There are no programs of PostgreSQL.")
    with Postgres(programs) as server:
        url = server.url.replace("+psycopg", "")

        def clear() -> None:
            with psycopg.connect(url) as connection:
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute("CREATE SCHEMA public")

        yield Backend(url, clear, lambda: _with_children(server.pid))


def has_postgres() -> bool:
    """Whether this machine has its programs."""
    return postgres_programs() is not None


def _with_children(pid: int) -> float:
    """Seconds of the processor that a process and its children have had, also those that have ended."""
    ticks = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if status.parent.name == str(pid):
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == str(pid):
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
