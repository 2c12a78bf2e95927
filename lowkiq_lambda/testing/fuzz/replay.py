"""Plans that outlive changes of the code: lines are named, and a line that is gone has the others in its place."""

from collections.abc import Callable
from dataclasses import replace

from lowkiq_lambda.testing.fuzz.generate import Recorded
from lowkiq_lambda.testing.fuzz.plan import AT_A_LINE, DrainStep, Plan, with_fault
from lowkiq_lambda.testing.fuzz.world import Observed


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
