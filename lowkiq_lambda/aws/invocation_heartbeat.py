"""The heartbeat of an invocation that drains.

It costs no round trip of its own before the interval of heartbeats is over: the first heartbeat travels with the first
visit, and what ends it with the last look for work.
"""

from types import TracebackType
from typing import Self

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.views.processes import ProcessState


class InvocationHeartbeat:
    """Sends heartbeats while the drain has something to do, and ends its tour when somebody orders that."""

    def __init__(self, app: Lowkiq, loop: Loop, budget: Budget) -> None:
        self._heartbeat = Heartbeat(
            app.core.drains.drainer, "lambda", app.config.threads_per_node, self._obey, self._state
        )
        self._interval = app.config.heartbeat_interval
        self._is_told = False
        self._made = 0
        """Heartbeats of the thread until it was told that the invocation may end."""
        self._is_stopping = False
        stops = budget.stopping
        # Asked for each batch, by visits in other threads too: their budgets are copies of this one.
        budget.stopping = lambda: self._is_stopping or stops()
        loop.before_probe, loop.after_probe = self._before_probe, self._after_probe

    def __enter__(self) -> Self:
        self._tell()
        self._heartbeat.begin(first_in=self._interval)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heartbeat.end()
        # A heartbeat of the thread may have come after what told of the end.
        if self._is_told or self._heartbeat.made > self._made:
            self._heartbeat.sender.end_along()

    def _before_probe(self, loop: Loop) -> None:
        """Nobody knows yet whether it is the last one; where work is known, it is not."""
        if self._is_told and not loop.is_busy:
            self._is_told, self._made = False, self._heartbeat.made
            self._heartbeat.sender.end_along()

    def _after_probe(self, loop: Loop) -> None:
        if loop.left and not self._is_told:
            self._tell()

    def _tell(self) -> None:
        self._is_told = True
        self._heartbeat.sender.send_along(self._heartbeat.told())

    def _obey(self, _order: str) -> None:
        # An invocation has nothing to stay for: to be quiet is to end.
        self._is_stopping = True

    def _state(self) -> ProcessState:
        return "stopping" if self._is_stopping else "running"
