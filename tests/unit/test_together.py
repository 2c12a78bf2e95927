"""Looks side by side: what they ask at one moment is sent as one."""

import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from lowkiq_lambda.store.server import together
from lowkiq_lambda.store.server.connection import connect, is_cluster
from lowkiq_lambda.store.server.pipelines import ask, send_each, stream, ungathered
from lowkiq_lambda.store.server.together import Together, side_by_side
from tests.kit.sends import counted_sends
from tests.kit.servers import Cluster, FaultProxy, Server


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    """A client with one connection: more are not needed."""
    with closing(connect(server.url, max_connections=1, timeout=5.0, pool_timeout=1)) as client:
        assert not is_cluster(client)
        client.ping()
        yield client


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that something is sent."""
    return counted_sends(monkeypatch)


def echoes(client: redis.Redis, *words: str) -> list[bytes]:
    """The words, one round trip behind the other."""
    return [ask(client, ("ECHO", word)) for word in words]


def test_looks_take_as_many_round_trips_as_the_longest(client: redis.Redis, sent: list[object]) -> None:
    """Each gets the answers to its own commands, in their order, whatever way it asks."""
    sent.clear()

    with Together() as side:
        one = side.look(echoes, client, "a", "b", "c")
        two = side.look(lambda: [*stream(client, [("ECHO", "d"), ("ECHO", "e")])])
        three = side.look(send_each, client, [("", ("ECHO", "f"))])
        none = side.look(lambda: "g")

    assert ([b"a", b"b", b"c"], [b"d", b"e"], [b"f"], "g") == (one.result, two.result, three.result, none.result)
    assert 3 == len(sent)


def test_looks_within_a_look_go_with_the_others(client: redis.Redis, sent: list[object]) -> None:
    """What they ask is a part of what the outer ones ask."""

    def inner() -> list[list[bytes]]:
        with Together() as side:
            looks = [side.look(echoes, client, word, word) for word in ("a", "b")]
        return [look.result for look in looks]

    sent.clear()

    with Together() as side:
        looks = [side.look(inner), side.look(inner)]

    assert [[[b"a", b"a"], [b"b", b"b"]]] * 2 == [look.result for look in looks]
    assert 2 == len(sent)


def test_many_looks_of_a_kind_run_some_at_a_time(client: redis.Redis, sent: list[object]) -> None:
    """A thread for each of a thousand would be too many."""
    words = [str(number) for number in range(together.AT_ONCE + 1)]
    sent.clear()

    looks = [*side_by_side(partial(echoes, client, word) for word in words)]

    assert [[word.encode()] for word in words] == [look.result for look in looks]
    assert 2 == len(sent)


def test_an_error_is_that_of_its_look_alone(client: redis.Redis) -> None:
    """Where the result of a look is taken its error is raised; the others have theirs."""
    with Together() as side:
        refused = side.look(lambda: client.execute_command("NONSENSE"))
        wrong, fine = side.look(lambda: 1 // 0), side.look(echoes, client, "a")

    assert [b"a"] == fine.result
    with pytest.raises(ResponseError, match="unknown command"):
        _ = refused.result
    with pytest.raises(ZeroDivisionError):
        _ = wrong.result


def test_a_broken_connection_breaks_all_looks_as_if_each_had_its_own(server: Server) -> None:
    """Neither hangs, and both raise what a lone call raises."""
    with FaultProxy(server) as proxy, closing(connect(proxy.url, max_connections=2, timeout=5.0, pool_timeout=1)) as it:
        assert not is_cluster(it)
        it.ping()
        proxy.close()

        with Together() as side:
            looks = [side.look(echoes, it, "a"), side.look(lambda: [*stream(it, [("PING",)])])]

    for look in looks:
        with pytest.raises(RedisConnectionError):
            _ = look.result


def test_a_look_may_wait_for_another_one(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are sent without those of a look that does not ask, and holds up nobody for ever."""
    monkeypatch.setattr(together, "PATIENCE", 0.01)
    has_asked = threading.Event()

    def first() -> list[bytes]:
        answers = echoes(client, "a")
        has_asked.set()
        return answers

    with Together() as side:
        looks = [side.look(first), side.look(has_asked.wait, 10.0)]

    assert [[b"a"], True] == [look.result for look in looks]


def test_a_call_may_be_measured_alone(client: redis.Redis, sent: list[object]) -> None:
    """It goes by itself, even in a look."""

    def alone() -> bytes:
        with ungathered():
            answer: bytes = ask(client, ("ECHO", "a"))
        return answer

    sent.clear()

    with Together() as side:
        looks = [side.look(alone), side.look(alone)]

    assert [b"a", b"a"] == [look.result for look in looks]
    assert 2 == len(sent)


def test_a_block_that_fails_looks_at_nothing() -> None:
    """Its own error is the one that is raised."""
    looked = count()

    def fail() -> None:
        with Together() as side:
            side.look(lambda: next(looked))
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert 0 == next(looked)


def test_nodes_of_a_cluster_are_asked_together(cluster: Cluster) -> None:
    """Each command goes to the node of its key."""
    with closing(connect(cluster.url, max_connections=4, timeout=5.0, pool_timeout=1)) as client:
        for number in range(9):
            client.set(f"together:{number}", number)

        with Together() as side:
            looks = [side.look(send_each, client, [(key, ("GET", key))]) for key in (f"together:{n}" for n in range(9))]

        assert [[b"%d" % number] for number in range(9)] == [look.result for look in looks]
