"""The dashboard as an ASGI app: its routes and the middleware in front of them.

Modules of pages and of the API are imported at their first request: a Lambda function that starts for one request needs
only one of them.

A page refuses parameters in its address that it does not know, as the API does: one that was left out without a word
would widen a list, and the actions on all of it.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib import import_module
from typing import Final, get_args

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.dashboard import activity, assets
from lowkiq_lambda.dashboard.context import (
    API,
    FOR_PROGRAMS,
    VIEWED,
    Handler,
    LatestScale,
    RequestContext,
    Site,
    get,
    post,
    refusal,
)
from lowkiq_lambda.dashboard.needs import Needs
from lowkiq_lambda.dashboard.problems import UnhandledErrors
from lowkiq_lambda.dashboard.security.auth import Auth
from lowkiq_lambda.dashboard.security.gate import Gate
from lowkiq_lambda.dashboard.security.headers import SecurityHeaders
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.dashboard.security.throttle import Throttle, TokenThrottle
from lowkiq_lambda.operate.inspect.login_attempts import count_attempts
from lowkiq_lambda.operate.inspect.signed_out import is_signed_out
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.views.queues import Span
from lowkiq_lambda.views.shards import TenantOrder

_SMALL: Final = 1_000
"""Smaller responses, in bytes, are not compressed."""

_WORDS: Final[Mapping[str, str]] = {
    "after": "the end of the page before",
    "around": "how long before and after a moment, such as 5m",
    "at": "a moment, such as 03:12 yesterday",
    "back": "the page to go back to",
    "begin": "the number of the first queue on the page",
    "by": "the order, or the kind of groups",
    "count": "a number of shards",
    "do": "an action",
    "find": "the beginning of an id, or a part of a name",
    "fingerprint": "the fingerprint of the last error, 16 hex digits",
    "format": "csv or json",
    "id": "an id",
    "ids": "ids in a window",
    "item": "the number of an item",
    "key": "a key of limiters",
    "length": "a duration, such as 90m",
    "list": "waiting, morgue or processing",
    "most": "points or places of a limiter",
    "name": "the name of an entry, or of a limiter",
    "names": "the names of entries",
    "next": "the page to go to",
    "order": "fair or waiting",
    "outcome": "the outcome of runs, such as retried",
    "payload": "conditions on payloads, such as customer.id:17",
    "per": "seconds of a window",
    "permits": "permits of a limit",
    "q": "a text, or a request that the dashboard has packed",
    "queue": "the name of a queue",
    "range": "asc, desc, gte or lte",
    "rate": "ids that become due in a second",
    "reason": "why, for the activity log",
    "release": "a release of the code",
    "seconds": "the seconds of a pause",
    "since": "a moment",
    "sort": "the column to sort by",
    "span": "the span of the charts",
    "status": "the state of items",
    "task": "the id of a task",
    "tenant": "the name of a tenant",
    "text": "a text in the last error",
    "took": "a length of time: runs that took longer",
    "until": "a moment",
    "value": "the bound of the range",
    "way": "asc or desc",
}
_SEVERAL: Final = frozenset({"names"})
"""Parameters that a page may be given several times."""
_VALUES: Final[Mapping[str, Collection[str]]] = {
    "order": get_args(TenantOrder),
    "span": get_args(Span),
    "way": ("asc", "desc"),
}
"""Those of parameters that mean the same on each page that has them; of the others the page knows."""


def dashboard(
    app: Lowkiq | Callable[[], Lowkiq],
    *,
    auth: Auth | None = None,
    base_path: str | None = None,
    mask: Mask | None = None,
    clock: Clock | None = None,
) -> ASGIApp:
    """The dashboard of an app, or of a function that loads one at the first request.

    It can be mounted under any path. `base_path`: the path in front of the dashboard's paths, if the server does not
    strip it. Without `auth` the environment configures authentication; ConfigError if it does not. `mask` gets a
    queue's name, an id and a payload, and returns the payload to show; the default is the app's `Config.mask`.
    """
    settings = DashboardSettings.from_env(os.environ)
    now = (clock or (app.core.clock if isinstance(app, Lowkiq) else SystemClock())).time
    load: Callable[[], Lowkiq] = (lambda: app) if isinstance(app, Lowkiq) else app

    def count_together(minute: int, sources: Sequence[str], more: int) -> Sequence[int]:
        return _count_attempts(load(), minute, sources, more)

    site = Site(
        load=load,
        auth=auth or settings.auth(),
        mask=mask,
        throttle=Throttle(now, count_together),
        now=now,
        lag_limit=settings.dashboard_lag_limit,
        needs=Needs(now),
        scale=LatestScale(now),
    )
    refuse = partial(refusal, site)
    gate = Gate(
        _pages_and_api(site),
        auth=site.auth,
        tokens=TokenThrottle(now, count_together),
        refuse=refuse,
        note=lambda request, *why: activity.note_refusal(RequestContext(site, request), *why),
        is_signed_out=lambda session: is_signed_out(load().core.backend, load().config.redis_retry_for, session.id),
        now=now,
    )
    served = GZipMiddleware(UnhandledErrors(gate, refuse), minimum_size=_SMALL, compresslevel=5)
    return SecurityHeaders(under(base_path if base_path is not None else settings.dashboard_base_path, served))


def _pages_and_api(site: Site) -> ASGIApp:
    """The pages and the API in one app."""
    handlers = {HTTPException: _on_http_error(site)}

    def starlette(routes: list[BaseRoute]) -> Starlette:
        app = Starlette(routes=routes, exception_handlers=handlers)
        # Its redirects are absolute, made of a host and a path that a proxy may have changed.
        app.router.redirect_slashes = False
        return app

    pages = starlette(_pages(site))

    @cache
    def api() -> ASGIApp:
        from lowkiq_lambda.dashboard.api.routes import routes  # noqa: PLC0415 - imported lazily: cold start

        return starlette(routes(site))

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope) if scope["type"] == "http" else ""
        app = api() if path.startswith(API) or path in FOR_PROGRAMS else pages
        await app(scope, receive, send)

    return served


def _pages(site: Site) -> list[BaseRoute]:
    return [
        Route("/static/{version}/{name}", assets.serve),
        get(site, "/sign-in", knowing("next", _page("sign_in"))),
        post(site, "/sign-in", _page("sign_in", "sign_in")),
        post(site, "/sign-out", _page("sign_in", "sign_out")),
        get(site, "/", knowing("span since until sort way find begin", _page("overview"))),
        get(site, "/search", knowing(VIEWED["search"], _page("search"))),
        get(site, "/queue", knowing("queue span since until", _page("queue_page"))),
        get(site, "/waiting", knowing(VIEWED["waiting"], _page("lists", "show_waiting"))),
        get(site, "/processing", knowing("queue after", _page("lists", "show_in_flight"))),
        get(site, "/morgue", knowing(VIEWED["morgue"], _page("lists", "show_morgue"))),
        get(site, "/export", knowing(f"{VIEWED['waiting']} list format", _page("export"))),
        get(site, "/errors", knowing(VIEWED["errors"], _page("errors"))),
        get(site, "/runs", knowing(VIEWED["runs"], _page("runs"))),
        get(site, "/shards", knowing("queue sort way", _page("queue_page", "show_shards"))),
        get(site, "/recovered", knowing("queue", _page("queue_page", "show_recovered"))),
        get(site, "/limits", knowing("queue key", _page("limits"))),
        get(site, "/tenants", knowing("queue find order", _page("tenants"))),
        get(site, "/job", knowing("queue id task item", _page("job"))),
        get(site, "/schedules", knowing("", _page("schedules"))),
        get(site, "/schedule", knowing("queue name", _page("schedules", "one"))),
        get(site, "/tasks", knowing("find after", _page("tasks"))),
        get(site, "/tasks/{id}", knowing("", _page("tasks", "find"))),
        get(site, "/task", knowing("id status after", _page("tasks", "one"))),
        get(site, "/processes", knowing("", _page("processes"))),
        get(site, "/activity", knowing(VIEWED["activity"], _page("activity"))),
        # All in one folder, so that relative links of a fragment are right in its page.
        get(site, "/actions/ask", knowing("q", _page("actions_ask"))),
        post(site, "/actions/ask", _page("actions_ask", "ask")),
        post(site, "/actions/dry-run", _page("actions_ask", "dry_run")),
        post(site, "/actions/step", _page("actions", "step")),
        get(site, "/actions/done", knowing("q", _page("actions", "done"))),
        get(site, "/actions/edit", knowing("queue id", _page("actions_edit", "ask"))),
        post(site, "/actions/edit", _page("actions_edit", "act")),
        post(site, "/actions/undo", _page("actions_undo", "act")),
        get(site, "/actions/undone", knowing("q", _page("actions_undo", "done"))),
        get(site, "/actions/queue", knowing("queue do back seconds length reason", _page("actions_queue", "ask"))),
        post(site, "/actions/queue", _page("actions_queue", "act")),
        get(site, "/actions/reshard", knowing("queue do count", _page("actions_reshard", "ask"))),
        post(site, "/actions/reshard", _page("actions_reshard", "act")),
        get(site, "/actions/replay", knowing("queue since until outcome id rate", _page("actions_replay", "ask"))),
        post(site, "/actions/replay", _page("actions_replay", "act")),
        get(site, "/actions/limits", knowing("queue do permits ids per reason", _page("limits", "ask"))),
        post(site, "/actions/limits", _page("limits", "act")),
        get(site, "/actions/limiter", knowing("queue name do most seconds reason", _page("limiters", "ask"))),
        post(site, "/actions/limiter", _page("limiters", "act")),
        get(site, "/actions/job", knowing("queue id do seconds length reason", _page("job_requests", "ask"))),
        post(site, "/actions/job", _page("job_requests", "act")),
        get(site, "/actions/tenant", knowing("queue tenant do seconds length reason", _page("tenants", "ask"))),
        post(site, "/actions/tenant", _page("tenants", "act")),
        get(site, "/actions/schedule", knowing("queue name names do", _page("actions_schedule", "ask"))),
        post(site, "/actions/schedule", _page("actions_schedule", "act")),
        get(site, "/actions/entry", knowing("queue name", _page("actions_entry", "ask"))),
        post(site, "/actions/entry", _page("actions_entry", "act")),
        get(site, "/actions/task", knowing("id", _page("tasks", "ask"))),
        post(site, "/actions/task", _page("tasks", "act")),
        get(site, "/actions/process", knowing("id do", _page("processes", "ask"))),
        post(site, "/actions/process", _page("processes", "act")),
        post(site, "/actions/save-view", _page("search", "save_view")),
        post(site, "/actions/delete-view", _page("search", "delete_view")),
    ]


def _page(module: str, name: str = "show") -> Handler:
    """A handler that imports its module at the first request."""
    return partial(_answer, f"lowkiq_lambda.dashboard.pages.{module}", name)


def _answer(module: str, name: str, context: RequestContext) -> Response:
    handler: Handler = getattr(import_module(module), name)
    return handler(context)


def under(base_path: str, app: ASGIApp) -> ASGIApp:
    """Serves the app under `base_path`; redirects a request without the slash behind it."""
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
            # Relative links need the slash.
            slashed = Response(status_code=307, headers={"location": f"{path.rpartition('/')[2]}/"})
            await slashed(scope, receive, send)
            return
        await app(scope, receive, send)

    return served


def _count_attempts(app: Lowkiq, window: int, sources: Sequence[str], more: int) -> Sequence[int]:
    # Apps with other queues on the same Redis have dashboards of their own.
    own = sha256("\n".join(worker.queue_name for worker in app.workers).encode()).hexdigest()[:16]
    return count_attempts(app.core.backend, window, [f"{own} {source}" for source in sources], more)


def _on_http_error(site: Site) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        # For example the allowed methods.
        headers = Headers(getattr(error, "headers", None) or {})
        response = refusal(site, request, status, _sentence(status, path_of(request.scope), headers.get("allow")))
        response.headers.update(headers)
        return response

    return answer


def _sentence(status: int, path: str, allowed: str | None) -> str:
    if status == HTTPStatus.NOT_FOUND:
        is_for_programs = path.startswith(API) or path in FOR_PROGRAMS
        return "The API has no such path: see openapi.json." if is_for_programs else "The dashboard has no page here."
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"This address supports {allowed or 'no method'}."
    return "The dashboard cannot serve this request."


def knowing(names: str, handler: Handler) -> Handler:
    """The handler of a page whose address has these parameters, names with spaces between them, each at most once."""
    return partial(_checked, {name: _WORDS[name] for name in names.split()}, handler)


def _checked(parameters: Mapping[str, str], handler: Handler, context: RequestContext) -> Response:
    query = context.request.query_params
    unknown = sorted({*query} - {*parameters})
    repeated = sorted(name for name in {*parameters} - _SEVERAL if len(query.getlist(name)) > 1)
    wrong = [name for name in parameters if query.get(name) and query[name] not in _VALUES.get(name, (query[name],))]
    if unknown:
        sentence = f"This page does not know {_quoted(unknown)}."
    elif repeated:
        sentence = f"{_quoted(repeated)} is there twice."
    elif wrong:
        name = wrong[0]
        sentence = f"“{query[name]}” is not a value of “{name}”: it is one of {', '.join(_VALUES[name])}."
    else:
        return handler(context)
    if context.is_partial:
        return context.refuse(HTTPStatus.BAD_REQUEST, sentence)
    path = path_of(context.request.scope).removeprefix("/")
    valid = {name: query[name] for name in parameters if name in query and name not in {*repeated, *wrong}}
    return context.render(
        "parameters.html",
        HTTPStatus.BAD_REQUEST,
        sentence=sentence,
        known=parameters,
        again=context.link(path, **valid),
    )


def _quoted(names: list[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)
