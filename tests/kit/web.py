"""A browser without a window: it asks an ASGI app, keeps cookies, follows links when it is told to."""

import asyncio
import gzip
import json
import re
import time
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote, urlencode, urljoin, urlsplit

from starlette.types import ASGIApp, Message, Scope

from lowkiq_lambda.dashboard import Auth
from lowkiq_lambda.dashboard.security.throttle import MINUTE
from tests.kit.waiting import eventually

ORIGIN = "http://127.0.0.1:8000"


def await_room_in_the_minute() -> None:
    """Tries are counted by the minute of the clock on the wall: wait until one has room for all of a test."""
    eventually(lambda: time.time() % MINUTE < MINUTE / 2, MINUTE, "a minute with room")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the app."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...]

    @property
    def text(self) -> str:
        """The body, unpack."""
        pack = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.body) if pack else self.body).decode()

    @property
    def words(self) -> str:
        """The text that a reader sees."""
        body = re.sub(r"(?s)<(script|style|head|title)\b.*?</\1>", " ", self.text)
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.text)

    @property
    def location(self) -> str:
        """The address of its redirect."""
        return urljoin(self.url, self.headers["location"])


@dataclass
class Browser:
    """Asks one app; `headers` go with each request."""

    app: ASGIApp
    mounted_at: str = ""
    root_path: str = ""
    client: str = "127.0.0.1"
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str = "/", **headers: str) -> Answer:
        """Ask for a page."""
        return self.ask("GET", path, headers)

    def part(self, path: str = "/", **headers: str) -> Answer:
        """Ask for a part of a page, as htmx does."""
        return self.get(path, hx_request="true", **headers)

    def post(self, path: str, fields: dict[str, Any] | None = None, **headers: str) -> Answer:
        """Send a form from a page of the app's own."""
        body = urlencode(fields or {}, doseq=True).encode()
        ours = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, {**ours, **headers}, body)

    def send(self, path: str, fields: dict[str, Any] | None = None, page: str = "/", **headers: str) -> Answer:
        """As `post`, with the proof that stands on a page."""
        return self.post(path, {"csrf": self.proof(page), **(fields or {})}, **headers)

    def proof(self, page: str = "/") -> str:
        """The token that the page's forms send back."""
        return str(re.findall(r'name="csrf" value="(.*?)"', self.get(page).text)[0])

    def sign_in(self, password: str) -> Answer:
        """Come in."""
        return self.post("/sign-in", {"password": password})

    def come_in(self, auth: Auth, password: str, now: float, root_path: str | None = None) -> None:
        """As if by the form, which counts tries; `root_path` where that is not all of what it is mounted at."""
        root_path = self.mounted_at if root_path is None else root_path
        found = auth.sign_in({**self.scope("GET", "/", {}), "root_path": root_path}, password, now)
        if found is not None:
            _, cookie = found
            self.cookies[cookie.name] = cookie.value

    def follow(self, answer: Answer) -> Answer:
        """Follow the answer's redirect."""
        parts = urlsplit(answer.location)
        return self.get(f"{parts.path.removeprefix(self.mounted_at)}{'?' + parts.query if parts.query else ''}")

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        """Any request; `path` is the mount's own, with its query, percent-encoded as on the wire."""
        return asyncio.run(self._ask(method, self.mounted_at + path, headers or {}, body))

    def scope(self, method: str, path: str, headers: dict[str, str]) -> Scope:
        """The request as a server describes it to an app."""
        parts = urlsplit(ORIGIN + path)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"host": parts.netloc, "accept-encoding": "gzip", **({"cookie": cookie} if cookie else {})}
        sent |= {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": sent.pop("x-scheme", "http"),
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": self.root_path,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": (self.client, 50_000),
            "server": ("127.0.0.1", 8000),
        }

    async def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        messages: list[Message] = []
        bodies = [body]

        async def receive() -> Message:
            if not bodies:
                # A client that stays: it sends no more, and does not go away.
                await asyncio.Event().wait()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message: Message) -> None:
            messages.append(dict(message))

        await self.app(self.scope(method, path, headers), receive, send)
        pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in messages[0]["headers"]]
        cookies = tuple(value for name, value in pairs if name == "set-cookie")
        self._keep(cookies)
        content = b"".join(message.get("body", b"") for message in messages[1:])
        return Answer(ORIGIN + path, messages[0]["status"], dict(pairs), content, cookies)

    def _keep(self, cookies: tuple[str, ...]) -> None:
        for cookie in cookies:
            for name, morsel in SimpleCookie(cookie).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
