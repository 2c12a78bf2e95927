"""The thread of a daemon that runs duties."""

from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Final

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.duties.runner import LONGEST_RUN, DutyRunner
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.store.server.faults import backoff

LONGEST_WAIT: Final = 60.0
_SPREAD: Final = 0.25


@dataclass
class DutyThread:
    """Runs until it is told to stop, and survives the loss of Redis. A run that is under way then is told so."""

    runner: DutyRunner
    outage: Outage
    rng: Random
    stopping: Event
    has_worked: bool = field(default=False, init=False)

    def run(self) -> None:
        """Run what is due, and wait for what is due next."""
        attempt = 0
        while not self.stopping.is_set():
            try:
                next_in = self.runner.run_due(self._remaining).next_in
            except BackendError as error:
                self.outage.failed(self.runner.name, error)
                self.stopping.wait(backoff(attempt, self.rng))
                attempt += 1
            else:
                self.outage.worked(self.runner.name)
                self.has_worked, attempt = True, 0
                # Later by some chance, so that many daemons don't ask at once.
                self.stopping.wait(min(next_in, LONGEST_WAIT) + self.rng.uniform(0.0, _SPREAD))

    def _remaining(self) -> float:
        return 0.0 if self.stopping.is_set() else LONGEST_RUN
