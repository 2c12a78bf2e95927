"""The scenarios: first small ones without a fault, then each fault at each point of these, then random ones."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from lowkiq_lambda.testing.fuzz.plan import (
    AT_A_LINE,
    DrainStep,
    Fault,
    FaultKind,
    Plan,
    PushStep,
    Step,
    ThawStep,
    with_fault,
)
from lowkiq_lambda.testing.fuzz.points import CodePlace
from lowkiq_lambda.testing.fuzz.recording import RecordedPushes

BESIDE: Final[tuple[FaultKind, ...]] = ("before_handler", "after_handler", "after_settle_sent")
_NEWER: Final = 9.0
"""The score of what comes while a process stands still."""
_MOST_POINTS: Final = 80
"""Points of one call of the handler that are tried one by one; of longer calls the first and last hits of each line."""
Recorded = Sequence[Sequence[Sequence[CodePlace]]]
"""The points of a scenario, by drain and by call."""


@dataclass(frozen=True)
class Scope:
    """What scenarios may do. `payloads`: how many there are; `kinds`: the faults that they may have.

    `versions`: pushes have scores, and older ones may come late. `merges`: equal payloads of an id are pushed.
    `duplicates`: a push may come twice. `stops`: the handler keeps a cursor, so it is stopped and goes on.
    `recording`: random scenarios push what it has.
    """

    ids: Sequence[str]
    payloads: int
    kinds: Collection[FaultKind]
    versions: bool
    merges: bool
    duplicates: bool
    stops: bool
    recording: RecordedPushes | None = None


class Scenarios:
    """Makes the plans. `record` runs a plan without faults, and returns its points."""

    def __init__(self, scope: Scope, record: Callable[[Plan], Recorded]) -> None:
        self._scope = scope
        self._record = record
        self._most_points = 1

    def plain(self) -> Iterator[Plan]:
        """Without a fault: alone, split and merged, two ids in a batch, late, there and back."""
        yield from self._shapes()
        scope, drain = self._scope, DrainStep()
        if scope.merges and scope.payloads > 1:
            yield self._push(0, 1), self._push(1, 2), self._push(0, 3), drain
        if scope.versions:
            yield self._push(1, 2), self._push(0, 1), drain
        if scope.merges:
            yield self._push(0, 1), self._push(0, 2), drain
        if scope.duplicates:
            yield self._push(0, 1), drain, self._push(0, 1), drain
            yield self._push(0, 1), self._push(0, 1), drain
            yield self._push(0, 1), self._push(1, 2), drain, self._push(0, 1), drain

    def systematic(self) -> Iterator[Plan]:
        """Each fault at each point of the small scenarios."""
        for shape in self._shapes():
            points = self._record(shape)
            drains = [position for position, step in enumerate(shape) if isinstance(step, DrainStep)]
            for number, position in enumerate(drains):
                is_last = position == drains[-1]
                for kind in BESIDE:
                    if kind in self._scope.kinds:
                        yield with_fault(shape, position, Fault(kind))
                for call, places in enumerate(points[number]):
                    self._most_points = max(self._most_points, len(places))
                    for point in _worthwhile(places):
                        yield from self._at_a_point(shape, position, call, point, is_last=is_last)

    def _at_a_point(self, shape: Plan, position: int, call: int, point: int, *, is_last: bool) -> Iterator[Plan]:
        kinds = self._scope.kinds
        if "die" in kinds:
            yield with_fault(shape, position, Fault("die", call, point))
        if "fail" in kinds:
            yield with_fault(shape, position, Fault("fail", call, point))
        if "stop" in kinds and self._scope.stops:
            stopped = with_fault(shape, position, Fault("stop", call, point))
            yield stopped
            if "die" in kinds and is_last:
                yield (*stopped, DrainStep(Fault("die", 0, point)))
        if "freeze" in kinds:
            frozen = with_fault(shape, position, Fault("freeze", call, point))
            if is_last and self._scope.payloads > 1:
                newer = PushStep(self._scope.ids[0], 2 % self._scope.payloads, _NEWER)
                if self._scope.merges or not _has_push(shape, newer):
                    yield (*frozen, newer, DrainStep(), ThawStep())
            yield (*frozen, DrainStep(), ThawStep())

    def random(self, rng: Random) -> Iterator[Plan]:
        """Without end: some pushes in some order, with up to two faults."""
        while True:
            plan = self._random_plan(rng)
            if self._scope.merges or not _has_equal_payloads(plan):
                yield plan

    def _random_plan(self, rng: Random) -> Plan:
        scope, steps = self._scope, list[Step]()
        if scope.recording is not None:
            steps += scope.recording.steps(rng, len(scope.ids))
            self._add_faults(rng, steps)
            return tuple(steps)
        count = rng.randint(1, 5)
        scores = list(range(1, count + 1))
        if scope.versions and rng.random() < 0.4:  # noqa: PLR2004 - a part of all scenarios
            rng.shuffle(scores)
        for score in scores:
            steps.append(PushStep(rng.choice(scope.ids), rng.randrange(scope.payloads), float(score)))
            if rng.random() < 0.5:  # noqa: PLR2004 - as above
                steps.append(DrainStep())
            if rng.random() < 0.15:  # noqa: PLR2004 - as above
                steps.append(ThawStep())
        if scope.duplicates and rng.random() < 0.3:  # noqa: PLR2004 - as above
            steps.append(rng.choice([step for step in steps if isinstance(step, PushStep)]))
        steps.append(DrainStep())
        self._add_faults(rng, steps)
        return tuple(steps)

    def _add_faults(self, rng: Random, steps: list[Step]) -> None:
        kinds = [kind for kind in sorted(self._scope.kinds) if kind != "stop" or self._scope.stops]
        drains = [position for position, step in enumerate(steps) if isinstance(step, DrainStep)]
        if not kinds:
            return
        # At a line twice as often as beside the handler.
        weights = [2 if kind in AT_A_LINE else 1 for kind in kinds]
        for position in rng.sample(drains, min(len(drains), rng.choice([0, 1, 1, 2]))):
            [kind] = rng.choices(kinds, weights)
            steps[position] = DrainStep(Fault(kind, rng.choice([0, 0, 0, 1]), rng.randrange(self._most_points + 1)))

    def _push(self, payload: int, score: float, which: int = 0) -> PushStep:
        return PushStep(self._scope.ids[which], payload % self._scope.payloads, float(score))

    def _shapes(self) -> Iterator[Plan]:
        scope, drain = self._scope, DrainStep()
        yield self._push(0, 1), drain
        if scope.merges or scope.payloads > 1:
            yield self._push(0, 1), self._push(1, 2), drain
            yield self._push(0, 1), drain, self._push(1, 2), drain
        if len(scope.ids) > 1:
            yield self._push(0, 1), self._push(1, 2, 1), drain
        if scope.versions and (scope.merges or scope.payloads > 1):
            yield self._push(1, 2), drain, self._push(0, 1), drain


def _worthwhile(places: Sequence[CodePlace]) -> list[int]:
    """The numbers of the points to try: all, or of many the first two and the last hit of each line."""
    if len(places) <= _MOST_POINTS:
        return [*range(len(places))]
    last = {(place.file, place.line): number for number, place in enumerate(places)}
    return [
        number
        for number, place in enumerate(places)
        if place.hit < 2 or last[place.file, place.line] == number  # noqa: PLR2004 - the first two
    ]


def _has_push(plan: Plan, push: PushStep) -> bool:
    return any(isinstance(step, PushStep) and (step.id, step.payload) == (push.id, push.payload) for step in plan)


def _has_equal_payloads(plan: Plan) -> bool:
    """Whether an id gets a payload twice that is not the same push."""
    pushes = {step for step in plan if isinstance(step, PushStep)}
    return len({(push.id, push.payload) for push in pushes}) < len(pushes)
