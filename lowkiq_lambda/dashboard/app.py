"""The dashboard as an ASGI app: its routes, and what stands in front of them.

A page's module is imported when somebody first asks for it, and the API when a program does: a function that starts
for a request has use for one of them.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.clock import Clock, SystemClock
from lowkiq_lambda.dashboard import assets
from lowkiq_lambda.dashboard.security.auth import Auth
from lowkiq_lambda.dashboard.security.gate import Gate
from lowkiq_lambda.dashboard.security.headers import SecurityHeaders
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.dashboard.security.throttle import Throttle
from lowkiq_lambda.dashboard.visit import API, FOR_PROGRAMS, Handler, Site, Visit, get, post, refusal
from lowkiq_lambda.protocols import Mask
from lowkiq_lambda.store.inspect.login_attempts import count_attempts

_SMALL: Final = 1_000
"""Bytes that are not worth packing."""


def dashboard(
    app: Lowkiq | Callable[[], Lowkiq],
    *,
    auth: Auth | None = None,
    base_path: str | None = None,
    mask: Mask | None = None,
    clock: Clock | None = None,
) -> ASGIApp:
    """The dashboard of an app, or of what a function loads when somebody first asks for it.

    It can be mounted under any path. `base_path` is for where nobody takes that path off on the way. Without `auth`
    the environment says who may come in; ConfigError where that is nobody. `mask` is given a queue's name, an id and
    a payload, and returns what people may see of it; without one the app's `Config.mask` does.
    """
    settings = DashboardSettings.from_env(os.environ)
    now = (clock or SystemClock()).time
    load: Callable[[], Lowkiq] = (lambda: app) if isinstance(app, Lowkiq) else app
    site = Site(
        load=load,
        auth=auth or settings.auth(),
        mask=mask,
        throttle=Throttle(now, lambda *tries: _count_tries(load(), *tries)),
        now=now,
    )
    gate = Gate(_parted(site), site.auth, lambda *refused: refusal(site, *refused), now)
    served = SecurityHeaders(GZipMiddleware(gate, minimum_size=_SMALL, compresslevel=5))
    return under(base_path if base_path is not None else settings.dashboard_base_path, served)


def _parted(site: Site) -> ASGIApp:
    """What is for people and what is for programs, in one app."""
    refused = {HTTPException: _refused(site)}

    def starlette(routes: list[BaseRoute]) -> Starlette:
        app = Starlette(routes=routes, exception_handlers=refused)
        # It would send callers to an absolute address, made of a host and a path that a proxy may have changed.
        app.router.redirect_slashes = False
        return app

    pages = starlette(_pages(site))

    @cache
    def programs() -> ASGIApp:
        from lowkiq_lambda.dashboard.api.routes import routes  # noqa: PLC0415 - as the module says

        return starlette(routes(site))

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope) if scope["type"] == "http" else ""
        app = programs() if path.startswith(API) or path in FOR_PROGRAMS else pages
        await app(scope, receive, send)

    return served


def _pages(site: Site) -> list[BaseRoute]:
    return [
        Route("/static/{version}/{name}", assets.serve),
        get(site, "/sign-in", _page("sign_in")),
        post(site, "/sign-in", _page("sign_in", "sign_in")),
        post(site, "/sign-out", _page("sign_in", "sign_out")),
        get(site, "/", _page("overview")),
        get(site, "/waiting", _page("waiting")),
        get(site, "/processing", _page("processing")),
        get(site, "/morgue", _page("morgue")),
        get(site, "/shards", _page("shards")),
        get(site, "/job", _page("job")),
        # All of one folder: a part of a page is fetched from beside the page, and its links hold there.
        get(site, "/actions/ask", _page("actions_ask")),
        post(site, "/actions/ask", _page("actions_ask", "ask")),
        post(site, "/actions/step", _page("actions", "step")),
        get(site, "/actions/done", _page("actions", "done")),
        get(site, "/actions/queue", _page("actions_queue", "ask")),
        post(site, "/actions/queue", _page("actions_queue", "act")),
    ]


def _page(module: str, name: str = "show") -> Handler:
    """The function of a module of pages, as the module says."""
    return partial(_answer, f"lowkiq_lambda.dashboard.pages.{module}", name)


def _answer(module: str, name: str, visit: Visit) -> Response:
    handler: Handler = getattr(import_module(module), name)
    return handler(visit)


def under(base_path: str, app: ASGIApp) -> ASGIApp:
    """The app where its paths begin with `base_path`; asked without a slash behind that, it sends one there."""
    base = "/" + base_path.strip("/") if base_path.strip("/") else ""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        root = scope.get("root_path", "")
        if base and f"{scope['path'].removeprefix(root)}/".startswith(f"{base}/"):
            scope = {**scope, "root_path": root + base}
        path = scope["path"]
        if path and path == scope.get("root_path"):
            # Relative links need to know that this is a folder.
            slashed = Response(status_code=307, headers={"location": f"{path.rpartition('/')[2]}/"})
            await slashed(scope, receive, send)
            return
        await app(scope, receive, send)

    return served


def _count_tries(app: Lowkiq, window: int, sources: Sequence[str], more: int) -> Sequence[int]:
    # Apps that share a Redis have dashboards of their own.
    own = sha256("\n".join(worker.queue_name for worker in app.workers).encode()).hexdigest()[:16]
    return count_attempts(app.backend, window, [f"{own} {source}" for source in sources], more)


def _refused(site: Site) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentences = {404: "No page of the dashboard has this address.", 405: "This address is not asked in that way."}
        refused = refusal(site, request, status, sentences.get(status, "The request cannot be served."))
        # Such as which methods are allowed.
        refused.headers.update(getattr(error, "headers", None) or {})
        return refused

    return answer
