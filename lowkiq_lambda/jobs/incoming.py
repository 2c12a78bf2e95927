"""The message from outside that a mapping function gets: one value for all ways in."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["sqs", "eventbridge", "s3", "dynamodb"]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """One message, event or change. docs/ingest.md shows the `body` of each kind."""

    kind: Kind
    source: str
    """The ARN of the queue or of the stream, the name of the bucket, or the `source` of an event."""
    id: str
    """The same one whenever it comes again."""
    time: float
    """When it was sent, or happened, by the clock of its source: Unix seconds."""
    body: Any = None
    """The content: values as JSON has them; the text of a message that is not JSON."""
    attributes: Mapping[str, Any] = {}
    """The attributes that its sender wrote beside the body."""
    group: str | None = None
    """The group of a FIFO queue's message."""
    via: str | None = None
    """The ARN of the queue that a bucket's notification came through."""
    raw: Mapping[str, Any] = {}
    """The record as AWS hands it over."""

    @property
    def names(self) -> list[str]:
        """The names that the pattern of a mapping function may match: the source, by ARN and by name."""
        return names_of(self.source)


def names_of(arn: str) -> list[str]:
    """The names that a pattern may match: the ARN, and the name in it."""
    return [*dict.fromkeys([arn, name_in(arn)])]


def name_in(arn: str) -> str:
    """The name of a queue, or of the table of a stream.

    >>> name_in("arn:aws:sqs:eu-west-1:123456789012:orders.fifo")
    'orders.fifo'
    >>> name_in("arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-11-22T00:00:00.000")
    'orders'
    """
    if not arn.startswith("arn:"):
        return arn
    resource = arn.split(":", 5)[-1]
    return resource.split("/")[1] if resource.startswith("table/") else resource
