"""The processes that drain, for people: their identity, and their orders."""

from collections.abc import Sequence
from typing import Literal, overload

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.heartbeats import known_processes
from lowkiq_lambda.store.shard.keys import PROCESS_SLOT, ProcessesRef
from lowkiq_lambda.store.shard.scripts import ReplyShape, script
from lowkiq_lambda.views.processes import Process


class OrderReply(ReplyShape, frozen=True):
    """The reply of order_process.lua: OK, or GONE."""

    scripts = ("order_process",)
    status: bytes


class Processes(Sequence[Process]):
    """Those that were known when this was made: those that live first, by host and age, then those that are gone.

    Each call raises BackendError.
    """

    def __init__(self, backend: Backend, retry_for: float) -> None:
        self._backend = backend
        self._retry_for = retry_for
        self._all = known_processes(backend, retry_for)

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
