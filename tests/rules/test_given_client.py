"""A client of redis-py, or a function that makes one, in place of a URL (L-49)."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
import redis
import redis.asyncio
from redis.backoff import ExponentialBackoff
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from redis.sentinel import Sentinel

from lowkiq_lambda import BackendUnavailable, Config, ConfigError, Lowkiq
from lowkiq_lambda.base.address import parse_address
from lowkiq_lambda.store.shard.keys import notification_channel
from lowkiq_lambda.store.shard.notifications import Notifications
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster, FaultProxy, SentinelSetup, Server
from tests.kit.workers import declare

Client: TypeAlias = redis.Redis | RedisCluster
MakeClient: TypeAlias = Callable[..., redis.Redis]
GOOD: dict[str, Any] = {"protocol": 2, "socket_timeout": 5}


@pytest.fixture
def make_client(server_url: str) -> Iterator[MakeClient]:
    """Makes clients of the shared server, each with what calls rely on and the options given."""
    with ExitStack() as stack:

        def make(url: str = server_url, **options: Any) -> redis.Redis:
            client = redis.Redis.from_url(url, **{**GOOD, **options})
            stack.callback(client.close)
            return client

        yield make


def push_and_drain(app: Lowkiq, queue_name: str) -> list[str]:
    """The ids that were handled, of two pushes and a drain."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2)
    worker.push_many([{"id": "a"}, {"id": "b"}])
    app.drain()
    return sorted(id for batch in notes.batches for id in batch)


def test_l49_a_client_serves_pushes_and_drains(make_app: MakeApp, make_client: MakeClient, queue_name: str) -> None:
    """L-49: both go by its pool, and the app leaves it open: it may have other users."""
    client = make_client()
    app = make_app(redis_url=None, redis=client)

    assert ["a", "b"] == push_and_drain(app, queue_name)

    connections = client.connection_pool._created_connections
    assert 1 <= connections <= 8
    assert client.ping()


def test_l49_a_function_makes_a_client_for_each_use(
    make_app: MakeApp, make_client: MakeClient, queue_name: str
) -> None:
    """L-49: pushes and drains have a client each, and none is made before it is used."""
    made: list[redis.Redis] = []

    def make() -> redis.Redis:
        made.append(make_client(retry=Retry(ExponentialBackoff(), 3), retry_on_error=[RedisConnectionError]))
        return made[-1]

    app = make_app(redis_url=None, redis=make)
    assert [] == made

    assert ["a", "b"] == push_and_drain(app, queue_name)
    assert 2 == len(made)


@pytest.mark.parametrize("pool_class", [redis.ConnectionPool, redis.BlockingConnectionPool])
def test_l49_threads_share_its_pool(
    make_app: MakeApp, server_url: str, queue_name: str, pool_class: type[redis.ConnectionPool]
) -> None:
    """L-49: as many calls at once as it has room for, whatever kind it is."""
    pool = pool_class.from_url(server_url, max_connections=16, **GOOD)
    app = make_app(redis_url=None, redis=redis.Redis(connection_pool=pool))
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2)
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(worker.push_many, [{"id": number}]) for number in range(100)]:
            done.result()
    app.drain()

    assert {str(number) for number in range(100)} == {id for batch in notes.batches for id in batch}
    pool.disconnect()


def test_l49_a_clusters_client_serves(make_app: MakeApp, cluster: Cluster, queue_name: str) -> None:
    """L-49: shards lie on all nodes, and each call goes where its shard is."""
    host, port = parse_address(cluster.url).hosts[0]
    client = RedisCluster(host=host, port=port, **GOOD)
    app = make_app(redis_url=None, redis=client)

    assert ["a", "b"] == push_and_drain(app, queue_name)
    assert app.core.connections.url.startswith("redis+cluster://")
    client.close()


def test_l49_a_client_of_a_sentinel_serves(make_app: MakeApp, sentinel: SentinelSetup, queue_name: str) -> None:
    """L-49: it finds the primary by itself."""
    address = parse_address(sentinel.url)
    finder = Sentinel([*address.hosts], sentinel_kwargs={"socket_timeout": 5})
    client = finder.master_for(address.service, **GOOD)
    app = make_app(redis_url=None, redis=client)

    assert ["a", "b"] == push_and_drain(app, queue_name)
    assert f"redis+sentinel:///{address.service}" == app.core.connections.url
    client.close()


def test_l49_notifications_come_on_it_and_give_their_connection_back(
    make_client: MakeClient, app: Lowkiq, queue_name: str
) -> None:
    """L-49: whoever subscribes again and again takes no more than one place in its pool, and closes nothing else."""
    client = make_client(max_connections=2, health_check_interval=1)
    worker = declare(app, queue_name, Notes(), shards_count=2)
    with Notifications("", app.core.queues[worker.queue_name].shards, timeout=5.0, client=client) as subscription:
        for _ in range(5):
            subscription.open()
        client.publish(notification_channel(queue_name), "1")
        heard = subscription.receive(5.0)

    assert [1] == [shard.number for shard in heard.shards]
    assert client.ping()


def test_l49_a_forked_child_pushes_on_connections_of_its_own(server: Server, queue_name: str) -> None:
    """L-49, E-99: the pool of redis-py knows that it was forked, so parent and child read no answers of each other."""
    program = [sys.executable, "-c", _FORKING, server.url, queue_name]
    ended = subprocess.run(program, check=True, capture_output=True, text=True, timeout=120)

    assert "['child', 'parent']" == ended.stdout.strip()


_FORKING = """
import os, sys
import redis
from lowkiq_lambda import Config, Lowkiq

url, queue_name = sys.argv[1:]
app = Lowkiq(Config(redis=redis.Redis.from_url(url, protocol=2, socket_timeout=5)))
seen = []

@app.worker(queue_name=queue_name)
def note(batch):
    seen.extend(batch)

note.push("parent")
child = os.fork()
if child == 0:
    note.push("child")
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0
app.drain()
print(sorted(seen))
"""


def test_l49_what_goes_wrong_is_told_as_with_a_url(
    make_app: MakeApp, make_client: MakeClient, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """L-49: a server that is away is a BackendUnavailable, whatever retries the client has."""
    client = make_client(fault_proxy.url, socket_timeout=0.2, retry=Retry(ExponentialBackoff(cap=0.01, base=0.01), 2))
    app = make_app(redis_url=None, redis=client, redis_timeout=0.2)
    worker = declare(app, queue_name, Notes())
    fault_proxy.refuse()

    with pytest.raises(BackendUnavailable):
        worker.push_many([{"id": "a"}])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"decode_responses": True}, "give it decode_responses=False"),
        ({"protocol": 3}, "give it protocol=2"),
        ({"socket_timeout": None}, "give it a socket_timeout of at most 5 seconds, not None"),
        ({"socket_timeout": 60}, "give it a socket_timeout of at most 5 seconds, not 60"),
        ({"max_connections": 1}, "its pool has room for 1 connections, and 5 are asked for"),
    ],
)
def test_l49_a_client_that_calls_cannot_rely_on_is_refused(
    make_app: MakeApp, make_client: MakeClient, queue_name: str, options: dict[str, Any], why: str
) -> None:
    """L-49: with what to give it, before anything is sent."""
    app = make_app(redis_url=None, redis=make_client(**options))
    worker = declare(app, queue_name, Notes())

    with pytest.raises(ConfigError, match=why):
        worker.push_many([{"id": "a"}])


def test_l49_what_is_no_client_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """L-49: at once where that can be seen, else when it is made; an asynchronous client cannot serve threads."""
    with pytest.raises(ConfigError, match=r"redis=.* is refused: expected a client of redis-py"):
        Config(redis="redis://localhost")  # type: ignore[arg-type]  # it is refused
    worker = declare(make_app(redis_url=None, redis=redis.asyncio.Redis), queue_name, Notes())

    with pytest.raises(ConfigError, match=r"expected redis.Redis or .*, not redis.asyncio.client.Redis"):
        worker.push_many([{"id": "a"}])


def test_l49_a_client_and_a_url_are_too_much(make_client: MakeClient) -> None:
    """L-49: one of them names the server; an app that is told of another one later goes by that."""
    client = make_client("redis://user:s3cret@localhost:1")
    for also in ({"redis_url": "redis://localhost"}, {"credentials": lambda: ("", "")}):
        with pytest.raises(ConfigError, match="take one away") as refused:
            Config(redis=client, **also)
        assert "s3cret" not in str(refused.value)

    given = Config.from_env({"LOWKIQ_REDIS_URL": "redis://a", "REDIS_URL": "redis://b"}, redis=client)
    assert (client, None) == (given.redis, given.redis_url)
    assert "s3cret" not in repr(given)
    assert (None, "redis://a") == ((named := given.evolve(redis_url="redis://a")).redis, named.redis_url)
    assert (client, None) == ((back := named.evolve(redis=client)).redis, back.redis_url)


def test_l49_a_server_that_cannot_be_found_is_told() -> None:
    """L-49: a cluster's client asks for its nodes while it is made."""
    app = Lowkiq(Config(redis=lambda: RedisCluster(host="127.0.0.1", port=1, **GOOD)))

    with pytest.raises(BackendUnavailable):
        _ = app.core.connections.url


def test_l49_the_place_of_a_client_has_no_password(make_client: MakeClient) -> None:
    """L-49: what logs and the command line say of the server."""
    places = {
        "redis://user:s3cret@localhost:1/3": "redis://localhost:1/3",
        "rediss://localhost:2": "rediss://localhost:2/0",
        "unix://user:s3cret@/tmp/redis.sock?db=1": "unix:///tmp/redis.sock",
    }

    assert [*places.values()] == [Lowkiq(Config(redis=make_client(url))).core.connections.url for url in places]
