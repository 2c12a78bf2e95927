"""Real servers for the tests, on loopback, with data of their own; what ends the tests ends them too."""

from collections.abc import Callable
from typing import TypeAlias

from tests.kit.servers.cloud import LocalCloud
from tests.kit.servers.cluster import Cluster
from tests.kit.servers.far_proxy import FarProxy
from tests.kit.servers.fault_proxy import FaultProxy
from tests.kit.servers.managed import ManagedCache
from tests.kit.servers.replicated_cluster import ReplicatedCluster
from tests.kit.servers.sentinel import SentinelSetup
from tests.kit.servers.server import Server, server_binary
from tests.kit.servers.tls_proxy import TlsProxy

MakeServer: TypeAlias = Callable[..., Server]
"""Starts a server with the options of `Server`; the fixture closes it after the test."""

__all__ = [
    "Cluster",
    "FarProxy",
    "FaultProxy",
    "LocalCloud",
    "MakeServer",
    "ManagedCache",
    "ReplicatedCluster",
    "SentinelSetup",
    "Server",
    "TlsProxy",
    "server_binary",
]
