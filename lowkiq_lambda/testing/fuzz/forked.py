"""A drain in a child process that a fault really kills or stops, for handlers whose state is outside of the process.

Nothing of the child is left to the next one but what it has told its parent before.
"""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final, Literal, NoReturn, TypeAlias

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.fuzz.observed import Observed
from lowkiq_lambda.testing.fuzz.points import CodePlace
from lowkiq_lambda.testing.fuzz.process import Delivered, FuzzProcess

End: TypeAlias = Literal["dead", "halted", "through", "broken"]
_LOOK: Final = 0.02
"""Seconds between two looks whether the child waits for a lock."""
_WAITS_FOR: Final = 0.5
"""Seconds without an end after which a child waits for one that stands still."""


@dataclass(frozen=True)
class ChildNotes:
    """The course of a child since it began. Errors are texts, as an exception need not survive the way."""

    calls: Sequence[Delivered] = ()
    pushes: Sequence[str] = ()
    queues: Sequence[str] = ()
    points: Sequence[list[CodePlace]] = ()
    place: CodePlace | None = None
    has_fired: bool = False
    has_swallowed: bool = False
    never_ends: bool = False
    errors: Sequence[str] = ()
    now: float = 0.0


class ForkedDrain:
    """`run` performs the drain, in the child. `queues` are those of the app, `touched` those that were pushed to."""

    def __init__(  # noqa: PLR0913 - what a child may change
        self,
        process: FuzzProcess,
        observed: Observed,
        *,
        clock: ManualClock,
        touched: dict[str, Queue],
        queues: Mapping[str, Queue],
        run: Callable[[], object],
    ) -> None:
        self.process = process
        self._observed = observed
        self._clock = clock
        self._touched = touched
        self._queues = queues
        self._run = run
        self._calls, self._pushes = len(observed.calls), len(observed.pushes)
        self._before = {*touched}
        self._learned = ChildNotes()
        self._pid = 0
        self._told: Connection | None = None

    def start(self, frozen: "ForkedDrain | None" = None) -> End:
        """Fork, and wait for an end: of the child, or of its way to the line at which it stands still.

        If it waits for a lock of the frozen one, that goes on. Raises ConfigError if the child breaks.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        reader, writer = Pipe(duplex=False)
        with warnings.catch_warnings():
            # Threads that are there are not needed in the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if not self._pid:
            reader.close()
            self._be_child(writer)
        writer.close()
        self._told = reader
        return self._read(reader, frozen)

    def go_on(self) -> None:
        """Let a child that stands still go on."""
        os.kill(self._pid, signal.SIGCONT)

    def join(self) -> None:
        """Let it go on to its end. Raises ConfigError if it breaks."""
        self.go_on()
        if self._told:
            self._read(self._told, None)

    def _read(self, reader: Connection, frozen: "ForkedDrain | None") -> End:
        looks_from = time.monotonic()
        while frozen is not None and not reader.poll(_LOOK):
            if self.process.lock_is_awaited() or time.monotonic() - looks_from > _WAITS_FOR:
                frozen.process.was_waited_for = True
                frozen.go_on()
                frozen = None
        end, notes = _message(reader)
        if end != "broken":
            self._learn(notes)
        if end != "halted":
            reader.close()
            os.waitpid(self._pid, 0)
        if end == "broken":
            raise ConfigError(f"The forked drain broke: {notes}")
        return end

    def _notes(self) -> ChildNotes:
        """The course of the child so far."""
        process, observed = self.process, self._observed
        return ChildNotes(
            calls=observed.calls[self._calls :],
            pushes=observed.pushes[self._pushes :],
            queues=[*{*self._touched} - self._before],
            points=process.points,
            place=process.place,
            has_fired=process.has_fired,
            has_swallowed=process.has_swallowed,
            never_ends=observed.never_ends,
            errors=[f"{type(error).__name__}: {error}" for error in process.errors],
            now=self._clock.time(),
        )

    def _learn(self, notes: ChildNotes) -> None:
        process, observed, before = self.process, self._observed, self._learned
        self._learned = notes
        observed.calls += notes.calls[len(before.calls) :]
        observed.pushes += notes.pushes[len(before.pushes) :]
        observed.never_ends |= notes.never_ends
        self._touched |= {name: self._queues[name] for name in notes.queues}
        process.points, process.place = [*notes.points], notes.place
        process.has_fired, process.has_swallowed = notes.has_fired, notes.has_swallowed
        process.errors = [RuntimeError(text) for text in notes.errors]
        self._clock.advance(max(notes.now - self._clock.time(), 0.0))

    def _be_child(self, writer: Connection) -> NoReturn:
        def send(end: End, notes: object) -> None:
            writer.send((end, notes))

        def signalled(end: End, number: signal.Signals) -> None:
            send(end, self._notes())
            os.kill(os.getpid(), number)

        self.process.on_death = lambda: signalled("dead", signal.SIGKILL)
        self.process.on_halt = lambda: signalled("halted", signal.SIGSTOP)
        try:
            self._run()
            send("through", self._notes())
        except BaseException as error:  # noqa: BLE001 - no code of the parent runs in a child
            send("broken", f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)


def _message(reader: Connection) -> tuple[End, Any]:
    try:
        end, notes = reader.recv()
    except EOFError:
        return "broken", "it ended without a word."
    return end, notes
