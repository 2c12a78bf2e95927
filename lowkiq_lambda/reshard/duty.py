"""The duty that goes on with moves which stand still."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.declare.duty import MOVES
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.reshard.group import Moved, Postponed
from lowkiq_lambda.reshard.of_app import resharding_of

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core

logger = logging.getLogger(__name__)

STANDS_STILL: Final = 60.0
"""Seconds without a change of the layout after which nobody is taken to be at it."""


class ReshardDuty:
    """Once a minute: goes on with each move that a mover has begun and left, for as long as a run may take."""

    name: Final = MOVES
    every: Final = 60.0

    def __init__(self, core: "Core") -> None:
        self._core = core

    def run(self, remaining: Callable[[], float]) -> dict[str, str]:
        """How far each of these queues has come, by its name. Raises LowkiqError where one cannot move."""
        told = {}
        for queue in self._core.queues.values():
            if not queue.shards.layout.is_moving or remaining() <= 0:
                continue
            name, resharding = queue.worker.queue_name, resharding_of(self._core, queue.worker)
            if resharding.still_for() < STANDS_STILL:
                continue
            logger.warning("a move to another number of shards stood still, and goes on", extra={"queue": name})
            resharding.go_on(_ignore, remaining)
            layout = resharding.layout
            told[name] = f"{layout.groups - len(layout.left)} of {layout.groups}" if layout.is_moving else "moved"
        return told


def move_runner(core: "Core", clock: "Clock") -> DutyRunner:
    """What runs the duty: it waits for no other one."""
    return DutyRunner(core, [ReshardDuty(core)], clock, name=MOVES)


def _ignore(_moved: int, _groups: int, _outcome: Moved | Postponed) -> None:
    """The layout tells how far the queue has come."""
