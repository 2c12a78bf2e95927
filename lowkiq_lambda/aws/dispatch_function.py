"""The dispatcher function: one tick a minute for the whole app.

What goes wrong with one queue or one task keeps no other from its turn, and ends as an error of the invocation once
all had theirs.
"""

import logging
from typing import Any

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.environment import answering, environment, flushed
from lowkiq_lambda.aws.fan_out import start_drains
from lowkiq_lambda.aws.invoker import Invoker, shared_invoker
from lowkiq_lambda.aws.logs import Context, logged
from lowkiq_lambda.aws.queue_metrics import publish_queues
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.aws.tick import Task, Tick, run
from lowkiq_lambda.errors import ConfigError

logger = logging.getLogger(__name__)


def tasks_of(app: Lowkiq, settings: Settings) -> dict[str, Task]:
    """What a tick does, in this order: duties may push jobs, so they stand before the start of drains.

    What stays until the time is over stands last.
    """
    tasks: dict[str, Task] = {"queues": publish_queues}
    if app.declared_duties or app.fires_schedules:
        from lowkiq_lambda.aws.duty_task import run_duties  # noqa: PLC0415 - imported lazily: cold start

        tasks["duties"] = run_duties
    # An earlier tick has looked for shards with due work, which tell of them.
    if app.follows_tasks:
        from lowkiq_lambda.aws.duty_task import look_after_tasks  # noqa: PLC0415 - imported lazily: cold start

        tasks["tasks"] = look_after_tasks
    if app.follows_moves:
        from lowkiq_lambda.aws.duty_task import go_on_with_moves  # noqa: PLC0415 - imported lazily: cold start

        tasks["moves"] = go_on_with_moves
    if settings.fan_out:
        tasks["drains"] = start_drains
    if settings.punctual and app.fires_schedules:
        from lowkiq_lambda.aws.punctual import fire_punctually  # noqa: PLC0415 - imported lazily: cold start

        tasks["punctual"] = fire_punctually
    return tasks


@logged
@answering
def handler(event: object, context: Context) -> dict[str, Any]:
    """One tick, whatever the event. Returns what each task did.

    Raises TickFailed for what went wrong on the way, BackendError where Redis is out of reach, NotFlushed where jobs
    that duties pushed are still in this process, and ConfigError.
    """
    del event
    warm = environment()
    summary = flushed(warm.app, dispatch)(warm.app, warm.settings, shared_invoker(), context)
    logger.info("ticked", extra=summary)
    return summary


def dispatch(app: Lowkiq, settings: Settings, invoker: Invoker, context: Context) -> dict[str, Any]:
    """One tick for the app."""
    if settings.fan_out and settings.drain_function is None:
        raise ConfigError(
            "LOWKIQ_FAN_OUT is on, but nothing says what to start: set LOWKIQ_DRAIN_FUNCTION.", setting="drain_function"
        )

    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1_000 - settings.reserve

    return run(Tick(app, settings, invoker, context.function_name, remaining), tasks_of(app, settings))
