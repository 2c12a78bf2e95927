"""The folder of an embedded server, and the locks in it that show which processes live.

    lock          held for a moment by a process that joins or leaves: one at a time
    server.lock   held by the server itself, by a descriptor that it inherited, from its start to its end
    users/        a file for each user, locked from its joining to its leaving or its death
    server.json   how to reach the server: only its owner may read it
    dashboard.password   of a dashboard beside it without a given one: the same after a reload, for its owner alone
    server.log, server.pid, appendonlydir/   the server's own

The kernel ends a lock with the process that holds it, whatever ended that. So pids, which could be another process by
now, are never trusted, and a folder that is used from two containers still has one server.

A forked child shares the locks of its parent. It is a user like its parent, so the seat stays taken until both have
left; the other locks are held for a moment, and the child closes its copies at once.
"""

import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from lowkiq_lambda.base.errors import EmbeddedServerError

if sys.platform != "win32":
    import fcntl

_LAST_PORT: Final = 65_535
_LOG_TAIL: Final = 12
_PASSWORD: Final = re.compile(r"[A-Za-z0-9_-]{16}")
_momentary: dict[int, None] = {}
"""Descriptors of locks that are held for a moment, in the order in which they were taken."""


def _let_go() -> None:
    # The newest first, as its holder would: a process that gets `lock` must find the server's lock free.
    while _momentary:
        os.close(_momentary.popitem()[0])


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go)


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a server, and which family of servers wrote the folder's data."""

    port: int
    password: str = field(repr=False)
    family: str

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"


class Seat:
    """One user's place among the users of a folder."""

    def __init__(self, users: Path) -> None:
        # Several users may be one process.
        self._file, _ = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=users)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def leave(self) -> None:
        """Give the place up. It stays taken as long as a process that was forked from this one has not left too."""
        os.close(self._file)


class ServerFolder:
    """Files and locks; all but `path` are to be used under `exclusive`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def log_path(self) -> Path:
        """The log of the server since its last start."""
        return self.path / "server.log"

    @property
    def needs_multi_part_log(self) -> bool:
        """Whether the data needs a server that reads append-only files in several parts."""
        return (self.path / "appendonlydir").exists()

    def create(self) -> None:
        """Make what is missing, readable by the owner only, and keep it out of version control."""
        if not self.path.exists():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.path / ".gitignore").write_text("*\n")
        self._keep_to_its_owner()
        (self.path / "users").mkdir(mode=0o700, exist_ok=True)

    def _keep_to_its_owner(self) -> None:
        """The password lies in it: raises EmbeddedServerError if it is another's, and shuts it to all others."""
        status = self.path.stat()
        if status.st_uid != os.geteuid():
            raise EmbeddedServerError(f"The folder {self.path} belongs to another user: name one of your own.")
        if status.st_mode & 0o077:
            self.path.chmod(0o700)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else joins, leaves, starts or stops meanwhile."""
        with _opened(self.path / "lock", os.O_RDWR | os.O_CREAT) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def take_seat(self) -> Seat:
        """Be counted among the users."""
        return Seat(self.path / "users")

    def users(self) -> list[int]:
        """The processes of the users that live, one for each seat; removes the seats of those that left or died."""
        seats = list((self.path / "users").iterdir())
        living = [seat for seat in seats if _is_held(seat)]
        for seat in set(seats).difference(living):
            seat.unlink()
        return [int(seat.name.partition("-")[0]) for seat in living]

    def server_lives(self) -> bool:
        """Whether a server runs on this folder, answering or not."""
        return _is_held(self.path / "server.lock")

    @contextmanager
    def server_lock(self) -> Iterator[int]:
        """The descriptor that a server must inherit, locked; no server may live."""
        with _opened(self.path / "server.lock", os.O_RDWR | os.O_CREAT) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield lock

    def read_access(self) -> Access | None:
        """The access that was written last; None if there is none, or if it cannot be read."""
        with suppress(OSError, ValueError):
            match json.loads((self.path / "server.json").read_text()):
                # Both become settings of a server: a folder that came from elsewhere must not smuggle in others.
                case {"port": int(port), "password": str(password), "family": str(family)} if (
                    0 < port <= _LAST_PORT and password.isascii() and password.isalnum()
                ):
                    return Access(port, password, family)
        return None

    def write_access(self, access: Access) -> None:
        """Replace the file as a whole, so that a part of it is never read."""
        file, name = tempfile.mkstemp(prefix="server-", dir=self.path)
        with os.fdopen(file, "w") as text:
            json.dump(asdict(access), text)
        Path(name).replace(self.path / "server.json")

    def dashboard_password(self) -> str:
        """The generated password of dashboards beside this server, made if there is none. Raises OSError."""
        path = self.path / "dashboard.password"
        with suppress(FileNotFoundError, UnicodeDecodeError), _opened(path, os.O_RDONLY | os.O_NOFOLLOW) as file:
            password = os.read(file, 100).decode("ascii")
            if _PASSWORD.fullmatch(password):
                return password
        password = secrets.token_urlsafe(12)
        file, name = tempfile.mkstemp(prefix="dashboard-", dir=self.path)
        with os.fdopen(file, "w") as text:
            text.write(password)
        Path(name).replace(path)
        return password

    def last_words(self) -> str:
        """The end of the server's log."""
        with suppress(OSError):
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-_LOG_TAIL:])
        return ""


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags, 0o600)
    _momentary[file] = None
    try:
        yield file
    finally:
        _momentary.pop(file, None)
        os.close(file)


def _is_held(path: Path) -> bool:
    try:
        with _opened(path, os.O_RDWR) as file:
            # A shared lock, so that two who look at once don't take each other for the holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
