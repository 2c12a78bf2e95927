"""Which shards of an app nothing in a deployed stack drains: no schedule that fires, and no tick that fans out."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.deployed import Group, function_environment, stack_outputs
from lowkiq_lambda.aws.events import ALONE, BadEvent, selected, ticks
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import ShardRef


class Coverage(NamedTuple):
    """What drains the shards of a stack."""

    shards: int
    """How many there are for it to drain, of all queues."""
    fans_out: bool
    """Whether its ticks start drains."""
    missing: Mapping[str, Sequence[int]]
    """The shard indexes that nothing drains, by queue."""
    surplus: Sequence[str] = ()
    """The names of schedules whose queue or shard the app does not have."""


def coverage_of(app: Lowkiq, stack: str, counts: Mapping[str, int] | None = None) -> Coverage:
    """That of a stack of template.yaml and of the group that `lowkiq stack schedules` keeps for it.

    `counts`: of queues that are to have so many shards. Raises DeployError, ConfigError and BackendError.
    """
    outputs = stack_outputs(stack)
    function = outputs.get("DrainFunctionName")
    settings = Settings.from_env(function_environment(function)) if function else Settings()
    groups = dict.fromkeys((outputs.get("ScheduleGroupName"), f"{stack}-schedules"))
    firing = [schedule for group in groups if group for schedule in Group(group).firing()]
    events = {schedule.name: _parsed(schedule.event) for schedule in firing}
    shards = _shards(app, counts or {})
    mine = [shard for shard in shards if settings.drains(shard.queue_name)]
    fans_out = settings.starts_drains and any(_ticks(event) for event in events.values())
    surplus = sorted(name for name, event in events.items() if _is_surplus(event, shards))
    return Coverage(len(mine), fans_out, {} if fans_out else _missing(mine, events.values()), surplus)


def _shards(app: Lowkiq, counts: Mapping[str, int]) -> list[ShardRef]:
    """Those that there are, and those that there will be."""
    there, _ = app.core.queues.all_current()
    shards = [shard for queue in there.values() for shard in queue.shards]
    declared = {name: count_of(queue.worker) for name, queue in app.core.queues.items() if name not in there}
    coming = {**declared, **counts}
    prefix = app.core.backend.prefix
    return [
        *shards,
        *(ShardRef(name, count, index, prefix=prefix) for name, count in coming.items() for index in range(count)),
    ]


def _missing(shards: Sequence[ShardRef], events: Iterable[object]) -> dict[str, list[int]]:
    drained: set[ShardRef] = set()
    for event in events:
        with suppress(BadEvent):
            drained.update([] if ticks(event) == ALONE else selected(event, shards))
    missing: dict[str, set[int]] = defaultdict(set)
    for shard in shards:
        if shard not in drained:
            missing[shard.queue_name].add(shard.index)
    return {name: sorted(indexes) for name, indexes in missing.items()}


def _is_surplus(event: object, shards: Sequence[ShardRef]) -> bool:
    if not isinstance(event, Mapping):
        return False
    try:
        selected(event, shards)
    except BadEvent:
        return True
    return False


def _ticks(event: object) -> bool:
    with suppress(BadEvent):
        return bool(ticks(event))
    return False


def _parsed(event: str) -> object:
    with suppress(ValueError):
        return json.loads(event)
    return None
