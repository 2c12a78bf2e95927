"""The processes that drain, for people: their identity, and their orders."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, overload

import msgspec

from lowkiq_lambda.store.shard.backend import Backend, ScriptCall
from lowkiq_lambda.store.shard.keys import PROCESS_SLOT, ProcessesRef
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape, script
from lowkiq_lambda.views.processes import Process

GONE_AFTER: Final = 60.0
"""Seconds without a heartbeat after which a process counts as gone."""


class OrderReply(ReplyShape, frozen=True):
    """The reply of order_process.lua: OK, or GONE."""

    scripts = ("order_process",)
    status: bytes


class ProcessesReply(ReplyShape, frozen=True):
    """The reply of list_processes.lua: each process with its last report, and each with its order."""

    scripts = ("list_processes",)
    now: bytes
    alive: list[bytes]
    orders: list[bytes]


class Processes(Sequence[Process]):
    """Those that were known when this was made: those that live first, by host and age, then those that are gone.

    Each call raises BackendError.
    """

    def __init__(self, backend: Backend, retry_for: float) -> None:
        self._backend = backend
        self._retry_for = retry_for
        self._all = processes_in(backend.call(*processes_call(backend.prefix), retry_for, measure=False))

    @overload
    def __getitem__(self, index: int) -> Process: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Process]: ...
    def __getitem__(self, index: int | slice) -> Process | Sequence[Process]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def quiet(self, process: Process | str) -> bool:
        """Have it begin nothing new, from its next heartbeat on; a daemon stays, an invocation ends. False: not known.

        `process`: as listed, or its id.
        """
        return self._order(process, "quiet")

    def stop(self, process: Process | str) -> bool:
        """Have it end with its next heartbeat, as by TERM: what runs comes to its end. False: it is not known."""
        return self._order(process, "stop")

    def _order(self, process: Process | str, order: Literal["quiet", "stop"]) -> bool:
        value: object = process
        if not isinstance(value, Process | str):
            raise TypeError(f"A process is one of those listed, or its id, not {value!r}.")
        process_id = value if isinstance(value, str) else value.id
        code = script("order_process", (PROCESS_SLOT,))
        reply = self._backend.call(code, ProcessesRef(self._backend.prefix), [process_id, order], self._retry_for)
        return OrderReply.of(reply).status == b"OK"


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
