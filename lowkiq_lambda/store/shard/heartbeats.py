"""Heartbeats of processes that drain: each says that it lives, and what it does. They decide nothing about leases.

All lie in one slot: a hash with what each told last and when, and a hash with what each is to do.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand, ScriptCall
from lowkiq_lambda.store.shard.keys import PROCESS_SLOT, ProcessesRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script
from lowkiq_lambda.views.processes import Process

FORGOTTEN_AFTER: Final = 86_400.0
"""Seconds after its last heartbeat for which a process is remembered."""

GONE_AFTER: Final = 60.0
"""Seconds without a heartbeat after which a process counts as gone."""


class HeartbeatReply(ReplyShape, frozen=True):
    """The reply of heartbeat.lua: "quiet", "stop", or empty."""

    scripts = ("heartbeat",)
    order: bytes


class ProcessesReply(ReplyShape, frozen=True):
    """The reply of list_processes.lua: each process with its last report, and each with its order."""

    scripts = ("list_processes",)
    now: bytes
    alive: list[bytes]
    orders: list[bytes]


class HeartbeatSender:
    """Sends the heartbeats of one process, by its id."""

    def __init__(self, backend: Backend, process_id: str) -> None:
        self._backend = backend
        self._id = process_id
        self._slot = ProcessesRef(backend.prefix)

    def now(self) -> float:
        """Unix seconds by the server's clock, as far as that is known without asking."""
        try:
            return self._backend.nodes.estimate(self._slot)
        except REDIS_ERRORS:
            return self._backend.clock.time()

    def send(self, process: Process) -> str:
        """Tell it; what the process is to do: "quiet", "stop" or "". Raises BackendError."""
        args: list[Argument] = [self._id, msgspec.msgpack.encode(process), FORGOTTEN_AFTER]
        code = script("heartbeat", (PROCESS_SLOT,))
        reply = self._backend.call(code, self._slot, args, retry_for=0.0, measure=False)
        return HeartbeatReply.of(reply).order.decode()

    def send_along(self, process: Process) -> None:
        """Tell it with the next call of this process, which costs no round trip."""
        value = f"{self.now():.6f} ".encode() + msgspec.msgpack.encode(process)
        key = self._slot.key("alive")
        self._backend.piggyback([(key, ("HSET", key, self._id, value))])

    def end_along(self) -> None:
        """The process ends: its next call reports that."""
        self._backend.piggyback(self._forgetting())

    def end(self) -> None:
        """The process ends: report that now, once; a lost report is made up for in a day."""
        try:
            send_each(self._backend.client, self._forgetting())
        except REDIS_ERRORS:
            return

    def _forgetting(self) -> list[ExtraCommand]:
        return [(key, ("HDEL", key, self._id)) for key in self._slot.keys]


def known_processes(backend: Backend, retry_for: float) -> list[Process]:
    """Those that live first, by host and age, then those that are gone. Raises BackendError."""
    return processes_in(backend.call(*processes_call(backend.prefix), retry_for, measure=False))


def processes_call(prefix: str) -> ScriptCall:
    """The call that lists them; `prefix`: of the app's keys."""
    return script("list_processes", (PROCESS_SLOT,)), ProcessesRef(prefix), ()


def processes_in(reply: Reply) -> list[Process]:
    """Those in the reply, in their order."""
    parts = ProcessesReply.of(reply)
    orders = dict(zip(parts.orders[::2], parts.orders[1::2], strict=True))
    records = zip(parts.alive[::2], parts.alive[1::2], strict=True)
    processes = [*_readable(float(parts.now), records, orders)]
    return sorted(processes, key=lambda process: (process.is_gone, process.host, process.since, process.id))


def _readable(now: float, records: Iterable[tuple[bytes, bytes]], orders: dict[bytes, bytes]) -> Iterator[Process]:
    """A record that this version of the library cannot read is left out, and does not hide another process."""
    for process_id, value in records:
        seen_at, _, record = value.partition(b" ")
        try:
            process = msgspec.msgpack.decode(record, type=Process)
            yield msgspec.structs.replace(
                process,
                id=process_id.decode(),
                seen_at=float(seen_at),
                order=orders.get(process_id, b"").decode(),
                is_gone=now - float(seen_at) > GONE_AFTER,
            )
        except (msgspec.MsgspecError, ValueError):
            continue
