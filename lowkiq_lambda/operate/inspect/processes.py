"""The processes that drain, for people: their identity, and their orders."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, overload

import msgspec

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import PROCESS_SLOT, ProcessesRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape, script
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
        self._slot = ProcessesRef(backend.prefix)
        self._all = self._read()

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
        return OrderReply.of(self._call("order_process", [process_id, order])).status == b"OK"

    def _read(self) -> list[Process]:
        reply = ProcessesReply.of(self._call("list_processes", []))
        orders = dict(zip(reply.orders[::2], reply.orders[1::2], strict=True))
        records = zip(reply.alive[::2], reply.alive[1::2], strict=True)
        processes = [*_readable(float(reply.now), records, orders)]
        return sorted(processes, key=lambda process: (process.is_gone, process.host, process.since, process.id))

    def _call(self, name: str, args: Sequence[Argument]) -> Reply:
        return self._backend.call(script(name, (PROCESS_SLOT,)), self._slot, args, self._retry_for)


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
