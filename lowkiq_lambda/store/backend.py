"""Runs scripts on the server: by hash, with the server's time, again where that is safe.

A call is sent again after a lost connection or a refusal that passes. That is safe because every script that
writes tells a repeated call from a new one: a push by its token, an acquisition by its nonce, a holder's calls by
their numbers (docs/lease.md).
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from redis.exceptions import NoScriptError

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.errors import BackendUnavailable, LowkiqError, QueueMismatch
from lowkiq_lambda.store.connection import Client
from lowkiq_lambda.store.faults import REDIS_ERRORS, backoff, is_transient, translate, translated, unless_error
from lowkiq_lambda.store.keys import Place, ShardGroup, ShardRef
from lowkiq_lambda.store.nodes import TIME, Nodes
from lowkiq_lambda.store.pipelines import send_each
from lowkiq_lambda.store.scripts import CONTRACT_VERSION, Script, script
from lowkiq_lambda.store.server_time import NodeTime

Argument: TypeAlias = str | bytes | int | float
Reply: TypeAlias = list[Any]
Result = TypeVar("Result")
Call: TypeAlias = tuple[str, ShardRef, Sequence[Argument]]
Question: TypeAlias = tuple[Place, Sequence[Argument]]
Beside: TypeAlias = tuple[str, Sequence[Argument]]
"""A key, by which the node is found, and a command."""

_IN_A_GROUP: Final = 24
"""Shards: others wait while a script looks at them, for a fraction of a millisecond."""


class Backend:
    """One client of the server and what it knows about the server's clock."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        new_time: Callable[[], NodeTime],
        wait: Callable[[float], object],
        rng: Random,
    ) -> None:
        self.client = client
        self.clock = clock
        self._nodes = Nodes(client, clock, new_time)
        self._wait = wait
        self._rng = rng
        self._along: deque[Beside] = deque()

    def now(self, shard: ShardRef) -> float:
        """Unix seconds by the clock of the shard's node. Raises BackendError where it has to be asked and can't."""
        return self._nodes.now(shard)

    def now_each(self, shards: Sequence[ShardRef]) -> list[float]:
        """As `now` for each shard, asked once for each node."""
        return self._nodes.now_each(shards)

    def run(
        self, name: str, shard: ShardRef, args: Sequence[Argument], *, patience: float, ask_time: bool = False
    ) -> Reply:
        """The answer of the script; tried for `patience` seconds while the server cannot serve.

        With `ask_time` the server's clock is measured in the same round trip, for the calls that follow.
        Raises BackendError, and QueueMismatch where this version of the library may not use the shard.
        """
        code = script(name)

        def once(*, measure: bool) -> Reply:
            return self._once(code, shard, [*self._nodes.stamp(shard, measure=measure), *args], ask_time=ask_time)

        reply = self.patiently(patience, lambda: once(measure=False))
        if reply[0] == b"SKEW":
            reply = self.patiently(patience, lambda: once(measure=True))
        return accepted(reply, shard)

    def patiently(self, patience: float, call: Callable[[], Result]) -> Result:
        """What the call returns; made again while the server cannot serve, for `patience` seconds.

        Raises BackendError. For calls that may reach the server twice.
        """
        give_up_at, attempt = self.clock.monotonic() + patience, 0
        while True:
            try:
                return call()
            except REDIS_ERRORS as error:
                if not is_transient(error) or self.clock.monotonic() >= give_up_at:
                    raise translate(error) from error
            self.pause(attempt, most=give_up_at - self.clock.monotonic())
            attempt += 1

    def run_each(self, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """One answer or error for each call, sent together: one round trip for each node. Not tried again.

        The errors are those that `run` raises.
        """
        try:
            prepared = [(script(name), shard, [*self._nodes.stamp(shard), *args]) for name, shard, args in calls]
        except REDIS_ERRORS as error:
            return [translate(error)] * len(calls)
        replies = send_each(self.client, [(call[1].keys[0], _evalsha(*call)) for call in prepared])
        return [self._second_chance(*call, reply) for call, reply in zip(prepared, replies, strict=True)]

    def read_each(self, name: str, shards: Sequence[ShardRef], patience: float = 0.0) -> list[Reply]:
        """One answer of a script that only reads for each shard, and the time of their nodes, measured with them.

        One round trip for each node; raises BackendError where one cannot answer for `patience` seconds.
        """
        return self.ask_each(name, [(shard, ()) for shard in shards], patience)

    def ask_each(self, name: str, questions: Sequence[Question], patience: float) -> list[Reply]:
        """As `read_each`, with arguments for each shard."""
        return self.patiently(patience, lambda: self._ask_each(script(name), questions))

    def try_each(self, name: str, shards: Sequence[ShardRef], patience: float) -> list[Reply | LowkiqError]:
        """As `read_each`, but a shard that cannot be read has its error as its answer."""
        code, questions = script(name), [(shard, ()) for shard in shards]
        give_up_at, attempt = self.clock.monotonic() + patience, 0
        while True:
            try:
                answers = self._answers(code, questions)
            except REDIS_ERRORS as error:
                answers = [error] * len(shards)
            passing = any(isinstance(answer, Exception) and is_transient(answer) for answer in answers)
            if not passing or self.clock.monotonic() >= give_up_at:
                return [translate(answer) if isinstance(answer, Exception) else answer for answer in answers]
            self.pause(attempt, most=give_up_at - self.clock.monotonic())
            attempt += 1

    def groups(self, shards: Sequence[ShardRef]) -> list[ShardGroup]:
        """A queue's shards, as `read_beside` may be given them: what a script looks at together costs less."""
        most = _IN_A_GROUP if self._nodes.cluster is None else 1
        return [ShardGroup(tuple(shards[start : start + most])) for start in range(0, len(shards), most)]

    def read_beside(
        self,
        name: str,
        groups: Sequence[ShardGroup],
        args: Sequence[Argument],
        beside: Sequence[Beside],
        patience: float,
    ) -> tuple[list[Reply], list[Any]]:
        """As `read_each`, for groups, with further commands in the same round trip: their answers, or redis-py errors.

        The script is given the keys of all shards of a group.
        """

        def once() -> tuple[list[Reply], list[Any]]:
            answers = self._answers(script(name), [(group, args) for group in groups], beside)
            return [unless_error(answer) for answer in answers[: len(groups)]], answers[len(groups) :]

        return self.patiently(patience, once)

    def key_of_each_node(self, shards: Iterable[ShardRef]) -> list[str]:
        """For each node that has any of the shards, a key of one of them. Raises BackendError."""
        with translated():
            return [*self._nodes.with_a_key(shards).values()]

    def _ask_each(self, code: Script, questions: Sequence[Question]) -> list[Reply]:
        return [unless_error(answer) for answer in self._answers(code, questions)]

    def _answers(self, code: Script, questions: Sequence[Question], beside: Sequence[Beside] = ()) -> list[Any]:
        """The answer, or the redis-py error, to each question, then to each command beside them.

        The nodes' times are measured on the way.
        """
        stamped = [(shard, [CONTRACT_VERSION, 0, 0, *args]) for shard, args in questions]
        nodes = self._nodes.with_a_key(shard for shard, _ in questions)
        asked_at = self.clock.monotonic()
        asked = [(key, TIME) for key in nodes.values()]
        calls = [(shard.keys[0], _evalsha(code, shard, args)) for shard, args in stamped]
        along = self._taken_along()
        replies = send_each(self.client, [*along, *asked, *calls, *beside])[len(along) :]
        answers = replies[len(nodes) :]
        for node, said in zip(nodes, replies, strict=False):
            if isinstance(said, Exception):
                # Without the node's time its shards' answers say nothing.
                of_node = [self._nodes.of(shard) == node for shard, _ in questions]
                answers[: len(of_node)] = [
                    said if silent else answer for silent, answer in zip(of_node, answers, strict=False)
                ]
            else:
                self._nodes.observe(node, said, asked_at)
        for position, (shard, args) in enumerate(stamped):
            if isinstance(answers[position], NoScriptError):
                answers[position] = self._eval_unless_error(code, shard, args)
        return answers

    def _eval_unless_error(self, code: Script, shard: Place, args: list[Argument]) -> Reply | Exception:
        try:
            return self._eval(code, shard, args)
        except REDIS_ERRORS as error:
            return error

    def pause(self, attempt: int, most: float = 60.0) -> None:
        """Wait a little before trying again, longer with each attempt, at most `most` seconds."""
        self._wait(max(0.0, min(backoff(attempt, self._rng), most)))

    def send_along(self, commands: Iterable[Beside]) -> None:
        """Send commands together with the next call of a script, once; nobody learns whether they got through."""
        self._along.extend(commands)

    def publish(self, channel: str, message: str) -> None:
        """Ring a bell; that nobody hears it costs at most one poll, so no error comes of it."""
        with suppress(*REDIS_ERRORS):
            self.client.publish(channel, message)

    def _second_chance(
        self,
        code: Script,
        shard: ShardRef,
        args: list[Argument],
        reply: Any,  # noqa: ANN401 - what the server said
    ) -> Reply | LowkiqError:
        try:
            if isinstance(reply, NoScriptError):
                reply = self._eval(code, shard, args)
            reply = unless_error(reply)
            if reply[0] == b"SKEW":
                reply = self._once(code, shard, [*self._nodes.stamp(shard, measure=True), *args[3:]])
            return accepted(reply, shard)
        except QueueMismatch as error:
            return error
        except REDIS_ERRORS as error:
            return translate(error)

    def _once(self, code: Script, shard: ShardRef, args: list[Argument], *, ask_time: bool = False) -> Reply:
        command = _evalsha(code, shard, args)
        try:
            if not ask_time or self._nodes.is_known(shard):
                return self._execute(command)
            asked_at = self.clock.monotonic()
            said, reply = send_each(self.client, [(shard.keys[0], TIME), (shard.keys[0], command)])
            self._nodes.observe(self._nodes.of(shard), unless_error(said), asked_at)
            return list(unless_error(reply))
        except NoScriptError:
            return self._eval(code, shard, args)

    def _eval(self, code: Script, shard: Place, args: list[Argument]) -> Reply:
        keys = shard.some(code.keys)
        return self._execute(("EVAL", code.source, len(keys), *keys, *args))

    def _execute(self, command: Sequence[Argument]) -> Reply:
        along = self._taken_along()
        if self._nodes.cluster is not None and not along:
            return list(self._nodes.cluster.execute_command(*command))
        *_, reply = send_each(self.client, [*along, (str(command[3]), command)])
        return list(unless_error(reply))

    def _taken_along(self) -> list[Beside]:
        along = []
        # Another thread may take some of them: each is sent once.
        with suppress(IndexError):
            while self._along:
                along.append(self._along.popleft())
        return along


def accepted(reply: Reply, shard: ShardRef) -> Reply:
    """The reply. Raises QueueMismatch where the shard refuses this library or this declaration."""
    if reply[0] == b"SKEW":
        raise BackendUnavailable("The server refused the time that it had just told.")
    if reply[0] == b"VERSION":
        raise QueueMismatch(
            f"Queue {shard.queue_name!r} may be written only by contract version {reply[1].decode()} or newer, "
            f"this library has {CONTRACT_VERSION}: upgrade lowkiq_lambda here.",
            queue_name=shard.queue_name,
        )
    if reply[0] == b"CLOSED":
        raise QueueMismatch(
            f"Queue {shard.queue_name!r} no longer has {shard.shards_count} shards: it was declared anew, so "
            "deploy the new declaration here too.",
            queue_name=shard.queue_name,
        )
    return reply


def _evalsha(code: Script, shard: Place, args: Sequence[Argument]) -> tuple[Argument, ...]:
    keys = shard.some(code.keys)
    return "EVALSHA", code.sha, len(keys), *keys, *args
