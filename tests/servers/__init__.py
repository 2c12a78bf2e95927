"""Real servers for the tests, on loopback, with data of their own; what ends the tests ends them too."""

from collections.abc import Callable
from typing import TypeAlias

from tests.servers.cloud import LocalCloud
from tests.servers.cluster import Cluster
from tests.servers.fault_proxy import FaultProxy
from tests.servers.managed import ManagedCache
from tests.servers.sentinel import SentinelSetup
from tests.servers.server import Server, server_binary
from tests.servers.tls_proxy import TlsProxy

MakeServer: TypeAlias = Callable[..., Server]
"""Starts a server with the options of `Server`; the fixture closes it after the test."""

__all__ = [
    "Cluster",
    "FaultProxy",
    "LocalCloud",
    "MakeServer",
    "ManagedCache",
    "SentinelSetup",
    "Server",
    "TlsProxy",
    "server_binary",
]
