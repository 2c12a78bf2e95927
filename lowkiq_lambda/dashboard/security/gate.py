"""Checks every request before a handler: authentication, role, origin and the form's token.

The paths that are open to everybody are listed here. All other paths need a visitor, also those that do not exist.
"""

from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lowkiq_lambda.dashboard.security.auth import Auth, Visitor
from lowkiq_lambda.dashboard.security.cookies import cookies_of
from lowkiq_lambda.dashboard.security.forms import NO_FORM, BodyTooLarge, form_of, read_body, replayed
from lowkiq_lambda.dashboard.security.origin import is_foreign, is_loopback
from lowkiq_lambda.dashboard.security.paths import path_of

OPEN: Final = frozenset({"/sign-in", "/healthz"})
OPEN_FOLDER: Final = "/static/"
FOR_OPERATORS: Final = "/actions/"
"""The folder of the pages for actions."""
FOR_READERS: Final = frozenset({"/sign-out"})
"""Forms that readers may send."""
PROOF_FIELD: Final = "csrf"
PROOF_HEADER: Final = "x-csrf-token"
_SEND_ONE: Final = "Send `Authorization: Bearer SECRET`, with the secret of a token of LOWKIQ_DASHBOARD_TOKENS."
_UNKNOWN: Final = (
    "This token is unknown: it is the secret of no token of LOWKIQ_DASHBOARD_TOKENS, and no rule matches its claims. "
    "A password is not a token."
)
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

Refuse = Callable[[Request, int, str], Response]


class Gate:
    """Passes a request on with its visitor and form in the state, or responds by `refuse`."""

    def __init__(self, app: ASGIApp, auth: Auth, refuse: Refuse, now: Callable[[], float]) -> None:
        self._app = app
        self._auth = auth
        self._refuse = refuse
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, headers = path_of(scope), Headers(scope=scope)
        scope = {**scope, "state": {**scope.get("state", {}), "visitor": None, "form": NO_FORM, "body": b""}}
        visitor = self._visitor(scope, headers)
        answer = self._before_reading(scope, path, headers, visitor)
        if answer is None and scope["method"] not in _SAFE:
            try:
                body = scope["state"]["body"] = await read_body(receive)
                scope["state"]["form"] = form_of(headers.get("content-type", ""), body)
            except BodyTooLarge:
                answer = 413, "The body is larger than the dashboard accepts."
            except ValueError:
                answer = 400, "The form has more fields than the dashboard accepts."
            else:
                receive = replayed(body, receive)
                answer = self._after_reading(scope, path, headers, visitor)
        scope["state"]["visitor"] = visitor
        if answer is None and visitor is not None and _is_page(scope, path):
            send = self._renewing(visitor, scope.get("scheme", "http"), send)
        app = self._app if answer is None else self._refuse(Request(scope), *answer)
        await app(scope, receive, send)

    def _visitor(self, scope: Scope, headers: Headers) -> Visitor | None:
        return self._auth.visitor(scope, [*cookies_of(headers)], headers.get("authorization"), self._now())

    def _renewing(self, visitor: Visitor, scheme: str, send: Send) -> Send:
        """Renews the visitor's cookie with the response, if it is due."""
        cookie = self._auth.renewed(visitor, self._now())
        if cookie is None:
            return send

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie.set_on(MutableHeaders(scope=message), scheme)
            await send(message)

        return send_with_cookie

    def _before_reading(
        self, scope: Scope, path: str, headers: Headers, visitor: Visitor | None
    ) -> tuple[int, str] | None:
        if self._auth.loopback_only and not _is_local(scope, headers):
            return 403, "This dashboard has no configured password, so it serves only the machine that it runs on."
        is_open = path in OPEN or path.startswith(OPEN_FOLDER)
        if visitor is None and not is_open:
            # Only programs read it: a browser is led to the form.
            return 401, (_UNKNOWN if "authorization" in headers else _SEND_ONE)
        is_safe = scope["method"] in _SAFE
        if not is_safe and is_foreign(headers):
            return 403, "A page of another site sent this request."
        needs_operator = path.startswith(FOR_OPERATORS) or not (is_safe or path in FOR_READERS or is_open)
        if visitor is not None and not visitor.may_act and needs_operator:
            return 403, "This account can view pages, but cannot change anything."
        return None

    def _after_reading(
        self, scope: Scope, path: str, headers: Headers, visitor: Visitor | None
    ) -> tuple[int, str] | None:
        if path in OPEN or visitor is None or visitor.signed_in is None:
            return None
        token = headers.get(PROOF_HEADER) or scope["state"]["form"].get(PROOF_FIELD, "")
        if not visitor.signed_in.accepts(token):
            return 403, "The form's token is invalid. Go back, reload the page and try again."
        return None


def _is_page(scope: Scope, path: str) -> bool:
    # A cookie belongs to the folder of its response, so deeper paths would make another one. Responses to forms never
    # renew it, because signing out deletes it.
    return scope["method"] in _SAFE and path.count("/") == 1


def _is_local(scope: Scope, headers: Headers) -> bool:
    client = scope.get("client")
    # A proxy on this machine forwards the addresses of its callers.
    callers = [address.strip() for line in headers.getlist("x-forwarded-for") for address in line.split(",")]
    # The requested host, too: another site's name may resolve to this machine (DNS rebinding).
    names = [client[0] if client else "", headers.get("host", ""), *callers]
    return all(is_loopback(name) for name in names)
