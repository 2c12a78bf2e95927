"""Asks scripts that only read, of many shards at once: one round trip for each node, which tells its time with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

import redis
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError

from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.store.backend import Argument, Backend, Beside, Reply, Result, evalsha
from lowkiq_lambda.store.faults import REDIS_ERRORS, is_transient, translate, translated, unless_error
from lowkiq_lambda.store.keys import Place, ShardGroup, ShardRef
from lowkiq_lambda.store.nodes import TIME
from lowkiq_lambda.store.pipelines import send_each, stream
from lowkiq_lambda.store.scripts import CONTRACT_VERSION, Script, script

Question: TypeAlias = tuple[Place, Sequence[Argument]]
See: TypeAlias = Callable[[Sequence[Any], Iterator[Reply]], Result]
"""Makes something of the answers, or redis-py errors, to commands, and of those to questions."""

_IN_A_GROUP: Final = 24
"""Shards: others wait while a script looks at them, for a fraction of a millisecond."""


class Reader(NamedTuple):
    """Asks for `patience` seconds while Redis cannot serve."""

    backend: Backend
    patience: float

    def read_each(self, name: str, shards: Sequence[ShardRef]) -> list[Reply]:
        """One answer of the script for each shard. Raises BackendError where one cannot answer."""
        return self.ask_each(name, [(shard, ()) for shard in shards])

    def ask_each(self, name: str, questions: Sequence[Question]) -> list[Reply]:
        """As `read_each`, with arguments for each shard."""
        return self.look(name, questions, (), lambda _, replies: [*replies])

    def try_each(self, name: str, shards: Sequence[ShardRef]) -> list[Reply | LowkiqError]:
        """As `read_each`, but a shard that cannot be read has its error as its answer."""
        backend, asked = self.backend, _Asked(script(name), [(shard, ()) for shard in shards], ())
        give_up_at, attempt = backend.clock.monotonic() + self.patience, 0
        while True:
            try:
                answers = _answers(backend, asked)
            except REDIS_ERRORS as error:
                answers = [error] * len(shards)
            passing = any(isinstance(answer, Exception) and is_transient(answer) for answer in answers)
            if not passing or backend.clock.monotonic() >= give_up_at:
                return [translate(answer) if isinstance(answer, Exception) else answer for answer in answers]
            backend.pause(attempt, most=give_up_at - backend.clock.monotonic())
            attempt += 1

    def groups(self, shards: Sequence[ShardRef]) -> list[ShardGroup]:
        """A queue's shards, to be asked for in groups: what a script looks at together costs less."""
        most = _IN_A_GROUP if self.backend.nodes.cluster is None else 1
        return [ShardGroup(tuple(shards[start : start + most])) for start in range(0, len(shards), most)]

    def key_of_each_node(self, shards: Iterable[ShardRef]) -> list[str]:
        """For each node that has any of the shards, a key of one of them. Raises BackendError."""
        with translated():
            return [*self.backend.nodes.with_a_key(shards).values()]

    def look(self, name: str, questions: Sequence[Question], beside: Sequence[Beside], see: See[Result]) -> Result:
        """What is seen in the answers to commands, and to the script's questions; in the order asked.

        `see` knows the nodes' time by `backend.now`. On a single node the script's answers come one by one, while the
        node is still at work on the others. Where the connection breaks, `see` is called again. Raises BackendError.
        """
        if not (questions or beside):
            return see((), iter(()))
        backend, client, asked = self.backend, self.backend.client, _Asked(script(name), questions, beside)

        def once() -> Result:
            if isinstance(client, RedisCluster):
                answers = _answers(backend, asked)
                return see(answers[: len(beside)], map(unless_error, answers[len(beside) :]))
            try:
                return _stream(backend, client, asked, see)
            except NoScriptError:
                # Looking changes nothing, so it begins anew.
                _evaluate(backend, asked.code, *questions[0])
                return _stream(backend, client, asked, see)

        return backend.patiently(self.patience, once)


class _Asked(NamedTuple):
    """What a script is asked, and commands beside it."""

    code: Script
    questions: Sequence[Question]
    beside: Sequence[Beside]

    def commands(self, nodes: Mapping[str, str]) -> Iterator[Beside]:
        """What asks each node, given with a key, for its time; what is beside; and the questions."""
        yield from ((key, TIME) for key in nodes.values())
        yield from self.beside
        yield from ((place.keys[0], evalsha(self.code, place, _stamped(args))) for place, args in self.questions)


def _stream(backend: Backend, client: redis.Redis, asked: _Asked, see: See[Result]) -> Result:
    nodes = _nodes(backend, asked)
    along = backend.taken_along()
    asked_at = backend.clock.monotonic()
    commands = (command for _, command in chain(along, asked.commands(nodes)))
    with closing(stream(client, commands)) as replies:
        for _ in along:
            next(replies)
        for node in nodes:
            backend.nodes.observe(node, unless_error(next(replies)), asked_at)
        return see([*islice(replies, len(asked.beside))], map(unless_error, replies))


def _answers(backend: Backend, asked: _Asked) -> list[Any]:
    """The answer, or the redis-py error, to each command, then to each question."""
    nodes, beside = _nodes(backend, asked), len(asked.beside)
    along = backend.taken_along()
    asked_at = backend.clock.monotonic()
    replies = send_each(backend.client, [*along, *asked.commands(nodes)])[len(along) :]
    answers = replies[len(nodes) :]
    for node, said in zip(nodes, replies, strict=False):
        if not isinstance(said, Exception):
            backend.nodes.observe(node, said, asked_at)
            continue
        # Without the node's time its shards' answers say nothing.
        for position, (place, _) in enumerate(asked.questions, beside):
            if backend.nodes.of(place) == node:
                answers[position] = said
    for position, question in enumerate(asked.questions, beside):
        if isinstance(answers[position], NoScriptError):
            answers[position] = _evaluated(backend, asked.code, *question)
    return answers


def _nodes(backend: Backend, asked: _Asked) -> dict[str, str]:
    return backend.nodes.with_a_key(place for place, _ in asked.questions)


def _stamped(args: Sequence[Argument]) -> Sequence[Argument]:
    """With what every script is told first; the answers of one that only reads do not depend on it."""
    return [CONTRACT_VERSION, 0, 0, *args]


def _evaluate(backend: Backend, code: Script, place: Place, args: Sequence[Argument]) -> Reply:
    return backend.evaluate(code, place, _stamped(args))


def _evaluated(backend: Backend, code: Script, place: Place, args: Sequence[Argument]) -> Reply | Exception:
    try:
        return _evaluate(backend, code, place, args)
    except REDIS_ERRORS as error:
        return error
