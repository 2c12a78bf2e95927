"""One simulated process that drains: with a drainer of its own, and a fault that happens to it.

A process that is dead reaches Redis no more: neither its drain nor a push of its handler. A process that stands still
is parked in its thread until the world lets it go on.
"""

import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply
from lowkiq_lambda.testing.fuzz.bytecode import doing_at
from lowkiq_lambda.testing.fuzz.plan import AT_A_LINE, Fault
from lowkiq_lambda.testing.fuzz.points import CodePlace, PointCounter, UserCode, counted

_LOOK: Final = 0.02
"""Seconds between two looks of a frozen process at the one that may wait for a lock of its."""


_LOOKS: Final = 18
"""Looks in a row that find it at the same instruction: a process that has no processor for a moment does not wait."""


_MOST_DEATHS: Final = 100
"""Lines of a dead process that raise its death again."""


class SimulatedDeath(BaseException):
    """The end of a process, as its handler meets it."""


class SimulatedFailure(Exception):
    """The failure of a line."""


class HandlerCalledTooOften(Exception):
    """A scenario has called the handler so often that it never ends."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One call of the handler: the representations of its payloads by id, and whether a process had them before."""

    payloads: dict[str, list[str]]
    is_repeated: bool


class ProcessBackend(Backend):
    """A real one, for the calls of one process."""

    process: "FuzzProcess"

    def run(
        self, name: str, shard: ShardRef, args: Sequence[Argument], *, retry_for: float, ask_time: bool = False
    ) -> Reply:
        """As `Backend.run`. Raises BackendUnavailable if the process is dead; leases are not renewed."""
        process = self.process
        # The clock stands still, so a renewal would only keep the lease of a process that stands still, too.
        if process.is_dead or name == "renew":
            raise BackendUnavailable(f"{shard.queue_name}: the process does not reach Redis, as the fuzz wants it.")
        reply = super().run(name, shard, args, retry_for=retry_for, ask_time=ask_time)
        if name == "settle" and process.dies_at("after_settle_sent"):
            raise BackendUnavailable(f"{shard.queue_name}: the process died here, as the fuzz wants it.")
        return reply

    def run_each(self, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        """As `Backend.run_each`; errors alone if the process is dead."""
        if self.process.is_dead:
            return [BackendUnavailable("The process is dead, as the fuzz wants it.")] * len(calls)
        return super().run_each(calls)


current: Final[ContextVar["FuzzProcess | None"]] = ContextVar("fuzz_process", default=None)
"""The process whose handler runs here."""


class FuzzProcess:
    """The state of one process, and the innermost server middleware of its drains.

    `note` is called with each call of the handler; it raises to end a scenario that never ends. `records`: whether
    points are counted even if no fault is at any of them.
    """

    def __init__(
        self,
        worker: type[Worker[Any]],
        fault: Fault | None,
        user_code: UserCode,
        note: Callable[[Delivered], object],
        *,
        records: bool = False,
    ) -> None:
        self.is_dead = False
        self.has_swallowed = False
        """Whether the handler has caught its death, to go on."""
        self.is_stopping = False
        self.place: CodePlace | None = None
        """The line at which the fault happened."""
        self.has_fired = False
        self.points: list[list[CodePlace]] = []
        """Of each call of the handler."""
        self.errors: list[BaseException] = []
        """Errors of the handler that no fault has caused."""
        self.halted = threading.Event()
        """Set once the process stands still, or is through."""
        self.go_on = threading.Event()
        self.was_waited_for = False
        """Whether another process waited for a lock of this one, so that it had to go on early."""
        self.other: FuzzProcess | None = None
        """The process that performs while this one stands still."""
        self.on_death: Callable[[], object] = lambda: None
        """Called when it dies: a process that is a child is killed then."""
        self.on_halt: Callable[[], object] | None = None
        """Called in place of a halt in its thread."""
        self.lock_is_awaited: Callable[[], bool | None] = lambda: None
        """As that of `Surroundings`."""
        self.handling_thread: int | None = None
        """The thread in which its handler runs."""
        self._worker = worker
        self._fault = fault
        self._user_code = user_code
        self._note = note
        self._counts_points = records or (fault is not None and fault.kind in AT_A_LINE)
        self._calls = 0
        self._deaths = 0
        self._counter: PointCounter | None = None

    def stopping(self) -> bool:
        """Whether its drain should come to an end."""
        return self.is_dead or self.is_stopping

    def dies_at(self, kind: str) -> bool:
        """Whether the process dies here; then it is dead."""
        if self._fault is not None and self._fault.kind == kind and not self.has_fired:
            self.is_dead = self.has_fired = True
            self.on_death()
            return True
        return False

    def note_call(self, place: str) -> None:
        """The handler is at a point of a watched function. Raises what its fault raises."""
        # The doubles of the outside world use databases, too.
        if self._counter is not None and not self._user_code.is_outside(sys._getframe(1)):  # noqa: SLF001 - no other way
            self._counter.note_call(place)

    def __call__(self, worker: Worker[Any], batch: Batch[Any], call_next: Callable[..., Any]) -> Any:  # noqa: ANN401 - what the handler returns
        """Around plain handlers."""
        if worker.queue_name != self._worker.queue_name:
            return call_next()
        if self.is_dead or self._dies_before():
            return None
        with self._around(batch):
            return call_next()

    async def awaited(self, worker: Worker[Any], batch: Batch[Any], call_next: Callable[..., Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the handler returns
        """Around coroutine handlers."""
        if worker.queue_name != self._worker.queue_name:
            return await call_next()
        if self.is_dead or self._dies_before():
            return None
        with self._around(batch):
            return await call_next()

    def _dies_before(self) -> bool:
        return self._is_of_this_call() and self.dies_at("before_handler")

    def _is_of_this_call(self) -> bool:
        return self._fault is not None and self._fault.call == self._calls

    @contextmanager
    def _around(self, batch: Batch[Any]) -> Iterator[None]:
        payloads = {job_id: [*map(repr, own)] for job_id, own in batch.items()}
        self._note(Delivered(payloads, any(batch.job(job_id).repeated for job_id in batch)))
        self.handling_thread = threading.get_ident()
        token = current.set(self)
        raised: BaseException | None = None
        try:
            if self._counts_points:
                self._counter = counter = PointCounter(self._act, self._die_again)
                self.points.append(counter.places)
                with counted(self._user_code, counter):
                    yield
            else:
                yield
        except BaseException as error:
            raised = error
            raise
        finally:
            current.reset(token)
            self._counter = None
            self.handling_thread = None
            self._look_at_end(raised, batch)
            self._calls += 1

    def _look_at_end(self, raised: BaseException | None, batch: Batch[Any]) -> None:
        ends = [raised, *batch.failed.values()]
        if self.is_dead:
            self.has_swallowed |= not any(isinstance(end, SimulatedDeath) for end in ends)
            return
        self.errors += [end for end in ends if isinstance(end, BaseException) and not isinstance(end, SimulatedFailure)]
        if self._is_of_this_call():
            self.dies_at("after_handler")

    def _act(self, number: int, place: CodePlace) -> None:
        """The handler is at a point: let the fault happen if it is its point. Raises what the fault raises."""
        fault = self._fault
        if fault is None or self.has_fired or fault.call != self._calls or fault.kind not in AT_A_LINE:
            return
        if fault.point != (place.name if isinstance(fault.point, str) else number):
            return
        self.has_fired, self.place = True, place
        if fault.kind == "die":
            self.is_dead = True
            self.on_death()
            raise SimulatedDeath
        if fault.kind == "fail":
            raise SimulatedFailure(f"a failure at {place.text}, as the fuzz wants it")
        if fault.kind == "stop":
            self.is_stopping = True
            return
        if self.on_halt is not None:
            self.on_halt()
            return
        self.halted.set()
        self._stand_still()

    def _die_again(self, frame: FrameType) -> None:
        """The handler is at a line: if its process is dead, the line does not run. Raises SimulatedDeath."""
        if not self.is_dead:
            return
        doing = doing_at(frame.f_code, frame.f_lasti)
        if doing == "compares":
            return
        self.has_swallowed |= doing != "unwinds"
        if doing == "has caught":
            return
        self._deaths += 1
        # A loop that catches each of them on one line would never end.
        if self._deaths <= _MOST_DEATHS:
            raise SimulatedDeath

    def _stand_still(self) -> None:
        """Wait until the world lets it go on, or until the process that performs meanwhile waits for a lock of its."""
        before: object = None
        looks = 0
        while not self.go_on.wait(_LOOK):
            if self.lock_is_awaited():
                self.was_waited_for = True
                return
            now = self._where_other_is()
            looks = looks + 1 if now is not None and now == before else 0
            if looks == _LOOKS:
                self.was_waited_for = True
                return
            before = now

    def _where_other_is(self) -> object:
        """The place at which the handler of the other process is, in its code or in a driver's; None if in none."""
        thread = self.other.handling_thread if self.other is not None else None
        frame = None if thread is None else sys._current_frames().get(thread)  # noqa: SLF001 - no other way to them
        if frame is None or "lowkiq_lambda" in frame.f_globals.get("__name__", ""):
            return None
        return thread, id(frame), frame.f_lasti
