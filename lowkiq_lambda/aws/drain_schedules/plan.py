"""What would be done to the deployed schedules, decided from values alone, and the same as people read it."""

import re
import shutil
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from lowkiq_lambda.aws.drain_schedules.guard import Stranded
from lowkiq_lambda.aws.drain_schedules.schedule import (
    FieldDifference,
    Schedule,
    ScheduledShard,
    corrected,
    differences,
    name_of,
    place_of,
)

_NUMBER: Final = re.compile(r"\d+$")
_FOREIGN_SHOWN: Final = 10


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
    schedules: Sequence[Schedule],
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
    names = {schedule.name for schedule in schedules}
    surplus = _in_order(prefix, (schedule for name, schedule in own.items() if name not in names))
    pairs = [(schedule, own[schedule.name]) for schedule in schedules if schedule.name in own]
    wrong = [(here, there, differences(here, there)) for here, there in pairs]
    return Plan(
        group=deployed.group,
        makes_group=not deployed.exists,
        create=tuple(schedule for schedule in schedules if schedule.name not in own),
        update=tuple(Update(corrected(here, there), fields) for here, there, fields in wrong if fields),
        delete=surplus if stranded is not None else (),
        keep=tuple(there for _, there, fields in wrong if not fields),
        withheld=surplus if stranded is None else (),
        foreign=tuple(sorted(name for name in deployed.names if place_of(prefix, name) is None)),
        refused=(
            *_refused_queues(prefix, surplus, stranded or ()),
            *([] if retarget else _refused_targets(schedules, own)),
        ),
    )


def _in_order(prefix: str, schedules: Iterable[Schedule]) -> tuple[Schedule, ...]:
    return tuple(sorted(schedules, key=lambda schedule: place_of(prefix, schedule.name) or ScheduledShard("", 0)))


def _refused_queues(prefix: str, surplus: Sequence[Schedule], stranded: Sequence[Stranded]) -> list[str]:
    losing = [schedule.name for schedule in surplus]
    return [f"{queue.sentence}{_losses(prefix, losing, queue)}" for queue in stranded]


def _losses(prefix: str, losing: Collection[str], stranded: Stranded) -> str:
    drains = [name_of(prefix, shard, queue) for shard in stranded.shards for queue in ("", stranded.queue_name)]
    names = [name for name in drains if name in losing]
    if not names:
        return ""
    return f" The schedules that drain them until then would go: {', '.join(names)}."


def _refused_targets(schedules: Sequence[Schedule], own: Mapping[str, Schedule]) -> list[str]:
    """Another app with the same prefix and group would lose its schedules to this one."""
    if not schedules:
        return []
    function = schedules[0].function
    others = [schedule for schedule in own.values() if _unqualified(schedule.function) != _unqualified(function)]
    return [
        f"{sum(schedule.function == other for schedule in others)} of the schedules invoke {other}, not {function}. "
        "If they are another app's, choose another --prefix or --group; if the function has moved, say --retarget."
        for other in sorted({schedule.function for schedule in others})
    ]


def _unqualified(function: str) -> str:
    """The ARN of a function without its version or alias."""
    return ":".join(function.split(":")[:7])


def describe(plan: Plan) -> str:
    """The plan as a table, and below it what is refused and a line of sums."""
    rows = [
        *([("create", f"group {plan.group}", "")] if plan.makes_group else []),
        *(("create", schedule.name, f"{schedule.expression} {schedule.event}") for schedule in plan.create),
        *(row for change in plan.update for row in _rows_of(change)),
        *(("delete", schedule.name, "no queue of the app has it") for schedule in plan.delete),
        *_ranges("withheld", plan.withheld, "no queue of the app has it; not deleted, as Redis was not asked"),
        *_ranges("keep", [schedule for schedule in plan.keep if schedule.enabled is not False], ""),
        *_ranges("keep", [schedule for schedule in plan.keep if schedule.enabled is False], "DISABLED, and stays so"),
        *_foreign(plan.foreign),
    ]
    title = f"Schedules of group {plan.group}:"
    return "\n".join([title, *_table(rows), *_refusals(plan.refused), _sums(plan)])


def _foreign(names: Sequence[str]) -> list[tuple[str, str, str]]:
    more = len(names) - _FOREIGN_SHOWN
    rows = [("left", name, "not of this command") for name in names[:_FOREIGN_SHOWN]]
    return [*rows, ("left", f"and {more} more", "")] if more > 0 else rows


def _rows_of(change: Update) -> list[tuple[str, str, str]]:
    name = change.schedule.name
    lines = [f"{each.field}: {_shown(each.found)} -> {_shown(each.wanted)}" for each in change.differences]
    return [("update" if first else "", name if first else "", line) for first, line in _firsts(lines)]


def _firsts(lines: Sequence[str]) -> list[tuple[bool, str]]:
    return [(position == 0, line) for position, line in enumerate(lines)]


def _ranges(what: str, schedules: Iterable[Schedule], why: str) -> list[tuple[str, str, str]]:
    """One row for schedules whose numbers follow one another: hundreds that stay would hide the one that goes."""
    parts = sorted(map(_parts, schedules))
    rows = []
    for _, run in groupby(enumerate(parts), lambda pair: (pair[1][0], pair[1][1] - pair[0])):
        (name, first), *_, (_, last) = [part for _, part in run] * 2
        rows.append((what, f"{name}{first}" if first == last else f"{name}{first} to {last}", why))
    return rows


def _parts(schedule: Schedule) -> tuple[str, int]:
    """A name without its number, and that."""
    number = str(_NUMBER.findall(schedule.name)[0])
    return schedule.name.removesuffix(number), int(number)


def _table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    width = max((len(name) for _, name, _ in rows), default=0)
    return [f"  {what:<9}{name:<{width}}  {why}".rstrip() for what, name, why in rows]


def _refusals(sentences: Sequence[str]) -> list[str]:
    columns = min(shutil.get_terminal_size((100, 24)).columns, 120)
    wrapped = (
        textwrap.fill(
            sentence,
            columns,
            initial_indent="REFUSED  ",
            subsequent_indent="         ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for sentence in sentences
    )
    return ["", *wrapped, ""] if sentences else []


def _shown(value: object) -> str:
    return "none" if value is None else str(value) or "nothing"


def _sums(plan: Plan) -> str:
    if plan.refused:
        return "Nothing is changed."
    if not plan.has_changes:
        return f"Nothing to do: {len(plan.keep)} schedules are as they should be."
    counts = f"{len(plan.create)} to create, {len(plan.update)} to update, {len(plan.delete)} to delete"
    return f"{counts}, {len(plan.keep)} as they should be."
