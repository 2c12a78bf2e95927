"""Reads a request's body and its form, up to a limit, and replays the body."""

from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.types import Message, Receive

LARGEST_BODY: Final = 1024 * 1024
MOST_FIELDS: Final = 10_000
FORM_TYPE: Final = "application/x-www-form-urlencoded"

Form = ImmutableMultiDict[str, str]
NO_FORM: Final = Form()


class BodyTooLarge(Exception):
    """The request's body is too large."""


async def read_body(receive: Receive) -> bytes:
    """The whole body. Raises BodyTooLarge."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            raise BodyTooLarge
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that delivers the body again."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def form_of(content_type: str, body: bytes) -> Form:
    """The fields of a form; none for other content types. Raises ValueError for too many fields."""
    if content_type.partition(";")[0].strip().lower() != FORM_TYPE:
        return NO_FORM
    # Invalid UTF-8 becomes replacement characters, as in a query string.
    fields = parse_qsl(body.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS)
    return Form(fields)
