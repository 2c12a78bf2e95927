"""A client of redis-py that the user made, with the user's choice of pools, retries and socket options.

The client is used as it is. Settings that calls rely on are checked first, because wrong ones would make calls fail
later, or wait for ever.
"""

from collections.abc import Mapping
from typing import Any, Final

import redis
from redis.cluster import RedisCluster
from redis.sentinel import SentinelConnectionPool

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.protocols import RedisPlug
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.server.pool import protocol_of

_PROTOCOL: Final = 2
_NO_LIMIT: Final = 2**31


def given_client(plug: RedisPlug, *, connections: int, timeout: float) -> "redis.Redis | RedisCluster":
    """The client, or the one that the function makes. Raises ConfigError for one that cannot serve.

    It needs room for so many `connections`, and a call waits `timeout` seconds at most. A cluster's client asks for its
    nodes while it is made: what goes wrong with that is a BackendError.
    """
    with translated():
        client: object = plug() if callable(plug) else plug
    if not isinstance(client, redis.Redis | RedisCluster):
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        raise _refused(f"expected redis.Redis or redis.cluster.RedisCluster, not {kind}")
    options = _options_of(client)
    _check_options(options, timeout)
    if (places := _places_in(client, options)) < connections:
        settings = "client_pool_size for pushing, threads_per_node and three more for drains"
        raise _refused(f"its pool has room for {places} connections, and {connections} are asked for: {settings}")
    return client


def place_of(client: "redis.Redis | RedisCluster") -> str:
    """The place of the server for people: a URL without user and password."""
    if isinstance(client, RedisCluster):
        nodes = ",".join(sorted(str(node.name) for node in client.get_nodes()))
        return f"redis+cluster://{nodes}"
    pool, options = client.connection_pool, client.connection_pool.connection_kwargs
    if isinstance(pool, SentinelConnectionPool):
        return f"redis+sentinel:///{pool.service_name}"
    if path := options.get("path"):
        return f"unix://{path}"
    tls = "s" if issubclass(pool.connection_class, redis.SSLConnection) else ""
    return f"redis{tls}://{options.get('host', 'localhost')}:{options.get('port', 6379)}/{options.get('db') or 0}"


def _options_of(client: "redis.Redis | RedisCluster") -> Mapping[str, Any]:
    if isinstance(client, RedisCluster):
        options: Mapping[str, Any] = client.nodes_manager.connection_kwargs
        return options
    return client.connection_pool.connection_kwargs


def _check_options(options: Mapping[str, Any], timeout: float) -> None:
    if options.get("decode_responses"):
        raise _refused("give it decode_responses=False, as payloads are bytes")
    if protocol_of(options) != _PROTOCOL:
        raise _refused(f"give it protocol={_PROTOCOL}, as it speaks a newer one, in which answers have other forms")
    waits = options.get("socket_timeout")
    if waits is None or waits > timeout:
        raise _refused(
            f"give it a socket_timeout of at most {timeout:g} seconds, not {waits}: a call waits no longer than "
            "redis_timeout, and under a lease than a sixth of lease_ttl"
        )


def _places_in(client: "redis.Redis | RedisCluster", options: Mapping[str, Any]) -> int:
    if isinstance(client, RedisCluster):
        return int(options.get("max_connections") or _NO_LIMIT)
    return int(client.connection_pool.max_connections)


def _refused(why: str) -> ConfigError:
    return ConfigError(f"The client of Config(redis=...) is refused: {why}.", setting="redis")
