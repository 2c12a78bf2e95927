"""The plan of a finding: made small, written with the names of its lines, and tried at others if a line is gone.

It is made small by delta debugging, as long as the handler is at fault in the same way.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final

from lowkiq_lambda.testing.fuzz.classes import deaths, without_thaws
from lowkiq_lambda.testing.fuzz.generate import Recorded
from lowkiq_lambda.testing.fuzz.observed import Observed
from lowkiq_lambda.testing.fuzz.oracle import Difference
from lowkiq_lambda.testing.fuzz.plan import (
    AT_A_LINE,
    DrainStep,
    FaultKind,
    Plan,
    PushStep,
    compact,
    pushes_of,
    with_fault,
    with_step,
)

MOST_TRIES: Final = 300


class Shrinking:
    """One finding on its way to a smaller plan of its class, by faults of these kinds."""

    def __init__(
        self,
        judge: Callable[[Plan], Difference | None],
        plan: Plan,
        difference: Difference,
        first_id: str,
        kinds: Collection[FaultKind],
    ) -> None:
        self._judge = judge
        self._kinds = kinds
        self._first_id = first_id
        self.plan = plan
        self.difference = difference
        self.tries = 0

    def run(self) -> None:
        """Shrink: afterwards `plan` and `difference` are those of the smallest plan."""
        while any(self._takes(candidate) for candidate in self._candidates()):
            pass
        self._take_earliest_points()
        self._takes(compact(self.plan))

    def _takes(self, candidate: Plan) -> bool:
        """Whether the candidate is a plan of the same class; then it is the plan."""
        if self.tries >= MOST_TRIES or not pushes_of(candidate) or candidate == self.plan:
            return False
        self.tries += 1
        difference = self._judge(candidate)
        if difference is None or _way(difference) != _way(self.difference):
            return False
        self.plan, self.difference = candidate, difference
        return True

    def _candidates(self) -> Iterator[Plan]:
        plan = self.plan
        for position in range(len(plan)):
            yield (*plan[:position], *plan[position + 1 :])
        for position, step in enumerate(plan):
            if isinstance(step, DrainStep) and step.fault is not None:
                yield with_fault(plan, position, None)
                if step.fault.kind == "freeze":
                    # A death shows the same more plainly, if it shows it.
                    for dead in deaths(self._kinds):
                        yield without_thaws(with_fault(plan, position, dead(step.fault)))
            elif isinstance(step, PushStep):
                if step.id != self._first_id:
                    yield with_step(plan, position, replace(step, id=self._first_id))
                if step.payload:
                    yield with_step(plan, position, replace(step, payload=0))

    def _take_earliest_points(self) -> None:
        for position, step in enumerate(self.plan):
            if not isinstance(step, DrainStep) or step.fault is None or step.fault.kind not in AT_A_LINE:
                continue
            fault = step.fault
            for point in range(fault.point if isinstance(fault.point, int) else 0):
                if self._takes(with_fault(self.plan, position, replace(fault, point=point))):
                    break


def _way(difference: Difference) -> tuple[str, bool]:
    """The way in which the handler is at fault."""
    return difference.fault_class, difference.is_missing


def named(plan: Plan, observed: Observed) -> Plan:
    """The plan with the names of lines in place of their numbers; a fault that did not happen is left out."""
    for number, position in enumerate(_drains(plan)):
        step = plan[position]
        fault = step.fault if isinstance(step, DrainStep) else None
        if fault is not None and fault.kind in AT_A_LINE:
            place = observed.places[number] if number < len(observed.places) else None
            plan = with_fault(plan, position, None if place is None else replace(fault, point=place.name))
    return plan


def substitutes(plan: Plan, observed: Observed, record: Callable[[Plan], Recorded]) -> list[Plan]:
    """Plans with each line in place of the first one that the handler did not come to; none if it came to all."""
    for number, position in enumerate(_drains(plan)):
        step = plan[position]
        fault = step.fault if isinstance(step, DrainStep) else None
        has_place = number < len(observed.places) and observed.places[number] is not None
        if fault is None or fault.kind not in AT_A_LINE or has_place:
            continue
        points = record(with_fault(plan, position, None))
        return [
            with_fault(plan, position, replace(fault, call=call, point=point))
            for call, places in enumerate(points[number])
            for point in range(len(places))
        ]
    return []


def _drains(plan: Plan) -> list[int]:
    return [position for position, step in enumerate(plan) if isinstance(step, DrainStep)]
