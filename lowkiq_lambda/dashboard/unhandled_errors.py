"""What no handler caught, the gate included: one log entry, and a response that is like the others."""

import logging
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lowkiq_lambda.dashboard.security.forms import NO_FORM

logger = logging.getLogger(__name__)

FAILED = "The dashboard failed on this request. Its log has the error."


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
