"""Requests and answers as plain values, and the step from there to ASGI.

Every answer is shut in: no script, no frame, nothing from elsewhere, nothing kept by a cache on the way.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from html import escape
from typing import Final, TypeAlias

import msgspec
from mangum.types import ASGI, Receive, Scope, Send

STYLE: Final = """
:root { color-scheme: light dark; --dim: #667085; --line: #d0d5dd; --warn: #b42318; --card: #f8f9fb }
@media (prefers-color-scheme: dark) { :root { --dim: #98a2b3; --line: #344054; --warn: #fda29b; --card: #1d2430 } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1.5rem }
header { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; justify-content: space-between }
h1 { font-size: 1.35rem; margin: 0 }
p { color: var(--dim) }
#note { font-size: .85rem; margin: 0 0 .4rem }
a { color: inherit }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.25rem 0 }
dl div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem }
dt { color: var(--dim); font-size: .85rem }
dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:first-child { text-align: left; overflow-wrap: anywhere; white-space: normal; min-width: 10rem }
thead th { color: var(--dim); font-weight: 600; font-size: .85rem }
tbody th { font-weight: 600 }
.warn { color: var(--warn); font-weight: 600 }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Request(msgspec.Struct, frozen=True):
    """What was asked for; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is said, and how."""

    status: int = 200
    body: str
    media_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {}


Respond: TypeAlias = Callable[[Request], Answer]


def page(title: str, body: str) -> str:
    """A whole page around a body that is HTML already; the title is text."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )


def notice(status: int, title: str, sentence: str, **headers: str) -> Answer:
    """A page that says one thing."""
    body = f"<h1>{escape(title)}</h1><p>{escape(sentence)}</p>"
    return Answer(status=status, body=page(title, body), headers=headers)


def as_asgi(respond: Respond) -> ASGI:
    """An ASGI app for one request at a time, as a function's instance has it: nothing waits while it responds."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - no request here has a body
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = Request(scope["method"], scope["path"], headers)
        answer = respond(request)
        body = answer.body.encode()
        sent = {
            **_HEADERS,
            "content-type": answer.media_type,
            "content-length": str(len(body)),
            **answer.headers,
        }
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
            }
        )
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})

    return app
