"""The calls of limiters: one script for one key of a limiter, and what operators set for all keys of it.

A process reads what was set before its call, if its last look is older than a second. docs/architecture.md says why no
window is exceeded, whatever the clocks of processes say.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import Command, send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import LIMITER, LimiterRef, limiters_key
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script

Operation: TypeAlias = Literal["take", "spend", "give", "keep", "forget", "look"]
LOOK_EVERY: Final = 1.0
"""Seconds between two looks at what operators have set."""
STRICT: Final = 1.0
"""Seconds for which a strict limiter keeps free points for a job that was told to come."""
_LEAST_SLACK: Final = 0.05
_MOST_SLACK: Final = 1.0


class LimitReply(ReplyShape, frozen=True):
    """The reply of limit.lua to a call that did its work. Numbers that may be fractions are texts."""

    scripts = ("limit",)
    status: bytes
    date: bytes
    left: bytes
    waiting: int


class RefusedReply(ReplyShape, frozen=True):
    """The reply of limit.lua to a call whose points are not free."""

    status: bytes
    seconds: bytes
    ahead: int
    waiting: int


class LimitNumbers(NamedTuple):
    """A limit as scripts take it: its kind, its points or places, and its seconds."""

    kind: str
    most: int
    seconds: float

    @property
    def slack(self) -> float:
        """Seconds within which a grant has to be used."""
        return min(_MOST_SLACK, max(_LEAST_SLACK, self.seconds / 20))


class Asked(NamedTuple):
    """A call for points. `claimant`: whose ticket it takes, or ""; `nonce`: of a place."""

    points: int
    claimant: str = ""
    nonce: str = ""
    date: float = 0.0


class Granted(NamedTuple):
    """The points are the caller's. `date`: under which they stand; `left`: how many more may begin."""

    date: float
    left: int
    waiting: int


class Refused(NamedTuple):
    """The points are not free: it is worth asking again in so many seconds. `ahead`: tickets before the caller."""

    seconds: float
    ahead: int


class LimiterCalls:
    """The calls of all limiters of one app. Each raises BackendError."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._set: dict[str, tuple[float, tuple[int, float] | None]] = {}

    @property
    def clock(self) -> Clock:
        """The clock of the caller."""
        return self._backend.clock

    def take(self, name: str, key: str, numbers: LimitNumbers, request: Asked, *, strict: bool) -> Granted | Refused:
        """Take points; a claimant that is refused has a ticket from then on."""
        target, clock = LimiterRef(name, key, self._backend.prefix), self.clock
        for _ in range(_TRIES):
            # Measured before, if at all: the answer has to come within the slack.
            self._backend.now(target)
            began = clock.monotonic(), clock.time()
            reply = self._ask(target, "take", numbers, request, STRICT if strict else 0.0)
            if reply[0] == b"FULL":
                refused = RefusedReply.of(reply)
                return Refused(float(refused.seconds), refused.ahead)
            took = max(clock.monotonic() - began[0], clock.time() - began[1])
            if numbers.kind == "concurrent" or took <= numbers.slack:
                return _granted(reply)
            # Nobody knows that these points would still be used in their time: the next call is in their place.
            request = request._replace(date=_granted(reply).date)
        self.change(name, key, numbers, "give", request)
        return Refused(numbers.slack, 0)

    def change(self, name: str, key: str, numbers: LimitNumbers, operation: Operation, request: Asked) -> Granted:
        """Another call about a grant or a ticket; or 'look'. Raises LeaseLost if a place has ended."""
        reply = self._ask(LimiterRef(name, key, self._backend.prefix), operation, numbers, request, 0.0)
        if reply[0] == b"GONE":
            raise LeaseLost(f"The place of the limiter {name!r} has ended: it was not renewed in time.")
        return _granted(reply)

    def set_for(self, name: str) -> tuple[int, float] | None:
        """The numbers that an operator set in place of the code's, as of the last second; by kind and name."""
        now = self.clock.monotonic()
        read_at, numbers = self._set.get(name, (-LOOK_EVERY, None))
        if name not in self._set or now - read_at >= LOOK_EVERY:
            stored = self._command("set", "HGET", name)
            numbers = None if stored is None else msgspec.msgpack.decode(stored, type=tuple[int, int | float])
            self._set[name] = now, numbers
        return numbers

    def set(self, name: str, numbers: tuple[int, float] | None) -> None:
        """Let these numbers count for all processes, or those of code again."""
        if numbers is None:
            self._command("set", "HDEL", name)
        else:
            self._command("set", "HSET", name, msgspec.msgpack.encode(numbers))
        self._set.pop(name, None)

    def count_refusal(self, name: str) -> None:
        """Count a refusal, with the next call of this process."""
        key = limiters_key("put_off", self._backend.prefix)
        self._backend.piggyback([(key, ("HINCRBY", key, name, 1))])

    def refusals(self) -> dict[str, int]:
        """How many requests each limiter has refused, by name."""
        key = limiters_key("put_off", self._backend.prefix)
        waiting = self._backend.take_piggyback()
        flat = self._send([*waiting, (key, ("HGETALL", key))])
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(errors="replace"): int(count) for name, count in pairs}

    def _command(self, which: str, command: str, *more: str | bytes) -> Any:  # noqa: ANN401 - the answer of any command
        key = limiters_key(which, self._backend.prefix)
        return self._send([(key, (command, key, *more))])

    def _send(self, commands: Sequence[tuple[str, Command]]) -> Any:  # noqa: ANN401 - the answer of the last
        return self._backend.retrying(
            _RETRY_FOR, lambda: [unless_error(each) for each in send_each(self._backend.client, commands)][-1]
        )

    def _ask(
        self, target: LimiterRef, operation: Operation, numbers: LimitNumbers, request: Asked, patience: float
    ) -> Reply:
        args: list[Argument] = [
            *(operation, numbers.kind, numbers.most, numbers.seconds, request.points, numbers.slack),
            *(request.claimant, request.nonce, f"{request.date:.6f}", patience),
        ]
        code = script("limit", (LIMITER,))
        return self._backend.call(code, target, args, _RETRY_FOR, measure=False, tell_doubt=True)


_TRIES: Final = 3
_RETRY_FOR: Final = 1.0
"""Seconds for which a call is tried: a job that cannot ask goes on later."""


def _granted(reply: Reply) -> Granted:
    parts = LimitReply.of(reply)
    return Granted(float(parts.date), int(parts.left), parts.waiting)
