"""The report of a fuzz: what was found, what was tried, and what a fuzz cannot see."""

import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lowkiq_lambda.testing.fuzz.plan import AT_A_LINE

BLIND: Final = (
    "It refutes and never proves. It does not see deaths within C code or within one SQL statement, threads that the "
    "handler starts, two ids side by side, state that `state` does not return, real time and randomness, other "
    "isolation levels, and memory that outlives a job (docs/fuzzing.md)."
)
_OF_PYTEST: Final = 8
"""Columns in front of each line of an error."""
_NARROWEST: Final = 40
_INDENT: Final = 3
"""Of what a line goes on with."""
_REPLAY: Final = "  replay: "
_PAST: Final = {"die": "died", "fail": "failed", "freeze": "stood still", "stop": "stopped"}


class FuzzFailed(AssertionError):
    """A fuzz has found a difference; `report` has all of it."""

    def __init__(self, report: "FuzzReport") -> None:
        super().__init__(f"\n{report.text(terminal_width(_OF_PYTEST))}")
        self.report = report


@dataclass(frozen=True)
class FuzzFinding:
    """One way in which a handler does harm.

    `scenario`: the number of the scenario that showed it first; `tries`: how many more made it small; `plan`: what
    `lowkiq.fuzz(..., plan=...)` replays.
    """

    fault_class: str
    story: Sequence[str]
    advice: str
    plan: str
    scenario: int
    tries: int


@dataclass
class FuzzReport:
    """What a fuzz came to; its text is for people. `left_out`: sentences about what was not tried."""

    worker: str
    seed: int
    scenarios: int = 0
    systematic: int = 0
    """How many of the scenarios with a fault at each point, and of those without any, were tried."""
    all_systematic: int = 0
    """How many of these there are; 0 if that is not known."""
    seconds: float = 0.0
    """How long all of it took, with what made findings small."""
    is_replay: bool = False
    """Whether one plan was performed alone."""
    faults: Counter[str] = field(default_factory=Counter)
    """How often each kind of fault happened."""
    lines: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Files and lines at which faults happened, by kind; and all lines that ran, by the empty text."""
    findings: list[FuzzFinding] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    digest: str = ""
    """Of all scenarios and what they came to: equal for two runs of a seed."""

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """The text for people, in lines of so many characters; plans stay on a line of their own."""
        lines = [*self._lines()]
        if width is not None:
            lines = [part for line in lines for part in _wrapped(line, max(width, _NARROWEST))]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "worker": self.worker,
            "seed": self.seed,
            "scenarios": self.scenarios,
            "systematic": self.systematic,
            "all_systematic": self.all_systematic,
            "seconds": round(self.seconds, 2),
            "faults": dict(sorted(self.faults.items())),
            "lines": {kind or "all": len(lines) for kind, lines in sorted(self.lines.items())},
            "left_out": self.left_out,
            "not_seen": BLIND,
            "digest": self.digest,
            "findings": [
                {
                    "class": one.fault_class,
                    "scenario": one.scenario,
                    "tries": one.tries,
                    "story": [*one.story],
                    "advice": one.advice,
                    "plan": one.plan,
                }
                for one in self.findings
            ],
        }

    def _lines(self) -> Iterator[str]:
        for one in self.findings:
            shrunk = f", shrunk in {counted(one.tries, 'try', 'tries')} to" if one.tries else ""
            yield f"{self.worker} ends differently ({one.fault_class}): scenario {one.scenario}{shrunk}:"
            yield from one.story
            yield f"{_REPLAY}{one.plan}"
        if self.findings:
            yield f"  tried: {self._tried()}"
        elif self.is_replay:
            yield f"{self.worker}: mended: the plan finds no difference any more"
        else:
            yield f"{self.worker}: no difference in {self._tried()}"
            yield f"  {self._faults()}"
        yield from (f"  left out: {sentence}" for sentence in self.left_out)
        if not self.findings:
            yield f"  {BLIND}"

    def _tried(self) -> str:
        tried = f"{counted(self.scenarios, 'scenario')} in {self.seconds:.1f} s"
        if self.is_replay or not self.all_systematic:
            return tried
        if self.systematic < self.all_systematic:
            whole = self.seconds * self.all_systematic / max(self.systematic, 1)
            return (
                f"{tried}: {self.systematic:,} of {counted(self.all_systematic, 'systematic one')}; "
                f"all of them take some {math.ceil(whole)} seconds"
            )
        more = self.scenarios - self.systematic
        return f"{tried}: all {counted(self.systematic, 'systematic one')}, and {counted(more, 'random one')}"

    def _faults(self) -> str:
        whole = len(self.lines.get("", ()))
        reached = [
            f"{_PAST[kind]} at {len(lines)}" for kind in AT_A_LINE if (lines := self.lines.get(kind)) is not None
        ]
        faults = counted(self.faults.total(), "fault")
        return f"{faults}: {', '.join(reached)} of {counted(whole, 'line')}" if reached else faults


def counted(number: int, one: str, many: str = "") -> str:
    """The number with its noun, such as "1 scenario"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def terminal_width(less: int = 0) -> int | None:
    """The columns of the terminal but for these; None if the output goes elsewhere."""
    stream = sys.__stdout__
    return shutil.get_terminal_size().columns - less if stream is not None and stream.isatty() else None


def _wrapped(line: str, width: int) -> list[str]:
    if line.startswith(_REPLAY) or len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + _INDENT)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
