"""Waits until replicas have what was written, so that a failover does not lose it."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from lowkiq_lambda.base.errors import NotReplicated
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, describe, translated
from lowkiq_lambda.store.server.pipelines import Command, Words, send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import Keyed, ShardRef
from lowkiq_lambda.store.shard.scripts import Script

logger = logging.getLogger(__name__)

_LOOK: Final[Words] = ("INFO", "replication")
_NONE: Final = b"connected_slaves:0"
_AT_ONCE: Final = 500
"""Milliseconds of one wait: shorter than any call may take."""
_TRIES: Final = 20
_MARK: Final = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], '', 'PX', 1)"
"""A write that a full server takes, too, as its first command frees."""
_PUSH: Final = frozenset({"enqueue"})
_DRAIN: Final = frozenset({"acquire", "settle"})
"""Scripts that claim, or end what was claimed: a failover that loses one repeats jobs."""
_REST: Final = 5.0
"""Seconds for which drains wait for no replica after one that was missing, so that it slows them little."""
_NOT_SAFE: Final = (
    "The primary has the push, but {}: a failover now may lose it. Push it again. If this goes on, run `lowkiq "
    "doctor`; where the server refuses WAIT or EVAL, allow them, or set wait_replicas=0."
)
_QUIET: Final = 60.0
"""Seconds from one warning to the next."""


class Replicas:
    """The replicas behind a backend's nodes. Those that are not connected to their primary are not waited for.

    `tries`: how often half a second is waited for one.
    """

    def __init__(self, backend: Backend, tries: int = _TRIES) -> None:
        self._backend = backend
        self._tries = tries

    def have(self, shards: Iterable[ShardRef]) -> None:
        """Return once a replica of each shard's node has all that was written there by now.

        Raises NotReplicated if none has in time, or the server does not tell; BackendError.
        """
        with translated():
            nodes = self._backend.nodes.with_a_key(shards)
        for key in nodes.values():
            if not any(not self._has_replicas(key) or self._acknowledged(key) for _ in range(self._tries)):
                raise NotReplicated(
                    f"No replica has what was moved, {self._tries * _AT_ONCE / 1_000:g} s after it was written: do the "
                    "same again when it follows its primary, or do not wait for it (--unreplicated)."
                )

    def answer(self, shards: Iterable[ShardRef]) -> bool:
        """Whether each of these shards' nodes has a replica that keeps up. Raises NotReplicated, BackendError."""
        with translated():
            nodes = self._backend.nodes.with_a_key(shards)
        return all(self._has_replicas(key) and self._acknowledged(key) for key in nodes.values())

    def _has_replicas(self, key: str) -> bool:
        # Asked each time: one may come back while ids move.
        (answer,) = self._asked([(key, _LOOK)])
        return _NONE not in bytes(answer).split()

    def _acknowledged(self, key: str) -> bool:
        strays: set[int] = set()
        _, number = self._asked(_wait(key, 1, _AT_ONCE), strays)
        return not strays and int(number) > 0

    def _asked(self, commands: Sequence[tuple[str, Words]], strays: set[int] | None = None) -> list[Any]:
        """The answers, by one connection."""
        answers = send_each(self._backend.client, commands, strays)
        for answer in answers:
            if isinstance(answer, REDIS_ERRORS):
                raise NotReplicated(
                    f"The server does not tell whether a replica has what was moved ({answer}): move without waiting "
                    "for replicas (--unreplicated)."
                ) from answer
        return answers


class Waits:
    """Sends calls of scripts, and waits in the same round trip until `count` replicas have what some of them wrote.

    A push that too few replicas have is an error, though the primary has it. What a drain writes stands all the same,
    with a warning. `timeout`: how long a call may take, in seconds.
    """

    def __init__(self, backend: Backend, count: int, timeout: float) -> None:
        self._backend = backend
        self._count = count
        self._milliseconds = max(1, min(_AT_ONCE, int(timeout * 500)))
        self._rest_until = self._warn_at = backend.clock.monotonic()
        self._missed = 0
        """Calls of drains that too few replicas had since the last warning."""

    def send(self, commands: Sequence[tuple[str, Command]], calls: Sequence[tuple[Script, Keyed]]) -> list[Any]:
        """As `backend.Replicated`."""
        client, nodes = self._backend.client, self._backend.nodes
        names = _PUSH if self._backend.clock.monotonic() < self._rest_until else _PUSH | _DRAIN
        first = len(commands) - len(calls)
        awaited = {first + number: call for number, call in enumerate(calls) if call[0].name in names}
        if not awaited:
            return send_each(client, commands)
        try:
            places = {position: nodes.of(target) for position, (_, target) in awaited.items()}
            sent, waits, strays = [*commands], dict[str, int](), set[int]()
            for position, node in places.items():
                if node not in waits:
                    waits[node] = len(sent)
                    sent += _wait(commands[position][0], self._count, self._milliseconds)
            answers = send_each(client, sent, strays)
            # Of what another node has written than the one that was waited for, nothing is known.
            strays.update(position for position, node in places.items() if nodes.of(awaited[position][1]) != node)
        except REDIS_ERRORS as error:
            return [error] * len(commands)
        for position, node in places.items():
            mark = waits[node]
            missing = self._missing(answers[mark], answers[mark + 1], is_stray=bool({position, mark} & strays))
            if missing:
                answers[position] = self._without(awaited[position][0], answers[position], missing)
        return answers[: len(commands)]

    def _missing(self, mark: Any, number: Any, *, is_stray: bool) -> str:  # noqa: ANN401 - any answers
        """Why too few replicas have it, for all that is known; "" if enough do."""
        for answer in (mark, number):
            if isinstance(answer, Exception):
                return f"does not tell whether replicas do ({describe(answer)})"
        if is_stray:
            return "its keys have just moved to another node"
        return (
            "" if number >= self._count else f"{number} of {self._count} replicas had it {self._milliseconds} ms later"
        )

    def _without(self, code: Script, answer: Any, missing: str) -> Any:  # noqa: ANN401 - as above
        """What a call answers that too few replicas have."""
        if isinstance(answer, Exception):
            return answer
        if code.name in _PUSH:
            # A refusal has written nothing.
            return NotReplicated(_NOT_SAFE.format(missing)) if answer[0] == b"OK" else answer
        now = self._backend.clock.monotonic()
        self._rest_until = now + _REST
        self._missed += 1
        if now >= self._warn_at:
            fields = {"why": missing, "calls": self._missed}
            logger.warning("too few replicas have what drains write: a failover now may repeat jobs", extra=fields)
            self._warn_at, self._missed = now + _QUIET, 0
        return answer


def _wait(key: str, count: int, milliseconds: int) -> list[tuple[str, Words]]:
    """Commands that wait until so many replicas have all that was written before on the key's node.

    WAIT counts what its own connection has written, so there is a mark before it: a repeat of a call writes nothing,
    and others may have written before. In a cluster, a message would not do.
    """
    mark = f"{key}:replicated"
    return [(mark, ("EVAL", _MARK, 1, mark)), (mark, ("WAIT", count, milliseconds))]
