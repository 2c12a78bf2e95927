"""Schedules of shards that follow a move which housekeeping makes: new ones are there before it, others go after it."""

from collections.abc import Mapping, Sequence
from typing import Final

from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, Group
from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, Plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, name_of, place_of, wanted_schedule


class ForeignSchedules:
    """Schedules of the template: only a deploy makes another one."""

    whose: Final = "foreign"

    def before(self, queue_name: str, to: int) -> None:
        """Make none."""

    def after(self, queue_name: str, counts: Mapping[str, int]) -> None:
        """Delete none."""


class FollowedSchedules:
    """Those of a group that `lowkiq stack schedules` made, with this prefix; the process has its rights."""

    whose: Final = "own"

    def __init__(self, prefix: str, group: Group | None = None) -> None:
        self._prefix = prefix
        self._group = group

    def before(self, queue_name: str, to: int) -> None:
        """Make those that are missing for so many shards, like those that there are. Raises DeployError."""
        group, deployed = self._read()
        like, queue = self._like(deployed.own, queue_name)
        own = {schedule.name for schedule in deployed.own}
        planned = [wanted_schedule(self._prefix, index, like, queue) for index in range(to)]
        create = tuple(schedule for schedule in planned if schedule.name not in own)
        group.apply(Plan(group=group.name, makes_group=False, create=create), _ignore)

    def after(self, queue_name: str, counts: Mapping[str, int]) -> None:
        """Delete those that no queue needs with so many shards of each. Raises DeployError."""
        group, deployed = self._read()
        _, queue = self._like(deployed.own, queue_name)
        needed = counts[queue_name] if queue else max(counts.values())
        names = {name_of(self._prefix, index, queue) for index in range(needed)}
        form = place_of(self._prefix, name_of(self._prefix, 0, queue))
        surplus = [
            schedule
            for schedule in deployed.own
            if (place := place_of(self._prefix, schedule.name)) and form and place.queue == form.queue
        ]
        delete = tuple(schedule for schedule in surplus if schedule.name not in names)
        group.apply(Plan(group=group.name, makes_group=False, delete=delete), _ignore)

    def _read(self) -> tuple[Group, DeployedGroup]:
        # A client takes a quarter of a second, so there is none before it is needed.
        self._group = self._group or Group(f"{self._prefix}-schedules")
        return self._group, self._group.read(self._prefix)

    def _like(self, own: Sequence[Schedule], queue_name: str) -> tuple[Schedule, str]:
        """The schedule of the first shard, and the queue that it is of, empty for all queues."""
        by_name = {schedule.name: schedule for schedule in own}
        for queue in (queue_name, ""):
            if first := by_name.get(name_of(self._prefix, 0, queue)):
                return first, queue
        raise DeployError(
            f"There is no schedule {name_of(self._prefix, 0)!r} to make others like it: run lowkiq stack schedules."
        )


def _ignore(_what: str) -> None:
    """Ignore what was done: the line of the move tells of it."""
