"""The nodes' reports on themselves, for people. It only reads, and takes a refusal for an answer."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import redis

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.store.server.connection import Client, is_cluster
from lowkiq_lambda.store.server.faults import translated, unless_error, unless_refused
from lowkiq_lambda.store.server.pipelines import send_each, ungathered
from lowkiq_lambda.store.server.primary import SentinelPool

Topology: TypeAlias = Literal["server", "sentinel", "cluster"]

_SETTINGS: Final = (
    "maxmemory-policy",
    "maxmemory",
    "appendonly",
    "appendfsync",
    "save",
    "min-replicas-to-write",
)


class NodeVitals(NamedTuple):
    """One node: what it does not tell is missing, or None.

    `info`, `settings`, `cluster`: what INFO, CONFIG GET and CLUSTER INFO say. `user`: as whom the connection has signed
    in. `ahead`: seconds by which the node's clock is ahead of this machine's; `round_trip`: how long it took to ask,
    so that `ahead` is at most half of it off.
    """

    address: str
    info: Mapping[str, str]
    settings: Mapping[str, str]
    cluster: Mapping[str, str]
    user: str | None
    ahead: float
    round_trip: float

    def told(self, name: str, setting: str | None = None) -> str | None:
        """The value under the name in INFO, or else of the setting in CONFIG."""
        return self.info.get(name, self.settings.get(setting or name))

    def number(self, name: str, setting: str | None = None) -> int | None:
        """As `told`, if it is a whole number."""
        text = self.told(name, setting) or ""
        return int(text) if text.isdecimal() else None


def topology_of(client: Client) -> Topology:
    """How the client finds its server."""
    if is_cluster(client):
        return "cluster"
    return "sentinel" if isinstance(client.connection_pool, SentinelPool) else "server"


def read_vitals(client: Client, clock: Clock) -> list[NodeVitals]:
    """Those of the server, or of each primary of a cluster. Raises BackendError if one does not answer."""
    with translated():
        return [_vitals_of(node, address, clock) for address, node in _nodes(client)]


def info_fields(text: str) -> dict[str, str]:
    """The fields of what INFO and its like answer."""
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value for name, colon, value in lines if colon}


def _nodes(client: Client) -> Iterator[tuple[str, redis.Redis]]:
    if not is_cluster(client):
        yield "", client
        return
    for node in client.get_primaries():
        yield str(node.name), client.get_redis_connection(node)


def _vitals_of(node: redis.Redis, address: str, clock: Clock) -> NodeVitals:
    # One by one, because servers before 7 have no other way.
    commands = [("INFO",), ("CLUSTER", "INFO"), ("ACL", "WHOAMI"), *(("CONFIG", "GET", name) for name in _SETTINGS)]
    answers = send_each(node, [("", command) for command in commands])
    info, cluster, user, *settings = map(unless_refused, answers)
    # Last and alone: the connection is open by now, and the round trip is that of the clock's.
    with ungathered():
        began, wall = clock.monotonic(), clock.time()
        (times,) = send_each(node, [("", ("TIME",))])
        round_trip = clock.monotonic() - began
    seconds, microseconds = unless_error(times)
    return NodeVitals(
        address=address,
        info=info_fields(_text(info)),
        settings=dict(_setting(answer) for answer in settings if answer),
        cluster=info_fields(_text(cluster)),
        user=_text(user) or None,
        ahead=int(seconds) + int(microseconds) / 1_000_000 - wall - round_trip / 2,
        round_trip=round_trip,
    )


def _setting(answer: list[bytes]) -> tuple[str, str]:
    name, value = answer
    return _text(name), _text(value)


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")
