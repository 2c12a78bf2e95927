"""The local cloud behind a guard: a program of the cloud's own Python, independent of this library.

The stand-in for AWS runs any code that it is given, and accepts every signature. So it is reachable only through
this guard, on the same port and in the same process. An API of AWS is for those who sign with the key of this run, or
with one that was made in it. The host of an API Gateway is for browsers, and reaches that gateway and nothing else.
"""

import hashlib
import importlib
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

HEALTH: Final = "/_ministack/health"
"""It reveals no more than an open port: the process that waits for the start has no key yet."""
_GATEWAY: Final = re.compile(r"[a-z0-9]+\.execute-api\.localhost")
_SIGNED: Final = "AWS4-HMAC-SHA256 "
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_ACCOUNT: Final = re.compile("0{12}")
_OURS: Final = ("127.0.0.1", "localhost")
_SAME: Final = ("same-origin", "none")
_LARGEST: Final = 10 * 1024 * 1024
"""Bytes of a body that an API Gateway takes. It comes unsigned, so anybody could fill the memory with a larger one."""

_asked: ContextVar[dict[str, Any]] = ContextVar("asked")
"""The request that is answered."""

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Guard:
    """The ASGI app before the cloud's own."""

    def __init__(self, cloud: Any, port: int, key: str, secret: str) -> None:
        self._app = cloud.app
        self._cloud = cloud
        self._port = port
        self._key = key
        self._secret = secret
        self._evaluator = importlib.import_module("ministack.core.iam_evaluator")
        self._sigv4 = importlib.import_module("ministack.core.sigv4")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Hand on what may pass, with its body."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        headers = _headers_of(scope)
        host, _, port = headers.get("host", "").rpartition(":")
        body = b""
        if port != str(self._port):
            why = "This host is none of the local cloud's."
        elif _GATEWAY.fullmatch(host):
            content = await _read_bounded(headers, receive)
            if content is None:
                await _refuse(send, "Request Entity Too Large", 413)
                return
            body = content
            why = (
                "" if self._may_pass_the_gateway(scope, headers, body) else "The signature is not one of this cloud's."
            )
        elif host not in _OURS:
            why = "This host is none of the local cloud's."
        elif "origin" in headers or headers.get("sec-fetch-site", "none") not in _SAME or scope["method"] == "OPTIONS":
            why = "The local cloud answers no web page."
        elif scope["path"] == HEALTH and scope["method"] == "GET":
            why = ""
        else:
            content = await self._read_of_signer(scope, headers, receive)
            body = content or b""
            signed = content is not None and self._is_signed(scope, headers, body)
            why = "" if signed else "The request is not signed with a key of this cloud."
        if why:
            await _refuse(send, why)
        else:
            _asked.set(scope)
            await self._app(scope, _Again(body, receive), send)

    def _may_pass_the_gateway(self, scope: dict[str, Any], headers: Mapping[str, str], body: bytes) -> bool:
        """The app behind it signs people in; where AWS does so by signatures, these have to be right."""
        if b"X-Amz-" in scope.get("query_string", b""):
            return False
        return not headers.get("authorization", "").startswith("AWS") or self._is_signed(scope, headers, body)

    async def _read_of_signer(
        self, scope: dict[str, Any], headers: Mapping[str, str], receive: Receive
    ) -> bytes | None:
        """The body, of those who may send it: nobody else may fill the memory with one.

        None where the signature is wrong by what is signed of a body that is named by its digest, or where it names a
        key that there is not; or one that anybody can guess, and the body is larger than what functions send.
        """
        if self._secret_of(headers) is None:
            return None
        if _DIGEST.fullmatch(headers.get("x-amz-content-sha256", "")):
            return await _read(receive) if self._has_signed(scope, headers, b"") else None
        is_guessed = _ACCOUNT.fullmatch(_key_of(headers) or "")
        return await (_read_bounded(headers, receive) if is_guessed else _read(receive))

    def _secret_of(self, headers: Mapping[str, str]) -> str | None:
        """That of the key which the signature names; only signatures in headers are taken."""
        key = _key_of(headers)
        if key is None:
            return None
        # Without rights, functions have the account's number for a key, and the secret of this process.
        if key == self._key or _ACCOUNT.fullmatch(key):
            return self._secret
        token = headers.get("x-amz-security-token", "")
        secret = self._evaluator.resolve_credential(key, "0" * 12, token)
        return getattr(secret, "secret_access_key", None)

    def _is_signed(self, scope: dict[str, Any], headers: Mapping[str, str], body: bytes) -> bool:
        digest = headers.get("x-amz-content-sha256", "")
        if _DIGEST.fullmatch(digest) and digest != hashlib.sha256(body).hexdigest():
            return False
        return self._has_signed(scope, headers, body)

    def _has_signed(self, scope: dict[str, Any], headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the signature is right, for a body of that digest where the headers name one, else for this body."""
        secret, signature = self._secret_of(headers), self._sigv4.parse_header_signature(headers)
        if secret is None or isinstance(signature, tuple) or self._sigv4.request_time_failure(signature):
            return False
        if "host" not in signature.signed_headers.split(";"):
            return False
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        query = parse_qs(scope.get("query_string", b"").decode(), keep_blank_values=True)
        return not self._sigv4.header_signature_failure(signature, secret, scope["method"], path, query, headers, body)


class _Again:
    """The body once more, for the app behind."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


def _key_of(headers: Mapping[str, str]) -> str | None:
    authorization = headers.get("authorization", "")
    match = re.search(r"Credential=([A-Za-z0-9]+)/", authorization)
    return match[1] if authorization.startswith(_SIGNED) and match else None


def _headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


async def _read(receive: Receive) -> bytes:
    return b"".join([part async for part in _parts(receive)])


async def _read_bounded(headers: Mapping[str, str], receive: Receive) -> bytes | None:
    """The body; None where it is too large, which the header may say before anything is read."""
    length = headers.get("content-length", "")
    if length.isascii() and length.isdecimal() and int(length) > _LARGEST:
        return None
    body = bytearray()
    async for part in _parts(receive):
        body += part
        if len(body) > _LARGEST:
            return None
    return bytes(body)


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    while (message := await receive())["type"] == "http.request":
        yield message.get("body", b"")
        if not message.get("more_body"):
            break


async def _refuse(send: Send, why: str, status: int = 403) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f'{{"message": "{why}"}}'.encode()})


def _keep_to_the_gateway(cloud: Any) -> None:
    """A gateway's host reaches the gateway before all paths that have a meaning of their own in this cloud."""
    before_body, after_body = cloud._handle_pre_body_request, cloud._handle_post_body_shortcuts

    async def pre_body(method: str, path: str, headers: dict[str, str], *rest: Any) -> Any:
        return None if _is_gateway(headers) else await before_body(method, path, headers, *rest)

    async def post_body(  # noqa: PLR0913, PLR0917 - as it is called
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any], request_id: str
    ) -> Any:
        if not _is_gateway(headers):
            return await after_body(method, path, headers, body, query, request_id)
        del request_id
        host, scope = headers["host"], _asked.get()
        raw = (scope["raw_path"].decode("ascii") if scope.get("raw_path") else None, scope["query_string"].decode())
        answer = await cloud._handle_execute_api_request(host, path, method, headers, body, query, *raw)
        return answer or (404, {}, b"")

    cloud._handle_pre_body_request, cloud._handle_post_body_shortcuts = pre_body, post_body


def _is_gateway(headers: Mapping[str, str]) -> bool:
    return bool(_GATEWAY.fullmatch(headers.get("host", "").rpartition(":")[0]))


class _Salted:
    """`hashlib` for the keys of functions' roles, which are digests of names: only this process can make them."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(32)

    def sha256(self, text: bytes) -> Any:
        return hashlib.sha256(self._salt + text)


def main() -> None:
    """Run the cloud on GATEWAY_PORT, for those who have AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""
    sys.path.append(str(Path(__file__).parents[1]))
    cloud: Any = importlib.import_module("ministack.app")
    metrics = importlib.import_module("inside.metrics").CloudMetrics()
    folder = Path(os.environ["HOME"]) / "functions"
    folder.mkdir(exist_ok=True)
    importlib.import_module("inside.invocations").Invocations(folder, metrics).install()
    importlib.import_module("inside.watching").Watch(metrics).install()
    importlib.import_module("ministack.core.lambda_runtime").hashlib = _Salted()  # type: ignore[attr-defined]  # a module's
    _keep_to_the_gateway(cloud)
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    guard = Guard(cloud, int(os.environ["GATEWAY_PORT"]), key, secret)

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await guard(scope, receive, send)

    cloud.app = app
    cloud.main()


if __name__ == "__main__":
    main()
