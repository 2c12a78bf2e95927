"""Codes of errors for programs, beside the sentence for people; and the response to an error that nobody caught."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lowkiq_lambda.base.errors import BackendDenied, LowkiqError, QueueMismatch, ShardClosed, ShardDamaged
from lowkiq_lambda.dashboard.security.forms import NO_FORM

Code: TypeAlias = Literal[
    "bad_request",
    "bad_parameter",
    "bad_body",
    "bad_cursor",
    "bad_next",
    "empty_filter",
    "unauthorized",
    "forbidden",
    "not_found",
    "unknown_queue",
    "unknown_job",
    "unknown_limiter",
    "unknown_action",
    "changed",
    "unknown_shard",
    "no_tenants",
    "unknown_entry",
    "bad_entry",
    "unknown_task",
    "unknown_process",
    "unknown_release",
    "method_not_allowed",
    "shards_changed",
    "queue_mismatch",
    "requests_full",
    "reason_missing",
    "body_too_large",
    "unsupported_media_type",
    "too_many_attempts",
    "internal_error",
    "unavailable",
]

_OF_STATUS: Final[Mapping[int, Code]] = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.CONFLICT: "queue_mismatch",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    HTTPStatus.TOO_MANY_REQUESTS: "too_many_attempts",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
}

logger = logging.getLogger(__name__)

FAILED = "The dashboard failed on this request. Its log has the error."


def status_of(error: LowkiqError) -> HTTPStatus:
    """503 for what may pass by itself; a queue that is declared otherwise, or rights that are missing, stay so."""
    if isinstance(error, QueueMismatch) and not isinstance(error, ShardClosed):
        return HTTPStatus.CONFLICT
    if isinstance(error, BackendDenied | ShardDamaged):
        return HTTPStatus.INTERNAL_SERVER_ERROR
    return HTTPStatus.SERVICE_UNAVAILABLE


def code_of(status: int) -> Code:
    """The code of a status."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _OF_STATUS.get(status, "internal_error")
    return _OF_STATUS.get(status, "bad_request")


def problem_response(status: int, sentence: str, code: Code | None = None) -> Response:
    """Problem JSON (RFC 9457)."""
    problem = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    problem |= {"code": code or code_of(status), "detail": sentence}
    headers = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    return JSONResponse(problem, status, headers, media_type="application/problem+json")


class UnhandledErrors:
    """Responds by `refuse` with the status 500 if the app behind it raises before it has responded."""

    def __init__(self, app: ASGIApp, refuse: Callable[[Request, int, str], Response]) -> None:
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. Raises what the app raises after its response has begun."""
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception:
            if has_begun or scope["type"] != "http":
                raise
            logger.exception("the dashboard failed on %s %r", scope["method"], scope["path"])
            nobody = {**scope.get("state", {}), "visitor": None, "form": NO_FORM, "body": b""}
            response = self._refuse(Request({**scope, "state": nobody}), 500, FAILED)
            await response(scope, receive, send)
