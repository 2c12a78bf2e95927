"""Requests for single ids: cancel, pause and resume them, whether they wait or run; and the list of requests."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lowkiq_lambda.base.errors import RequestsFull
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.action_scripts import ActionName, ShardSnapshot
from lowkiq_lambda.operate.inspect.jobs import by_shard, id_texts
from lowkiq_lambda.store.shard.keys import REQUESTS, ShardRef
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.notifications import REQUEST
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.views.requests import JobRequest, Requested, RequestKind

LONGEST_NAME: Final = 200
"""Characters of the name of who asks that are kept."""
_AT_ONCE: Final = 500
"""Requests that one call reads."""
_CANCELLED: Final = "cancelled by an operator"
_KINDS: Final[dict[bytes, RequestKind]] = {b"c": "cancel", b"p": "pause"}


class RequestsReply(ReplyShape, frozen=True):
    """The reply of list_requests.lua."""

    scripts = ("list_requests",)
    cursor: bytes
    requests: list[list[bytes]]
    """Of each the id, its kind, when and by whom it was made, the end of a pause, and whether the id is in flight."""


def cancel(runner: ActionRunner, ids: Iterable[object], by: str, *, kill: bool) -> Requested:
    """Stop ids for good. Raises JobError, RequestsFull, BackendError."""
    error: Argument = runner.dump_error(_CANCELLED) if kill else ""
    return _ask(runner, "cancel", ids, lambda _: (error, _named(by)))


def pause_jobs(runner: ActionRunner, ids: Iterable[object], end_of: Callable[[float], Argument], by: str) -> Requested:
    """Pause ids, each by itself. Raises JobError, RequestsFull, BackendError."""
    return _ask(runner, "pause_jobs", ids, lambda snapshot: (end_of(snapshot.at), _named(by)))


def resume_jobs(runner: ActionRunner, ids: Iterable[object]) -> Requested:
    """End the pauses of ids. Raises JobError, BackendError."""
    return _ask(runner, "resume_jobs", ids, lambda _: ())


def requests_of(reader: ShardReader) -> list[JobRequest]:
    """The requests of the queue, the oldest first. Raises BackendError."""
    found, cursors = dict[tuple[int, str, str], JobRequest](), dict.fromkeys(reader.shards, b"0")
    while cursors:
        calls = {shard.using((REQUESTS,)): (cursor, _AT_ONCE) for shard, cursor in cursors.items()}
        pages = reader.read("list_requests", calls, _page)
        cursors = {shard: cursor for shard, cursor, _ in pages if cursor != b"0"}
        found |= {(one.shard, one.id, one.kind): one for _, _, page in pages for one in page}
    return sorted(found.values(), key=lambda one: (one.at, one.id))


def _named(by: str) -> str:
    return by.encode(errors="backslashreplace").decode()[:LONGEST_NAME]


def _page(shard: ShardRef, reply: Reply) -> tuple[ShardRef, bytes, list[JobRequest]]:
    page = RequestsReply.of(reply)
    return shard, page.cursor, [_request(shard, *each) for each in page.requests]


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


def _ask(
    runner: ActionRunner,
    act: ActionName,
    ids: Iterable[object],
    details: Callable[[ShardSnapshot], Sequence[Argument]],
) -> Requested:
    texts, reader = id_texts(ids), runner.reader
    words: dict[str, str] = {}
    for shard, of_shard in by_shard(dict.fromkeys(texts), reader.shards).items():
        (snapshot,) = runner.snapshots([shard.using((REQUESTS,))])
        left, resume = list(of_shard), b""
        while left:
            progress = runner.call_once(act, snapshot, left, 0, resume, *details(snapshot))
            words |= progress.words
            left, resume = left[progress.finished :], progress.resume
        reader.backend.note_use(shard, REQUESTS)
        if any(words.get(job_id) == "asked" for job_id in of_shard):
            reader.backend.publish(shard.channel, f"{REQUEST}{shard.number}")
    by_word = {word: [job_id for job_id in words if words[job_id] == word] for word in ("done", "asked", "gone", "full")}
    if by_word["full"]:
        raise RequestsFull(len(by_word["full"]), by_word["full"][0])
    return Requested(by_word["done"], by_word["asked"], by_word["gone"])
