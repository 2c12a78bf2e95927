"""Runs scripts on the server: by hash, with the server's time, and again if that is safe.

A call is sent again after a lost connection or a refusal that passes. That is safe because every script that writes
recognizes a repeated call: a push by its token, an acquisition by its nonce, a holder's calls by their numbers
(docs/lease.md).
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError, QueueMismatch, ShardDamaged
from lowkiq_lambda.store.server.connection import Client, SingleClient
from lowkiq_lambda.store.server.faults import (
    REDIS_ERRORS,
    UnknownScript,
    backoff,
    describe,
    is_damage,
    is_transient,
    translate,
    translated,
    unless_error,
)
from lowkiq_lambda.store.server.pipelines import Command, ask, send_each, without_numbers
from lowkiq_lambda.store.shard.keys import PREFIX, Keyed, ShardRef
from lowkiq_lambda.store.shard.nodes import Nodes, NodeTime
from lowkiq_lambda.store.shard.scripts import Argument, Reply, Script, accepted, evalsha, script

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.repair import Mender

Result = TypeVar("Result")
Call: TypeAlias = tuple[str, ShardRef, Sequence[Argument]]
ScriptCall: TypeAlias = tuple[Script, Keyed, Sequence[Argument]]
"""Of a script that does not belong to a shard."""
ExtraCommand: TypeAlias = tuple[str, Sequence[Argument]]
"""A key, by which the node is found, and a command."""
Replicated: TypeAlias = Callable[[Sequence[tuple[str, Command]], Sequence[tuple[Script, Keyed]]], list[Any]]
"""As `send_each`, of commands that end with these calls of scripts; it waits until replicas have what they wrote."""

logger = logging.getLogger(__name__)

TELL_AFTER: Final = 1.0
"""Seconds of retries after which a process says that Redis has never answered it."""
PATIENCE: Final = ContextVar("PATIENCE", default=math.inf)
"""The most seconds for which a call of this context is tried, whatever else it may."""
MENDINGS: Final = 3
"""How often a shard is mended for one call, at most: a script that met damage half-way may have left a little more."""


class Backend:
    """One client of the server, and its record of the server's clock."""

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
        self.nodes = Nodes(client, clock, new_time)
        self._wait = wait
        self._rng = rng
        self.lease_ttl = 30.0
        """Seconds for which a shard whose lease was damaged has no holder."""
        self.prefix = PREFIX
        """The prefix of the app's keys and channels."""
        self.replicated: Replicated | None = None
        """How calls of scripts are sent, if replicas are to have what they write."""
        self._in_use: dict[str, tuple[str, ...]] = {}
        self._piggyback: deque[ExtraCommand] = deque()
        self._mender: Mender | None = None
        self._is_known = False
        """Whether the server has answered, or it was told that it never did."""

    def now(self, shard: Keyed) -> float:
        """Unix seconds by the clock of the shard's node. Raises BackendError if it has to be asked and can't."""
        return self.nodes.now(shard)

    def node_of(self, shard: Keyed) -> str:
        """The name of the node that it lies on. Raises BackendError if no node has it."""
        with translated():
            return self.nodes.of(shard)

    def now_each(self, shards: Sequence[ShardRef]) -> list[float]:
        """As `now` for each shard, asked once for each node."""
        return self.nodes.now_each(shards)

    def run(
        self, name: str, shard: ShardRef, args: Sequence[Argument], *, retry_for: float, ask_time: bool = False
    ) -> Reply:
        """The answer of the script; tried for `retry_for` seconds while the server cannot serve.

        With `ask_time` the server's clock is measured in the same round trip, for the calls that follow.
        Raises BackendError, and QueueMismatch if this version of the library may not use the shard.
        """
        for _ in range(MENDINGS):
            try:
                return self._run(name, shard, args, retry_for, ask_time=ask_time)
            except ShardDamaged:
                if not self.mender.mend(shard):
                    raise
        return self._run(name, shard, args, retry_for, ask_time=ask_time)

    def read(self, run: Callable[[], Reply], shard: ShardRef, parse: Callable[[Reply], Result]) -> Result:
        """The result of `parse` for a shard's answer. If `parse` fails, the shard is mended, and the call made again.

        Raises ShardDamaged if that does not help.
        """
        try:
            return parse(run())
        except LowkiqError:
            raise
        except Exception as error:  # noqa: BLE001 - errors without damage are raised again
            return self.mender.read_again(error, shard, lambda: parse(run()))

    def call(  # noqa: PLR0913 - the last two by keyword, for few scripts
        self,
        code: Script,
        target: Keyed,
        args: Sequence[Argument],
        retry_for: float,
        *,
        measure: bool = True,
        tell_doubt: bool = False,
    ) -> Reply:
        """The answer of a script that does not belong to a shard. Raises BackendError.

        With `measure` the script gets a time that was measured for it; else only if it asks for that. With
        `tell_doubt` it also gets the seconds by which its time may be wrong.
        """

        def ask(*, measure: bool) -> Reply:
            stamp: list[Argument] = [*self.nodes.stamp(target, measure=measure)]
            if tell_doubt:
                stamp.append(self.nodes.doubt(target))
            return self._once(code, target, [*stamp, *args])

        reply = self.retrying(retry_for, lambda: ask(measure=measure))
        if not measure and reply[0] == b"SKEW":
            reply = self.retrying(retry_for, lambda: ask(measure=True))
        return reply

    def call_each(self, calls: Sequence[ScriptCall]) -> list[Reply | LowkiqError]:
        """As `call`, of many that only read, sent together: one round trip for each node. Not tried again."""
        try:
            stamped = [(code, target, [*self.nodes.stamp(target), *args]) for code, target, args in calls]
        except REDIS_ERRORS as error:
            return [translate(error)] * len(calls)
        replies = send_each(self.client, [(call[1].keys[0], evalsha(*call)) for call in stamped])
        return [self._answer(*call, reply) for call, reply in zip(stamped, replies, strict=True)]

    def _answer(
        self,
        code: Script,
        target: Keyed,
        args: Sequence[Argument],
        reply: Any,  # noqa: ANN401 - what the server said
    ) -> Reply | LowkiqError:
        try:
            reply = self.evaluate(code, target, args) if isinstance(reply, UnknownScript) else unless_error(reply)
            return self.call(code, target, args[3:], 0.0) if reply[0] == b"SKEW" else list(reply)
        except REDIS_ERRORS as error:
            return translate(error)
        except LowkiqError as error:
            return error

    @property
    def mender(self) -> "Mender":
        """Sets aside what is damaged in shards."""
        if self._mender is None:
            from lowkiq_lambda.store.shard.repair import Mender  # noqa: PLC0415 - most processes never have a use for it

            self._mender = Mender(self.clock, partial(self._run, "repair"), self.lease_ttl)
        return self._mender

    def _run(
        self, name: str, shard: ShardRef, args: Sequence[Argument], retry_for: float, *, ask_time: bool = False
    ) -> Reply:
        shard = self.as_used(shard)
        code = script(name, shard.features)
        reply = self.retrying(
            retry_for, lambda: self._once(code, shard, [*self.nodes.stamp(shard), *args], ask_time=ask_time)
        )
        if reply[0] == b"SKEW":
            reply = self.retrying(
                retry_for, lambda: self._once(code, shard, [*self.nodes.stamp(shard, measure=True), *args])
            )
        if self._notes_use(shard, reply):
            return self._run(name, shard, args, retry_for, ask_time=ask_time)
        return accepted(reply, shard)

    def as_used(self, shard: ShardRef) -> ShardRef:
        """The shard, with the keys of what its queue has been seen to use."""
        return shard.using(self._in_use.get(shard.queue_name, ())) if self._in_use else shard

    def uses(self, feature: str) -> bool:
        """Whether a queue has been seen to use it."""
        return any(feature in names for names in [*self._in_use.values()])

    def note_use(self, shard: ShardRef, names: str) -> None:
        """Take in the features that a shard uses: calls for its queue pass their keys from now on."""
        features = self._in_use.get(shard.queue_name, ())
        self._in_use[shard.queue_name] = (*features, *(name for name in names.split() if name not in features))

    def _notes_use(self, shard: ShardRef, reply: Reply) -> bool:
        """Whether the shard refused the call, as it uses features whose keys were not passed: they will be."""
        if reply[0] != b"IN_USE":
            return False
        self.note_use(shard, reply[1].decode())
        return True

    def retrying(self, retry_for: float, call: Callable[[], Result]) -> Result:
        """The result of `call`; called again while the server cannot serve, for `retry_for` seconds.

        For calls that may reach the server twice. Raises BackendError.
        """
        began_at, attempt = self.clock.monotonic(), 0
        retry_until = began_at + min(retry_for, PATIENCE.get())
        while True:
            try:
                answer = call()
            except REDIS_ERRORS as error:
                if not self._is_known and self.clock.monotonic() >= began_at + TELL_AFTER:
                    self._is_known = True
                    logger.warning("Redis has not answered yet (%s); retrying for %g s", describe(error), retry_for)
                if not (is_transient(error) and self.wait_to_retry(attempt, retry_until)):
                    raise translate(error) from error
            else:
                self._is_known = True
                return answer
            attempt += 1

    def wait_to_retry(self, attempt: int, retry_until: float) -> bool:
        """Wait after an attempt that failed, longer after each; False, at once, if it is too late for another one.

        `retry_until` is a time of the monotonic clock.
        """
        left = retry_until - self.clock.monotonic()
        if left <= 0:
            return False
        self._wait(min(backoff(attempt, self._rng), left))
        return True

    def run_each(self, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """One answer or error for each call, sent together: one round trip for each node. Not tried again.

        The errors are those that `run` raises.
        """
        try:
            prepared = [
                (script(name, shard.features), shard, [*self.nodes.stamp(shard), *args])
                for name, shard, args in (
                    [(name, self.as_used(shard), args) for name, shard, args in calls] if self._in_use else calls
                )
            ]
        except REDIS_ERRORS as error:
            return [translate(error)] * len(calls)
        commands = [(call[1].keys[0], evalsha(*call)) for call in prepared]
        if self.replicated is None:
            replies = send_each(self.client, commands)
        else:
            replies = self.replicated(commands, [call[:2] for call in prepared])
        return [self._second_chance(*call, reply) for call, reply in zip(prepared, replies, strict=True)]

    def piggyback(self, commands: Iterable[ExtraCommand]) -> None:
        """Send commands with the next call of a script, once; their answers are dropped."""
        self._piggyback.extend(commands)

    def publish(self, channel: str, message: str) -> None:
        """Publish a notification; errors are ignored, because a lost notification costs at most one poll."""
        send_each(self.client, [(channel, ("PUBLISH", channel, message))])

    def take_piggyback(self) -> list[ExtraCommand]:
        """The commands that are to travel with the next call, for the caller to send."""
        commands: list[ExtraCommand] = []
        if not self._piggyback:
            return commands
        # Another thread may take some of them: each is sent once.
        with suppress(IndexError):
            while self._piggyback:
                commands.append(self._piggyback.popleft())
        return commands

    def evaluate(self, code: Script, target: Keyed, args: Sequence[Argument]) -> Reply:
        """The answer of a script that the server did not know by its hash, and does from now on.

        Raises what redis-py does.
        """
        keys = target.some(code.pick)
        return self._written(("EVAL", code.source, len(keys), *keys, *args), code, target)

    def _second_chance(
        self,
        code: Script,
        shard: ShardRef,
        args: list[Argument],
        reply: Any,  # noqa: ANN401 - what the server said
    ) -> Reply | LowkiqError:
        try:
            if isinstance(reply, UnknownScript):
                reply = self.evaluate(code, shard, args)
            reply = unless_error(reply)
            if reply[0] == b"SKEW":
                reply = self._once(code, shard, [*self.nodes.stamp(shard, measure=True), *args[3:]])
            if self._notes_use(shard, reply):
                return self._run_again(code, shard, args)
            return accepted(reply, shard)
        except ShardDamaged as error:
            return self._after_mending(code, shard, args, error)
        except (BackendUnavailable, QueueMismatch) as error:
            return error
        except REDIS_ERRORS as error:
            if is_damage(error):
                return self._after_mending(code, shard, args, translate(error))
            return translate(error)

    def _after_mending(
        self, code: Script, shard: ShardRef, args: list[Argument], error: LowkiqError
    ) -> Reply | LowkiqError:
        """The answer of a mended shard, or the error if nothing was to be mended."""
        try:
            return self._run_again(code, shard, args) if self.mender.mend(shard) else error
        except LowkiqError as again:
            return again

    def _run_again(self, code: Script, shard: ShardRef, args: list[Argument]) -> Reply | LowkiqError:
        try:
            return self.run(code.name, shard, args[3:], retry_for=0.0)
        except LowkiqError as error:
            return error

    def _once(self, code: Script, shard: Keyed, args: list[Argument], *, ask_time: bool = False) -> Reply:
        command = evalsha(code, shard, args)
        try:
            if not ask_time or self.nodes.is_known(shard):
                return self._written(command, code, shard)
            asking, key = self.nodes.asking(), shard.keys[0]
            commands: list[tuple[str, Command]] = [(key, asking), (key, command)]
            if self.replicated is None:
                answer, reply = send_each(self.client, commands)
            else:
                answer, reply = self.replicated(commands, [(code, shard)])
            self.nodes.observe(self.nodes.of(shard), unless_error(answer), asking)
            return list(unless_error(reply))
        except UnknownScript:
            return self.evaluate(code, shard, args)

    def _written(self, command: Sequence[Argument], code: Script, target: Keyed) -> Reply:
        """The answer, once replicas have what the call wrote, if they are to."""
        if self.replicated is None:
            return self._execute(command)
        *_, reply = self.replicated([*self.take_piggyback(), (target.keys[0], command)], [(code, target)])
        return list(unless_error(reply))

    def _execute(self, command: Sequence[Argument]) -> Reply:
        piggyback = self.take_piggyback()
        if not piggyback:
            cluster = self.nodes.cluster
            if cluster is not None:
                return list(cluster.execute_command(*without_numbers(command)))
            return list(unless_error(ask(cast("SingleClient", self.client), command)))
        *_, reply = send_each(self.client, [*piggyback, (str(command[3]), command)])
        return list(unless_error(reply))
