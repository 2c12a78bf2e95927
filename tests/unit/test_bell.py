"""Hearing which shards have work sooner than before, on each kind of server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TypeAlias

import pytest
import redis

from lowkiq_lambda import BackendDenied, BackendError, BackendUnavailable
from lowkiq_lambda.store.shard import bell as bell_module
from lowkiq_lambda.store.shard.bell import Bell
from lowkiq_lambda.store.shard.keys import ShardRef, bell_channel
from tests.servers import Cluster, FaultProxy, MakeServer, SentinelSetup, Server
from tests.waiting import eventually

OpenBell: TypeAlias = Callable[..., Bell]


@pytest.fixture
def shards(queue_name: str) -> list[ShardRef]:
    """Three shards of a queue."""
    return [ShardRef(queue_name, 3, index) for index in range(3)]


@pytest.fixture
def open_bell(shards: Sequence[ShardRef]) -> Iterator[OpenBell]:
    """Opens bells for the queue's shards."""
    with ExitStack() as stack:

        def opened(url: str, timeout: float = 5.0) -> Bell:
            bell = stack.enter_context(Bell(url, shards, timeout=timeout))
            bell.open()
            return bell

        yield opened


def heard(bell: Bell, count: int) -> list[ShardRef]:
    """What is heard until it is so many."""
    found: list[ShardRef] = []

    def often_enough() -> bool:
        found.extend(bell.hear(0.1))
        return len(found) >= count

    eventually(often_enough)
    return found


def test_a_ring_names_the_shards(open_bell: OpenBell, server: Server, shards: list[ShardRef]) -> None:
    """What is published as "0,2" means the shards with these indexes, of this queue."""
    bell = open_bell(server.url)
    server.admin.publish(bell_channel(shards[0].queue_name), "0,2")

    assert [shards[0], shards[2]] == heard(bell, 2)


@pytest.mark.parametrize("message", ["", "x", "-1", "3", "1e3", "²", b"\xff,\x00", "9" * 5_000, ",,"])
def test_what_is_no_index_is_passed_over(
    open_bell: OpenBell, server: Server, shards: list[ShardRef], message: str | bytes
) -> None:
    """Anybody may publish there, a producer with more shards too: that harms nothing."""
    bell = open_bell(server.url)
    channel = bell_channel(shards[0].queue_name)
    server.admin.publish(channel, message)
    server.admin.publish(channel, "1")

    assert [shards[1]] == heard(bell, 1)


def test_silence_lasts_as_long_as_was_said(open_bell: OpenBell, server: Server) -> None:
    """Nothing rung is an empty answer, in time."""
    bell = open_bell(server.url)
    before = monotonic()

    assert [] == bell.hear(0.05)
    assert 0.04 <= monotonic() - before < 5


def test_a_bell_of_many_queues_is_one_connection(server: Server, queue_name: str) -> None:
    """One subscriber connection for each process, however many queues there are."""
    shards = [ShardRef(f"{queue_name}-{number}", 1, 0) for number in range(50)]
    with Bell(server.url, shards, timeout=5.0) as bell:
        bell.open()
        server.admin.publish(bell_channel(shards[49].queue_name), "0")

        assert [shards[49]] == heard(bell, 1)
        mine = [one for one in server.admin.client_list() if one["sub"] == "50"]
        assert 1 == len(mine)


def test_a_lost_connection_is_an_error_and_can_be_opened_again(
    open_bell: OpenBell, server: Server, shards: list[ShardRef], fault_proxy: FaultProxy
) -> None:
    """Whoever listens must know, as what was rung meanwhile is lost."""
    bell = open_bell(fault_proxy.url)
    fault_proxy.cut()
    with pytest.raises(BackendUnavailable):
        heard(bell, 1)
    bell.open()
    server.admin.publish(bell_channel(shards[0].queue_name), "2")

    assert [shards[2]] == heard(bell, 1)


def test_a_server_that_is_away_is_an_error(open_bell: OpenBell, fault_proxy: FaultProxy) -> None:
    """Opening says so at once."""
    fault_proxy.refuse()

    with pytest.raises(BackendUnavailable):
        open_bell(fault_proxy.url)


def test_a_server_that_fell_silent_is_an_error(
    open_bell: OpenBell, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that nobody closed may lead nowhere: now and then the server is asked, and must answer."""
    monkeypatch.setattr(bell_module, "SILENCE", 0.05)
    server = make_server()
    bell = open_bell(server.url, timeout=0.2)
    for _ in range(5):
        assert [] == bell.hear(0.06)
    with server.frozen(), pytest.raises(BackendUnavailable, match="does not answer"):
        heard(bell, 1)


def test_a_server_that_does_not_confirm_is_an_error(open_bell: OpenBell, make_server: MakeServer) -> None:
    """A server that takes connections and does nothing is away."""
    server = make_server()
    with server.frozen(), pytest.raises(BackendUnavailable):
        open_bell(server.url, timeout=0.1)


def test_a_denied_channel_is_an_error(open_bell: OpenBell, make_server: MakeServer) -> None:
    """E-42: an ACL may refuse the channels; the error says what to correct."""
    server = make_server()

    with pytest.raises(BackendDenied):
        open_bell(server.add_user("deaf", "~*", "+@all", "resetchannels"))


def test_a_closed_bell_hears_nothing(open_bell: OpenBell, server: Server) -> None:
    """Listening without a connection is an error, not a wait for ever."""
    bell = open_bell(server.url)
    bell.close()
    bell.close()

    with pytest.raises(BackendError):
        bell.hear(0.1)


def test_each_node_of_a_cluster_rings_for_all(open_bell: OpenBell, cluster: Cluster, shards: list[ShardRef]) -> None:
    """A cluster carries a ring from any node to any subscriber."""
    bell = open_bell(cluster.url)
    for index, node in enumerate(cluster.nodes):
        node.admin.publish(bell_channel(shards[0].queue_name), str(index))

    assert set(shards) == set(heard(bell, 3))


def test_a_failover_moves_the_bell(open_bell: OpenBell, sentinel: SentinelSetup, shards: list[ShardRef]) -> None:
    """After a failover the bell is opened on the new primary."""
    bell = open_bell(sentinel.url)
    primary = sentinel.kill_primary()

    def rung_again() -> list[ShardRef]:
        try:
            primary.admin.publish(bell_channel(shards[0].queue_name), "1")
            return bell.hear(0.1)
        except (BackendError, redis.RedisError):
            try_again(bell)
            return []

    assert [shards[1]] == eventually(rung_again, timeout=60)


def try_again(bell: Bell) -> None:
    """Open it, if that is possible by now."""
    try:
        bell.open()
    except BackendError:
        return
