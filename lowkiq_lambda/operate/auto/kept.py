"""What is kept of a queue with a count of its own: one hash, whose parts have a writer each.

The duty writes `decision`, each app `bounds:...`, and people `hold` and `answered`. The duties of several apps, and
people who make a move, write `memory`: each only if it is still the one that they have read.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.views.auto import AutoDecision

BOUNDS_FOR: Final = 3_600.0
"""Seconds for which the bounds of an app that was not heard of since still count."""
_KEPT_FOR: Final = 35 * 86_400
"""Seconds after the last look: a queue that nobody looks at is not one of any app."""
_BOUNDS: Final = "bounds:"
_WRITE: Final = """
local there = redis.call('HGET', KEYS[1], 'memory') or ''
if there ~= ARGV[1] and there ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
"""
"""A repeat after a lost reply finds the new memory in place."""
_encode: Final = msgspec.msgpack.Encoder().encode
Value = TypeVar("Value")


class KeptByAnother(LowkiqError):
    """Another process has written the memory since it was read: nothing was written."""


class Hold(msgspec.Struct, frozen=True):
    """Somebody has stopped it until then, Unix seconds; `by` whom."""

    until: float
    by: str


class _AppBounds(msgspec.Struct, frozen=True):
    at: float
    bounds: Auto


class KeptAuto(msgspec.Struct, frozen=True, kw_only=True):
    """The hash of a queue. `answered_at`: when somebody has answered to a proposal, or ended a hold, Unix seconds.

    `stored`: the memory as the server has it.
    """

    memory: Memory = Memory()
    stored: bytes = b""
    decision: AutoDecision | None = None
    hold: Hold | None = None
    answered_at: float = 0.0
    others: tuple[tuple[float, Auto], ...] = ()

    def is_held(self, now: float) -> bool:
        """Whether somebody has stopped it, and it has not ended."""
        return self.hold is not None and now < self.hold.until

    def bounds_with(self, own: Auto, now: float) -> Auto | None:
        """The narrowest of all apps that have declared the queue lately; None where they exclude each other."""
        narrowest: Auto | None = own
        for at, bounds in self.others:
            if narrowest is not None and now - at < BOUNDS_FOR:
                narrowest = narrowest.within(bounds)
        return narrowest

    @property
    def remembered(self) -> Memory:
        """The memory, in which a doubt that somebody has answered is none any more."""
        memory = self.memory
        useless, rests = memory.useless_at, memory.rests_until
        if useless is not None and useless <= self.answered_at:
            memory = msgspec.structs.replace(memory, useless_at=None)
        by_hand = memory.moved_by_hand
        if by_hand is not None and by_hand <= self.answered_at:
            memory = msgspec.structs.replace(memory, moved_by_hand=None)
        last = memory.last
        if rests is not None and last is not None and last.at <= self.answered_at:
            memory = msgspec.structs.replace(memory, rests_until=None)
        return memory


def key_of(backend: Backend, queue_name: str) -> str:
    """The key of the hash."""
    return queue_key(queue_name, "auto", backend.prefix)


def read_kept(backend: Backend, queue_name: str, retry_for: float) -> KeptAuto:
    """All that is kept of the queue. Raises BackendError."""
    key = key_of(backend, queue_name)
    (answer,) = backend.retrying(
        retry_for, lambda: [unless_error(each) for each in send_each(backend.client, [(key, ("HGETALL", key))])]
    )
    flat = answer.items() if isinstance(answer, dict) else zip(answer[::2], answer[1::2], strict=True)
    fields = {bytes(name).decode(errors="replace"): value for name, value in flat}
    bounds = [_decoded(value, _AppBounds, None) for name, value in sorted(fields.items()) if name.startswith(_BOUNDS)]
    return KeptAuto(
        memory=_decoded(fields.get("memory"), Memory, Memory()),
        stored=fields.get("memory", b""),
        decision=_decoded(fields.get("decision"), AutoDecision, None),
        hold=_decoded(fields.get("hold"), Hold, None),
        answered_at=_decoded(fields.get("answered"), float, 0.0),
        others=tuple((each.at, each.bounds) for each in bounds if each is not None),
    )


class KeptChange(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the hash that are written; of the `bounds` of an app, the moment too. `gone`: those that are deleted."""

    memory: Memory | None = None
    decision: AutoDecision | None = None
    hold: Hold | None = None
    answered_at: float | None = None
    bounds: tuple[float, Auto] | None = None
    gone: tuple[str, ...] = ()

    @property
    def parts(self) -> Iterator[tuple[str, Any]]:
        """The fields of the hash, and their values."""
        names = {"memory": self.memory, "decision": self.decision, "hold": self.hold, "answered": self.answered_at}
        yield from ((name, part) for name, part in names.items() if part is not None)
        if self.bounds is not None:
            # Apps with the same bounds are one.
            at, own = self.bounds
            name = f"{_BOUNDS}{own.least}-{own.most}-{own.lag}-{own.back:d}{own.unreplicated:d}"
            yield name, _AppBounds(at, own)


def write_kept(backend: Backend, queue_name: str, retry_for: float, change: KeptChange, stored: bytes = b"") -> bytes:
    """Write these parts; of a memory, as it is stored now. Raises BackendError.

    Raises KeptByAnother if they have a memory, and `stored` is not the one that is there.
    """
    key = key_of(backend, queue_name)
    words = [word for name, part in change.parts for word in (name, _encode(part))]
    commands: list[tuple[str, tuple[Any, ...]]] = []
    if change.memory is not None:
        commands.append((key, ("EVAL", _WRITE, 1, key, stored, *words)))
    elif words:
        commands.append((key, ("HSET", key, *words)))
    commands += [(key, ("HDEL", key, *change.gone))] if change.gone else []
    commands.append((key, ("EXPIRE", key, _KEPT_FOR)))
    written, *_ = backend.retrying(
        retry_for, lambda: [unless_error(each) for each in send_each(backend.client, commands)]
    )
    if change.memory is None:
        return stored
    if not written:
        raise KeptByAnother(f"Another process has just decided about {queue_name}: decide again.")
    return _encode(change.memory)


def _decoded(stored: Any, kind: type[Value], default: Any) -> Any:  # noqa: ANN401 - a reply of Redis
    """A record of another version in another form is as if it were not there."""
    with suppress(msgspec.MsgspecError):
        return default if stored is None else msgspec.msgpack.decode(stored, type=kind)
    return default
