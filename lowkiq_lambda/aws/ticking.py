"""One tick a minute for the whole app, as a part of an invocation of the drain function.

What goes wrong with one queue or one task keeps no other from its turn, nor the drain behind them; it ends as an error
of the invocation once all had theirs.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.logs import Context, invoked_name, publish
from lowkiq_lambda.aws.telemetry import line_of_tick
from lowkiq_lambda.aws.tick import HousekeepingFailed, Task, Tick, run, warn_of_unscheduled
from lowkiq_lambda.operate.inspect.told import Untold, note_told, untold
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics

if TYPE_CHECKING:
    from lowkiq_lambda.providers.aws.invoker import Invoker


logger = logging.getLogger(__name__)

TIME: Final = 50.0
"""Seconds that a tick takes at most, however long the invocation may: the next one comes after a minute."""
PUNCTUAL_TIME: Final = 60.0
"""The same, where it stays for planned times: until the next one comes."""

Published = dict[str, float]

_OF_ALL: Final[dict[str, Callable[[Iterable[float]], float]]] = {
    "lag": max,
    "oldest_due_age": max,
    "length": sum,
    "morgue": sum,
}
"""What is published, and how queues are taken together."""
BLOCKED: Final = "blocked"
"""Published only of queues that block ids, or may: each metric of a queue costs."""
TRIMMED: Final = "trimmed"
"""Published only of queues whose morgue has lost payloads, as many as it ever has."""
_SOME: Final = (BLOCKED, TRIMMED)
WANTED: Final = "wanted_holders"
"""Published of the app as a whole, with the setting for it."""
DEAD: Final = "dead"
"""Published of the app as a whole."""


class TickOutcome(NamedTuple):
    """What came of a tick."""

    summary: dict[str, Any]
    """What each task did, by its name."""
    handed: frozenset[ShardRef]
    """The shards that other invocations were started for."""
    failure: HousekeepingFailed | None
    """What went wrong on the way."""


def tasks_of(app: Lowkiq, settings: Settings, *, alone: bool = True) -> dict[str, Task]:
    """The tasks of a tick, in their order: duties may push jobs, so they stand before the start of drains.

    The task that stays until the time is over stands last, and only in a tick that no drain follows.
    """
    tasks: dict[str, Task] = {}
    if settings.metrics != "none":
        tasks["queues"] = publish_queues if settings.metrics == "queues" else publish_summary
    if needed := [name for name, is_needed in _housekeeping(app).items() if is_needed]:
        from lowkiq_lambda.aws.duty_task import TASKS_BY_NAME  # noqa: PLC0415 - imported lazily: cold start

        tasks.update((name, TASKS_BY_NAME[name]) for name in needed)
    if settings.starts_drains:
        from lowkiq_lambda.aws.fan_out import start_drains  # noqa: PLC0415 - imported lazily: cold start

        tasks["drains"] = start_drains
    if alone and settings.is_punctual and app.core.housekeeping.fires_schedules:
        from lowkiq_lambda.aws.duty_task import fire_punctually  # noqa: PLC0415 - imported lazily: cold start

        tasks["punctual"] = fire_punctually
    return tasks


def _housekeeping(app: Lowkiq) -> dict[str, object]:
    """Which tasks of `duty_task.TASKS_BY_NAME` the app has something for, in their order."""
    of_app = app.core.housekeeping
    return {
        "duties": of_app.duties or of_app.fires_schedules,
        # An earlier tick has looked for shards with due work, which tell of them.
        "tasks": of_app.follows_tasks,
        "moves": of_app.follows_moves,
        "verify": of_app.verifies,
        "watch": of_app.watches,
        "auto": of_app.follows_auto,
        "burst": app.config.burst_after,
    }


def tick_alone(app: Lowkiq, settings: Settings, context: Context, invoker: "Invoker | None" = None) -> dict[str, Any]:
    """One tick that no drain follows. Returns what each task did.

    Raises HousekeepingFailed for errors on the way, and BackendError if Redis is unreachable.
    """
    done = ticked(app, settings, context, invoker, keep=None)
    if done.failure:
        raise done.failure
    logger.info("ticked", extra=line_of_tick(done.summary))
    return done.summary


def ticked(
    app: Lowkiq, settings: Settings, context: Context, invoker: "Invoker | None" = None, *, keep: int | None
) -> TickOutcome:
    """One tick; `keep`: how many shards the invocation drains at once behind it, None if it drains none.

    Raises BackendError if Redis is unreachable.
    """
    alone = keep is None
    most = PUNCTUAL_TIME if alone and settings.is_punctual else TIME
    kept_back = settings.reserve + max(0.0, context.get_remaining_time_in_millis() / 1_000 - most)

    def remaining() -> float:
        return context.get_remaining_time_in_millis() / 1_000 - kept_back

    tick = Tick(
        app,
        settings,
        invoker,
        context.function_name,
        remaining,
        keep=keep or 0,
        invoked_name=invoked_name(context),
    )
    summary = run(tick, tasks_of(app, settings, alone=alone))
    if settings.scheduled_shards and not settings.starts_drains:
        warn_of_unscheduled(tick)
    return TickOutcome(summary, frozenset(tick.handed), tick.failure(summary))


def publish_summary(tick: Tick) -> dict[str, Published]:
    """Publish how long the app's oldest due id has waited, and how many ids died, under the dimension `function`.

    Returns the numbers of each queue, by its name.
    """
    numbers = _Seen.by(tick)
    of_all = _of_all([*numbers.numbers.values()])
    values = {"oldest_due_age": of_all["oldest_due_age"], DEAD: numbers.dead}
    values |= {name: of_all[name] for name in _SOME if of_all.get(name)} | numbers.scale(tick)
    publish(tick.settings.metrics_namespace, tick.function_name, None, values)
    numbers.note(tick)
    return numbers.numbers


def publish_queues(tick: Tick) -> dict[str, Published]:
    """The numbers of each queue by its name, published under the dimensions `function` and `queue`.

    Under `function` alone stands the app as a whole, with the sum of lengths and the largest lag and age: an alarm
    needs to know no queue by name.
    """
    summary = _Seen.by(tick)
    namespace = tick.settings.metrics_namespace
    for name, numbers in summary.numbers.items():
        # Not rolled up: CloudWatch would take the lengths of queues for samples of one.
        publish(namespace, tick.function_name, name, numbers, roll_up=False)
    of_all = _of_all([*summary.numbers.values()]) | {DEAD: summary.dead} | summary.scale(tick)
    publish(namespace, tick.function_name, None, of_all)
    summary.note(tick)
    return summary.numbers


class _Seen(NamedTuple):
    """A tick's findings about the queues, by their names."""

    numbers: dict[str, Published]
    untold: Mapping[str, Untold]

    @classmethod
    def by(cls, tick: Tick) -> "_Seen":
        names = [queue.worker.queue_name for queue in tick.queues]
        reader = ShardReader(tick.app.core.backend, tick.retry_for)
        untold_numbers = untold(reader, tick.queues, tick.function_name)
        blocks = [queue.worker.dead_head == "block" for queue in tick.queues]
        numbers = {
            name: _published(one.metrics, may_block)
            for name, one, may_block in zip(names, untold_numbers, blocks, strict=True)
        }
        return cls(numbers, dict(zip(names, untold_numbers, strict=True)))

    @property
    def dead(self) -> int:
        return sum(one.dead for one in self.untold.values())

    def scale(self, tick: Tick) -> Published:
        """The holders that the app could use, where somebody scales by them."""
        holders = sum(one.metrics.wanted_holders for one in self.untold.values())
        return {WANTED: holders} if tick.settings.scaling else {}

    def note(self, tick: Tick) -> None:
        """Note the published counts as told, after they have left the process."""
        changed = {name: one.metrics.dead for name, one in self.untold.items() if one.is_changed}
        if changed:
            note_told(tick.app.core.backend, tick.retry_for, changed, tick.function_name)


def _published(metrics: Metrics, may_block: bool) -> Published:  # noqa: FBT001 - of the queue
    blocked = {BLOCKED: metrics.blocked} if may_block or metrics.blocked else {}
    trimmed = {TRIMMED: metrics.trimmed} if metrics.trimmed else {}
    return {
        "lag": metrics.lag,
        "oldest_due_age": metrics.oldest_due_age,
        "length": metrics.length,
        "morgue": metrics.morgue_length,
        **blocked,
        **trimmed,
    }


def _of_all(queues: list[Published]) -> Published:
    of_all = {name: unite([queue[name] for queue in queues] or [0]) for name, unite in _OF_ALL.items()}
    some = {name: [queue[name] for queue in queues if name in queue] for name in _SOME}
    return {**of_all, **{name: sum(values) for name, values in some.items() if values}}
