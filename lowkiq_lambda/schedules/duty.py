"""The duty that fires schedule entries."""

import logging
from collections.abc import Callable
from typing import Final

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.declare.duty import SCHEDULES, RunAgain
from lowkiq_lambda.schedules.ticked import Ticked

logger = logging.getLogger(__name__)


CLAIM_TTL: Final = 0.5
"""Seconds for which one process looks alone. Two at a time fire nothing twice, so a process that died in the middle of
a look holds the others up no longer than that."""


class FireDuty:
    """One tick at least once a minute, and at the next planned time where a daemon runs it."""

    name: Final = SCHEDULES
    every: Final = 60.0

    def __init__(self, tick: Callable[[Callable[[], float]], Ticked]) -> None:
        self._tick = tick

    def run(self, remaining: Callable[[], float]) -> RunAgain:
        """Fire what is due. Problems are told in the summary and in the log.

        They are no failure of the duty, which would rest longer and longer, and with it every entry.
        """
        try:
            ticked = self._tick(remaining)
        except BackendError as error:
            logger.warning("no schedule entry could be looked at: %s", error)
            return RunAgain(Ticked(problems=[str(error)]).summary(), None)
        return RunAgain(ticked.summary(), ticked.next_in)
