"""A cluster of primaries without replicas, its slots dealt out evenly."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.retry import Retry

from tests.kit.servers.ports import free_port
from tests.kit.servers.server import Server
from tests.kit.servers.started import Started
from tests.kit.waiting import eventually

_SLOTS = 16_384
_JOIN_TIMEOUT = 30.0
# Short while the nodes meet, which waits for it; long afterwards, so that a busy machine is no fault.
_NODE_TIMEOUT_AT_START = 1_000
_NODE_TIMEOUT = 15_000


class Cluster(Started):
    """Several nodes that serve all slots together."""

    def __init__(self, nodes: int = 3) -> None:
        self.nodes = [Node() for _ in range(nodes)]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each node."""
        return [node.address for node in self.nodes]

    @property
    def url(self) -> str:
        """What a client is given."""
        return "redis+cluster://" + ",".join(f"{host}:{port}" for host, port in self.addresses)

    @cached_property
    def client(self) -> RedisCluster:
        """A client for assertions."""
        nodes = [ClusterNode(*address) for address in self.addresses]
        return RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), 3), protocol=2)

    def start(self) -> Self:
        """Start the nodes, join them, and wait until each of them serves."""
        for node in self.nodes:
            node.start()
        for index, node in enumerate(self.nodes):
            first, last = self._slots_of(index)
            node.admin.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
            node.admin.execute_command("CLUSTER SET-CONFIG-EPOCH", index + 1)
            node.admin.execute_command("CLUSTER MEET", *self.nodes[0].address, self.nodes[0].bus_port)
        self.wait_until_ok()
        for node in self.nodes:
            node.admin.config_set("cluster-node-timeout", _NODE_TIMEOUT)
        return self

    def wait_until_ok(self) -> None:
        """Wait until all nodes run, know one another and serve all slots; those that ended start again."""
        for node in self.nodes:
            node.thaw()
            if not node.is_running:
                node.start()
        eventually(self._is_ok, timeout=_JOIN_TIMEOUT, what="the cluster's good state")

    def node_for(self, key: str | bytes) -> Server:
        """The node that serves the key's slot, as the first node sees it."""
        return self._owner(self.slot_of(key))

    def slot_of(self, key: str | bytes) -> int:
        """The slot that the key lies in."""
        return key_slot(key if isinstance(key, bytes) else key.encode())

    def begin_move(self, slot: int, target: Server) -> None:
        """Open the slot for its move: from now on its node answers ASK for keys that it has not."""
        source = self._owner(slot)
        target.admin.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", _id(source))
        source.admin.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", _id(target))

    def move_keys(self, slot: int, target: Server, count: int | None = None) -> int:
        """Move `count` keys of an open slot, or all; returns how many."""
        source = self._owner(slot)
        keys: list[bytes] = source.admin.execute_command("CLUSTER GETKEYSINSLOT", slot, count or 1_000_000)
        for key in keys:
            source.admin.execute_command("MIGRATE", *target.address, key, 0, 5_000)
        return len(keys)

    def end_move(self, slot: int, target: Server) -> None:
        """Give the slot to its new node and wait until all nodes know."""
        target_id = _id(target)
        for node in [target, *(other for other in self.nodes if other is not target)]:
            node.admin.execute_command("CLUSTER SETSLOT", slot, "NODE", target_id)
        # A node that has not heard of it would end the next move under an epoch that is too low, and lose its slot.
        eventually(lambda: self._agrees_on(slot, target), timeout=_JOIN_TIMEOUT, what="nodes that agree on the move")

    def move_slot(self, slot: int, target: Server) -> None:
        """Move a slot with its keys, as a resharding does."""
        self.begin_move(slot, target)
        self.move_keys(slot, target)
        self.end_move(slot, target)

    def close(self) -> None:
        """End all nodes and remove their folders."""
        if "client" in self.__dict__:
            self.client.close()
        for node in self.nodes:
            node.close()

    def _slots_of(self, index: int) -> tuple[int, int]:
        count = len(self.nodes)
        return _SLOTS * index // count, _SLOTS * (index + 1) // count - 1

    def _owner(self, slot: int) -> Server:
        return self._owner_by(self.nodes[0], slot)

    def _owner_by(self, witness: Server, slot: int) -> Server:
        for first, last, port in _ranges(witness.admin):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"nobody serves slot {slot}")

    def _agrees_on(self, slot: int, owner: Server) -> bool:
        epoch = int(owner.admin.execute_command("CLUSTER INFO")["cluster_my_epoch"])
        return all(
            self._owner_by(node, slot) is owner
            and int(node.admin.execute_command("CLUSTER INFO")["cluster_current_epoch"]) >= epoch
            for node in self.nodes
        )

    def _is_ok(self) -> bool:
        try:
            return all(self._sees_all(node) for node in self.nodes)
        except redis.RedisError:
            return False

    def _sees_all(self, node: Server) -> bool:
        info = node.admin.execute_command("CLUSTER INFO")
        ports = {port for _, _, port in _ranges(node.admin)}
        return info["cluster_state"] == "ok" and ports == {port for _, port in self.addresses}


class Node(Server):
    """A node of a cluster, without slots at first; `settings` are further lines of its configuration file."""

    def __init__(self, *, settings: Sequence[str] = ()) -> None:
        super().__init__(settings=settings)
        self.bus_port = free_port()

    def configuration(self) -> list[str]:
        """As for a server alone, and what makes a node of it."""
        return [
            *super().configuration(),
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            f"cluster-node-timeout {_NODE_TIMEOUT_AT_START}",
            f"cluster-port {self.bus_port}",
        ]

    def change_port(self) -> None:
        """Either of the two may have been taken."""
        super().change_port()
        self.bus_port = free_port()


def _id(node: Server) -> str:
    return _text(node.admin.execute_command("CLUSTER MYID"))


def _ranges(client: redis.Redis) -> list[tuple[int, int, int]]:
    """First and last slot, and the port of the node that serves them."""
    found: list[Any] = client.execute_command("CLUSTER SLOTS")
    return [(int(first), int(last), int(primary[1])) for first, last, primary, *_ in found]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
