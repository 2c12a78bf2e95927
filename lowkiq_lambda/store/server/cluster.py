"""A client of a cluster, with our pools and sign-ins: that of redis-py is large, and few processes have a cluster."""

from functools import partial
from typing import Any

from redis.cluster import ClusterNode, RedisCluster

from lowkiq_lambda.base.address import Address
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translate
from lowkiq_lambda.store.server.pool import Pool, pools_with, without_cluster_retries


def cluster(address: Address, options: dict[str, Any]) -> RedisCluster:
    """A client that has asked for the cluster's nodes, with the options that all kinds of clients share."""
    host, port = address.hosts[0]
    shown_host = f"[{host}]" if ":" in host else host
    client_class = ClusterThatSignsIn if "credential_provider" in options else RedisCluster
    try:
        # Only with a URL does redis-py let us choose the class of the pools.
        return client_class(
            url=f"{'rediss' if address.tls else 'redis'}://{shown_host}:{port}",
            startup_nodes=[ClusterNode(*other) for other in address.hosts[1:]],
            connection_pool_class=pools_with(options, Pool),
            **without_cluster_retries(),
            **options,
        )
    except REDIS_ERRORS as error:
        raise translate(error) from error


class ClusterThatSignsIn(RedisCluster):
    """Begins its connections as `SignIns` does, which are its credentials."""

    def on_connect(self, connection: Any) -> None:  # noqa: ANN401 - any of redis-py's kinds of connection
        """Begin the connection."""
        begin = partial(super().on_connect, connection)
        connection.credential_provider.sign_in(connection, begin)
