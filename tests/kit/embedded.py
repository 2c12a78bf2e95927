"""Servers that `embedded:` leaves on a folder."""

import os
import signal
from pathlib import Path

from lowkiq_lambda.local.embedded.folder import ServerFolder
from tests.kit.waiting import eventually


def server_lives(folder: ServerFolder) -> bool:
    """Whether a server runs on the folder."""
    if not folder.path.exists():
        return False
    with folder.exclusive():
        return folder.server_lives()


def end_server(path: Path) -> None:
    """Kill a server that was left on the folder."""
    folder = ServerFolder(path)
    if server_lives(folder):
        os.kill(int((path / "server.pid").read_text()), signal.SIGKILL)
        eventually(lambda: not server_lives(folder), what="the server's end")
