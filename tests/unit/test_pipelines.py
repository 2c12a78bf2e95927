"""Many commands at once, each sent once."""

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from types import FrameType
from typing import Any

import pytest
import redis
from hiredis import pack_command
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from lowkiq_lambda.store.server import pipelines
from lowkiq_lambda.store.server.connection import connect, is_cluster
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.pipelines import Command, ask, send_each, stream
from tests.kit.servers import Cluster, FaultProxy, Server
from tests.kit.waiting import eventually

COUNT = 30
INTERRUPTED_PACKING = """
import random, signal, time
from lowkiq_lambda.store.server.pipelines import _packed

def interrupt(*_):
    raise SystemExit

signal.signal(signal.SIGALRM, interrupt)
words = ("EVALSHA", "a" * 40, 21, *range(300, 340), *(number + 0.5 for number in range(40)))
until, interruptions = time.monotonic() + 1.5, 0
while time.monotonic() < until:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * 5e-4 + 1e-5)
        # A timer may be late by seconds on a busy machine: the process ends all the same.
        while time.monotonic() < until:
            _packed(words)
    except SystemExit:
        interruptions += 1
signal.setitimer(signal.ITIMER_REAL, 0)
raise SystemExit(0 if interruptions > 100 else 3)
"""


@pytest.fixture
def cluster_client(cluster: Cluster) -> Iterator[RedisCluster]:
    """A client of the cluster that gives up soon."""
    with closing(connect(cluster.url, max_connections=4, timeout=0.5, pool_timeout=1)) as client:
        assert isinstance(client, RedisCluster)
        yield client


def plain_client(server: Server) -> redis.Redis:
    """A client with one connection."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    assert not is_cluster(client)
    return client


def keys_of(name: str) -> list[str]:
    """Keys in many slots."""
    return [f"{name}:{number}" for number in range(COUNT)]


def increments(keys: list[str]) -> list[tuple[str, Command]]:
    """One command for each key, which shows how often it was performed."""
    return [(key, ("INCR", key)) for key in keys]


def test_answers_come_in_order(server: Server, queue_name: str) -> None:
    """Each command has its own answer, an error too, at its place."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    commands: list[tuple[str, Command]] = [
        (queue_name, ("SET", queue_name, "text")),
        (queue_name, ("INCR", queue_name)),
        (queue_name, ("GET", queue_name)),
    ]

    first, second, third = send_each(client, commands)

    assert (first, third) == (b"OK", b"text")
    assert isinstance(second, ResponseError)
    assert send_each(client, []) == []


def test_all_are_one_round_trip(server: Server, queue_name: str) -> None:
    """P8: a server gets all commands at once: for a thousand it reads its socket a handful of times."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    before = server.admin.info("stats")["total_reads_processed"]

    send_each(client, [(queue_name, ("INCR", queue_name))] * 1_000)

    reads = server.admin.info("stats")["total_reads_processed"] - before
    assert reads < 50


def test_answers_are_there_while_the_node_is_still_at_work(server: Server, queue_name: str) -> None:
    """Who asks for much can begin with the first of it."""
    client = plain_client(server)
    replies = stream(client, [("PING",), ("BLPOP", queue_name, 0), ("PING",)])

    assert next(replies) == b"PONG"
    server.admin.rpush(queue_name, "what it waits for")
    assert [*replies] == [[queue_name.encode(), b"what it waits for"], b"PONG"]


def test_answers_that_nobody_wanted_are_nobodys(server: Server, queue_name: str) -> None:
    """A connection with answers left on it is not used again; one that was read to its end is."""
    client = plain_client(server)
    with closing(stream(client, [("CLIENT", "ID"), ("PING",), ("PING",)])) as replies:
        left = next(replies)
    with closing(stream(client, [("CLIENT", "ID"), ("PING",)])) as replies:
        read = [next(replies), next(replies)]

    assert [read[0]] == send_each(client, [(queue_name, ("CLIENT", "ID"))])
    assert left != read[0]


@pytest.mark.parametrize(("sender", "count"), [(ask, 1), (stream, 2)])
def test_an_interruption_takes_no_connection_from_the_pool(
    server: Server, queue_name: str, sender: Callable[..., Any], count: int
) -> None:
    """A signal right after the only connection was taken raises, and the next call has the connection."""

    def interrupt(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code is not sender.__code__:
            return None
        if event == "line" and frame.f_locals.get("connection") is not None:
            raise KeyboardInterrupt
        return interrupt

    client, before = plain_client(server), sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            send_each(client, [(queue_name, ("PING",))] * count)
    finally:
        sys.settrace(before)

    assert [b"PONG"] == send_each(client, [(queue_name, ("PING",))])


def test_what_is_packed_holds_no_number(server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are text before hiredis packs them, with the same bytes: a signal that raises in there crashes it."""
    words = ("EVAL", "return {ARGV[1], ARGV[2], ARGV[3], ARGV[4]}", 1, queue_name, 1.5, -7, math.inf, 1e300)
    packed: list[tuple[object, ...]] = []

    def pack(given: tuple[object, ...]) -> bytes:
        packed.append(given)
        written: bytes = pack_command(given)  # type: ignore[arg-type]  # its types know commands of one word
        return written

    monkeypatch.setattr(pipelines, "pack_command", pack)

    assert [[b"1.5", b"-7", b"inf", b"1e+300"]] == send_each(plain_client(server), [(queue_name, words)])
    assert {str} == {type(word) for given in packed for word in given}
    assert [pack_command(words)] == [pack_command(given) for given in packed]  # type: ignore[arg-type]  # as above


def test_signals_that_raise_while_commands_are_packed_crash_no_process() -> None:
    """A process whose signal handler raises again and again while it packs commands lives."""
    # Unmeasured: a handler that raises anywhere leaves the locks of coverage held.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_PACKING], env=environ, check=False, timeout=20)

    assert 0 == ended.returncode


def test_an_answer_that_was_not_waited_for_is_nobodys(server: Server, queue_name: str) -> None:
    """A call that is interrupted while it waits leaves no connection on which its answer would come to the next."""
    client = plain_client(server)
    before = ask(client, ("CLIENT", "ID"))

    def is_waiting() -> bool:
        return "b" in server.admin.client_list(client_id=[str(before)])[0]["flags"]

    def interrupt() -> None:
        eventually(is_waiting)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        ask(client, ("BLPOP", queue_name, 30))
    interrupting.join()
    server.admin.rpush(queue_name, "what nobody waits for any more")

    assert before != ask(client, ("CLIENT", "ID"))


def test_what_was_read_of_a_broken_connection_counts(server: Server, queue_name: str) -> None:
    """The answers that came are there, and that there are no more is told."""
    client = plain_client(server)
    replies = stream(client, [("CLIENT", "ID"), ("BLPOP", queue_name, 0), ("PING",)])
    server.admin.client_kill_filter(_id=str(next(replies)))

    with pytest.raises(RedisConnectionError):
        next(replies)
    assert send_each(client, [(queue_name, ("PING",))]) == [b"PONG"]


def test_cluster_answers_come_in_order(cluster_client: RedisCluster, queue_name: str) -> None:
    """Commands for all nodes have their answers in the order of the commands."""
    keys = keys_of(queue_name)
    sets: list[tuple[str, Command]] = [(key, ("SET", key, key)) for key in keys]
    gets: list[tuple[str, Command]] = [(key, ("GET", key)) for key in keys]

    assert send_each(cluster_client, sets) == [b"OK"] * COUNT
    assert send_each(cluster_client, gets) == [key.encode() for key in keys]
    assert len({cluster_client.get_node_from_key(key).name for key in keys}) == 3


def test_lost_replies_are_not_asked_for_again(server: Server, fault_proxy: FaultProxy, queue_name: str) -> None:
    """E-44: what was performed without an answer is told to be unknown, not sent again."""
    client = connect(fault_proxy.url, max_connections=1, timeout=5, pool_timeout=1)
    fault_proxy.drop_reply_after(queue_name.encode())

    answers = send_each(client, [(queue_name, ("INCR", queue_name))] * 3)

    assert [type(answer) for answer in answers] == [RedisConnectionError] * 3
    assert server.admin.get(queue_name) == b"3"


def test_silent_node_takes_nobody_with_it(cluster: Cluster, cluster_client: RedisCluster, queue_name: str) -> None:
    """E-44: a node that does not answer fails its own commands, which are performed at most once."""
    keys = keys_of(queue_name)
    # Connections to all nodes, so that the node stands still after it took the commands.
    send_each(cluster_client, [(key, ("GET", key)) for key in keys])
    silent = cluster.node_for(keys[0])

    with silent.frozen():
        answers = send_each(cluster_client, increments(keys))

    for key, answer in zip(keys, answers, strict=True):
        if cluster.node_for(key) is silent:
            assert isinstance(answer, RedisTimeoutError)
            assert silent.admin.get(key) in {None, b"1"}
        else:
            assert answer == 1
            assert cluster.client.get(key) == b"1"


def test_moved_slots_are_followed(cluster: Cluster, cluster_client: RedisCluster, queue_name: str) -> None:
    """E-40: what a node says it no longer serves is sent to the one that does."""
    keys = keys_of(queue_name)
    send_each(cluster_client, increments(keys))
    before = cluster.node_for(keys[0])
    target = next(node for node in cluster.nodes if node is not before)

    cluster.move_slot(cluster.slot_of(keys[0]), target)
    try:
        assert send_each(cluster_client, increments(keys)) == [2] * COUNT
    finally:
        cluster.move_slot(cluster.slot_of(keys[0]), before)


def test_slots_on_the_move_are_followed(cluster: Cluster, cluster_client: RedisCluster, queue_name: str) -> None:
    """E-40: in the middle of a move the keys are found where they are."""
    keys = keys_of(queue_name)
    send_each(cluster_client, increments(keys))
    slot, before = cluster.slot_of(keys[0]), cluster.node_for(keys[0])
    target = next(node for node in cluster.nodes if node is not before)

    cluster.begin_move(slot, target)
    cluster.move_keys(slot, target)
    try:
        assert send_each(cluster_client, increments(keys)) == [2] * COUNT
    finally:
        cluster.end_move(slot, target)
        cluster.move_slot(slot, before)


def test_dead_server_fails_all(make_server: Callable[..., Server]) -> None:
    """Where there is no connection, each command has that error, and nothing is raised."""
    server = make_server()
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    server.kill()

    answers = send_each(client, [("a", ("GET", "a"))] * 2)

    assert [isinstance(answer, REDIS_ERRORS) for answer in answers] == [True, True]


def test_later_calls_find_a_node_that_came_back(
    cluster: Cluster, cluster_client: RedisCluster, queue_name: str
) -> None:
    """After a node was silent, the same client serves all keys again."""
    keys = keys_of(queue_name)
    with cluster.node_for(keys[0]).frozen():
        send_each(cluster_client, increments(keys))

    def all_answered() -> bool:
        return all(isinstance(answer, int) for answer in send_each(cluster_client, increments(keys)))

    eventually(all_answered)


def test_dead_cluster_fails_all(make_server: Callable[..., Server], queue_name: str) -> None:
    """Where no node is left, each command has an error, and nothing is raised."""
    node = make_server(settings=["cluster-enabled yes"])
    node.admin.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16_383)
    eventually(lambda: node.admin.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
    url = f"redis+cluster://{node.host}:{node.port}"
    client = connect(url, max_connections=1, timeout=1, pool_timeout=1)
    assert send_each(client, increments([queue_name])) == [1]
    node.kill()

    answers = send_each(client, increments(keys_of(queue_name)))

    assert all(isinstance(answer, REDIS_ERRORS) for answer in answers)
    assert len(answers) == COUNT
