"""Checks every request before a handler: authentication, role, origin and the form's token.

The paths that are open to everybody are listed here. All other paths need a visitor, also those that do not exist.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from math import ceil
from typing import Final, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.security.auth import Auth, Visitor
from lowkiq_lambda.dashboard.security.caller import caller_of, is_foreign, is_loopback
from lowkiq_lambda.dashboard.security.forms import NO_FORM, BodyTooLarge, form_of, read_body, replayed
from lowkiq_lambda.dashboard.security.paths import path_of
from lowkiq_lambda.dashboard.security.sessions import Cookie, Session, cookies_of
from lowkiq_lambda.dashboard.security.throttle import TokenThrottle

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
_GUESSED: Final = "This token is unknown."
_WAIT: Final = "Too many wrong tokens came from this address. Wait a minute and try again."
_FORWARDED_FOR: Final = re.compile(r"""\bfor\s*=\s*"?([^;,"\s]*)""", re.IGNORECASE)
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

Refuse = Callable[[Request, int, str], Response]
Note = Callable[[Request, int, str], None]
Answer: TypeAlias = tuple[int, str]


class Gate:
    """Passes a request on with its visitor and form in the state, or responds by `refuse`.

    `note` gets each request that it forbids, and each with a wrong token. `is_signed_out` tells sessions that somebody
    has ended; it is asked before a change, and before a session becomes longer. It may block, and raise LowkiqError.
    """

    def __init__(  # noqa: PLR0913 - by keyword
        self,
        app: ASGIApp,
        *,
        auth: Auth,
        tokens: TokenThrottle,
        refuse: Refuse,
        note: Note,
        is_signed_out: Callable[[Session], bool],
        now: Callable[[], float],
    ) -> None:
        self._app = app
        self._auth = auth
        self._tokens = tokens
        self._refuse = refuse
        self._note = note
        self._is_signed_out = is_signed_out
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, headers = path_of(scope), Headers(scope=scope)
        scope = {**scope, "state": {**scope.get("state", {}), "visitor": None, "form": NO_FORM, "body": b""}}
        visitor, wait = await self._visitor(scope, path, headers)
        answer = self._before_reading(scope, path, headers, visitor)
        if wait and answer is not None and answer[0] == HTTPStatus.UNAUTHORIZED:
            answer = 429, _WAIT
        if answer is None and scope["method"] not in _SAFE:
            receive, answer = await self._read(scope, path, headers, visitor, receive)
        if answer is None and visitor is not None and visitor.signed_in is not None:
            renewed = self._auth.renewed(visitor, self._now()) if _is_page(scope, path) else None
            if renewed is not None or _is_change(scope, path):
                answer = await self._unless_signed_out(visitor.signed_in.session)
            if answer is None and renewed is not None:
                send = _with_cookie(renewed, scope.get("scheme", "http"), send)
        if answer is None or answer[0] != HTTPStatus.UNAUTHORIZED:
            scope["state"]["visitor"] = visitor
        app = self._app if answer is None else self._refusal(Request(scope), *answer, wait)
        await app(scope, receive, send)

    async def _read(
        self, scope: Scope, path: str, headers: Headers, visitor: Visitor | None, receive: Receive
    ) -> tuple[Receive, Answer | None]:
        """Puts body and form into the state, and checks the form's token."""
        try:
            body = scope["state"]["body"] = await read_body(receive)
            scope["state"]["form"] = form_of(headers.get("content-type", ""), body)
        except BodyTooLarge:
            return receive, (413, "The body is larger than the dashboard accepts.")
        except ValueError:
            return receive, (400, "The form has more fields than the dashboard accepts.")
        return replayed(body, receive), self._after_reading(scope, path, headers, visitor)

    async def _visitor(self, scope: Scope, path: str, headers: Headers) -> tuple[Visitor | None, float]:
        """The visitor, and the seconds for which no token of this caller is read."""
        authorization, caller = headers.get("authorization"), caller_of(scope)
        has_token = authorization is not None and authorization.lower().startswith("bearer ")
        wait = self._tokens.seconds_to_wait(caller) if has_token else 0.0
        visitor = self._auth.visitor(scope, [*cookies_of(headers)], None if wait else authorization, self._now())
        if has_token and not wait and self._auth.is_guess(visitor) and not path.startswith(OPEN_FOLDER):
            number = self._tokens.count(caller)
            self._note(Request({**scope, "state": {**scope["state"], "visitor": visitor}}), 401, _GUESSED)
            await run_in_threadpool(self._tokens.count_together, caller, number)
        return visitor, wait

    async def _unless_signed_out(self, session: Session) -> Answer | None:
        try:
            ended = await run_in_threadpool(self._is_signed_out, session)
        except LowkiqError as error:
            return 503, str(error)
        return (401, "This session has been signed out.") if ended else None

    def _refusal(self, request: Request, status: int, sentence: str, wait: float) -> Response:
        if status == HTTPStatus.FORBIDDEN:
            self._note(request, status, sentence)
        response = self._refuse(request, status, sentence)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            response.headers["retry-after"] = str(ceil(wait))
        return response

    def _before_reading(self, scope: Scope, path: str, headers: Headers, visitor: Visitor | None) -> Answer | None:
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

    def _after_reading(self, scope: Scope, path: str, headers: Headers, visitor: Visitor | None) -> Answer | None:
        if path in OPEN or visitor is None or visitor.signed_in is None:
            return None
        token = headers.get(PROOF_HEADER) or scope["state"]["form"].get(PROOF_FIELD, "")
        if not visitor.signed_in.accepts(token):
            return 403, "The form's token is invalid. Go back, reload the page and try again."
        return None


def _with_cookie(cookie: Cookie, scheme: str, send: Send) -> Send:
    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            cookie.set_on(MutableHeaders(scope=message), scheme)
        await send(message)

    return send_with_cookie


def _is_change(scope: Scope, path: str) -> bool:
    return scope["method"] not in _SAFE and path not in OPEN | FOR_READERS


def _is_page(scope: Scope, path: str) -> bool:
    # A cookie belongs to the folder of its response, so deeper paths would make another one. Responses to forms never
    # renew it, because signing out deletes it.
    return scope["method"] in _SAFE and path.count("/") == 1


def _is_local(scope: Scope, headers: Headers) -> bool:
    client = scope.get("client")
    # A proxy on this machine forwards the addresses of its callers.
    lines = [*headers.getlist("x-forwarded-for"), *headers.getlist("x-real-ip")]
    callers = [address.strip() for line in lines for address in line.split(",")]
    callers += [address for line in headers.getlist("forwarded") for address in _FORWARDED_FOR.findall(line) or [""]]
    # The requested host, too: another site's name may resolve to this machine (DNS rebinding).
    names = [client[0] if client else "", headers.get("host", ""), *callers]
    return all(is_loopback(name) for name in names)
