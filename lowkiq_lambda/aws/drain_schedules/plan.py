"""What would be done to the deployed schedules, decided from values alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lowkiq_lambda.aws.drain_schedules.guard import Stranded
from lowkiq_lambda.aws.drain_schedules.schedule import FieldDifference, Schedule, corrected, differences, index_of


@dataclass(frozen=True, slots=True)
class DeployedGroup:
    """A schedule group as it was found. `names`: of everything in it; `own`: the schedules whose name has the form."""

    group: str
    exists: bool
    names: tuple[str, ...] = ()
    own: tuple[Schedule, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """A schedule that becomes as it should be."""

    schedule: Schedule
    differences: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done, and what would not. With anything in `refused` nothing is done."""

    group: str
    makes_group: bool
    create: tuple[Schedule, ...] = ()
    update: tuple[Update, ...] = ()
    delete: tuple[Schedule, ...] = ()
    keep: tuple[Schedule, ...] = ()
    withheld: tuple[Schedule, ...] = ()
    """No shard of the code needs them, and they stay: nobody looked at what those shards hold."""
    foreign: tuple[str, ...] = ()
    """Names of what is in the group and none of ours."""
    refused: tuple[str, ...] = ()
    """Sentences: what is wrong, and what to do about it."""

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.makes_group or self.create or self.update or self.delete)


def make_plan(
    prefix: str,
    wanted: Sequence[Schedule],
    deployed: DeployedGroup,
    stranded: Sequence[Stranded] | None,
    *,
    retarget: bool = False,
) -> Plan:
    """What makes the found schedules the wanted ones.

    `stranded` is what the drift guard has found; None where it was not asked, and then nothing is deleted. With
    `retarget`, schedules that invoke another function are taken over.
    """
    own = {schedule.name: schedule for schedule in deployed.own}
    needed = {schedule.name for schedule in wanted}
    surplus = _in_order(prefix, (schedule for name, schedule in own.items() if name not in needed))
    pairs = [(schedule, own[schedule.name]) for schedule in wanted if schedule.name in own]
    wrong = [(here, there, differences(here, there)) for here, there in pairs]
    return Plan(
        group=deployed.group,
        makes_group=not deployed.exists,
        create=tuple(schedule for schedule in wanted if schedule.name not in own),
        update=tuple(Update(corrected(here, there), fields) for here, there, fields in wrong if fields),
        delete=surplus if stranded is not None else (),
        keep=tuple(there for _, there, fields in wrong if not fields),
        withheld=surplus if stranded is None else (),
        foreign=tuple(sorted(name for name in deployed.names if index_of(prefix, name) is None)),
        refused=(
            *_refused_queues(prefix, surplus, stranded or ()),
            *([] if retarget else _refused_targets(wanted, own)),
        ),
    )


def _in_order(prefix: str, schedules: Iterable[Schedule]) -> tuple[Schedule, ...]:
    return tuple(sorted(schedules, key=lambda schedule: index_of(prefix, schedule.name) or 0))


def _refused_queues(prefix: str, surplus: Sequence[Schedule], stranded: Sequence[Stranded]) -> list[str]:
    losing = {index_of(prefix, schedule.name): schedule.name for schedule in surplus}
    return [f"{queue.sentence}{_losses(losing, queue)}" for queue in stranded]


def _losses(losing: Mapping[int | None, str], stranded: Stranded) -> str:
    names = [losing[shard] for shard in stranded.shards if shard in losing]
    if not names:
        return ""
    return f" The schedules that drain them until then would go: {', '.join(names)}."


def _refused_targets(wanted: Sequence[Schedule], own: Mapping[str, Schedule]) -> list[str]:
    """Another app with the same prefix and group would lose its schedules to this one."""
    if not wanted:
        return []
    function = wanted[0].function
    others = [schedule for schedule in own.values() if _unqualified(schedule.function) != _unqualified(function)]
    return [
        f"{sum(schedule.function == other for schedule in others)} of the schedules invoke {other}, not {function}. "
        "If they are another app's, choose another --prefix or --group; if the function has moved, say --retarget."
        for other in sorted({schedule.function for schedule in others})
    ]


def _unqualified(function: str) -> str:
    """The ARN of a function without its version or alias."""
    return ":".join(function.split(":")[:7])
