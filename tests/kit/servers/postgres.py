"""A PostgreSQL server, where the machine has the programs of one; it forgets faster than one that keeps data."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from lowkiq_lambda.stack.cloud import reaper
from tests.kit.waiting import eventually

_NOBODY = 65_534
_START_TIMEOUT = 60.0
_UNSAFE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def postgres_programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None where there are none."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class Postgres:
    """Runs from the start of the block to its end. Its socket is in its folder, so that it takes no port."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="lowkiq-postgres-"))
        reaper.watch_folder(self._folder)
        # It refuses to run as root.
        self._user: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if not os.getuid() else {}
        if self._user:
            os.chown(self._folder, _NOBODY, _NOBODY)

    @property
    def url(self) -> str:
        """What SQLAlchemy is given."""
        return f"postgresql+psycopg://test@/postgres?host={self._folder}"

    @property
    def pid(self) -> int:
        """The process that the others are children of."""
        return self._process.pid

    def __enter__(self) -> Self:
        data, log = self._folder / "data", self._folder / "log"
        initdb = [str(self._programs / "initdb"), "--no-sync", "--auth=trust", "--username=test", f"--pgdata={data}"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self._folder, **self._user)
        settings = ["listen_addresses=", f"unix_socket_directories={self._folder}"]
        options = [part for setting in (*settings, *_UNSAFE) for part in ("-c", setting)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", data, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                **self._user,
            )
        reaper.watch_process(self._process.pid)
        eventually(self._answers, timeout=_START_TIMEOUT, what=f"PostgreSQL ({log})")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # INT ends sessions and stops; TERM would wait for them.
        self._process.send_signal(2)
        self._process.wait()
        reaper.forget_process(self._process.pid)
        shutil.rmtree(self._folder)
        reaper.forget_folder(self._folder)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            psycopg.connect(dbname="postgres", user="test", host=str(self._folder)).close()
        except psycopg.OperationalError:
            return False
        return True
