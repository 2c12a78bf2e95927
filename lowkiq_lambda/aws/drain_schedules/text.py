"""A plan as people read it."""

import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from lowkiq_lambda.aws.drain_schedules.plan import Plan, Update
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule

_NUMBER: Final = re.compile(r"\d+$")
_FOREIGN_SHOWN: Final = 10


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
    numbered = [(int(_number(schedule)), schedule) for schedule in schedules]
    rows = []
    for _, run in groupby(enumerate(sorted(numbered, key=lambda pair: pair[0])), lambda pair: pair[1][0] - pair[0]):
        names = [schedule.name for _, (_, schedule) in run]
        rows.append((what, names[0] if len(names) == 1 else f"{names[0]} to {_NUMBER.findall(names[-1])[0]}", why))
    return rows


def _number(schedule: Schedule) -> str:
    return str(_NUMBER.findall(schedule.name)[0])


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
