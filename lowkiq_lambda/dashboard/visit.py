"""One request: who comes, what is asked, and the ways to answer."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.dashboard.assets import assets
from lowkiq_lambda.dashboard.problems import Code, code_of
from lowkiq_lambda.dashboard.rendering import templates
from lowkiq_lambda.dashboard.security.auth import Auth, Visitor
from lowkiq_lambda.dashboard.security.forms import Form
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.dashboard.security.throttle import Throttle
from lowkiq_lambda.dashboard.security.ways_back import way_back
from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.protocols import Mask

logger = logging.getLogger(__name__)

API: Final = "/api/"
FOR_PROGRAMS: Final = frozenset({"/metrics", "/healthz"})
"""What has an address outside of the API and is read by programs all the same."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is the same for every request."""

    load: Callable[[], Lowkiq]
    auth: Auth
    mask: Mask | None
    """In place of the app's own."""
    throttle: Throttle
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request."""

    site: Site
    request: Request

    @property
    def app(self) -> Lowkiq:
        """The app that is looked at. Raises LowkiqError where it cannot be loaded."""
        return self.site.load()

    @property
    def visitor(self) -> Visitor | None:
        """Who comes; None only on the few paths that are open to everybody."""
        visitor: Visitor | None = self.request.state.visitor
        return visitor

    @property
    def who(self) -> str:
        """The visitor's name, for the audit line."""
        return self.visitor.name if self.visitor else "nobody"

    @property
    def form(self) -> Form:
        """The fields that were sent; none where nothing was."""
        form: Form = self.request.state.form
        return form

    @property
    def body(self) -> bytes:
        """What was sent, as it came."""
        body: bytes = self.request.state.body
        return body

    @property
    def query(self) -> Mapping[str, str]:
        """The fields of the address."""
        return self.request.query_params

    @property
    def is_partial(self) -> bool:
        """Whether a part of a page is asked for, to be put into one that is shown."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def root(self) -> str:
        """The way from the page that is asked for to the overview; put in front of any path of ours."""
        return "../" * (path_of(self.request.scope).count("/") - 1) or "./"

    def to(self, path: str, **query: object) -> str:
        """A relative link to a path of ours, as `visit.to("waiting", queue=name)`."""
        return self.root + path + (f"?{urlencode({**query}, errors='replace')}" if query else "")

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """The template as an answer; it also knows `visit`, `to`, `nonce` and `static`."""
        return HTMLResponse(self.part(template, **values), status)

    def part(self, template: str, **values: object) -> Markup:
        """The template as a part of another, which knows the same."""
        known = {
            "visit": self,
            "to": self.to,
            "nonce": self.request.state.nonce,
            "static": f"{self.root}static/{assets().version}/",
        }
        # Everything that the template is given is text, unless the template says otherwise.
        return Markup(templates().get_template(template).render(**known, **values))  # noqa: S704 - as said above

    def refuse(self, status: int, sentence: str, code: Code | None = None) -> Response:
        """Why there is no other answer."""
        return refusal(self.site, self.request, status, sentence, code)

    def go(self, path: str, **query: object) -> Response:
        """Sends the browser on to a path of ours, by GET."""
        return self.go_to(self.to(path, **query))

    def go_to(self, link: str) -> Response:
        """Sends the browser on to a relative link."""
        if self.is_partial:
            return Response(status_code=204, headers={"hx-redirect": link})
        return Response(status_code=303, headers={"location": link})


Handler = Callable[[Visit], Response]


def get(site: Site, path: str, handler: Handler) -> Route:
    """A page, or a part of one."""
    return Route(path, _endpoint(site, handler), methods=["GET"])


def post(site: Site, path: str, handler: Handler) -> Route:
    """An action. That the visitor may act, and means to, is known when the handler is called."""
    return Route(path, _endpoint(site, handler), methods=["POST"])


def refusal(site: Site, request: Request, status: int, sentence: str, code: Code | None = None) -> Response:
    """Why there is no other answer: as a problem to programs, in place of a part, or as a page."""
    visit = Visit(site, request)
    title = HTTPStatus(status).phrase
    path = path_of(request.scope)
    if path.startswith(API) or path in FOR_PROGRAMS:
        told = {"title": title, "status": status, "code": code or code_of(status), "detail": sentence}
        problem = {"type": "about:blank", **told}
        headers = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        return JSONResponse(problem, status, headers, media_type="application/problem+json")
    if status == HTTPStatus.UNAUTHORIZED:
        return _to_sign_in(visit)
    if visit.is_partial:
        answer = visit.page("notice.html", status, sentence=sentence)
        answer.headers.update({"hx-retarget": "#notice", "hx-reswap": "innerHTML"})
        return answer
    return visit.page("refusal.html", status, title=_TITLES.get(status, title), sentence=sentence)


_TITLES: Final = {
    400: "That cannot be read",
    403: "Not allowed",
    404: "There is nothing here",
    405: "That is not how to ask",
    413: "Too large",
    429: "Too many tries",
    500: "Something broke",
    503: "Not now",
}


def _to_sign_in(visit: Visit) -> Response:
    back = way_back(visit.request.scope)
    return visit.go("sign-in", **({"next": back} if back else {}))


def _endpoint(site: Site, handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        # Redis is asked from a thread, so that other requests are served meanwhile.
        return await run_in_threadpool(partial(_answer, site, handler), request)

    return endpoint


def _answer(site: Site, handler: Handler, request: Request) -> Response:
    try:
        return handler(Visit(site, request))
    except LowkiqError as error:
        return refusal(site, request, 503, str(error))
    except Exception:
        logger.exception("the dashboard broke on %s %s", request.method, request.url.path)
        return refusal(site, request, 500, "The dashboard broke on this request; its log says how.")
