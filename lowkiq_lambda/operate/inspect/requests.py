"""The requests of operators that shards keep, for people."""

from collections.abc import Sequence
from typing import Final

from lowkiq_lambda.store.shard.keys import REQUESTS, ShardRef
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape
from lowkiq_lambda.views.requests import JobRequest, RequestKind

_AT_ONCE: Final = 500
"""Requests that one call reads."""
_KINDS: Final[dict[bytes, RequestKind]] = {b"c": "cancel", b"p": "pause"}


class RequestsReply(ReplyShape, frozen=True):
    """The reply of list_requests.lua."""

    scripts = ("list_requests",)
    cursor: bytes
    requests: list[list[bytes]]
    """As `read_requests` reads them."""


def requests_of(reader: ShardReader) -> list[JobRequest]:
    """The requests of the queue, the oldest first. Raises BackendError."""
    listed, cursors = dict[tuple[int, str, str], JobRequest](), dict.fromkeys(reader.shards, b"0")
    while cursors:
        calls = {shard.using((REQUESTS,)): (cursor, _AT_ONCE) for shard, cursor in cursors.items()}
        pages = reader.read("list_requests", calls, _page)
        cursors = {shard: cursor for shard, cursor, _ in pages if cursor != b"0"}
        listed |= {(one.shard, one.id, one.kind): one for _, _, page in pages for one in page}
    return sorted(listed.values(), key=lambda one: (one.at, one.id))


def read_requests(shard: ShardRef, rows: Sequence[Sequence[bytes]]) -> tuple[JobRequest, ...]:
    """As include/shown_requests.lua has them."""
    return tuple([_request(shard, *each) for each in rows])


def _page(shard: ShardRef, reply: Reply) -> tuple[ShardRef, bytes, tuple[JobRequest, ...]]:
    page = RequestsReply.of(reply)
    return shard, page.cursor, read_requests(shard, page.requests)


def _request(shard: ShardRef, *parts: bytes) -> JobRequest:
    job_id, kind, at, by, until, is_in_flight = parts
    ends = float(until) if until else None
    return JobRequest(
        id=job_id.decode(),
        shard=shard.number,
        kind=_KINDS[kind],
        at=float(at),
        by=by.decode(errors="replace"),
        until=None if ends is None or ends >= FOREVER else ends,
        in_flight=is_in_flight == b"1",
    )
