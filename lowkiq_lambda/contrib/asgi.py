"""For FastAPI and Starlette: a lifespan that runs the daemon beside the pages, and the dashboard in one line.

Neither is imported here: a lifespan is a context manager, and an app is mounted by its own `mount`.
"""

import asyncio
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.base.errors import EmbeddedServerError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from lowkiq_lambda.dashboard import Auth

logger = logging.getLogger(__name__)

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Given the web app: a context manager that is entered before the first request and left after the last."""

_WORKERS: Final = re.compile(r"(?:--workers=|-w)(?P<glued>\d+)|--workers|-w")


def lifespan(app: Lowkiq, *, daemon: bool | None = None, inner: Lifespan | None = None) -> Lifespan:
    """A lifespan for `FastAPI(lifespan=...)` or `Starlette(lifespan=...)` that performs the jobs of `app` meanwhile.

    `daemon`: whether this process drains; by default it does on `embedded:` alone, so that one program is enough for
    development. Coroutine handlers run on the loop of the web app then, and may use its pools. `inner`: your own
    lifespan, and its state is that of the web app; it is entered before the first job begins, and left when no job runs
    any more. Jobs have `shutdown_timeout` (seconds) to end. Entering it raises what `Daemon.start` raises.
    """

    @asynccontextmanager
    async def entered(web: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - a web app of any framework
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(inner(web)) if inner else None
            if is_embedded(app.config.redis_url) if daemon is None else daemon:
                await stack.enter_async_context(_draining(app))
            yield state

    return entered


def mount_dashboard(web: "Starlette", path: str, app: Lowkiq, *, auth: "Auth | None" = None) -> None:
    """Serve the dashboard of `app` under a path of the web app, to visitors whom `auth` or the settings let in.

    Where neither says anything, on `embedded:`, a password is made up and written to stderr, and the dashboard serves
    only callers on this machine. Elsewhere ConfigError is raised then.
    """
    from lowkiq_lambda.dashboard import dashboard  # noqa: PLC0415 - an entrance: a web app may serve none

    web.mount(path, dashboard(app, auth=auth or _made_up(path, app)))


@asynccontextmanager
async def _draining(app: Lowkiq) -> AsyncIterator[None]:
    # A web app that only pushes pays for none of it.
    from lowkiq_lambda.local.daemon import Daemon  # noqa: PLC0415 - as said above

    if (workers := _workers(os.environ, sys.argv)) > 1:
        logger.warning(
            "each of the %d workers of this web server runs a daemon, with %d threads: pass daemon=False, and run "
            "`lowkiq run` beside it",
            workers,
            app.config.threads_per_node,
        )
    app.use_loop(asyncio.get_running_loop())
    try:
        running = Daemon(app)
        # Both wait for Redis or for jobs, and the loop has to go on meanwhile.
        await asyncio.to_thread(running.start)
        try:
            yield
        finally:
            running.stop()
            if not await asyncio.to_thread(running.join, app.config.shutdown_timeout):
                logger.warning("the daemon's handlers still run")
    finally:
        app.use_loop(None)


def _workers(environ: Mapping[str, str], arguments: Sequence[str]) -> int:
    """How many processes the web server serves from, as far as its command line and its environment say."""
    for position, word in enumerate(arguments):
        if match := _WORKERS.fullmatch(word):
            number = match["glued"] or next(iter(arguments[position + 1 :]), "")
            return int(number) if number.isdecimal() else 1
    number = environ.get("WEB_CONCURRENCY", "")
    return int(number) if number.isdecimal() else 1


def _made_up(path: str, app: Lowkiq) -> "Auth | None":
    from lowkiq_lambda.dashboard.security.auth import generated  # noqa: PLC0415 - only where a dashboard is asked for
    from lowkiq_lambda.dashboard.security.settings import DashboardSettings  # noqa: PLC0415 - as above

    if not is_embedded(app.config.redis_url) or DashboardSettings.from_env(os.environ).has_auth():
        return None
    auth, password = generated(_kept_password(app))
    # Told to the person who started the process, and to no log.
    sys.stderr.write(f"dashboard at {path} for this machine alone, password {password}\n")
    sys.stderr.flush()
    return auth


def _kept_password(app: Lowkiq) -> str:
    """That of the last start, so that a reload signs nobody out; empty where none can be kept."""
    from lowkiq_lambda.providers.embedded.folder import ServerFolder  # noqa: PLC0415 - only for development
    from lowkiq_lambda.providers.embedded.url import folder_of  # noqa: PLC0415 - as above

    with suppress(OSError, EmbeddedServerError):
        folder = ServerFolder(folder_of(app.config.redis_url or EMBEDDED))
        folder.create()
        with folder.exclusive():
            return folder.dashboard_password()
    return ""
