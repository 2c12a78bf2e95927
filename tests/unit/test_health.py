"""What is said about the server at start."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.store.server.connection import Client, connect
from lowkiq_lambda.store.server.health import check_server, version_warnings
from tests.kit.servers import Cluster, Server


def client_of(url: str) -> Client:
    """A client that gives up soon."""
    return connect(url, max_connections=2, timeout=5, pool_timeout=1)


def test_good_server_has_no_warning(server: Server) -> None:
    """S-9: a server that evicts nothing is nothing to speak of."""
    assert check_server(client_of(server.url)) == []


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_evicting_server_is_warned_of(policy: str, make_server: Callable[..., Server]) -> None:
    """S-9, E-42: any other policy than noeviction is named loudly, with what to do."""
    (warning,) = check_server(client_of(make_server(maxmemory_policy=policy).url))

    assert f"maxmemory-policy is {policy}" in warning
    assert "noeviction" in warning


def test_silent_server_is_unknown(make_server: Callable[..., Server]) -> None:
    """E-42: where INFO and CONFIG are refused, the policy is unknown, and nothing breaks."""
    url = make_server().add_user("poor", "~*", "+@all", "-info", "-config")

    (warning,) = check_server(client_of(url))

    assert "does not tell its maxmemory-policy" in warning


def test_config_tells_what_info_does_not(make_server: Callable[..., Server]) -> None:
    """E-42: where only INFO is refused, CONFIG GET is asked."""
    url = make_server(maxmemory_policy="allkeys-lfu").add_user("half", "~*", "+@all", "-info")

    (warning,) = check_server(client_of(url))

    assert "maxmemory-policy is allkeys-lfu" in warning


def test_dead_server_does_not_break_the_check(make_server: Callable[..., Server]) -> None:
    """The check at start never raises: who needs the server will say better what is wrong."""
    server = make_server()
    client = client_of(server.url)
    server.kill()

    assert len(check_server(client)) == 1


def test_every_node_of_a_cluster_is_checked(cluster: Cluster) -> None:
    """S-9: one evicting node is enough for a warning, and all alike give one."""
    client = client_of(cluster.url)
    assert check_server(client) == []

    for node in cluster.nodes[1:]:
        node.admin.config_set("maxmemory-policy", "volatile-lru")
    try:
        (warning,) = check_server(client)
    finally:
        for node in cluster.nodes[1:]:
            node.admin.config_set("maxmemory-policy", "noeviction")

    assert "maxmemory-policy is volatile-lru" in warning


@pytest.mark.parametrize("version", ["6.0.16", "5.0", "3.2.1"])
def test_old_version_is_warned_of(version: str) -> None:
    """A server that is too old is named with the oldest that serves."""
    (warning,) = version_warnings(version)

    assert version in warning
    assert "6.2" in warning


@pytest.mark.parametrize("version", ["6.2.0", "7.0.15", "7.2.4", "10.0", "", "unstable"])
def test_other_versions_are_fine(version: str) -> None:
    """A new enough or unknown version is no reason to warn."""
    assert list(version_warnings(version)) == []
