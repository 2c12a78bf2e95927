"""The report of a fuzz: what was found, what was tried, and what a fuzz cannot see."""

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
_PAST: Final = {"die": "died", "fail": "failed", "freeze": "stood still", "stop": "stopped"}


class FuzzFailed(AssertionError):
    """A fuzz has found a difference; `report` has all of it."""

    def __init__(self, report: "FuzzReport") -> None:
        super().__init__(f"\n{report}")
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
    faults: Counter[str] = field(default_factory=Counter)
    """How often each kind of fault happened."""
    lines: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Files and lines at which faults happened, by kind; and all lines that ran, by the empty text."""
    findings: list[FuzzFinding] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    digest: str = ""
    """Of all scenarios and what they came to: equal for two runs of a seed."""

    def __str__(self) -> str:
        return "\n".join(self._text())

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "worker": self.worker,
            "seed": self.seed,
            "scenarios": self.scenarios,
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

    def _text(self) -> Iterator[str]:
        for one in self.findings:
            yield (
                f"{self.worker} ends differently ({one.fault_class}): scenario {one.scenario}, "
                f"shrunk in {one.tries} tries to:"
            )
            yield from one.story
            yield f"  replay: {one.plan}"
        if not self.findings:
            yield f"{self.worker}: no difference in {self.scenarios:,} scenarios; {self._tried()}"
        yield from (f"  left out: {sentence}" for sentence in self.left_out)
        if not self.findings:
            yield f"  {BLIND}"

    def _tried(self) -> str:
        whole = len(self.lines.get("", ()))
        reached = [
            f"{_PAST[kind]} at {len(lines)}" for kind in AT_A_LINE if (lines := self.lines.get(kind)) is not None
        ]
        faults = f"{self.faults.total():,} faults"
        return f"{faults}: {', '.join(reached)} of {whole} lines" if reached else faults
