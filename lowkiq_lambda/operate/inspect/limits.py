"""The limits of a queue for people: set at run time, taken back, and explained."""

import math
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.declare.declared_limits import check_max_running, check_rate
from lowkiq_lambda.declare.worker import Worker, queues_before
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.admitting import visits_running
from lowkiq_lambda.store.shard.backend import ScriptCall
from lowkiq_lambda.store.shard.keys import LIMITS, QueueRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, ReplyShape, StatusReply, script
from lowkiq_lambda.views.limits import LimitsView, PermitView, WaitView

_AS_BEFORE: Final[Any] = object()
"""For a limit that a call does not name."""


class SetLimitsReply(ReplyShape, frozen=True):
    """The reply of set_limits.lua."""

    scripts = ("set_limits",)
    status: bytes
    change: int


class TakenReply(ReplyShape, frozen=True):
    """A permit, or an offer of one, in the reply of queue_limits.lua."""

    shard: bytes
    until: bytes
    is_offer: int


class QueueLimitsReply(ReplyShape, frozen=True):
    """The reply of queue_limits.lua. Numbers that may be fractions are texts, empty for no value."""

    scripts = ("queue_limits",)
    status: bytes
    now: bytes
    most: bytes
    ids: bytes
    per: bytes
    is_set: bytes
    taken: list[TakenReply]
    wait_list: list[bytes]
    left: int | bytes
    next_at: bytes
    last: bytes


class IsLimitedReply(ReplyShape, frozen=True):
    """The reply of is_limited.lua."""

    scripts = ("is_limited",)
    is_limited: int


class KeptBack(NamedTuple):
    """What the limits of a queue keep back."""

    since: float | None
    """Seconds since they last kept the queue from starting ids; None: they are not a reason at all."""
    most_holders: float
    """How many shards they let run now; 0: only those that run already, infinity: all."""


class QueueLimits:
    """`app.operate(worker).limits`. Each method raises BackendError if Redis cannot serve."""

    def __init__(self, reader: ShardReader, worker: type[Worker[Any]]) -> None:
        self._reader = reader
        self._worker = worker
        self._queue = QueueRef(worker.queue_name, reader.backend.prefix)

    def set(self, *, max_running: int | None = _AS_BEFORE, rate: Rate | None = _AS_BEFORE) -> None:
        """From now on these limits count, in place of those that code declares; None: without this limit.

        A limit that is not named stays as it was. A visit that runs ends after its present batch, and then asks for a
        permit. Harmless to repeat: if a call fails, its error has the number of shards that it reached, and another
        call goes on. Raises DeclarationError for an invalid limit, and ValueError if no limit is named.
        """
        limits: dict[str, object] = {}
        if max_running is not _AS_BEFORE:
            if max_running is not None:
                check_max_running("max_running", max_running)
            limits["most"] = max_running if max_running is not None else False
        if rate is not _AS_BEFORE:
            if rate is not None:
                check_rate("rate", rate)
            limits["rate"] = [rate.ids, rate.per] if rate is not None else False
        if not limits:
            raise ValueError("set takes max_running, rate, or both.")
        # The limits are written before the marks, so a visit that meets a mark finds the limits.
        self._mark(self._change(msgspec.msgpack.encode(limits, enc_hook=_value)), "1")

    def reset(self) -> None:
        """From now on the limits count again that code declares. Harmless to repeat, as `set` is."""
        # In this order: marks without limits cost a call, limits without marks would not be kept.
        self._mark(self._change(b""), "")

    def keep(self) -> None:
        """If limits are set, mark all shards: they may be new, because the queue was declared anew."""
        if self._reply().is_set:
            self._mark(self._change(msgspec.msgpack.encode({})), "1")

    def explain(self) -> LimitsView:
        """The limits of the queue now: those that count, shards with a permit, waiting shards, and the reason."""
        with Together() as side:
            limits, marked = side.look(self._reply), side.look(self._marks)
            waits = [side.look(self._wait, name) for name in queues_before(self._worker)]
        reply, marks = limits.result, marked.result
        holders = sorted((float(one.until), int(one.shard), one.is_offer) for one in reply.taken)
        return LimitsView(
            queue_name=self._queue.queue_name,
            at=float(reply.now),
            max_running=int(float(reply.most)) if reply.most else None,
            rate=Rate(int(float(reply.ids)), _seconds(reply.per)) if reply.ids else None,
            is_set=bool(reply.is_set),
            permits=tuple(PermitView(shard, until) for until, shard, is_offer in holders if not is_offer),
            offered=tuple(shard for _, shard, is_offer in holders if is_offer),
            wait_list=tuple(map(int, reply.wait_list)),
            ids_left=int(reply.left) if reply.left != b"" else None,
            next_id_at=float(reply.next_at) if reply.next_at and not reply.left else None,
            waits_for=tuple(wait.result for wait in waits),
            undone=tuple(index for index, is_marked in enumerate(marks) if is_marked != bool(reply.is_set)),
        )

    def kept_back(self) -> KeptBack:
        """Since when the limits have kept the queue from starting ids, and how many shards they let run now.

        `since` is 0 while they let no id start. A queue that uses up its rate starts ids again and again, and the ids
        that wait in between wait for the rate. So the seconds count from the last id that was admitted. If that id left
        some of the rate, they count from the last request that found none left. If no request was ever refused, the
        rate is not a reason.
        """
        reply = self._reply()
        most = float(reply.most) if reply.most else math.inf
        if reply.left == 0 or any(self._wait(name).running for name in queues_before(self._worker)):
            return KeptBack(0.0, 0.0)
        if len(reply.taken) >= most:
            return KeptBack(0.0, most)
        return KeptBack(max(0.0, float(reply.now) - float(reply.last)) if reply.last else None, most)

    def _marks(self) -> list[bool]:
        return self._reader.read("is_limited", dict.fromkeys(self._reader.shards, ()), _is_limited)

    def _wait(self, queue_name: str) -> WaitView:
        running = visits_running(self._reader.backend, queue_name, self._reader.retry_for)
        return WaitView(queue_name, running.running)

    @property
    def look(self) -> ScriptCall:
        """The call for a `QueueLimitsReply`; private."""
        worker = self._worker
        rate: tuple[Argument, Argument] = ("", "") if worker.rate is None else (worker.rate.ids, worker.rate.per)
        most = "" if worker.max_running is None else worker.max_running
        return script("queue_limits", (LIMITS,)), self._queue, [most, *rate]

    def _reply(self) -> QueueLimitsReply:
        return QueueLimitsReply.of(self._reader.backend.call(*self.look, self._reader.retry_for, measure=False))

    def _change(self, limits: bytes) -> int:
        """The number of the change."""
        reader = self._reader
        reply = reader.backend.call(script("set_limits", (LIMITS,)), self._queue, [limits], reader.retry_for)
        return SetLimitsReply.of(reply).change

    def _mark(self, change: int, mark: str) -> None:
        reader, marked = self._reader, 0
        try:
            for _, reply in order_each(reader, "mark_limited", reader.shards, lambda _: [change, mark]):
                StatusReply.of(reply)
                marked += 1
        except BackendError as error:
            count = len(reader.shards)
            error.add_note(f"The change counts in {marked} of {count} shards: make it again to go on.")
            raise
        everywhere = ",".join(str(shard.number) for shard in reader.shards)
        reader.backend.publish(self._queue.channel, everywhere)


def _is_limited(_shard: object, reply: list[Any]) -> bool:
    return bool(IsLimitedReply.of(reply).is_limited)


def _seconds(text: bytes) -> float:
    """A whole number of seconds as it was declared."""
    seconds = float(text)
    return int(seconds) if seconds.is_integer() else seconds


def _value(number: float) -> float:
    """A number of any class, as one of Python's own: nothing else can be stored."""
    return int.__int__(number) if isinstance(number, int) else float.__float__(number)
