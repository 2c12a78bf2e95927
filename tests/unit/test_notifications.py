"""Hearing which shards have work sooner than before, on each kind of server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TypeAlias

import pytest
import redis

from lowkiq_lambda import BackendDenied, BackendError, BackendUnavailable
from lowkiq_lambda.store.shard import notifications as notifications_module
from lowkiq_lambda.store.shard.keys import ShardRef, notification_channel
from lowkiq_lambda.store.shard.notifications import Heard, Notifications
from tests.kit.servers import Cluster, FaultProxy, MakeServer, SentinelSetup, Server
from tests.kit.waiting import eventually

Subscribe: TypeAlias = Callable[..., Notifications]


@pytest.fixture
def shards(queue_name: str) -> list[ShardRef]:
    """Three shards of a queue."""
    return [ShardRef(queue_name, 3, index) for index in range(3)]


@pytest.fixture
def subscribe(shards: Sequence[ShardRef]) -> Iterator[Subscribe]:
    """Subscribes to the queue's shards."""
    with ExitStack() as stack:

        def opened(url: str, timeout: float = 5.0) -> Notifications:
            subscription = stack.enter_context(Notifications(url, shards, timeout=timeout))
            subscription.open()
            return subscription

        yield opened


def heard(subscription: Notifications, count: int) -> list[ShardRef]:
    """What is heard until it is so many."""
    found: list[ShardRef] = []

    def often_enough() -> bool:
        found.extend(subscription.receive(0.1).shards)
        return len(found) >= count

    eventually(often_enough)
    return found


def test_a_notification_names_the_shards(subscribe: Subscribe, server: Server, shards: list[ShardRef]) -> None:
    """What is published as "0,2" means the shards with these indexes, of this queue."""
    subscription = subscribe(server.url)
    server.admin.publish(notification_channel(shards[0].queue_name), "0,2")

    assert [shards[0], shards[2]] == heard(subscription, 2)


def test_an_offer_is_told_from_work(subscribe: Subscribe, server: Server, shards: list[ShardRef]) -> None:
    """Of a shard that is offered a place nobody knows whether it has work."""
    subscription = subscribe(server.url)
    server.admin.publish(notification_channel(shards[0].queue_name), "offer 2,0")

    assert Heard([shards[2], shards[0]], is_offer=True) == subscription.receive(5.0)


@pytest.mark.parametrize(
    "message", ["", "x", "offer", "offer offer 1", "-1", "3", "1e3", "²", b"\xff,\x00", "9" * 5_000, ",,"]
)
def test_what_is_no_index_is_passed_over(
    subscribe: Subscribe, server: Server, shards: list[ShardRef], message: str | bytes
) -> None:
    """Anybody may publish there, a producer with more shards too: that harms nothing."""
    subscription = subscribe(server.url)
    channel = notification_channel(shards[0].queue_name)
    server.admin.publish(channel, message)
    server.admin.publish(channel, "1")

    assert [shards[1]] == heard(subscription, 1)


def test_silence_lasts_as_long_as_was_said(subscribe: Subscribe, server: Server) -> None:
    """No notification is an empty answer, in time."""
    subscription = subscribe(server.url)
    before = monotonic()

    assert Heard([]) == subscription.receive(0.05)
    assert 0.04 <= monotonic() - before < 5


def test_a_subscription_of_many_queues_is_one_connection(server: Server, queue_name: str) -> None:
    """One subscriber connection for each process, however many queues there are."""
    shards = [ShardRef(f"{queue_name}-{number}", 1, 0) for number in range(50)]
    with Notifications(server.url, shards, timeout=5.0) as subscription:
        subscription.open()
        server.admin.publish(notification_channel(shards[49].queue_name), "0")

        assert [shards[49]] == heard(subscription, 1)
        mine = [one for one in server.admin.client_list() if one["sub"] == "50"]
        assert 1 == len(mine)


def test_a_lost_connection_is_an_error_and_can_be_opened_again(
    subscribe: Subscribe, server: Server, shards: list[ShardRef], fault_proxy: FaultProxy
) -> None:
    """Whoever listens must know, as notifications of meanwhile are lost."""
    subscription = subscribe(fault_proxy.url)
    fault_proxy.cut()
    with pytest.raises(BackendUnavailable):
        heard(subscription, 1)
    subscription.open()
    server.admin.publish(notification_channel(shards[0].queue_name), "2")

    assert [shards[2]] == heard(subscription, 1)


def test_a_server_that_is_away_is_an_error(subscribe: Subscribe, fault_proxy: FaultProxy) -> None:
    """Opening says so at once."""
    fault_proxy.refuse()

    with pytest.raises(BackendUnavailable):
        subscribe(fault_proxy.url)


def test_a_server_that_fell_silent_is_an_error(
    subscribe: Subscribe, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that nobody closed may lead nowhere: now and then the server is asked, and must answer."""
    monkeypatch.setattr(notifications_module, "SILENCE", 0.05)
    server = make_server()
    subscription = subscribe(server.url, timeout=0.2)
    for _ in range(5):
        assert Heard([]) == subscription.receive(0.06)
    with server.frozen(), pytest.raises(BackendUnavailable, match="does not answer"):
        heard(subscription, 1)


def test_a_server_that_does_not_confirm_is_an_error(subscribe: Subscribe, make_server: MakeServer) -> None:
    """A server that takes connections and does nothing is away."""
    server = make_server()
    with server.frozen(), pytest.raises(BackendUnavailable):
        subscribe(server.url, timeout=0.1)


def test_a_denied_channel_is_an_error(subscribe: Subscribe, make_server: MakeServer) -> None:
    """E-42: an ACL may refuse the channels; the error says what to correct."""
    server = make_server()

    with pytest.raises(BackendDenied):
        subscribe(server.add_user("deaf", "~*", "+@all", "resetchannels"))


def test_a_closed_subscription_receives_nothing(subscribe: Subscribe, server: Server) -> None:
    """Listening without a connection is an error, not a wait for ever."""
    subscription = subscribe(server.url)
    subscription.close()
    subscription.close()

    with pytest.raises(BackendError):
        subscription.receive(0.1)


def test_each_node_of_a_cluster_notifies_all(subscribe: Subscribe, cluster: Cluster, shards: list[ShardRef]) -> None:
    """A cluster carries a notification from any node to any subscriber."""
    subscription = subscribe(cluster.url)
    for index, node in enumerate(cluster.nodes):
        node.admin.publish(notification_channel(shards[0].queue_name), str(index))

    assert set(shards) == set(heard(subscription, 3))


def test_a_failover_moves_the_subscription(
    subscribe: Subscribe, sentinel: SentinelSetup, shards: list[ShardRef]
) -> None:
    """After a failover it is made on the new primary."""
    subscription = subscribe(sentinel.url)
    primary = sentinel.kill_primary()

    def notified_again() -> list[ShardRef]:
        try:
            primary.admin.publish(notification_channel(shards[0].queue_name), "1")
            return subscription.receive(0.1).shards
        except (BackendError, redis.RedisError):
            try_again(subscription)
            return []

    assert [shards[1]] == eventually(notified_again, timeout=60)


def try_again(subscription: Notifications) -> None:
    """Open it, if that is possible by now."""
    try:
        subscription.open()
    except BackendError:
        return
