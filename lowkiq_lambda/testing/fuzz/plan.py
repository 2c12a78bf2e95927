"""A scenario as data: pushes, drains with a fault, and the moment at which a frozen process goes on.

A plan is written as JSON, so that a scenario can be replayed after the generator of scenarios has changed.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.pool import PayloadPool

FaultKind: TypeAlias = Literal["die", "fail", "freeze", "stop", "before_handler", "after_handler", "after_settle_sent"]
"""What happens to a drain. `die`: its process ends before a line of the handler; `fail`: the line raises; `freeze`: the
process stands still before the line, loses its lease, and goes on later; `stop`: the process is told to stop there. The
others are the points of `crash_after`."""
KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
DEATHS: Final = ("die", "before_handler", "after_handler", "after_settle_sent")
"""The kinds of faults that end a process."""
AT_A_LINE: Final = ("die", "fail", "freeze", "stop")
"""The kinds of faults that happen before a line of the handler."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one drain: in which call of the handler, counted from 0, and before which of the lines that it runs.

    `point` is the number of the line among those that the call runs, or its name, as `CodePlace.name` has it.
    """

    kind: FaultKind
    call: int = 0
    point: int | str = 0


@dataclass(frozen=True, slots=True)
class PushStep:
    """A push; `payload` is the number of the payload in the pool."""

    id: str
    payload: int
    score: float


@dataclass(frozen=True, slots=True)
class DrainStep:
    """A process drains until nothing is due, or until the fault ends it."""

    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class ThawStep:
    """The frozen process goes on."""


Step: TypeAlias = PushStep | DrainStep | ThawStep
Plan: TypeAlias = tuple[Step, ...]


def pushes_of(plan: Plan) -> list[PushStep]:
    """Its pushes, in order."""
    return [step for step in plan if isinstance(step, PushStep)]


def faults_of(plan: Plan) -> list[Fault]:
    """Its faults, in order."""
    return [step.fault for step in plan if isinstance(step, DrainStep) and step.fault is not None]


def with_step(plan: Plan, position: int, *steps: Step) -> Plan:
    """The plan with these steps in place of the one at the position."""
    return (*plan[:position], *steps, *plan[position + 1 :])


def with_fault(plan: Plan, position: int, fault: Fault | None) -> Plan:
    """The plan with this fault in the drain at the position."""
    return with_step(plan, position, DrainStep(fault))


def compact(plan: Plan) -> Plan:
    """The same plan with the scores 1, 2, 3 and so on, in the same order."""
    ranks = {score: float(rank) for rank, score in enumerate(sorted({push.score for push in pushes_of(plan)}), 1)}
    return tuple(replace(step, score=ranks[step.score]) if isinstance(step, PushStep) else step for step in plan)


def plan_text(plan: Plan, pool: PayloadPool) -> str:
    """The plan as one line of JSON. Raises ConfigError for a payload that JSON cannot hold."""
    return json.dumps([_record(step, pool) for step in plan], separators=(",", ":"), ensure_ascii=False)


def _record(step: Step, pool: PayloadPool) -> list[Any]:
    if isinstance(step, PushStep):
        return ["push", step.id, pool.plain(step.payload), step.score]
    if isinstance(step, ThawStep):
        return ["thaw"]
    fault = step.fault
    if fault is None:
        return ["drain"]
    return ["drain", fault.kind, fault.call, *([fault.point] if fault.kind in AT_A_LINE else [])]


def plan_of(text: str, pool: PayloadPool) -> Plan:
    """The plan that a text holds; its payloads are in the pool from then on. Raises ConfigError."""
    try:
        records = json.loads(text)
        plan = tuple(_steps(records, pool))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ConfigError(f"The plan cannot be read: {error}.") from error
    if not pushes_of(plan):
        raise ConfigError("The plan cannot be read: it pushes nothing.")
    return plan


def _steps(records: Sequence[Any], pool: PayloadPool) -> Iterator[Step]:
    for record in records:
        word, *rest = record
        if word == "push":
            job_id, payload, score = rest
            yield PushStep(str(job_id), pool.position_of(payload), float(score))
        elif word == "thaw":
            yield ThawStep()
        elif word == "drain":
            yield DrainStep(_fault(rest) if rest else None)
        else:
            raise ValueError(f"{word!r} is not a step")


def _fault(rest: Sequence[Any]) -> Fault:
    kind, *where = rest
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of fault")
    return Fault(kind, *where)
