"""Reads shards by scripts that only read: one round trip for each node, which tells its time with it."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.store.server.connection import SingleClient, is_cluster
from lowkiq_lambda.store.server.faults import (
    REDIS_ERRORS,
    UnknownScript,
    is_damage,
    is_transient,
    translate,
    translated,
    unless_error,
)
from lowkiq_lambda.store.server.pipelines import Command, send_each, stream
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.keys import ScriptTarget, ShardGroup, ShardRef
from lowkiq_lambda.store.shard.layout import NO_SHARDS, QueueShards
from lowkiq_lambda.store.shard.nodes import Asking
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION, Argument, Reply, evalsha, script

Result = TypeVar("Result")
Request: TypeAlias = tuple[ScriptTarget, Sequence[Argument]]
Answers: TypeAlias = tuple[Sequence[Any], Iterator[Reply]]
"""Those to extra commands, or redis-py errors, and the replies of a script, which may come late."""

_GROUP_SIZE: Final = 24
"""Shards: other calls wait while a script reads them, for a fraction of a millisecond."""


class ShardReader(NamedTuple):
    """Reads shards, and tries again for `retry_for` seconds while Redis cannot serve.

    `shards`: those of the queue that it was made for, if it was made for one.
    """

    backend: Backend
    retry_for: float
    shards: QueueShards = NO_SHARDS

    def read(
        self,
        name: str,
        args_by_shard: Mapping[ShardRef, Sequence[Argument]],
        parse: Callable[[ShardRef, Reply], Result],
    ) -> list[Result]:
        """The parsed reply of the script for each shard. Raises BackendError.

        A shard whose reply cannot be parsed is mended, and read again.
        """
        replies = self.ask_each(name, [*args_by_shard.items()])
        return [
            self._parsed(name, (shard, args), reply, parse)
            for (shard, args), reply in zip(args_by_shard.items(), replies, strict=True)
        ]

    def read_each(self, name: str, shards: Sequence[ShardRef]) -> list[Reply]:
        """One reply of the script for each shard. Raises BackendError if one cannot answer."""
        return self.ask_each(name, [(shard, ()) for shard in shards])

    def ask_each(
        self, name: str, requests: Sequence[Request], extra_commands: Sequence[ExtraCommand] = ()
    ) -> list[Reply]:
        """As `read_each`, with arguments for each shard; first the answers, or redis-py errors, to extra commands."""
        backend, call = self.backend, _ReadCall(name, requests, extra_commands)

        def once() -> list[Reply]:
            with _begun(backend, call) as (answers, replies):
                return [*answers, *replies]

        return backend.retrying(self.retry_for, once)

    def try_each(self, name: str, targets: Sequence[ScriptTarget]) -> list[Reply | LowkiqError]:
        """As `read_each`, but a shard, or a group, that cannot be read has its error as its reply."""
        backend, call = self.backend, _ReadCall(name, [(target, ()) for target in targets])
        retry_until, attempt = backend.clock.monotonic() + self.retry_for, 0
        while True:
            try:
                answers = _answers(backend, call)
            except REDIS_ERRORS as error:
                answers = [error] * len(targets)
            passing = any(isinstance(answer, Exception) and is_transient(answer) for answer in answers)
            if not (passing and backend.wait_to_retry(attempt, retry_until)):
                return [translate(answer) if isinstance(answer, Exception) else answer for answer in answers]
            attempt += 1

    def groups(self, shards: Sequence[ShardRef]) -> list[ShardGroup]:
        """The shards, in order, in groups of those with the same features, as a call for each group costs less."""
        most = _GROUP_SIZE if self.backend.nodes.cluster is None else 1
        alike = [tuple(group) for _, group in groupby(shards, attrgetter("features"))]
        return [ShardGroup(group[start : start + most]) for group in alike for start in range(0, len(group), most)]

    def nodes(self, shards: Iterable[ShardRef]) -> dict[str, str]:
        """The nodes that have any of the shards, each with a key of one of them; at least one. Raises BackendError.

        In a cluster their names are their addresses; a single node has none.
        """
        with translated():
            return self.backend.nodes.with_a_key(shards) or {"": ""}

    @contextmanager
    def replies(
        self, name: str, requests: Sequence[Request], extra_commands: Sequence[ExtraCommand]
    ) -> Iterator[Answers]:
        """The answers to the extra commands, or redis-py errors, and the replies of the script, in the order given.

        On a single node the replies come one by one, while the node works on the others, and end with the block.
        Raises BackendError; if the connection breaks later, the next item of the iterator raises it.
        """
        backend, call = self.backend, _ReadCall(name, requests, extra_commands)
        with ExitStack() as stack:
            answers, replies = backend.retrying(self.retry_for, lambda: stack.enter_context(_begun(backend, call)))
            yield answers, _each_translated(replies, len(requests))

    def _parsed(
        self, name: str, request: tuple[ShardRef, Sequence[Argument]], reply: Reply, parse: Callable[..., Result]
    ) -> Result:
        replies = iter([reply])

        def run() -> Reply:
            return next(replies, None) or self.ask_each(name, [request])[0]

        return self.backend.read(run, request[0], lambda answer: parse(request[0], answer))


class _ReadCall(NamedTuple):
    """A script with its requests, and the commands that are sent before them."""

    script: str
    requests: Sequence[Request]
    extra_commands: Sequence[ExtraCommand] = ()

    def commands(self, first: int = 0) -> Iterator[ExtraCommand]:
        """The requests, from this one on, each with a key of its node."""
        for target, args in self.requests[first:]:
            yield target.keys[0], evalsha(script(self.script, target.features), target, _stamped(args))

    def mend(self, backend: Backend, number: int, answer: Exception) -> None:
        """Mend the shards of a request, if they are why the script failed. Raises the answer if that is in vain."""
        target = self.requests[number][0]
        shards = target.shards if isinstance(target, ShardGroup) else (target,)
        # Each of them: any may be the one.
        if is_damage(answer) and not sum(backend.mender.mend(shard) for shard in shards):
            raise answer

    def evaluate(self, backend: Backend, number: int) -> Reply:
        """The reply to a request, if the server has forgotten the script. Raises what redis-py does."""
        target, args = self.requests[number]
        code = script(self.script, target.features)
        try:
            return backend.evaluate(code, target, _stamped(args))
        except REDIS_ERRORS as error:
            if not is_damage(error):
                raise
            # A script that the server did not know had no occasion before.
            self.mend(backend, number, error)
            return backend.evaluate(code, target, _stamped(args))


@contextmanager
def _begun(backend: Backend, call: _ReadCall) -> Iterator[Answers]:
    """Raises what redis-py does, here and from the script's replies."""
    client = backend.client
    if not (call.requests or call.extra_commands):
        yield (), iter(())
    elif is_cluster(client):
        answers = _answers(backend, call)
        extra = len(call.extra_commands)
        yield answers[:extra], iter([unless_error(answer) for answer in answers[extra:]])
    else:
        nodes = _nodes(backend, call)
        piggyback = backend.take_piggyback()
        batch: Iterable[tuple[str, Command]] = chain(piggyback, nodes.values(), call.extra_commands, call.commands())
        commands = (command for _, command in batch)
        with closing(stream(client, commands)) as coming, closing(_replies(backend, client, call, coming)) as replies:
            for _ in piggyback:
                next(coming)
            for node, (_, asking) in nodes.items():
                backend.nodes.observe(node, unless_error(next(coming)), asking)
            yield [*islice(coming, len(call.extra_commands))], replies


def _replies(backend: Backend, client: SingleClient, call: _ReadCall, coming: Generator[Any]) -> Generator[Reply]:
    answered = 0
    while answered < len(call.requests):
        with closing(coming):
            for answer in coming:
                if isinstance(answer, UnknownScript) or is_damage(answer):
                    break
                answered += 1
                yield unless_error(answer)
            else:
                return
        # Only now, as there may be no other connection than the one that was read from.
        call.mend(backend, answered, answer)
        yield call.evaluate(backend, answered)
        answered += 1
        coming = stream(client, (command for _, command in call.commands(answered)))


def _each_translated(replies: Iterator[Reply], count: int) -> Iterator[Reply]:
    position = 0
    with translated():
        for reply in replies:
            position += 1
            yield reply
    if position < count:
        raise RuntimeError("The block has ended: take its replies inside it.")


def _answers(backend: Backend, call: _ReadCall) -> list[Any]:
    """The answer, or the redis-py error, to each extra command, then to each request."""
    nodes, extra = _nodes(backend, call), len(call.extra_commands)
    piggyback = backend.take_piggyback()
    commands: list[tuple[str, Command]] = [*piggyback, *nodes.values(), *call.extra_commands, *call.commands()]
    replies = send_each(backend.client, commands)[len(piggyback) :]
    answers = replies[len(nodes) :]
    for (node, (_, asking)), time in zip(nodes.items(), replies, strict=False):
        if not isinstance(time, Exception):
            backend.nodes.observe(node, time, asking)
            continue
        # Without the node's time the replies of its shards mean nothing.
        for number, (target, _) in enumerate(call.requests):
            if backend.nodes.of(target) == node:
                answers[extra + number] = time
    for number in range(len(call.requests)):
        answer = answers[extra + number]
        if isinstance(answer, UnknownScript) or is_damage(answer):
            answers[extra + number] = _evaluated(backend, call, number, answer)
    return answers


def _nodes(backend: Backend, call: _ReadCall) -> dict[str, tuple[str, Asking]]:
    """The nodes of the requests, each with a key of a shard there and the command that asks for its time."""
    nodes = backend.nodes.with_a_key(target for target, _ in call.requests)
    return {node: (key, backend.nodes.asking()) for node, key in nodes.items()}


def _evaluated(backend: Backend, call: _ReadCall, number: int, answer: Exception) -> Reply | Exception:
    try:
        call.mend(backend, number, answer)
        return call.evaluate(backend, number)
    except REDIS_ERRORS as error:
        return error


def _stamped(args: Sequence[Argument]) -> Sequence[Argument]:
    """With the first arguments of every script; the replies of one that only reads do not depend on them."""
    return [CONTRACT_VERSION, 0, 0, *args]


def ask_each(
    backend: Backend, name: str, shards: Sequence[ShardRef], args: Sequence[Argument], retry_for: float
) -> dict[ShardRef, Reply | LowkiqError]:
    """The reply or the error of each shard; retried for `retry_for` seconds while the server cannot serve."""
    replies: dict[ShardRef, Reply | LowkiqError] = {}
    retry_until, attempt, left = backend.clock.monotonic() + retry_for, 0, list(shards)
    while left:
        replies |= zip(left, backend.run_each([(name, shard, args) for shard in left]), strict=True)
        left = [shard for shard in left if isinstance(replies[shard], BackendUnavailable)]
        if not (left and backend.wait_to_retry(attempt, retry_until)):
            break
        attempt += 1
    return replies
