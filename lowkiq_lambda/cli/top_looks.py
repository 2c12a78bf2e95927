"""What `lowkiq top` shows, read beside the screen: a slow server never keeps a key waiting."""

from collections.abc import Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Final, Self

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.operate.doctor.checkup import look_for_needs
from lowkiq_lambda.operate.doctor.findings import Need
from lowkiq_lambda.operate.presentation.trouble import Trouble, troubles_of
from lowkiq_lambda.views.errors import ErrorGroup
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueOverview

PERIOD: Final = 2.0
"""Seconds between two looks."""
_SELDOM: Final = 15.0
"""Seconds between two looks at what costs more: what needs somebody, and errors."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What was there at `at`, by the clock that only goes on; `problem`: why there is nothing newer, or empty."""

    at: float
    queues: Sequence[QueueOverview] = ()
    troubles: Mapping[str, Trouble] = {}
    needs: Sequence[Need] = ()
    errors: Sequence[ErrorGroup] = ()
    processes: Sequence[Process] = ()
    sentence: str = ""
    problem: str = ""


class Looks:
    """The last look, renewed by a thread until the block ends."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app
        self._lock = Lock()
        self._over = Event()
        self._due = Event()
        self._opened = ""
        self._rare_at: float | None = None
        self._latest = Look(at=SystemClock.monotonic())
        self._thread = Thread(target=self._run, name="lowkiq-top", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A call that waits for the server ends with the process.
        self._over.set()
        self._due.set()

    @property
    def latest(self) -> Look:
        """The newest."""
        with self._lock:
            return self._latest

    def open(self, queue: str) -> None:
        """Look at this queue more closely from now on; "" for none."""
        with self._lock:
            self._opened = queue
            self._latest = msgspec.structs.replace(self._latest, sentence="")
        self._due.set()

    def renew(self) -> None:
        """Something was changed: look at everything now."""
        self._rare_at = None
        self._due.set()

    def _run(self) -> None:
        while not self._over.is_set():
            self._due.clear()
            try:
                look = self._look()
            except LowkiqError as error:
                look = msgspec.structs.replace(self.latest, problem=str(error))
            with self._lock:
                self._latest = look
            self._due.wait(PERIOD)

    def _look(self) -> Look:
        operate, before, opened = self._app.operate, self.latest, self._opened
        with operate.overview() as overview:
            queues = [*overview.queues]
        at = SystemClock.monotonic()
        needs, errors = before.needs, before.errors
        if self._rare_at is None or at - self._rare_at >= _SELDOM:
            needs, errors = look_for_needs(operate), operate.errors(limit=50).groups
            self._rare_at = at
        troubles = troubles_of(queues, needs)
        sentence = ""
        if opened:
            worker = next((each for each in self._app.workers if each.queue_name == opened), None)
            sentence = "" if worker is None else operate(worker).why_late().says
        return Look(
            at=at,
            queues=sorted(queues, key=lambda queue: troubles[queue.name].rank),
            troubles=troubles,
            needs=needs,
            errors=errors,
            processes=[*operate.processes()],
            sentence=sentence if opened == self._opened else "",
        )
