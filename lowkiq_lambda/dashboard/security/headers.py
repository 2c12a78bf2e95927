"""Security headers of every response: content security policy, no framing, no caching, no sniffing, TLS once used."""

import secrets
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # With no-referrer, browsers would send "Origin: null" with the dashboard's own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

# It is for all ports of the host, so it is short: each visit begins it anew.
_OVER_TLS: Final = {"strict-transport-security": f"max-age={7 * 86_400}"}


def policy(nonce: str) -> str:
    """The content security policy of one response."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


class SecurityHeaders:
    """Adds the headers that a response has not set; the nonce is in the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope = {**scope, "state": {**scope.get("state", {}), "nonce": nonce}}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                over_tls = _OVER_TLS if scope.get("scheme") == "https" else {}
                for name, value in {**_HEADERS, **over_tls, "content-security-policy": policy(nonce)}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
