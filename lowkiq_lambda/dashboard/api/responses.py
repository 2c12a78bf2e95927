"""Responses to what programs ask for again and again."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from lowkiq_lambda.operate.presentation.pages import Polled


def polled_response(request: Request, response: Polled) -> Response:
    """The response, or 304 without a body to who has it already."""
    # A weak one, as a response may be compressed.
    headers = {"etag": f'W/"{response.version}"'}
    if _is_known(response.version, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(msgspec.json.encode(response), headers=headers, media_type="application/json")


def _is_known(version: str, if_none_match: str) -> bool:
    tags = (one.strip().removeprefix("W/") for one in if_none_match.split(","))
    return any(one in {"*", f'"{version}"'} for one in tags)
