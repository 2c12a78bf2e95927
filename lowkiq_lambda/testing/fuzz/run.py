"""One fuzz of a worker: plain scenarios, each fault at each point, random ones until the time is over."""

import hashlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from random import Random
from types import ModuleType
from typing import Any

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import Worker, handler_of, is_generator, worker_of
from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.fuzz.classes import Classifier
from lowkiq_lambda.testing.fuzz.databases import Databases, is_engine
from lowkiq_lambda.testing.fuzz.found import Shrinking, named, substitutes
from lowkiq_lambda.testing.fuzz.generate import Recorded, Scenarios, Scope
from lowkiq_lambda.testing.fuzz.isolation import OpenConnections, project_of, restorer
from lowkiq_lambda.testing.fuzz.observed import Subject, Surroundings
from lowkiq_lambda.testing.fuzz.options import FuzzOptions, all_options, codes_of
from lowkiq_lambda.testing.fuzz.oracle import NEVER_ENDS, Difference, Oracle
from lowkiq_lambda.testing.fuzz.plan import DEATHS, DrainStep, Plan, PushStep, plan_of, plan_text
from lowkiq_lambda.testing.fuzz.points import UserCode
from lowkiq_lambda.testing.fuzz.pool import PayloadPool, payloads_of, typed
from lowkiq_lambda.testing.fuzz.recording import RecordedPushes
from lowkiq_lambda.testing.fuzz.report import FuzzFailed, FuzzFinding, FuzzReport
from lowkiq_lambda.testing.fuzz.story import advice_for, story
from lowkiq_lambda.testing.fuzz.watch import objects_of, watched
from lowkiq_lambda.testing.fuzz.world import World

Progress = Callable[[int, float], object]
"""Told how many scenarios are through, and which part of the time."""


def _no_progress(_scenarios: int, _part: float) -> None:
    """Nobody looks."""


def fuzz(
    app: Lowkiq, clock: ManualClock, declared: AnyWorker, options: FuzzOptions, progress: Progress = _no_progress
) -> FuzzReport:
    """Fuzz the worker; the report, with findings or without. Raises ConfigError if it cannot be fuzzed."""
    worker = worker_of(declared)
    if worker.app is None or worker not in app.workers:
        raise ConfigError(f"{worker.__name__} is not a worker of the app under test.")
    return FuzzRun(app, clock, worker, all_options(worker, options), progress).run()


def fuzz_or_raise(app: Lowkiq, clock: ManualClock, declared: AnyWorker, options: FuzzOptions) -> FuzzReport:
    """As `fuzz`. Raises FuzzFailed if there is a finding."""
    __tracebackhide__ = True
    report = fuzz(app, clock, declared, options)
    if report.findings:
        raise FuzzFailed(report)
    return report


class FuzzRun:
    """The parts of one fuzz, and its course."""

    def __init__(
        self, app: Lowkiq, clock: ManualClock, worker: type[Worker[Any]], options: FuzzOptions, progress: Progress
    ) -> None:
        self._worker = worker
        self._options = options
        self._progress = progress
        code = inspect.unwrap(handler_of(worker)).__code__
        connections = OpenConnections(_namespaces(worker))
        self._connections = connections
        self._restores = options["reset"] is not None or any(map(is_engine, _several(options["isolate"])))
        self._report = FuzzReport(worker.__name__, options["seed"])
        self._watch = objects_of(options["watch"])
        self._databases = Databases(_several(options["isolate"]), self._watch, _namespaces(worker))
        self._kinds = self._kinds_without([*connections.shared(), *self._databases.shared])
        self._pool = PayloadPool(worker.payload, _payloads(worker, options))
        user_code = UserCode(project_of(code.co_filename), [*codes_of(options["outside"])])
        objects = tuple(one for one in _several(options["isolate"]) if not is_engine(one))
        self._restore_objects = restorer(objects)
        surroundings = Surroundings(
            state=options["state"] or (lambda: None),
            effects={name: effect.keys for name, effect in options["effects"].items()},
            reset=_reset(options, self._databases, self._restore_objects),
            release=lambda: [end() for end in (connections.roll_back, self._databases.release)],
            lock_is_awaited=self._databases.lock_is_awaited,
            begin_in_child=self._databases.begin_in_child,
            after_child=self._databases.after_child,
        )
        versions = options["versions"]
        self._world = World(app, clock, Subject(worker, self._pool, user_code, versions), surroundings)
        compares_pushes = options["state"] is None and not options["effects"]
        if compares_pushes:
            self._report.left_out.append("state: no `state` and no `effects` are given, so pushes alone are compared.")
        self._oracle = Oracle(self._world, options["effects"], versions=versions, compares_pushes=compares_pushes)
        self._classifier = Classifier(self._oracle.judge, self._kinds)
        self._digest = hashlib.sha256()

    def run(self) -> FuzzReport:
        """Run it; the report."""
        began_at = time.monotonic()
        others = [one for one in self._watch if not is_engine(one)]
        with self._databases.opened(), self._world.opened(), watched(others):
            if self._options["fork"]:
                self._begin_to_fork()
            if self._options["plan"] is not None:
                self._report.is_replay = True
                self._replay(plan_of(self._options["plan"], self._pool))
            else:
                self._explore()
        self._restore_objects()
        self._report.scenarios = self._oracle.scenarios
        self._report.digest = self._digest.hexdigest()
        self._report.seconds = time.monotonic() - began_at
        return self._report

    def _explore(self) -> None:
        options, report = self._options, self._report
        began_at, seconds = time.monotonic(), options["seconds"]
        payloads = options["payloads"]
        recording = payloads if isinstance(payloads, RecordedPushes) else None
        ids = [str(number) for number in range(1, options["ids"] + 1)] if recording is None else recording.ids
        ids = ids[: options["ids"]]
        scope = Scope(
            ids=ids,
            payloads=len(self._pool),
            kinds=self._kinds,
            versions=options["versions"],
            merges=options["merges"],
            duplicates=options["duplicates"],
            stops=is_generator(self._worker),
            recording=recording,
        )
        scenarios = Scenarios(scope, self._record)
        self._oracle.check_plain((PushStep(ids[0], 0, 1.0), PushStep(ids[0], 1 % len(self._pool), 2.0), DrainStep()))
        systematic = chain(scenarios.plain(), scenarios.systematic())
        plans, part = self._plans(systematic, scenarios), 0.0
        # No other scenario would end if one does not.
        while not (self._is_over(part) or NEVER_ENDS in self._classes):
            plan = next(plans, None)
            if plan is None:
                break
            self._try(plan, ids[0])
            part = (time.monotonic() - began_at) / seconds
            self._progress(self._oracle.scenarios, part)
        if NEVER_ENDS not in self._classes:
            report.all_systematic = report.systematic + sum(1 for _ in systematic)
        if not report.lines.get(""):
            report.left_out.append("points: no line of the project's code ran in the handler.")

    def _plans(self, systematic: Iterator[Plan], scenarios: Scenarios) -> Iterator[Plan]:
        for plan in systematic:
            self._report.systematic += 1
            yield plan
        # Each class is there once: more scenarios would only show it again.
        if not self._report.findings:
            yield from scenarios.random(Random(self._options["seed"]))  # noqa: S311 - no secret

    def _is_over(self, part: float) -> bool:
        most = self._options["scenarios"]
        return self._oracle.scenarios >= most if most is not None else part >= 1.0

    def _record(self, plan: Plan) -> Recorded:
        points = self._world.run(plan, records=True).points
        lines = self._report.lines.setdefault("", set())
        lines |= {(place.file, place.line) for calls in points for places in calls for place in places}
        return points

    def _try(self, plan: Plan, first_id: str) -> None:
        difference = self._oracle.judge(plan)
        self._note(plan, difference)
        if difference is None or difference.fault_class in self._classes:
            return
        scenario = self._oracle.scenarios
        difference = self._classifier.classified(plan, difference)
        if difference.fault_class not in self._classes:
            shrinking = Shrinking(self._classifier.judge, plan, difference, first_id, self._kinds)
            shrinking.run()
            self._add_finding(shrinking.plan, shrinking.difference, scenario, shrinking.tries)
        # Trials do not count.
        self._oracle.scenarios = scenario

    @property
    def _classes(self) -> set[str]:
        """Of the findings: each class is reported once."""
        return {one.fault_class for one in self._report.findings}

    def _add_finding(self, plan: Plan, difference: Difference, scenario: int, tries: int) -> None:
        text = plan_text(named(plan, difference.observed), self._pool)
        lines = story(plan, difference, self._pool, versions=self._options["versions"])
        if sentence := self._verdict_of_a_kill(plan, difference):
            lines.append(f"  {sentence}")
        advice = advice_for(difference)
        self._report.findings.append(FuzzFinding(difference.fault_class, lines, advice, text, scenario, tries))

    def _verdict_of_a_kill(self, plan: Plan, difference: Difference) -> str | None:
        """What a scenario with deaths comes to if they are real; None if it cannot be said."""
        is_of_death = any(fault.kind in DEATHS for fault in difference.observed.fired)
        if not (is_of_death and self._restores) or self._oracle.forks or difference.fault_class == NEVER_ENDS:
            return None
        if not _can_fork() or self._connections.are_open() or not self._oracle.ends_alike_in_children(plan):
            return None
        scenarios, self._oracle.forks = self._oracle.scenarios, True
        try:
            is_shown = self._oracle.judge(plan) is not None
        finally:
            self._oracle.scenarios, self._oracle.forks = scenarios, False
        return "confirmed by a real kill" if is_shown else "a real kill does not show it"

    def _begin_to_fork(self) -> None:
        """Raises ConfigError if children cannot perform the drains."""
        if not _can_fork():
            raise ConfigError("fork= needs a system with os.fork.")
        if self._connections.are_open():
            raise ConfigError("fork=: a variable of a module holds a connection, which a child would share.")
        if not self._oracle.ends_alike_in_children((PushStep("1", 0, 1.0), DrainStep())):
            raise ConfigError(
                "fork=: a run in a child ends differently, so `state` or `effects` are in the memory of a process."
            )
        self._oracle.forks = True

    def _replay(self, plan: Plan) -> None:
        difference = self._oracle.judge(plan)
        self._note(plan, difference)
        if difference is None:
            observed = self._oracle.last
            others = substitutes(plan, observed, self._record)
            if others:
                self._report.left_out.append("the line of the plan is gone, so each line was tried in its place.")
            for other in others:
                difference = self._oracle.judge(other)
                self._note(other, difference)
                if difference is not None:
                    plan = other
                    break
        if difference is not None:
            scenario = self._oracle.scenarios
            self._add_finding(plan, self._classifier.classified(plan, difference), scenario, 0)
            self._oracle.scenarios = scenario

    def _note(self, plan: Plan, difference: Difference | None) -> None:
        observed, report = self._oracle.last, self._report
        result = None if difference is None else (difference.fault_class, difference.expected, difference.actual)
        self._digest.update(repr((plan, result, observed.calls, observed.state, observed.effects)).encode())
        report.faults.update(fault.kind for fault in observed.fired)
        for fault, place in zip(_by_drain(plan), observed.places, strict=False):
            if fault is not None and place is not None:
                for kind in (fault.kind, ""):
                    report.lines.setdefault(kind, set()).add((place.file, place.line))

    def _kinds_without(self, shared: Sequence[str]) -> list[Any]:
        """The kinds of faults that make sense for this worker."""
        kinds = [*self._options["faults"]]
        if "freeze" in kinds and shared:
            kinds.remove("freeze")
            self._report.left_out.append(
                f"processes that stand still: {shared[0]} is a connection in a variable of a module, which two "
                "processes would share here; let each thread open its own."
            )
        if "fail" in kinds and self._worker.max_retry_count == 0:
            kinds.remove("fail")
            self._report.left_out.append("failures: max_retry_count is 0, so a job that fails once is dead.")
        return kinds


def _can_fork() -> bool:
    return hasattr(os, "fork")


def _by_drain(plan: Plan) -> Iterator[Any]:
    return (step.fault for step in plan if isinstance(step, DrainStep))


def _reset(options: FuzzOptions, databases: Databases, restore_objects: Callable[[], None]) -> Callable[[], object]:
    # The function of the test comes behind the tables, as it may fill them.
    steps: list[Callable[[], object]] = [databases.restore]
    if options["reset"] is not None:
        steps.append(options["reset"])
    steps.append(restore_objects)

    def reset() -> None:
        for step in steps:
            step()

    return reset


def _several(states: object) -> tuple[object, ...]:
    if states is None:
        return ()
    return states if isinstance(states, tuple) else (states,)


def _payloads(worker: type[Worker[Any]], options: FuzzOptions) -> list[Any]:
    payloads = options["payloads"]
    if isinstance(payloads, RecordedPushes):
        return typed(worker.payload, payloads.payloads)
    return payloads_of(worker) if payloads is None else [*payloads]


def _namespaces(worker: type[Worker[Any]]) -> list[dict[str, Any]]:
    """The variables of the handler's module, and of the modules that it uses directly."""
    own = getattr(inspect.unwrap(handler_of(worker)), "__globals__", {})
    root = str(project_of(inspect.unwrap(handler_of(worker)).__code__.co_filename))
    names = {
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in [*own.values()]
    }
    modules = [sys.modules[name] for name in sorted(filter(None, map(_text, names))) if name in sys.modules]
    return [own, *(vars(one) for one in modules if str(getattr(one, "__file__", None)).startswith(f"{root}/"))]


def _text(name: object) -> str | None:
    return name if isinstance(name, str) else None
