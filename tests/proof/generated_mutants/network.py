"""The network between a simulated process and the server, as a list: calls are lost, doubled, or held back."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, cast

import redis

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.store.server.faults import UnknownScript
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.pushing import TOKEN_LIFE
from lowkiq_lambda.store.shard.repair import Mender
from lowkiq_lambda.store.shard.scripts import Argument, Reply

NOW: Final = 4
"""The place of `now` behind the keys of a command, and of the word that it was measured."""
LOST, UNANSWERED, DOUBLED = 0.03, 0.07, 0.10
"""Chances, each with those before it."""
MOST_HELD: Final = 8
_REFUSALS: Final = (b"SKEW", b"IN_USE")


class UntrueBackend(Backend):
    """A real one behind a bad network. While `rng` is None the network is good."""

    rng: Random | None = None
    held: list[Callable[[], object]]
    held_below = 0.2
    """The chance that a copy of a call is held back, with those before it."""
    errors: list[str]
    """What scripts raised: nothing has damaged the shard, so none of them may."""

    def _execute(self, command: Sequence[Argument]) -> Reply:
        chance = self.rng.random() if self.rng and command[0] == "EVALSHA" else 1.0
        if chance < LOST:
            raise redis.ConnectionError("lost on its way")
        answer = self._performed(command)
        if chance < UNANSWERED:
            raise redis.ConnectionError("its answer was lost")
        if chance < DOUBLED:
            return self._performed(command)
        if chance < self.held_below and answer[0] not in _REFUSALS:
            self._hold(lambda: self._performed(self._dated(command)))
        return answer

    @property
    def mender(self) -> Mender:
        """Raises AssertionError: what is mended was damaged."""
        raise AssertionError("a shard is damaged, and nobody has damaged it")

    def run_each(self, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """As the backend; a push may come twice, or once more later."""
        chance = self.rng.random() if self.rng else 1.0
        if chance < LOST:
            return [BackendUnavailable("lost on its way")] * len(calls)
        replies = super().run_each(calls)
        if chance < DOUBLED:
            return super().run_each(calls)
        if chance < self.held_below:
            held_at = self.clock.time()
            # Later than that a shard does not know a push by its token.
            self._hold(lambda: self.clock.time() < held_at + TOKEN_LIFE and super(UntrueBackend, self).run_each(calls))
        return replies

    def deliver(self) -> None:
        """One of the calls that were held back arrives, behind others."""
        if self.rng and self.held:
            # The answer finds nobody.
            with suppress(redis.RedisError):
                self.held.pop(self.rng.randrange(len(self.held)))()

    def _hold(self, call: Callable[[], object]) -> None:
        if len(self.held) < MOST_HELD:
            self.held.append(call)

    def _performed(self, command: Sequence[Argument]) -> Reply:
        try:
            return super()._execute(command)
        except redis.ResponseError as error:
            if not isinstance(error, UnknownScript):
                self.errors.append(f"a script raises: {error}")
            raise

    def _dated(self, command: Sequence[Argument]) -> list[Argument]:
        """The same with the time of its arrival, so that it is not refused for its age."""
        keys = int(cast("int", command[2]))
        dated: list[Any] = [*command]
        dated[NOW + keys : NOW + keys + 2] = [f"{self.clock.time():.6f}", "1"]
        return dated
