"""Starting the embedded server: its program, its port, its password, its settings."""

import secrets
import socket
import subprocess
from dataclasses import replace
from typing import Final

from lowkiq_lambda.base.errors import EmbeddedServerError
from lowkiq_lambda.providers.embedded.binary import OLDEST, ServerBinary, find_binary
from lowkiq_lambda.providers.embedded.folder import Access, ServerFolder

_HOST: Final = "127.0.0.1"
_MULTI_PART_LOG_SINCE: Final = (7, 0)
_START_TIMEOUT: Final = 20.0


def start(folder: ServerFolder, program: str | None) -> Access:
    """Start a server, the program of that path or name where one is given, which may still end for want of its port."""
    before = folder.read_access()
    binary = find_binary(
        program,
        family=before.family if before else None,
        oldest=_MULTI_PART_LOG_SINCE if folder.needs_multi_part_log else OLDEST,
    )
    if before is not None and _is_free(before.port):
        access = replace(before, family=binary.family)
    else:
        # Whoever has the old port now may have been shown the old password.
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


def _free_port(wanted: int = 0) -> int:
    """The wanted port, which may prove to be taken, or for 0 one that the kernel chooses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((_HOST, wanted))
        return int(probe.getsockname()[1])
