"""One request: its visitor, its fields, and the ways to answer it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.assets import assets
from lowkiq_lambda.dashboard.needs import Needs
from lowkiq_lambda.dashboard.problems import FAILED, Code, problem_response, status_of
from lowkiq_lambda.dashboard.rendering import templates
from lowkiq_lambda.dashboard.security.auth import Auth, Visitor
from lowkiq_lambda.dashboard.security.forms import Form
from lowkiq_lambda.dashboard.security.paths import path_of, return_path
from lowkiq_lambda.dashboard.security.throttle import Throttle
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.store.shard.backend import PATIENCE
from lowkiq_lambda.views.activity import LONGEST_REASON
from lowkiq_lambda.views.queues import Scale

if TYPE_CHECKING:
    from lowkiq_lambda.limiters.limiter import Limiter

logger = logging.getLogger(__name__)

PART_WAITS: Final = 0.5
"""Seconds for which a page that refreshes itself tries to reach Redis: it says that it cannot, and asks again."""
API: Final = "/api/"
FOR_PROGRAMS: Final = frozenset({"/metrics", "/healthz"})
"""Paths outside of the API that programs read."""

MAIN: Final[Mapping[str, str]] = {
    "": "Overview",
    "errors": "Errors",
    "tasks": "Tasks",
    "schedules": "Schedules",
    "processes": "Processes",
    "activity": "Activity",
}
"""By path, in the order of the header."""
OF_QUEUE: Final[Mapping[str, str]] = {
    "queue": "Queue",
    "waiting": "Waiting",
    "processing": "In flight",
    "morgue": "Morgue",
    "errors": "Errors",
    "shards": "Shards",
    "runs": "Runs",
    "recovered": "Recovered",
    "limits": "Limits",
    "tenants": "Tenants",
    "job": "Job",
}
"""By path, in the order of the tabs."""
_OF_LIST: Final = "queue by range value find text fingerprint payload after"
VIEWED: Final[Mapping[str, str]] = {
    "search": "q",
    "waiting": _OF_LIST,
    "morgue": _OF_LIST,
    "errors": "queue by after",
    "runs": "queue at around since until id outcome fingerprint release took after",
    "activity": "queue",
}
"""The parameters of pages that can be saved as views, by path."""


class LatestScale:
    """The last answer about how many holders the queues could use: scalers ask often."""

    LASTS: Final = 1.0
    """Seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = Lock()
        self._scale: Scale | None = None
        self._at = 0.0

    def __call__(self, read: Callable[[], Scale]) -> Scale:
        """The last one, or what is read now."""
        with self._lock:
            if self._scale is None or not 0 <= self._now() - self._at < self.LASTS:
                self._scale, self._at = read(), self._now()
            return self._scale


@dataclass(frozen=True, slots=True)
class Site:
    """The parts that all requests share."""

    load: Callable[[], Lowkiq]
    auth: Auth
    mask: Mask | None
    """Replaces the mask of the app's Config."""
    throttle: Throttle
    now: Callable[[], float]
    lag_limit: float
    """Seconds of lag from which a page shows it in red."""
    needs: Needs
    scale: LatestScale


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request, and the ways to answer it."""

    site: Site
    request: Request

    @property
    def app(self) -> Lowkiq:
        """The app whose queues are shown. Raises LowkiqError if it cannot be loaded."""
        return self.site.load()

    @property
    def visitor(self) -> Visitor | None:
        """The authenticated visitor; None only on the few paths that are open to everybody."""
        visitor: Visitor | None = self.request.state.visitor
        return visitor

    @property
    def mask(self) -> Mask | None:
        """The function that masks payloads before they are shown: the site's, else the app's."""
        return self.site.mask or self.app.config.mask

    def worker_named(self, queue_name: str) -> type[Worker[Any]] | None:
        """The worker of the queue; None if the app has no such queue."""
        return next((worker for worker in self.app.workers if worker.queue_name == queue_name), None)

    def limiter_named(self, name: str) -> "Limiter | None":
        """The limiter of handlers; None if the app declares no such one."""
        return next((limiter for limiter in self.app.operate.limiters() if limiter.name == name), None)

    @property
    def visitor_name(self) -> str:
        """The visitor's name, for the activity line."""
        return self.visitor.name if self.visitor else "nobody"

    @property
    def form(self) -> Form:
        """The fields of the form; empty without one."""
        form: Form = self.request.state.form
        return form

    @property
    def reason(self) -> str:
        """Why the visitor acts, as the form or the call says it, for the activity log; empty without a reason."""
        of_call: str = getattr(self.request.state, "reason", "")
        return (of_call or self.form.get("reason", "")).strip()[:LONGEST_REASON]

    @property
    def body(self) -> bytes:
        """The body of the request."""
        body: bytes = self.request.state.body
        return body

    @property
    def query(self) -> Mapping[str, str]:
        """The fields of the query string."""
        return self.request.query_params

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a fragment of a page that is already open."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def root(self) -> str:
        """The relative path from the requested page to the overview, a prefix of every link."""
        return "../" * (path_of(self.request.scope).count("/") - 1) or "./"

    def link(self, path: str, **query: object) -> str:
        """A relative link to a page of the dashboard, such as `context.link("waiting", queue=name)`."""
        return self.root + path + (f"?{urlencode({**query}, errors='replace')}" if query else "")

    def render(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """The rendered template as a response; it also gets `visitor`, `link`, `nonce` and `static`."""
        return HTMLResponse(self.fragment(template, **values), status)

    def fragment(self, template: str, **values: object) -> Markup:
        """The rendered template, to be put into another one."""
        shared = {
            "visitor": self.visitor,
            "link": self.link,
            "has_tenants": self.has_tenants,
            "has_page": self.has_page,
            "main_pages": MAIN,
            "tabs": OF_QUEUE,
            "lag_limit": self.site.lag_limit,
            "here_is": path_of(self.request.scope).removeprefix("/"),
            "here_asks": self.request.scope["query_string"].decode("latin-1"),
            "searched_for": self.query.get("q", "") if path_of(self.request.scope) == "/search" else "",
            "nonce": self.request.state.nonce,
            "static": f"{self.root}static/{assets().version}/",
        }
        return Markup(templates().get_template(template).render(**shared, **values))  # noqa: S704 - jinja2 escapes every value

    def has_tenants(self, queue: str) -> bool:
        """Whether the worker of the queue declares tenants."""
        worker = self.worker_named(queue)
        return worker is not None and worker.tenants is not None

    def has_page(self, queue: str, page: str) -> bool:
        """Whether the queue has this page among its tabs: that of its tenants or runs, if its worker declares them."""
        worker = self.worker_named(queue)
        keeps_runs = worker is not None and worker.keep_runs is not None
        return {"tenants": self.has_tenants(queue), "runs": keeps_runs}.get(page, True)

    def refuse(self, status: int, sentence: str, code: Code | None = None) -> Response:
        """An error response with this sentence."""
        return refusal(self.site, self.request, status, sentence, code)

    def redirect(self, path: str, **query: object) -> Response:
        """Redirects the browser to a page of the dashboard."""
        return self.redirect_to(self.link(path, **query))

    def redirect_to(self, link: str) -> Response:
        """Redirects the browser to a relative link."""
        if self.is_partial:
            return Response(status_code=204, headers={"hx-redirect": link})
        return Response(status_code=303, headers={"location": link})


NO_QUEUE: Final = "The app has no queue of this name."
NO_LIMITER: Final = "The app has no limiter of this name."
NO_ACTION: Final = "The dashboard has no such action."

Handler = Callable[[RequestContext], Response]


def get(site: Site, path: str, handler: Handler) -> Route:
    """The route of a page."""
    return Route(path, _endpoint(site, handler), methods=["GET"])


def post(site: Site, path: str, handler: Handler) -> Route:
    """The route of an action. The gate has checked the visitor's role and the form's token."""
    return Route(path, _endpoint(site, handler), methods=["POST"])


def refusal(site: Site, request: Request, status: int, sentence: str, code: Code | None = None) -> Response:
    """An error response: problem JSON for programs, a notice for htmx, or a page."""
    context = RequestContext(site, request)
    path = path_of(request.scope)
    if path.startswith(API) or path in FOR_PROGRAMS:
        return problem_response(status, sentence, code)
    if status == HTTPStatus.UNAUTHORIZED:
        return _to_sign_in(context)
    if context.is_partial:
        answer = context.render("notice.html", status, sentence=sentence)
        answer.headers.update({"hx-retarget": "#notice", "hx-reswap": "innerHTML"})
        return answer
    title = _TITLES.get(status, HTTPStatus(status).phrase)
    return context.render("refusal.html", status, title=title, sentence=sentence)


_TITLES: Final = {
    400: "Invalid request",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Declared otherwise",
    413: "Too large",
    429: "Too many attempts",
    500: "Internal error",
    503: "Unavailable",
}


def _to_sign_in(context: RequestContext) -> Response:
    back = return_path(context.request.scope)
    return context.redirect("sign-in", **({"next": back} if back else {}))


def _endpoint(site: Site, handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        # Handlers block on Redis, so they run in a thread.
        return await run_in_threadpool(partial(_answer, site, handler), request)

    return endpoint


def _answer(site: Site, handler: Handler, request: Request) -> Response:
    context = RequestContext(site, request)
    if context.is_partial and request.method == "GET":
        PATIENCE.set(PART_WAITS)
    try:
        return handler(context)
    except LowkiqError as error:
        return refusal(site, request, status_of(error), str(error))
    except Exception:
        logger.exception("the dashboard failed on %s %s", request.method, request.url.path)
        return refusal(site, request, 500, FAILED)
    finally:
        if request.method != "GET":
            site.needs.forget()
