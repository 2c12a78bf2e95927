"""The moves of an app's queues, and the duty that goes on with them."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.declare.duty import MOVES
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.survivors import CRASHED
from lowkiq_lambda.reshard.group import Moved, Postponed, QueueFacts
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.moving import DeathTerms

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.declare.pushable import AnyWorker


logger = logging.getLogger(__name__)

STANDS_STILL: Final = 60.0
"""Seconds without a change of the layout after which a move counts as abandoned."""


class ReshardDuty:
    """Once a minute: goes on with each move that a mover has begun and left, for as long as a run may take."""

    name: Final = MOVES
    every: Final = 60.0

    def __init__(self, core: "Core") -> None:
        self._core = core

    def run(self, remaining: Callable[[], float]) -> dict[str, str]:
        """How far each of these queues has come, by its name. Raises LowkiqError if one cannot move."""
        progress = {}
        for queue in self._core.queues.values():
            if not queue.shards.layout.is_moving or remaining() <= 0:
                continue
            name, auto = queue.worker.queue_name, queue.auto
            unreplicated = auto is not None and auto.unreplicated
            resharding = resharding_of(self._core, queue.worker, unreplicated=unreplicated)
            if resharding.still_for() < STANDS_STILL:
                continue
            logger.warning("a move to another number of shards stood still, and goes on", extra={"queue": name})
            resharding.go_on(_ignore, remaining)
            layout = resharding.layout
            progress[name] = f"{layout.groups - len(layout.left)} of {layout.groups}" if layout.is_moving else "moved"
        return progress


def move_runner(core: "Core", clock: "Clock") -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(core, [ReshardDuty(core)], clock, name=MOVES)


def _ignore(_moved: int, _groups: int, _outcome: Moved | Postponed) -> None:
    """Ignore the report: the layout has the progress of the queue."""


def resharding_of(core: "Core", worker: "AnyWorker", *, unreplicated: bool = False) -> Resharding:
    """The moves of the worker's queue; with `unreplicated` no step waits for replicas.

    Raises DeclarationError if it is not a worker of the app.
    """
    queue, config = core.queues.of(worker), core.config
    count = queue.worker.shards_count
    texts = ErrorText(config.format_error, config.dump_error, config.load_error)
    first = queue.shards[0]
    facts = QueueFacts(
        queue.worker.queue_name,
        queue.worker.merge,
        first.by_tenant,
        first.features,
        DeathTerms(config.morgue.parts, texts.dump(CRASHED), queue.worker.dead_head),
        core.backend.prefix,
    )
    return Resharding(
        core.backend,
        facts,
        config.redis_retry_for,
        core.backend.clock,
        unreplicated=unreplicated,
        declared=count if isinstance(count, int) else None,
    )
