"""A stand-in for ElastiCache Serverless: one node that serves a whole cluster, reached by TLS and by an ACL user."""

from typing import Final, Self

import redis

from tests.kit.servers.cluster import Node
from tests.kit.servers.started import Started
from tests.kit.servers.tls_proxy import TlsProxy
from tests.kit.waiting import eventually

_SLOTS: Final = 16_384
_START_TIMEOUT: Final = 30.0


class ManagedCache(Started):
    """The node tells its clients the proxy's place, so that all that they send goes through TLS."""

    def __init__(self) -> None:
        self.proxy = TlsProxy(self)
        self.node = Node(
            settings=[
                "cluster-announce-hostname localhost",
                "cluster-preferred-endpoint-type hostname",
                f"cluster-announce-port {self.proxy.port}",
            ]
        )

    @property
    def address(self) -> tuple[str, int]:
        """Where the node is, without TLS."""
        return self.node.address

    @property
    def admin(self) -> redis.Redis:
        """The node without TLS, as a user who may do everything."""
        return self.node.admin

    @property
    def url(self) -> str:
        """What a client is given; it holds neither user nor password."""
        return f"rediss+cluster://localhost:{self.proxy.port}?ssl_ca_certs={self.proxy.ca_path}"

    @property
    def single_url(self) -> str:
        """The same for a client that knows nothing of clusters."""
        return self.proxy.url

    def let_in(self, user: str, password: str, rights: str) -> None:
        """From now on the user signs in with this password and no other; who is signed in stays so."""
        self.admin.execute_command("ACL", "SETUSER", user, "reset", *rights.split(), f">{password}")

    def connections(self, user: str) -> list[str]:
        """The ids of the user's connections."""
        return [client["id"] for client in self.admin.client_list() if client["user"] == user]

    def close(self) -> None:
        """End the node and the proxy."""
        self.proxy.close()
        self.node.close()

    def start(self) -> Self:
        """Start the proxy and the node; returns when the cluster is well."""
        self.proxy.start()
        self.node.start()
        self.admin.execute_command("CLUSTER ADDSLOTSRANGE", 0, _SLOTS - 1)
        eventually(self._serves, timeout=_START_TIMEOUT, what="the cluster's good state")
        return self

    def _serves(self) -> bool:
        return bool(self.admin.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
