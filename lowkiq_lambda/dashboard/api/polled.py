"""Responses that programs ask for again and again: with a version, and when it is worth asking again."""

from hashlib import sha256
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

_DIGITS: Final = 16


class Polled(msgspec.Struct, frozen=True, kw_only=True):
    """What a program polls."""

    version: Annotated[
        str, Meta(description="Another text whenever anything but `next_poll` has changed. The `ETag` has it, too.")
    ]
    next_poll: Annotated[
        float | None,
        Meta(description="In how many seconds it is worth asking again; null where nothing will change any more."),
    ]


def version_of(*parts: object) -> str:
    """A text that another content does not have."""
    return sha256(msgspec.json.encode(parts)).hexdigest()[:_DIGITS]


def polled_response(request: Request, response: Polled) -> Response:
    """The response, or 304 without a body to who has it already."""
    # A weak one, as a response may be compressed.
    headers = {"etag": f'W/"{response.version}"'}
    if _is_known(response.version, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(msgspec.json.encode(response), headers=headers, media_type="application/json")


def _is_known(version: str, if_none_match: str) -> bool:
    named = (one.strip().removeprefix("W/") for one in if_none_match.split(","))
    return any(one in {"*", f'"{version}"'} for one in named)
