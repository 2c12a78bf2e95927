"""One tick a minute for the whole app, as a part of an invocation of the drain function.

What goes wrong with one queue or one task keeps no other from its turn, nor the drain behind them; it ends as an error
of the invocation once all had theirs.
"""

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.logs import Context
from lowkiq_lambda.aws.queue_metrics import publish_queues, publish_summary
from lowkiq_lambda.aws.telemetry import line_of_tick
from lowkiq_lambda.aws.tick import Task, Tick, TickFailed, run, warn_of_unscheduled
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import ShardRef

if TYPE_CHECKING:
    from lowkiq_lambda.providers.aws.invoker import Invoker

logger = logging.getLogger(__name__)

TIME: Final = 50.0
"""Seconds that a tick takes at most, however long the invocation may: the next one comes after a minute."""
PUNCTUAL_TIME: Final = 60.0
"""The same, where it stays for planned times: until the next one comes."""


class TickOutcome(NamedTuple):
    """What came of a tick."""

    summary: dict[str, Any]
    """What each task did, by its name."""
    handed: frozenset[ShardRef]
    """The shards that other invocations were started for."""
    failure: TickFailed | None
    """What went wrong on the way."""


def tasks_of(app: Lowkiq, settings: Settings, *, alone: bool = True) -> dict[str, Task]:
    """What a tick does, in this order: duties may push jobs, so they stand before the start of drains.

    What stays until the time is over stands last, and only in a tick that no drain follows.
    """
    tasks: dict[str, Task] = {}
    if settings.metrics != "none":
        tasks["queues"] = publish_queues if settings.metrics == "queues" else publish_summary
    if app.core.duties or app.core.fires_schedules:
        from lowkiq_lambda.aws.duty_task import run_duties  # noqa: PLC0415 - imported lazily: cold start

        tasks["duties"] = run_duties
    # An earlier tick has looked for shards with due work, which tell of them.
    if app.core.follows_tasks:
        from lowkiq_lambda.aws.duty_task import look_after_tasks  # noqa: PLC0415 - imported lazily: cold start

        tasks["tasks"] = look_after_tasks
    if app.core.follows_moves:
        from lowkiq_lambda.aws.duty_task import go_on_with_moves  # noqa: PLC0415 - imported lazily: cold start

        tasks["moves"] = go_on_with_moves
    if settings.fan_out:
        from lowkiq_lambda.aws.fan_out import start_drains  # noqa: PLC0415 - imported lazily: cold start

        tasks["drains"] = start_drains
    if alone and settings.punctual and app.core.fires_schedules:
        from lowkiq_lambda.aws.duty_task import fire_punctually  # noqa: PLC0415 - imported lazily: cold start

        tasks["punctual"] = fire_punctually
    return tasks


def tick_alone(app: Lowkiq, settings: Settings, context: Context, invoker: "Invoker | None" = None) -> dict[str, Any]:
    """One tick that no drain follows. Returns what each task did.

    Raises TickFailed for what went wrong on the way, and BackendError where Redis is out of reach.
    """
    done = ticked(app, settings, context, invoker, keep=None)
    if done.failure:
        raise done.failure
    logger.info("ticked", extra=line_of_tick(done.summary))
    return done.summary


def ticked(
    app: Lowkiq, settings: Settings, context: Context, invoker: "Invoker | None" = None, *, keep: int | None
) -> TickOutcome:
    """One tick; `keep`: how many shards the invocation drains at once behind it, None where it drains none.

    Raises BackendError where Redis is out of reach.
    """
    alone = keep is None
    most = PUNCTUAL_TIME if alone and settings.punctual else TIME
    kept_back = settings.reserve + max(0.0, context.get_remaining_time_in_millis() / 1_000 - most)

    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1_000 - kept_back

    tick = Tick(app, settings, invoker, context.function_name, remaining, keep=keep or 0)
    summary = run(tick, tasks_of(app, settings, alone=alone))
    if settings.scheduled_shards and not settings.fan_out:
        warn_of_unscheduled(tick)
    return TickOutcome(summary, frozenset(tick.handed), tick.failure(summary))
