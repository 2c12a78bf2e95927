"""The judge: a scenario has to end as if each payload had been performed alone, in order, and without a fault."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.testing.fuzz.observed import Observed
from lowkiq_lambda.testing.fuzz.plan import DrainStep, Plan, PushStep, faults_of, pushes_of
from lowkiq_lambda.testing.fuzz.world import MOST_CALLS, World

HowOften: TypeAlias = Literal["once", "at least once", "at most once"]
REPEAT: Final = "repeat"
TWO_HOLDERS: Final = "two holders"
ORDER: Final = ("late", "merging", "batch", REPEAT, TWO_HOLDERS)
"""The classes of different states, those that need less first."""
SWALLOWS: Final = "swallows death"
NEVER_ENDS: Final = "never ends"
MORGUE: Final = "morgue"


@dataclass(frozen=True)
class Effect:
    """What a handler does to the world outside, such as mails: `read` lists all that was done since the reset.

    `how_often`: "once", "at least once" or "at most once" is each of them expected. They are compared by `key`, or as
    they are.
    """

    read: Callable[[], Iterable[Any]]
    how_often: HowOften = "once"
    key: Callable[[Any], Any] | None = None

    def keys(self) -> list[Any]:
        """What was done since the reset, as it is compared."""
        return [repr(one if self.key is None else self.key(one)) for one in self.read()]


@dataclass(frozen=True)
class Difference:
    """Why a scenario is a fault of the handler: its class, and the difference in words."""

    fault_class: str
    expected: str
    actual: str
    observed: Observed
    is_missing: bool = False
    """Whether an effect does not happen that should."""


class Oracle:
    """Judges scenarios of one world."""

    def __init__(self, world: World, effects: Mapping[str, Effect], *, versions: bool, compares_pushes: bool) -> None:
        self._world = world
        self._effects = effects
        self._versions = versions
        self._compares_pushes = compares_pushes
        self._references: dict[tuple[PushStep, ...], Observed] = {}
        self.forks = False
        """Whether drains are children, but for those of the references."""
        self.scenarios = 0
        """How many were judged."""
        self.last = Observed()
        """What the last one came to."""

    def check_plain(self, plan: Plan) -> None:
        """Run the reference twice. Raises ConfigError if the handler fails by itself, or ends differently each time."""
        reference, again = self.reference(plan), self._world.run(self._alone(plan))
        if reference.never_ends:
            return
        if any({*end.dead} - {*end.killed} for end in (reference, again)):
            error = next(iter(reference.errors), None)
            kind = "an unknown error" if error is None else f"{type(error).__name__}: {error}"
            raise ConfigError(f"The handler fails without any fault, by {kind}: give payloads that it can perform.")
        if (reference.state, reference.effects) != (again.state, again.effects):
            raise ConfigError(
                "Two runs without any fault end differently: let `reset` put back all that a run changes, and leave "
                "times, tokens and random values out of `state`. "
                f"The first ends with {reference.state!r}, the second with {again.state!r}."
            )

    def judge(self, plan: Plan) -> Difference | None:
        """Run the scenario and its reference; the difference, or None."""
        self.scenarios += 1
        reference = self.reference(plan)
        observed = self._world.run(plan, forks=self.forks)
        self.last = observed
        if observed.never_ends or reference.never_ends:
            actual = f"more than {MOST_CALLS} calls, or jobs that are always left"
            return Difference(NEVER_ENDS, "the handler comes to an end", actual, observed)
        if observed.has_swallowed:
            actual = "the handler catches it, and would go on"
            return Difference(SWALLOWS, "the end of a process ends the handler", actual, observed)
        if dead := sorted({*observed.dead} - {*reference.dead}):
            return Difference(MORGUE, "no job is dead", f"ids {', '.join(dead)} are in the morgue", observed)
        if reference.state != observed.state:
            return Difference(_class_of(plan), repr(reference.state), repr(observed.state), observed)
        if self._compares_pushes and set(reference.pushes) != set(observed.pushes):
            expected, pushes = (f"pushes {sorted(set(one.pushes))}" for one in (reference, observed))
            return Difference(_class_of(plan), expected, pushes, observed)
        return self._judge_effects(reference, observed)

    def _judge_effects(self, reference: Observed, observed: Observed) -> Difference | None:
        for name, effect in self._effects.items():
            plain, actual = Counter(reference.effects[name]), Counter(observed.effects[name])
            more, less = actual - plain, plain - actual
            wrong = None
            if more and effect.how_often != "at least once":
                wrong = min(more)
            elif less and effect.how_often != "at most once":
                wrong = min(less)
            if wrong is not None:
                expected = f"{wrong} {_times(plain[wrong])}, as {effect.how_often!r} is declared"
                times = f"{wrong} {_times(actual[wrong])}"
                return Difference(f"effect {name}", expected, times, observed, is_missing=wrong not in more)
        return None

    def reference(self, plan: Plan) -> Observed:
        """The end of the same pushes, each performed alone and in order."""
        alone = self._alone(plan)
        key = tuple(pushes_of(alone))
        if key not in self._references:
            self._references[key] = self._world.run(alone)
        return self._references[key]

    def ends_alike_in_children(self, plan: Plan) -> bool:
        """Whether the reference ends in the same way if its drains are children: nothing that counts is in memory."""
        reference, forked = self.reference(plan), self._world.run(self._alone(plan), forks=True)
        return (reference.state, reference.effects, {*reference.pushes}) == (
            forked.state,
            forked.effects,
            {*forked.pushes},
        )

    def _alone(self, plan: Plan) -> Plan:
        # An equal push that comes again is one push.
        pushes = [*dict.fromkeys(pushes_of(plan))]
        if self._versions:
            pushes.sort(key=lambda push: push.score)
        return tuple(step for push in pushes for step in (push, DrainStep()))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _class_of(plan: Plan) -> str:
    """The class of a scenario that ends in another state, by what it needs."""
    faults = faults_of(plan)
    if any(fault.kind == "freeze" for fault in faults):
        return TWO_HOLDERS
    if faults:
        return REPEAT
    if _has_late(plan):
        return "late"
    pushes = [(push.id, push.payload) for push in pushes_of(plan)]
    return "merging" if len(set(pushes)) < len(pushes) else "batch"


def _has_late(plan: Plan) -> bool:
    """Whether an id gets a version after a newer one was performed."""
    newest: dict[str, float] = {}
    performed: dict[str, float] = {}
    for step in plan:
        if isinstance(step, PushStep):
            if step.score < performed.get(step.id, step.score):
                return True
            newest[step.id] = max(step.score, newest.get(step.id, step.score))
        elif isinstance(step, DrainStep):
            performed |= newest
    return False
