"""The embedded servers of this process: one seat for each folder, from the first need to the end of the process.

A thread looks after each server. A server that ended, for any reason, is started again at once on its port: the first
user that finds it dead does so, under the folder's lock, and all connections find it again by themselves.
"""

import atexit
import logging
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.errors import EmbeddedServerError
from lowkiq_lambda.providers.embedded.server import EmbeddedValkey, open_embedded
from lowkiq_lambda.providers.embedded.url import folder_of
from lowkiq_lambda.settings.config import Config

LOOK_INTERVAL: Final = 0.25
"""Seconds between two looks whether a server still runs; a look costs some ten microseconds."""
LONGEST_PAUSE: Final = 30.0
"""Seconds, at most, between two attempts to start a server that does not start."""

logger = logging.getLogger(__name__)


@dataclass
class _Hold:
    server: EmbeddedValkey
    left: Event = field(default_factory=Event)


_holds: dict[Path, _Hold] = {}
_lock = Lock()


def attach(config: Config, environ: Mapping[str, str], *, tell: bool = True) -> EmbeddedValkey:
    """The server that the settings mean, used by this process until it ends.

    The log tells of it the first time, unless `tell` is False. Raises ConfigError for a `redis_url` that names no
    folder, and EmbeddedServerError.
    """
    folder = _folder_of(config)
    with _lock:
        if folder not in _holds:
            server = open_embedded(folder, config.embedded_server or environ.get("LOWKIQ_EMBEDDED_SERVER"))
            if tell:
                what = f"{(server.family or 'server').capitalize()} {server.version} ({server.binary})"
                logger.info("Embedded server, for development: %s, data in %s.", what, folder)
            _holds[folder] = _Hold(server)
            _look_after(_holds[folder])
        return _holds[folder].server


def attached(url: str) -> EmbeddedValkey | None:
    """The server that this process uses under that URL; None for any other server."""
    with _lock:
        return next((hold.server for hold in _holds.values() if url == hold.server.url), None)


def reset_command(queue_name: str, config: Config, environ: Mapping[str, str]) -> str:
    """The command that removes the queue from the server of the settings."""
    command = ["lowkiq", "reset", queue_name]
    folder, of_environment = _folder_of(config), Config.from_env(environ)
    if folder != _folder_of(of_environment):
        command += ["--data-dir", str(folder)]
    if config.namespace and config.namespace != of_environment.namespace:
        command += ["--namespace", config.namespace]
    return shlex.join(command)


def leave() -> None:
    """Give up all that was attached, as the end of the process does."""
    with _lock:
        while _holds:
            _, hold = _holds.popitem()
            hold.left.set()
            hold.server.close()


def _folder_of(config: Config) -> Path:
    url = config.redis_url or ""
    return folder_of(url if is_embedded(url) else EMBEDDED)


def _look_after(hold: _Hold) -> None:
    Thread(target=_revive_until_left, args=(hold,), name="lowkiq-embedded", daemon=True).start()


def _revive_until_left(hold: _Hold) -> None:
    pause = LOOK_INTERVAL
    while not hold.left.wait(pause):
        try:
            if hold.server.revive():
                logger.warning("Embedded server: it had ended, and was started again.")
            pause = LOOK_INTERVAL
        except EmbeddedServerError as error:
            logger.error("%s", error)  # noqa: TRY400 - the sentence says all
            pause = min(4 * pause, LONGEST_PAUSE)
        except OSError as error:
            logger.error("Embedded server: nobody looks after it any more (%s).", error)  # noqa: TRY400 - as above
            return


def _begin_in_child() -> None:
    """A forked child has the seat of its parent, but none of its threads, and locks in whatever state they were."""
    global _lock  # noqa: PLW0603 - the old one may be held for ever
    _lock = Lock()
    for folder, hold in list(_holds.items()):
        _holds[folder] = _Hold(hold.server)
        _look_after(_holds[folder])


atexit.register(leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
