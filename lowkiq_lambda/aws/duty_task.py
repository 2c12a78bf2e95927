"""The tasks of a tick that run the app's duties, at once or at the planned times of schedule entries."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from lowkiq_lambda.aws.logs import publish
from lowkiq_lambda.aws.tick import HousekeepingFailed, Task, Tick
from lowkiq_lambda.base.error_text import cut, headline
from lowkiq_lambda.declare.duty import AUTO, MOVES, SCHEDULES, TASKS, VERIFY, WATCH
from lowkiq_lambda.duties.runner import DutiesRun, runners_of

logger = logging.getLogger(__name__)

MISSED: Final = "schedules_missed"
SCHEDULE_METRICS: Final[Mapping[str, str]] = {MISSED: "missed", "schedules_late": "late"}
"""What is published of schedule entries, and how their summary calls it."""
VIOLATIONS: Final = "verify_violations"
"""What is published of the verification."""
LONGEST_RESULT: Final = 10_000
"""Characters of what a duty returned that the summary has: Lambda takes no answer of more than six megabytes."""
SHARE: Final = 0.5
"""Of the time that the tick has left: the rest is for the start of drains."""

TO_START: Final = 1.0
"""Seconds of the tick's time that are left to the start of drains for what has fired last."""
_SHORTEST_WAIT: Final = 0.005
"""Seconds: clocks may differ by less about when a planned time comes."""


def run_duties(tick: Tick) -> dict[str, Any]:
    """Run the duties that are due and that no other process runs; their results."""
    keep = tick.remaining() * (1 - SHARE)
    results: dict[str, Any] = {}
    for runner in runners_of(tick.app.core, lambda: tick.app.schedules, tick.app.core.clock):
        ran = runner.run_due(lambda: tick.remaining() - keep)
        note_errors(tick, ran)
        results |= ran.results
    if tick.app.core.housekeeping.fires_schedules and (ticked := results.get(SCHEDULES)):
        publish_schedules(tick, ticked)
    return {name: _as_json(result) for name, result in results.items()}


def look_after_tasks(tick: Tick) -> dict[str, int] | None:
    """What the duty that looks after tasks returned, where it was due."""
    from lowkiq_lambda.tasks.duty import task_runner  # noqa: PLC0415 - only where there are tasks

    keep = tick.remaining() * (1 - SHARE)
    ran = task_runner(tick.app.core, tick.app.core.clock).run_due(lambda: tick.remaining() - keep)
    note_errors(tick, ran)
    return ran.results.get(TASKS)


def tell_of_bursts(tick: Tick) -> dict[str, str]:
    """Of queues that are late and where a burst would not help, why: all of their shards are held."""
    from lowkiq_lambda.operate.inspect.metrics import queue_totals  # noqa: PLC0415 - only where drains burst
    from lowkiq_lambda.store.shard.reader import ShardReader  # noqa: PLC0415 - as above

    reader = ShardReader(tick.app.core.backend, tick.retry_for)
    sentences = {}
    for queue, metrics in zip(tick.queues, queue_totals(reader, [queue.shards for queue in tick.queues]), strict=True):
        number, name = len(queue.shards), queue.worker.queue_name
        if metrics.holders == number and metrics.due and metrics.lag >= tick.app.config.burst_after:
            sentences[name] = f"burst would not help: {metrics.holders} of {number} shards are held"
            logger.warning("%s: %s", name, sentences[name])
    return sentences


def go_on_with_moves(tick: Tick) -> dict[str, str] | None:
    """Run the duty that goes on with moves of queues to other shards, if it is due; its result."""
    from lowkiq_lambda.reshard.duty import move_runner  # noqa: PLC0415 - only while a queue moves

    keep = tick.remaining() * (1 - SHARE)
    ran = move_runner(tick.app.core, tick.app.core.clock).run_due(lambda: tick.remaining() - keep)
    note_errors(tick, ran)
    return ran.results.get(MOVES)


def verify_queues(tick: Tick) -> dict[str, int] | None:
    """Run the duty that verifies queues by their journals, if it is due; its result."""
    from lowkiq_lambda.operate.verify.duty import verify_runner  # noqa: PLC0415 - only if it is asked for

    keep = tick.remaining() * (1 - SHARE)
    ran = verify_runner(tick.app.core, tick.app.core.clock).run_due(lambda: tick.remaining() - keep)
    note_errors(tick, ran)
    result: dict[str, int] | None = ran.results.get(VERIFY)
    if result and tick.settings.metrics != "none" and (result["violations"] or tick.settings.metrics == "queues"):
        publish(tick.settings.metrics_namespace, tick.function_name, None, {VIOLATIONS: result["violations"]})
    return result


def watch_queues(tick: Tick) -> dict[str, str] | None:
    """Run the duty that keeps how each minute of the queues was, if it is due: why queues are late, by name."""
    from lowkiq_lambda.operate.lateness.duty import watch_runner  # noqa: PLC0415 - only where queues are watched

    keep = tick.remaining() * (1 - SHARE)
    ran = watch_runner(tick.app.core, tick.app.core.clock).run_due(lambda: tick.remaining() - keep)
    note_errors(tick, ran)
    return ran.results.get(WATCH)


def size_queues(tick: Tick) -> dict[str, str] | None:
    """Run the duty that says how many shards the queues need, if it is due; what it says, by name."""
    from lowkiq_lambda.operate.auto.duty import auto_runner  # noqa: PLC0415 - only where a queue is "auto"

    keep, schedules = tick.remaining() * (1 - SHARE), None
    if tick.settings.auto_schedules or (tick.settings.scheduled_shards and not tick.settings.starts_drains):
        from lowkiq_lambda.aws.drain_schedules.following import (  # noqa: PLC0415 - only where shards have schedules
            FollowedSchedules,
            ForeignSchedules,
        )

        prefix = tick.settings.auto_schedules
        schedules = FollowedSchedules(prefix) if prefix else ForeignSchedules()
    ran = auto_runner(tick.app.core, tick.app.core.clock, schedules).run_due(lambda: tick.remaining() - keep)
    note_errors(tick, ran)
    return ran.results.get(AUTO)


def note_errors(tick: Tick, ran: DutiesRun) -> None:
    """Note the errors of duties, which the tick raises at its end."""
    for name, error in ran.errors.items():
        failed = HousekeepingFailed(f"The duty {name!r} failed: {headline(error)}.")
        failed.__cause__ = error
        tick.note(failed)


def publish_schedules(tick: Tick, ticked: Mapping[str, Any]) -> None:
    """Publish what a tick says of schedule entries: what was missed, and how late the latest firing was.

    A summary has what was missed alone, where anything was: each metric costs.
    """
    values = {metric: ticked[field] for metric, field in SCHEDULE_METRICS.items()}
    if tick.settings.metrics != "queues":
        values = {metric: value for metric, value in values.items() if metric == MISSED and value}
    if not values or tick.settings.metrics == "none":
        return
    publish(tick.settings.metrics_namespace, tick.function_name, None, values)


def _as_json(result: object) -> Any:  # noqa: ANN401 - whatever the duty returned
    try:
        text = json.dumps(result, default=repr, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return cut(repr(result), LONGEST_RESULT)
    return json.loads(text) if len(text) <= LONGEST_RESULT else cut(text, LONGEST_RESULT)


def fire_punctually(tick: Tick) -> dict[str, Any]:
    """Fire at each planned time that comes before the tick's time is over; at once over where none does.

    It comes last, so that nothing else of the tick waits. Returns how many looks there were, and what they did.
    """
    runner = tick.app.schedules.duty_runner(tick.app.core.backend.clock)
    summary: dict[str, Any] = {"looks": 0, "fired": 0, "missed": 0, "replaced": 0, "late": 0.0, "problems": []}

    def remaining() -> float:
        return tick.remaining() - TO_START

    while remaining() > 0:
        ran = runner.run_due(remaining)
        note_errors(tick, ran)
        if ran.errors:
            break
        if ticked := ran.results.get(SCHEDULES):
            _add(summary, ticked)
            if ticked["fired"] and tick.settings.starts_drains:
                from lowkiq_lambda.aws.fan_out import start_drains  # noqa: PLC0415 - only where drains are started

                start_drains(tick)
            continue
        # Nothing is due, or another process looks.
        if ran.next_in >= remaining():
            break
        tick.app.core.backend.clock.sleep(max(ran.next_in, _SHORTEST_WAIT))
    if summary["looks"]:
        publish_schedules(tick, summary)
    return summary


def _add(summary: dict[str, Any], ticked: dict[str, Any]) -> None:
    summary["looks"] += 1
    for count in ("fired", "missed", "replaced"):
        summary[count] += ticked[count]
    summary["late"] = max(summary["late"], ticked["late"])
    summary["problems"] = ticked["problems"]


TASKS_BY_NAME: Final[Mapping[str, Task]] = {
    "duties": run_duties,
    "tasks": look_after_tasks,
    "moves": go_on_with_moves,
    "verify": verify_queues,
    "watch": watch_queues,
    "auto": size_queues,
    "burst": tell_of_bursts,
}
"""Those of a tick that are for housekeeping."""
