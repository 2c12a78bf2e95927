"""Real servers for the tests, on loopback, each with data of its own; whatever ends the tests ends them too."""

from tests.servers.cluster import Cluster
from tests.servers.fault_proxy import FaultProxy
from tests.servers.sentinel import SentinelSetup
from tests.servers.server import Server, server_binary
from tests.servers.tls_proxy import TlsProxy

__all__ = ["Cluster", "FaultProxy", "SentinelSetup", "Server", "TlsProxy", "server_binary"]
