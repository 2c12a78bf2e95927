"""All that the first page shows: queues and servers, in one round trip for each node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lowkiq_lambda.store.backend import Backend
from lowkiq_lambda.store.declarations import Declaration, agrees
from lowkiq_lambda.store.keys import ShardRef, declaration_key
from lowkiq_lambda.store.metrics import totals
from lowkiq_lambda.store.past import command, past, windows
from lowkiq_lambda.views import Overview, ServerView, Span

_INFO: Final = ("INFO",)


def look(
    backend: Backend, queues: Mapping[str, Sequence[ShardRef]], codec: str, span: Span, patience: float
) -> Overview:
    """The queues, given by their shards, with so much of their past. Raises BackendError."""
    shards = [shard for queue in queues.values() for shard in queue]
    nodes = backend.key_of_each_node(shards) or [""]
    # Which windows are read is told by any clock that is right to a minute; what they mean, by the server's.
    asked_at = backend.clock.time()
    wanted = windows(span, asked_at)
    declarations = [declaration_key(name) for name in queues]
    beside = [
        *((key, _INFO) for key in nodes),
        *((key, ("GET", key)) for key in declarations),
        *(command(name, wanted) for name in queues),
    ]
    measured, answers = totals(backend, [*queues.values()], patience, beside)
    infos, declared, pasts = _parted(answers, len(nodes), len(queues))
    return Overview(
        at=backend.now(shards[0]) if shards else asked_at,
        queues=dict(zip(queues, measured, strict=True)),
        pasts={name: past(answer, wanted, span, asked_at) for name, answer in zip(queues, pasts, strict=True)},
        servers=tuple(map(server_view, infos)),
        mismatched=frozenset(
            name
            for (name, queue), stored in zip(queues.items(), declared, strict=True)
            if not agrees(Declaration(len(queue), codec), stored)
        ),
    )


def _parted(answers: Sequence[Any], first: int, second: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    return answers[:first], answers[first : first + second], answers[first + second :]


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
