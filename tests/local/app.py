"""An app for daemons in processes of their own, whose hooks tell that they were called and then break."""

import os
import signal
from functools import partial
from threading import Event
from typing import Any

from lowkiq_lambda import Batch, Config, Lowkiq
from tests.kit.telling import declare_stage_worker, tell


def leave(_job_id: str, _batch: Batch) -> None:
    """End the thread, as a library that calls sys.exit does."""
    raise SystemExit(3)


def die(_job_id: str, _batch: Batch) -> None:
    """As what takes too much memory does."""
    os.kill(os.getpid(), signal.SIGKILL)


def vanish(_job_id: str, _batch: Batch) -> None:
    """As C code does that ends the process in good faith."""
    os._exit(0)


_grown: list[bytearray] = []


def grow(_job_id: str, _batch: Batch) -> None:
    """Keep 64 MiB more from now on."""
    _grown.append(bytearray(b"x" * (64 << 20)))


class NoHands:
    """A splitter that deals nothing, which no daemon accepts."""

    def split(self, _shards: object, _threads: int) -> list[list[Any]]:
        """No hand."""
        return []


def hook(name: str) -> None:
    """Tells that it was called, and then fails."""
    tell(name)
    if name == os.environ.get("STAGE_ENDED_BY"):
        raise SystemExit(f"{name} wants to end")
    raise RuntimeError(f"{name} is broken")


if "STAGE_DIES_AT_BOOT" in os.environ:
    os.kill(os.getpid(), signal.SIGKILL)
if "STAGE_HANGS_AT_BOOT" in os.environ:
    Event().wait(300)

app = Lowkiq(
    Config.from_env(
        os.environ,
        on_server_init=partial(hook, "on_server_init"),
        on_startup=[partial(hook, "on_startup"), partial(hook, "second on_startup")],
        on_heartbeat=partial(hook, "on_heartbeat"),
        on_quiet=partial(hook, "on_quiet"),
        on_shutdown=[partial(hook, "on_shutdown"), partial(hook, "second on_shutdown")],
        on_exit=[partial(hook, "on_exit"), partial(hook, "second on_exit")],
        last_words=lambda error: tell("last words", error=str(error)),
        build_splitter=NoHands if "STAGE_NO_HANDS" in os.environ else None,
    )
)
declare_stage_worker(app, {"leave": leave, "die": die, "grow": grow, "vanish": vanish})
