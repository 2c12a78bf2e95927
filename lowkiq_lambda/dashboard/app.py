"""The dashboard as an ASGI app: its routes, and what stands in front of them."""

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
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
from lowkiq_lambda.dashboard.api import routes as api
from lowkiq_lambda.dashboard.pages import (
    actions,
    actions_queue,
    job,
    morgue,
    overview,
    processing,
    shards,
    sign_in,
    waiting,
)
from lowkiq_lambda.dashboard.security.auth import Auth
from lowkiq_lambda.dashboard.security.gate import Gate
from lowkiq_lambda.dashboard.security.headers import SecurityHeaders
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.dashboard.security.throttle import Throttle
from lowkiq_lambda.dashboard.visit import Mask, Site, get, post, refusal
from lowkiq_lambda.store.tries import count_tries

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
    a payload, and returns what people may see of it.
    """
    settings = DashboardSettings.from_env(os.environ)
    now = (clock or SystemClock()).time
    load: Callable[[], Lowkiq] = (lambda: app) if isinstance(app, Lowkiq) else app
    site = Site(
        load=load,
        auth=auth or settings.auth(),
        mask=mask,
        throttle=Throttle(now, lambda window, sources: _count_tries(load(), window, sources)),
        now=now,
    )
    pages = Starlette(routes=_routes(site), exception_handlers={HTTPException: _refused(site)})
    gate = Gate(pages, site.auth, lambda *refused: refusal(site, *refused), now)
    served = SecurityHeaders(GZipMiddleware(gate, minimum_size=_SMALL, compresslevel=5))
    return under(base_path if base_path is not None else settings.dashboard_base_path, served)


def _routes(site: Site) -> list[BaseRoute]:
    return [
        Route("/static/{version}/{name}", assets.serve),
        get(site, "/sign-in", sign_in.show),
        post(site, "/sign-in", sign_in.sign_in),
        post(site, "/sign-out", sign_in.sign_out),
        get(site, "/", overview.show),
        get(site, "/waiting", waiting.show),
        get(site, "/processing", processing.show),
        get(site, "/morgue", morgue.show),
        get(site, "/shards", shards.show),
        get(site, "/job", job.show),
        post(site, "/actions", actions.ask),
        post(site, "/actions/step", actions.step),
        post(site, "/actions/queue", actions_queue.act),
        *api.routes(site),
    ]


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


def _count_tries(app: Lowkiq, window: int, sources: Sequence[str]) -> Sequence[int]:
    # Apps that share a Redis have dashboards of their own.
    own = sha256("\n".join(worker.queue_name for worker in app.workers).encode()).hexdigest()[:16]
    return count_tries(app.backend, window, [f"{own} {source}" for source in sources])


def _refused(site: Site) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentences = {404: "No page of the dashboard has this address.", 405: "This address is not asked in that way."}
        refused = refusal(site, request, status, sentences.get(status, "The request cannot be served."))
        # Such as which methods are allowed.
        refused.headers.update(getattr(error, "headers", None) or {})
        return refused

    return answer
