"""All that the first page shows: queues and servers, in one round trip for each node."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from lowkiq_lambda.store.backend import Result
from lowkiq_lambda.store.declarations import Declaration, agrees
from lowkiq_lambda.store.keys import ShardRef, declaration_key
from lowkiq_lambda.store.metrics import look_at_totals
from lowkiq_lambda.store.past import command, past, windows
from lowkiq_lambda.store.reading import Reader
from lowkiq_lambda.views import Metrics, Overview, QueueOverview, ServerView, Span

_INFO: Final = ("INFO",)


def look_over(
    reader: Reader,
    queues: Mapping[str, Sequence[ShardRef]],
    codec: str,
    span: Span,
    see: Callable[[Overview], Result],
) -> Result:
    """What is seen in the queues, given by their shards, with so much of their past.

    They come one by one, while the server is still at work on others. Raises BackendError.
    """
    shards = [shard for queue in queues.values() for shard in queue]
    nodes = reader.key_of_each_node(shards) or [""]
    # Which windows are read is told by any clock that is right to a minute; what they mean, by the server's.
    asked_at = reader.backend.clock.time()
    wanted = windows(span, asked_at)
    beside = [
        *((key, _INFO) for key in nodes),
        *((key, ("GET", key)) for key in map(declaration_key, queues)),
        *(command(name, wanted) for name in queues),
    ]

    def each(answers: Iterator[Any], measured: Iterator[Metrics]) -> Iterator[QueueOverview]:
        declared = [*islice(answers, len(queues))]
        for (name, queue), stored, stored_past in zip(queues.items(), declared, answers, strict=True):
            shards_count = len(queue)
            # While the server is at work on what comes next.
            done = past(stored_past, wanted, span, asked_at)
            mismatched = not agrees(Declaration(shards_count, codec), stored)
            yield QueueOverview(
                name=name, shards_count=shards_count, now=next(measured), past=done, mismatched=mismatched
            )

    def seen(answers: Sequence[Any], measured: Iterator[Metrics]) -> Result:
        beside = iter(answers)
        servers = tuple(map(server_view, islice(beside, len(nodes))))
        at = reader.backend.now(shards[0]) if shards else asked_at
        return see(Overview(at=at, servers=servers, queues=each(beside, measured)))

    return look_at_totals(reader, [*queues.values()], beside, seen)


def server_view(answer: object) -> ServerView:
    """What a node's INFO says."""
    if not isinstance(answer, bytes):
        return ServerView()
    lines = (line.partition(":") for line in answer.decode(errors="replace").splitlines())
    info = {name: value for name, colon, value in lines if colon}
    ours = "valkey_version" in info
    return ServerView(
        name=info.get("server_name", "valkey" if ours else "redis").capitalize(),
        version=info.get("valkey_version") or info.get("redis_version", ""),
        role={"master": "primary", "slave": "replica"}.get(info.get("role", ""), info.get("role", "")),
        uptime=_number(info, "uptime_in_seconds"),
        clients=_number(info, "connected_clients"),
        memory=_number(info, "used_memory"),
        memory_peak=_number(info, "used_memory_peak"),
        memory_limit=_number(info, "maxmemory"),
        eviction_policy=info.get("maxmemory_policy", ""),
        replicas=_number(info, "connected_slaves"),
    )


def _number(info: Mapping[str, Any], name: str) -> int | None:
    text = info.get(name, "")
    return int(text) if text.isdecimal() else None
