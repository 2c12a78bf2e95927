"""A cluster whose first node has a replica, which takes its place when it dies."""

import contextlib
from typing import Self

import redis

from tests.kit.servers.cluster import Cluster, Node
from tests.kit.servers.server import Server
from tests.kit.waiting import eventually

_TIMEOUT = 40.0
_NODE_TIMEOUT = 1_000
_SETTINGS = ("repl-diskless-sync-delay 0", "repl-ping-replica-period 1")


class ReplicatedCluster(Cluster):
    """Three primaries and a replica; a silent node counts as alive for a second."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes[0] = Node(settings=_SETTINGS)
        self.twins = [self.nodes[0], Node(settings=_SETTINGS)]
        """The node with a replica, and the replica, at first."""

    @property
    def primary(self) -> Server:
        """The one of the two that serves, as a node without a replica sees it."""
        return self._owner_by(self.nodes[1], 0)

    @property
    def replicas(self) -> list[Server]:
        """The other one of the two."""
        return [node for node in self.twins if node is not self.primary]

    def start(self) -> Self:
        """Start all, and wait until the replica could take over."""
        super().start()
        twin = self.twins[1].start()
        for node in (*self.nodes, twin):
            node.admin.config_set("cluster-node-timeout", _NODE_TIMEOUT)
        twin.admin.execute_command("CLUSTER MEET", *self.nodes[0].address, self.nodes[0].bus_port)
        eventually(self._follows, timeout=_TIMEOUT, what="a node that knows the one that it is to follow")
        self.heal()
        return self

    def heal(self) -> None:
        """Start what ended, thaw what is frozen, and wait until the replica could take over."""
        for node in {*self.nodes, *self.twins}:
            node.thaw()
            if not node.is_running:
                node.start()
        eventually(self._is_healthy, timeout=_TIMEOUT, what="a cluster whose replica follows")

    def await_other_than(self, before: Server) -> Server:
        """The new primary when all living nodes know it, and serve."""
        living = [node for node in {*self.nodes, *self.twins} if node is not before]
        eventually(
            lambda: all(_serves(node) and self._owner_by(node, 0) is not before for node in living),
            timeout=_TIMEOUT,
            what="another primary",
        )
        return self.primary

    def close(self) -> None:
        """End all nodes and remove their folders."""
        self.twins[1].close()
        super().close()

    def _owner_by(self, witness: Server, slot: int) -> Server:
        ports = {node.port: node for node in (*self.nodes, *self.twins)}
        for first, last, primary, *_ in witness.admin.execute_command("CLUSTER SLOTS"):
            if int(first) <= slot <= int(last):
                return ports[int(primary[1])]
        raise AssertionError(f"nobody serves slot {slot}")

    def _follows(self) -> bool:
        with contextlib.suppress(redis.ResponseError):
            name = self.nodes[0].admin.execute_command("CLUSTER MYID")
            self.twins[1].admin.execute_command("CLUSTER REPLICATE", name)
            return True
        return False

    def _is_healthy(self) -> bool:
        with contextlib.suppress(redis.RedisError, KeyError):
            linked = self.replicas[0].admin.info("replication").get("master_link_status") == "up"
            connected = self.primary.admin.info("replication")["connected_slaves"] == 1
            return linked and connected and all(map(_serves, {*self.nodes, *self.twins}))
        return False


def _serves(node: Server) -> bool:
    with contextlib.suppress(redis.RedisError):
        return str(node.admin.execute_command("CLUSTER INFO")["cluster_state"]) == "ok"
    return False
