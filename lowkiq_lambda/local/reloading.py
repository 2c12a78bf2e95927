"""Runs the daemon in a child process, and replaces that when a file of the project changes: for development."""

import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Final, TypeAlias

from lowkiq_lambda.local.signals import Signals

logger = logging.getLogger(__name__)

_POLL: Final = 0.5
"""Seconds from one look at the files to the next."""
_WATCHED: Final = (".py", ".toml")
_NEVER: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
_ENVIRONMENT: Final = "pyvenv.cfg"
"""A file that a folder of installed packages has."""

Stamps: TypeAlias = dict[str, tuple[int, int]]


class Reloader:
    """`command` runs the daemon; `folder` is the project's."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command = [*command]
        self._folder = folder

    def run(self) -> int:
        """Until a signal, which the daemon is given, or until it ends well by itself; its exit code.

        If it ends with an error, such as that of a file that cannot be imported, the next change starts it again.
        """
        with Signals([SIGTERM, SIGINT]) as signals:
            while True:
                stamps = stamps_of(self._folder)
                # A group of its own: Ctrl-C reaches it by the signal that is handed on, and not twice.
                child = subprocess.Popen(self._command, start_new_session=True)
                code = self._watch(child, stamps, signals)
                if code is not None:
                    return code

    def _watch(self, child: "subprocess.Popen[bytes]", stamps: Stamps, signals: Signals) -> int | None:
        """The exit code of all; None if a change asks for another child."""
        has_failed = False
        while True:
            signal = signals.next(_POLL)
            if signal is not None:
                return child.returncode if has_failed else self._end(child, signals)
            if not has_failed and child.poll() is not None:
                if not child.returncode:
                    return 0
                has_failed = True
                logger.error("the daemon ended with code %d: the next change starts it again", child.returncode)
            changed = changes(stamps, stamps_of(self._folder))
            if changed:
                logger.info("reloading: %s changed", ", ".join(changed))
                if not has_failed:
                    child.send_signal(SIGTERM)
                    child.wait()
                return None

    @staticmethod
    def _end(child: "subprocess.Popen[bytes]", signals: Signals) -> int:
        """Have it end; another signal hurries it."""
        child.send_signal(SIGTERM)
        while child.poll() is None:
            if signals.next(_POLL) is not None:
                child.send_signal(SIGTERM)
        return child.returncode


def stamps_of(folder: Path) -> Stamps:
    """The time and the size of each file that code may be made of, below the folder."""
    stamps: Stamps = {}
    for root, folders, names in os.walk(folder):
        if _ENVIRONMENT in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in _NEVER and not name.startswith(".")]
        for name in names:
            if name.endswith(_WATCHED):
                path = os.path.join(root, name)  # noqa: PTH118 - many files, each half second
                try:
                    status = os.stat(path)  # noqa: PTH116 - as above
                except OSError:
                    continue
                stamps[path] = status.st_mtime_ns, status.st_size
    return stamps


def changes(before: Stamps, after: Stamps) -> list[str]:
    """The names of files that were written, made or removed."""
    return sorted(Path(path).name for path in before.keys() | after.keys() if before.get(path) != after.get(path))
