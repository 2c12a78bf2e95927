"""Many commands in one round trip for each node, each sent once.

A cluster client's own pipeline sends again what got no answer, even with its retries off, and forgets answers
that came before the one that is missing. So each node gets a pipeline of its own here.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hiredis import pack_command
from redis.exceptions import AskError, ClusterDownError, ResponseError, SlotNotCoveredError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from lowkiq_lambda.store.server.connection import is_cluster
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.pool import next_response, take_connection

if TYPE_CHECKING:
    from redis.client import Redis
    from redis.cluster import ClusterNode, RedisCluster
    from redis.connection import Connection, ConnectionInterface

Words: TypeAlias = Sequence[str | bytes | int | float]
Command: TypeAlias = Words | Callable[[], Words]
"""Or a function that makes it just when it is sent, because the wait for a connection has an unknown length."""


class _Gathered(threading.local):
    """The way of the calls of a thread, if it is not that of its own connection: see `Together`."""

    send_each: "Callable[[Any, Sequence[tuple[str, Command]]], list[Any]] | None" = None


gathered: Final = _Gathered()


@contextmanager
def ungathered() -> Iterator[None]:
    """What the thread asks in the block it sends by itself, even if it is one of looks side by side."""
    gathering, gathered.send_each = gathered.send_each, None
    try:
        yield
    finally:
        gathered.send_each = gathering


_NODES_CHANGED: Final = (ClusterDownError, RedisConnectionError, RedisTimeoutError)
_NOT_HERE: Final = (AskError, TryAgainError)
"""MOVED is a kind of ASK to redis-py."""
_PART: Final = 16 * 1024
"""Bytes: as many as a server reads at once."""


def send_each(
    client: "Redis | RedisCluster", commands: Sequence[tuple[str, Command]], strays: set[int] | None = None
) -> list[Any]:
    """The answer as it came, or the redis-py error, of each of the (key, command) pairs, in their order.

    If a node's connection breaks, what came before counts, and all that follows has its error: some of that may
    have been executed. `strays` gets the positions of those that a node has sent on to another one.
    """
    if not commands:
        return []
    if gathered.send_each is not None:
        return gathered.send_each(client, commands)
    if not is_cluster(client):
        return _send(client, [command for _, command in commands])
    answers: list[Any] = [None] * len(commands)
    try:
        places = _by_node(client, commands)
    except REDIS_ERRORS as error:
        return [error] * len(commands)
    for node, positions in places:
        replies = _send(client.get_redis_connection(node), [commands[position][1] for position in positions])
        for position, reply in zip(positions, replies, strict=True):
            answers[position] = reply
    if any(isinstance(answer, _NODES_CHANGED) for answer in answers):
        _refresh(client)
    redirected = [position for position, answer in enumerate(answers) if isinstance(answer, _NOT_HERE)]
    for position in redirected:
        answers[position] = _redirected(client, commands[position][1])
    if strays is not None:
        strays.update(redirected)
    return answers


def _by_node(client: "RedisCluster", commands: Sequence[tuple[str, Command]]) -> "list[tuple[ClusterNode, list[int]]]":
    places: dict[object, tuple[ClusterNode, list[int]]] = {}
    for position, (key, _) in enumerate(commands):
        node = client.get_node_from_key(key)
        if node is None:
            raise SlotNotCoveredError(f"No node of the cluster holds the slot of {key!r}.")
        places.setdefault(node.name, (node, []))[1].append(position)
    return [*places.values()]


def stream(client: "Redis", commands: Iterable[Command]) -> Generator[Any]:
    """The answer, or error, of each command, on one node and one by one: the first while it is at work on the others.

    Raises the errors of redis-py if the connection breaks. Close the generator if you do not read it to its end.
    """
    if gathered.send_each is not None:
        yield from map(_unless_broken, gathered.send_each(client, [("", command) for command in commands]))
        return
    connection: Connection | None = None
    left = 0

    def parts() -> Iterator[bytes]:
        nonlocal left
        for number, part in _packed_parts(commands):
            left += number
            yield part

    try:
        # In here: what interrupts this right after (a signal) must not take the connection from the pool for good.
        connection = take_connection(client.connection_pool)
        # The client's own ways to pack and send commands, or a pipeline, take several times as long.
        connection.send_packed_command(parts())
        while left:
            answer = _answer(connection)
            left -= 1
            yield answer
    except BaseException:
        # The answers of this call must not be taken for those of the next one.
        if connection is not None and left:
            connection.disconnect()
        raise
    finally:
        if connection is not None:
            client.connection_pool.release(connection)


def ask(client: "Redis", command: Command) -> Any:  # noqa: ANN401 - the answer of any command
    """The answer, or error, of one command on one node. Raises what redis-py does if the connection breaks."""
    if gathered.send_each is not None:
        return _unless_broken(*gathered.send_each(client, [("", command)]))
    connection: Connection | None = None
    try:
        # In here, as in `stream`.
        connection = take_connection(client.connection_pool)
        connection.send_packed_command((_packed(command),))
        return _answer(connection)
    except BaseException:
        # The answer of this call must not be taken for that of the next one.
        if connection is not None:
            connection.disconnect()
        raise
    finally:
        if connection is not None:
            client.connection_pool.release(connection)


def _send(client: "Redis", commands: Sequence[Command]) -> list[Any]:
    answers: list[Any] = []
    try:
        if len(commands) == 1:
            return [ask(client, commands[0])]
        with closing(stream(client, commands)) as coming:
            for answer in coming:
                answers.append(answer)  # noqa: PERF402 - those that came before an error count
    except REDIS_ERRORS as error:
        answers += [error] * (len(commands) - len(answers))
    return answers


def _packed_parts(commands: Iterable[Command]) -> Iterator[tuple[int, bytes]]:
    """How many of them are sent at once, and how: a node begins with the first while the next are made."""
    part, size = [], 0
    for command in commands:
        part.append(_packed(command))
        size += len(part[-1])
        if size > _PART:
            yield len(part), b"".join(part)
            part, size = [], 0
    if part:
        yield len(part), b"".join(part)


def _packed(command: Command) -> bytes:
    words = command() if callable(command) else command
    packed: bytes = pack_command(without_numbers(words))  # type: ignore[arg-type]  # its types know commands of one word
    return packed


def without_numbers(words: Words) -> tuple[str | bytes | int, ...]:
    """The words, with numbers as hiredis would write them.

    hiredis runs Python code to do so, and crashes the process if a signal's handler raises in there.
    """
    return tuple([word if type(word) is str or type(word) is bytes else _without_number(word) for word in words])


def _without_number(word: str | bytes | float) -> str | bytes | int:
    # Nothing but these kinds: hiredis refuses bool, which is an int too.
    return repr(word) if type(word) is int or isinstance(word, float) else word


def _answer(connection: "ConnectionInterface") -> Any:  # noqa: ANN401 - the answer of any command
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _unless_broken(answer: Any) -> Any:  # noqa: ANN401 - the answer of any command
    if isinstance(answer, Exception) and not isinstance(answer, ResponseError):
        raise answer
    return answer


def next_message(connection: "Connection", seconds: float) -> list[bytes] | None:
    """The next message on a connection that has subscribed: its kind, and its subject; None after `seconds`.

    Raises the errors of redis-py. The subscriptions of redis-py do much more between a message and its receiver.
    """
    try:
        message: list[bytes] = next_response(connection, seconds)
    except RedisTimeoutError:
        return None
    return message


def _refresh(client: "RedisCluster") -> None:
    with suppress(*REDIS_ERRORS):
        client.nodes_manager.initialize()


def _redirected(client: "RedisCluster", command: Command) -> Any:  # noqa: ANN401 - the answer of any command
    # A node that answers so has not executed the command: the client knows how to find the one that will.
    try:
        return client.execute_command(*without_numbers(command() if callable(command) else command))
    except REDIS_ERRORS as error:
        return error
