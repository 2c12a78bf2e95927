"""`lowkiq redis` and `lowkiq reset`: the commands for the embedded server itself."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cyclopts import Group, Parameter

from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.output import agreed
from lowkiq_lambda.cli.parts import Yes, command_app
from lowkiq_lambda.providers.embedded.url import folder_of
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.development import refuse_in_deployment

if TYPE_CHECKING:
    from lowkiq_lambda.providers.embedded.server import EmbeddedValkey

DataDir: TypeAlias = Annotated[Path | None, Parameter(help="The folder of the server; else that of LOWKIQ_REDIS_URL.")]
_TIMEOUT: Final = 30.0
_GROUP: Final = Group("Commands for the embedded server")

_REDIS_HELP: Final = """
Print the URL of the embedded server, with its password, for redis-cli and the like.

If the server does not run, it starts, and it runs until the next program that uses it ends.
"""
_REDIS_EPILOGUE: Final = """
EXAMPLE
  A look into the embedded server:
    redis-cli -u "$(lowkiq redis)"

EXIT CODES
  0  The URL is printed.
  2  The command line or the settings cannot work.
  3  The server does not start.
"""
_RESET_HELP: Final = """
Remove a queue from the embedded server, with all its jobs and its declaration.

End every other program that uses the server before.
"""
_RESET_EPILOGUE: Final = """
EXAMPLE
  After an edit of shards_count in development:
    lowkiq reset Greet

EXIT CODES
  0  The queue was removed.
  1  Nothing was removed: there is no such queue, another program uses the
     server, or the answer was not yes.
  2  The command line or the settings cannot work.
  3  The server does not start.
"""

redis: Final = command_app(
    "redis", help_=_REDIS_HELP, epilogue=_REDIS_EPILOGUE, usage="lowkiq redis [OPTIONS]", group=_GROUP
)
reset: Final = command_app(
    "reset", help_=_RESET_HELP, epilogue=_RESET_EPILOGUE, usage="lowkiq reset [OPTIONS] QUEUE", group=_GROUP
)


@redis.default
def print_url(*, data_dir: DataDir = None) -> int:
    """Print the URL; the exit code."""
    from lowkiq_lambda.providers.embedded.server import open_embedded

    # Not closed: the server would end with us, and the URL would be of no use.
    sys.stdout.write(f"{open_embedded(_folder(data_dir), _program()).url}\n")
    return DONE


@reset.default
def remove_queue(
    queue: Annotated[str, Parameter(name="QUEUE", help="The name of the queue.")],
    /,
    *,
    data_dir: DataDir = None,
    namespace: Annotated[
        str | None, Parameter(help="The namespace of the app whose queue it is; else that of LOWKIQ_NAMESPACE.")
    ] = None,
    yes: Yes = False,
) -> int:
    """Remove the queue; the exit code."""
    from lowkiq_lambda.operate.acts.erasure import erase_queue, has_queue
    from lowkiq_lambda.providers.embedded.server import open_embedded

    folder = _folder(data_dir)
    overrides = {} if namespace is None else {"namespace": namespace}
    of_app = Config.from_env(os.environ, **overrides).namespace
    with open_embedded(folder, _program()) as server:
        _refuse_in_use(server)
        if not has_queue(server.url, queue, of_app, _TIMEOUT):
            return _no_queue(folder, queue)
        if not (yes or agreed(f"Remove the queue {queue!r} and all its jobs from {folder}?")):
            sys.stdout.write("Nothing was removed.\n")
            return NOT_APPLIED
        # People take their time, and meanwhile others may have come.
        with server.others() as others:
            _refuse_others(others)
            erased = erase_queue(server.url, queue, of_app, _TIMEOUT)
        if erased is None:
            return _no_queue(folder, queue)
        sys.stdout.write(
            f"removed the queue {queue!r} from {folder}: {erased.waiting} waiting, {erased.dead} in the morgue\n"
        )
        return DONE


def _refuse_in_use(server: "EmbeddedValkey") -> None:
    with server.others() as others:
        _refuse_others(others)


def _refuse_others(others: Iterable[int]) -> None:
    if processes := sorted({*others}):
        raise LowkiqError(
            f"The embedded server is in use by the process {' and '.join(map(str, processes))}: "
            "end it, and reset the queue then."
        )


def _no_queue(folder: Path, queue: str) -> int:
    sys.stderr.write(f"error: {folder} has no queue {queue!r}.\n")
    return FAILED


def _folder(data_dir: Path | None) -> Path:
    refuse_in_deployment("The embedded server is for development", os.environ)
    url = Config.from_env(os.environ).redis_url or EMBEDDED
    if data_dir is not None:
        return data_dir.absolute()
    if not is_embedded(url):
        raise ConfigError(
            "LOWKIQ_REDIS_URL names a server of its own, and this is for the embedded one: give --data-dir.",
            setting="redis_url",
        )
    return folder_of(url)


def _program() -> str | None:
    return Config.from_env(os.environ).embedded_server
