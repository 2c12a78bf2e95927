"""A check-up as people read it."""

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.operate.doctor.findings import SECTIONS, CheckUp, Finding, Mark, PromiseView
from lowkiq_lambda.operate.presentation.formatting import visible

_MARKS: Final[dict[Mark, str]] = {"ok": "ok", "warning": "warning", "unknown": "not known", "broken": "BROKEN"}
_WIDTH: Final = max(map(len, _MARKS.values()))
_NARROWEST: Final = 60


def describe(found: CheckUp) -> str:
    """The findings by section, the promises, and a line of sums."""
    columns = max(_NARROWEST, min(shutil.get_terminal_size((100, 24)).columns, 120))
    lines = [found.server]
    for section in SECTIONS:
        own = [finding for finding in found.findings if finding.section == section]
        if own:
            lines += ["", _HEADS[section], *(line for finding in own for line in _lines(finding, columns))]
    lines += ["", "Promises", *map(_promise, found.promises), "", _sums(found)]
    return "\n".join(lines)


_HEADS: Final = {
    "server": "Server",
    "memory": "Memory by queue",
    "code": "Code and server",
    "work": "Work",
    "processes": "Processes",
    "moves": "Moves to other shards",
    "aws": "Schedules on AWS",
}


def _lines(finding: Finding, columns: int) -> Iterator[str]:
    about = f"{finding.about}: " if finding.about else ""
    head = f"  {_MARKS[finding.mark]:<{_WIDTH}}  {finding.check}: "
    indent = " " * (_WIDTH + 4)
    yield from _wrapped(f"{about}{finding.says}", head, indent, columns)
    if finding.advice:
        yield from _wrapped(finding.advice, f"{indent}-> ", f"{indent}   ", columns)


def _wrapped(text: str, first: str, rest: str, columns: int) -> list[str]:
    # Queues and processes are named by whoever may push or drain.
    return textwrap.wrap(
        visible(text),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _promise(promise: PromiseView) -> str:
    why = f": see {', '.join(promise.checks)}" if promise.checks else ""
    return f"  {_MARKS[promise.mark]:<{_WIDTH}}  P{promise.number} {promise.name}{why}"


def _sums(found: CheckUp) -> str:
    counts = Counter(finding.mark for finding in found.findings)
    return f"{counts['broken']} broken, {counts['warning']} to look at, {counts['unknown']} not known."
