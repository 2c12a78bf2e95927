"""All that the first page shows: queues and servers, in one round trip for each node."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lowkiq_lambda.operate.inspect.current_totals import SeenQueue, current_totals
from lowkiq_lambda.operate.inspect.history import command, history, stretch_of, times_in, windows
from lowkiq_lambda.store.server.vitals import info_fields
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Between, Overview, QueueOverview, ServerView, Span

_INFO: Final = ("INFO",)


@contextmanager
def overview(
    reader: ShardReader, queues: Mapping[str, SeenQueue], span: Span | Between, days: int = 0
) -> Iterator[Overview]:
    """The queues with so much of their past; they come one by one until the block ends.

    Raises BackendError, and ValueError as `stretch_of` does.
    """
    nodes = reader.nodes(shard for queue in queues.values() for shard in queue.shards)
    # History is written by the clocks of those who drain, and read by this one: a few seconds do not matter to it.
    asked_at = reader.backend.clock.time()
    stretch = stretch_of(span, asked_at, days)
    # Arrivals of many queues would be much to read.
    spans = windows(stretch, asked_at, arrivals=len(queues) == 1)
    extra_commands = [
        *((key, _INFO) for key in nodes.values()),
        *(command(name, spans, reader.backend.prefix) for name in queues),
    ]
    with current_totals(reader, queues, extra_commands) as now:
        infos, pasts = now.answers[: len(nodes)], now.answers[len(nodes) :]

        def each() -> Iterator[QueueOverview]:
            for name, shards, mismatch, done in zip(queues, now.shards, now.mismatches, pasts, strict=True):
                yield QueueOverview(
                    name=name,
                    shards_count=len(shards),
                    # Before the numbers are taken, as the server is still at work on them.
                    history=history(done, spans, stretch, asked_at),
                    times=times_in(done, spans),
                    mismatch=mismatch,
                    moves_to=shards.layout.after if shards.layout.is_moving else None,
                    twice=shards.layout.twice_at_most,
                    now=next(now.totals),
                )

        first = next((shard for shards in now.shards for shard in shards), None)
        at = reader.backend.now(first) if first else asked_at
        yield Overview(at=at, servers=tuple(map(server_view, infos, nodes)), queues=each())


def server_view(answer: object, address: str) -> ServerView:
    """The INFO of a node."""
    if not isinstance(answer, bytes):
        return ServerView(address=address)
    info = info_fields(answer.decode(errors="replace"))
    ours = "valkey_version" in info
    return ServerView(
        address=address,
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
