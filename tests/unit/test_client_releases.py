"""The releases 5 to 8 of redis-py serve alike: what differs between them is in one module."""

import re
import tomllib
from pathlib import Path

from redis.cluster import RedisCluster

from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.pool import tls_options
from tests.kit.servers import Cluster, Server

ROOT = Path(__file__).parents[2]


def test_the_client_of_celery_serves() -> None:
    """Both run in one environment while jobs move from one to the other: kombu 5.5 takes redis up to 5.2.1."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (redis,) = [name for name in declared if name.startswith("redis")]
    floor = re.findall(r">=([\d.]+)", redis)[0]

    assert tuple(map(int, floor.split("."))) <= (5, 2, 1)


def test_the_name_of_a_tls_server_is_checked_by_every_release() -> None:
    """Releases before 6 do not check it unless they are told to; a check without a certificate is refused by ssl."""
    assert {"ssl_check_hostname": True} == tls_options({})
    assert {"ssl_check_hostname": False, "ssl_cert_reqs": "none"} == tls_options({"ssl_cert_reqs": "none"})
    assert {"ssl_check_hostname": False} == tls_options({"ssl_check_hostname": False})


def test_a_cluster_s_pools_have_every_option(cluster: Cluster) -> None:
    """Also those that the cluster client of an old release does not hand on: how long to wait, for one."""
    client = connect(cluster.url, max_connections=3, timeout=5, pool_timeout=0.25)
    assert isinstance(client, RedisCluster)

    pool = client.get_redis_connection(client.get_primaries()[0]).connection_pool

    assert 0.25 == getattr(pool, "timeout", None)
    assert 3 == pool.max_connections
    assert 2 == pool.connection_kwargs["protocol"]


def test_a_connection_says_whose_it_is(server: Server) -> None:
    """CLIENT LIST names the library, by whatever option the release has for it."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    number = client.client_id()

    (listed,) = server.admin.client_list(client_id=[str(number)])

    assert "lowkiq_lambda" == listed.get("lib-name", "lowkiq_lambda")
