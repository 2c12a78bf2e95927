"""All that the first page shows: queues and servers, in one round trip for each node."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from lowkiq_lambda.store.inspect.history import command, history, windows
from lowkiq_lambda.store.inspect.metrics import stream_totals
from lowkiq_lambda.store.server.vitals import info_fields
from lowkiq_lambda.store.shard.declarations import Declaration, Registered, registered
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views import Overview, QueueOverview, ServerView, Span

_INFO: Final = ("INFO",)


class SeenQueue(Protocol):
    """A queue as an app knows it."""

    shards: QueueShards

    def declaration(self, codec: str) -> Declaration:
        """What the app declares it with."""
        ...

    def learn(self, there: Registered) -> None:
        """Redis has this declaration, which agrees with the app's."""
        ...


@contextmanager
def overview(reader: ShardReader, queues: Mapping[str, SeenQueue], codec: str, span: Span) -> Iterator[Overview]:
    """The queues with so much of their past; they come one by one until the block ends. Raises BackendError.

    A queue that turns out to have been resharded is shown with its new shards the next time.
    """
    shards_of_each = [queue.shards for queue in queues.values()]
    shards = [shard for own in shards_of_each for shard in own]
    nodes = reader.nodes(shards)
    # History is written by the clocks of those who drain, and read by this one: a few seconds do not matter to it.
    asked_at = reader.backend.clock.time()
    wanted = windows(span, asked_at)
    extra_commands = [
        *((key, _INFO) for key in nodes.values()),
        *((key, ("GET", key)) for key in map(declaration_key, queues)),
        *(command(name, wanted) for name in queues),
    ]
    with stream_totals(reader, shards_of_each, extra_commands) as (answers, measured):
        infos, declared, pasts = _parted(answers, len(nodes), len(queues))

        def each() -> Iterator[QueueOverview]:
            known = zip(queues.items(), shards_of_each, declared, pasts, strict=True)
            for (name, queue), own, stored, done in known:
                yield QueueOverview(
                    name=name,
                    shards_count=len(own),
                    # Before the numbers are taken, as the server is still at work on them.
                    history=history(done, wanted, span, asked_at),
                    mismatched=not agreeing(queue, codec, stored),
                    now=next(measured),
                )

        at = reader.backend.now(shards[0]) if shards else asked_at
        yield Overview(at=at, servers=tuple(map(server_view, infos, nodes)), queues=each())


def agreeing(queue: SeenQueue, codec: str, stored: object) -> bool:
    """Whether the declaration that was read, if there is one, agrees with the app's; the queue learns from it then."""
    if not isinstance(stored, bytes):
        return True
    there = registered(stored)
    if not there.agrees(queue.declaration(codec)):
        return False
    queue.learn(there)
    return True


def _parted(answers: Sequence[Any], first: int, second: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    return answers[:first], answers[first : first + second], answers[first + second :]


def server_view(answer: object, address: str) -> ServerView:
    """What a node's INFO says."""
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
