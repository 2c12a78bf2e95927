"""What people do to an embedded server itself: look into it with other tools, and remove a queue from it."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from lowkiq_lambda.config import EMBEDDED, Config, is_embedded
from lowkiq_lambda.development import refuse_in_deployment
from lowkiq_lambda.errors import ConfigError, EmbeddedServerError
from lowkiq_lambda.local.embedded.server import open_embedded
from lowkiq_lambda.local.embedded.url import folder_of
from lowkiq_lambda.store.inspect.erasure import erase_queue

DataDir: TypeAlias = Annotated[
    Path | None, Parameter(help="The folder of the server; else that of LOWKIQ_REDIS_URL or LOWKIQ_DATA_DIR.")
]
NO_SUCH_QUEUE: Final = 1
_TIMEOUT: Final = 30.0


def redis(*, data_dir: DataDir = None) -> int:
    """Print the URL of the embedded server, with its password, for redis-cli and the like.

    The server is started where it does not run, and runs until the next program that uses it ends.
    """
    # Not closed: the server would end with us, and the URL would be of no use.
    sys.stdout.write(f"{open_embedded(_folder(data_dir)).url}\n")
    return 0


def reset(
    queue: Annotated[str, Parameter(name="QUEUE", help="The name of the queue.")],
    /,
    *,
    data_dir: DataDir = None,
) -> int:
    """Remove a queue from the embedded server, with its jobs and its declaration.

    All programs that use the server have to be ended before.
    """
    folder = _folder(data_dir)
    with open_embedded(folder) as server:
        with server.others() as others:
            if others:
                raise EmbeddedServerError(
                    f"The embedded server is in use by the process {' and '.join(map(str, sorted({*others})))}: "
                    "end it, and reset the queue then."
                )
            erased = erase_queue(server.url, queue, _TIMEOUT)
        if erased is None:
            sys.stderr.write(f"error: {folder} has no queue {queue!r}.\n")
            return NO_SUCH_QUEUE
        sys.stdout.write(
            f"removed the queue {queue!r} from {folder}: {erased.pending} pending, {erased.buried} in the morgue\n"
        )
        return 0


def _folder(data_dir: Path | None) -> Path:
    refuse_in_deployment("The embedded server is for development", os.environ)
    environment = Config.from_env(os.environ)
    url = environment.redis_url or EMBEDDED
    if data_dir is not None:
        return data_dir.absolute()
    if not is_embedded(url):
        raise ConfigError(
            "LOWKIQ_REDIS_URL names a server of its own, and this is for the embedded one: give --data-dir.",
            setting="redis_url",
        )
    return folder_of(url, environment.data_dir)
