"""Asks scripts that only read, of many shards at once: one round trip for each node, which tells its time with it."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

import redis
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError

from lowkiq_lambda.errors import LowkiqError
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, is_damage, is_transient, translate, translated, unless_error
from lowkiq_lambda.store.server.pipelines import Command, send_each, stream
from lowkiq_lambda.store.shard.backend import Argument, Backend, Beside, Reply, evalsha
from lowkiq_lambda.store.shard.keys import Place, ShardGroup, ShardRef
from lowkiq_lambda.store.shard.nodes import Asking
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION, script

Question: TypeAlias = tuple[Place, Sequence[Argument]]
Answers: TypeAlias = tuple[Sequence[Any], Iterator[Reply]]
"""Those to commands, or redis-py errors, and those of a script, which may come late."""

_IN_A_GROUP: Final = 24
"""Shards: others wait while a script looks at them, for a fraction of a millisecond."""


class Reader(NamedTuple):
    """Asks, and asks again for `patience` seconds while Redis cannot serve."""

    backend: Backend
    patience: float

    def read_each(self, name: str, shards: Sequence[ShardRef]) -> list[Reply]:
        """One answer of the script for each shard. Raises BackendError where one cannot answer."""
        return self.ask_each(name, [(shard, ()) for shard in shards])

    def ask_each(self, name: str, questions: Sequence[Question]) -> list[Reply]:
        """As `read_each`, with arguments for each shard."""
        backend, asked = self.backend, _Asked(name, questions)

        def once() -> list[Reply]:
            with _begun(backend, asked) as (_, replies):
                return [*replies]

        return backend.patiently(self.patience, once)

    def try_each(self, name: str, shards: Sequence[ShardRef]) -> list[Reply | LowkiqError]:
        """As `read_each`, but a shard that cannot be read has its error as its answer."""
        backend, asked = self.backend, _Asked(name, [(shard, ()) for shard in shards])
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

    def nodes(self, shards: Iterable[ShardRef]) -> dict[str, str]:
        """The nodes that have any of the shards, each with a key of one of them; at least one. Raises BackendError.

        In a cluster their names are their addresses; a single node has none.
        """
        with translated():
            return self.backend.nodes.with_a_key(shards) or {"": ""}

    @contextmanager
    def look(self, name: str, questions: Sequence[Question], beside: Sequence[Beside]) -> Iterator[Answers]:
        """The answers to commands, or redis-py errors, and those of the script, in the order asked.

        On a single node the script's come one by one, while the node is at work on the others, and end with the block.
        Raises BackendError; where the connection breaks in the middle, who takes the next answer gets it at once.
        """
        backend, asked = self.backend, _Asked(name, questions, beside)
        with ExitStack() as stack:
            told, replies = backend.patiently(self.patience, lambda: stack.enter_context(_begun(backend, asked)))
            yield told, _each_translated(replies, len(questions))


class _Asked(NamedTuple):
    """What a script is asked, and commands beside it."""

    script: str
    questions: Sequence[Question]
    beside: Sequence[Beside] = ()

    def calls(self, first: int = 0) -> Iterator[Beside]:
        """The questions, but the first ones."""
        for place, args in self.questions[first:]:
            yield place.keys[0], evalsha(script(self.script, place.groups), place, _stamped(args))

    def mend(self, backend: Backend, number: int, answer: Exception) -> None:
        """Mend the shards of a question, where they are why the script failed. Raises the answer if that is in vain."""
        place = self.questions[number][0]
        shards = place.shards if isinstance(place, ShardGroup) else (place,)
        # Each of them: any may be the one.
        if is_damage(answer) and not sum(backend.mender.mend(shard) for shard in shards):
            raise answer

    def evaluate(self, backend: Backend, number: int) -> Reply:
        """The answer to a question, where the script has been forgotten. Raises what redis-py does."""
        place, args = self.questions[number]
        return backend.evaluate(script(self.script, place.groups), place, _stamped(args))


@contextmanager
def _begun(backend: Backend, asked: _Asked) -> Iterator[Answers]:
    """Raises what redis-py does, here and from the script's answers."""
    client = backend.client
    if not (asked.questions or asked.beside):
        yield (), iter(())
    elif isinstance(client, RedisCluster):
        answers = _answers(backend, asked)
        yield answers[: len(asked.beside)], iter([unless_error(answer) for answer in answers[len(asked.beside) :]])
    else:
        nodes = _nodes(backend, asked)
        along = backend.taken_along()
        sent: Iterable[tuple[str, Command]] = chain(along, nodes.values(), asked.beside, asked.calls())
        commands = (command for _, command in sent)
        with closing(stream(client, commands)) as coming, closing(_replies(backend, client, asked, coming)) as replies:
            for _ in along:
                next(coming)
            for node, (_, asking) in nodes.items():
                backend.nodes.observe(node, unless_error(next(coming)), asking)
            yield [*islice(coming, len(asked.beside))], replies


def _replies(backend: Backend, client: redis.Redis, asked: _Asked, coming: Generator[Any]) -> Generator[Reply]:
    answered = 0
    while answered < len(asked.questions):
        with closing(coming):
            for answer in coming:
                if isinstance(answer, NoScriptError) or is_damage(answer):
                    break
                answered += 1
                yield unless_error(answer)
            else:
                return
        # Only now, as there may be no other connection than the one that was read from.
        asked.mend(backend, answered, answer)
        yield asked.evaluate(backend, answered)
        answered += 1
        coming = stream(client, (command for _, command in asked.calls(answered)))


def _each_translated(replies: Iterator[Reply], asked: int) -> Iterator[Reply]:
    taken = 0
    with translated():
        for reply in replies:
            taken += 1
            yield reply
    if taken < asked:
        raise RuntimeError("This look has ended: take its answers before its block does.")


def _answers(backend: Backend, asked: _Asked) -> list[Any]:
    """The answer, or the redis-py error, to each command, then to each question."""
    nodes, beside = _nodes(backend, asked), len(asked.beside)
    along = backend.taken_along()
    replies = send_each(backend.client, [*along, *nodes.values(), *asked.beside, *asked.calls()])[len(along) :]
    answers = replies[len(nodes) :]
    for (node, (_, asking)), said in zip(nodes.items(), replies, strict=False):
        if not isinstance(said, Exception):
            backend.nodes.observe(node, said, asking)
            continue
        # Without the node's time its shards' answers say nothing.
        for number, (place, _) in enumerate(asked.questions):
            if backend.nodes.of(place) == node:
                answers[beside + number] = said
    for number in range(len(asked.questions)):
        answer = answers[beside + number]
        if isinstance(answer, NoScriptError) or is_damage(answer):
            answers[beside + number] = _evaluated(backend, asked, number, answer)
    return answers


def _nodes(backend: Backend, asked: _Asked) -> dict[str, tuple[str, Asking]]:
    """The nodes that are asked, each with a key of a shard there and what asks for its time."""
    nodes = backend.nodes.with_a_key(place for place, _ in asked.questions)
    return {node: (key, backend.nodes.asking()) for node, key in nodes.items()}


def _evaluated(backend: Backend, asked: _Asked, number: int, answer: Exception) -> Reply | Exception:
    try:
        asked.mend(backend, number, answer)
        return asked.evaluate(backend, number)
    except REDIS_ERRORS as error:
        return error


def _stamped(args: Sequence[Argument]) -> Sequence[Argument]:
    """With what every script is told first; the answers of one that only reads do not depend on it."""
    return [CONTRACT_VERSION, 0, 0, *args]
