"""The class of a difference: that of the simplest scenario that comes to the same end.

A scenario with a fault may end as one without it, because of a version that is late. A process that stands still may
end as one that dies, because its job is repeated. Neither is a finding of its own; another end is.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from lowkiq_lambda.testing.fuzz.oracle import ORDER, REPEAT, TWO_HOLDERS, Difference
from lowkiq_lambda.testing.fuzz.plan import DrainStep, Fault, FaultKind, Plan, ThawStep, with_step

_BY_FAULTS: Final = (REPEAT, TWO_HOLDERS)


class Classifier:
    """Judges scenarios as `judge` does, and tells their classes apart by scenarios with simpler faults of `kinds`."""

    def __init__(self, judge: Callable[[Plan], Difference | None], kinds: Collection[FaultKind]) -> None:
        self._judge = judge
        self._kinds = kinds
        self._simpler: dict[Plan, Difference | None] = {}
        """Scenarios that were judged to tell others apart: many of these have one in common."""

    def judge(self, plan: Plan) -> Difference | None:
        """The difference of a scenario, in its class; or None."""
        difference = self._judge(plan)
        return None if difference is None else self.classified(plan, difference)

    def classified(self, plan: Plan, difference: Difference) -> Difference:
        """The difference of this scenario, in its class."""
        if difference.fault_class not in _BY_FAULTS:
            return difference
        for simpler in self._simpler_plans(plan):
            other = self._difference_of(simpler)
            if other is not None and other.fault_class in ORDER and _end_alike(other, difference):
                return replace(difference, fault_class=other.fault_class)
        return difference

    def _difference_of(self, plan: Plan) -> Difference | None:
        if plan not in self._simpler:
            self._simpler[plan] = self._judge(plan)
        return self._simpler[plan]

    def _simpler_plans(self, plan: Plan) -> Iterator[Plan]:
        """Without a fault, then without a process that stands still, then with dead ones in place of these."""
        yield _mapped(plan, lambda _: None)
        yield without_thaws(tuple(step for step in plan if not (isinstance(step, DrainStep) and step.fault)))
        if not any(isinstance(step, DrainStep) and _is_frozen(step.fault) for step in plan):
            return
        yield _mapped(plan, lambda fault: None if _is_frozen(fault) else fault)
        for dead in deaths(self._kinds):
            yield _mapped(plan, partial(_in_place_of_frozen, dead))


def deaths(kinds: Collection[FaultKind]) -> list[Callable[[Fault], Fault]]:
    """What makes a death of these kinds of a fault: at its line, and after the handler."""
    made: list[Callable[[Fault], Fault]] = []
    if "die" in kinds:
        made.append(lambda fault: replace(fault, kind="die"))
    if "after_handler" in kinds:
        made.append(lambda fault: Fault("after_handler", fault.call))
    return made


def without_thaws(plan: Plan) -> Plan:
    """The plan without the moments at which frozen processes go on."""
    return tuple(step for step in plan if not isinstance(step, ThawStep))


def _end_alike(one: Difference, other: Difference) -> bool:
    states = one.observed.state, other.observed.state
    return states[0] == states[1] if states != (None, None) else one.actual == other.actual


def _in_place_of_frozen(dead: Callable[[Fault], Fault], fault: Fault) -> Fault:
    return dead(fault) if _is_frozen(fault) else fault


def _is_frozen(fault: Fault | None) -> bool:
    return fault is not None and fault.kind == "freeze"


def _mapped(plan: Plan, change: Callable[[Fault], Fault | None]) -> Plan:
    for position, step in enumerate(plan):
        if isinstance(step, DrainStep) and step.fault is not None:
            plan = with_step(plan, position, DrainStep(change(step.fault)))
    return without_thaws(plan)
