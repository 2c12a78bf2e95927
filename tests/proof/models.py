"""The part of the models: all orders of steps within bounds, and what is found once a guard is left out."""

from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic, process_time
from typing import Final

from tests.kit.servers import Server
from tests.models.catalog import MODELS, ModelBounds, ModelCase
from tests.models.conforming import play_traces
from tests.proof.results import ConformanceResult, GuardResult, ModelResult, Models

Tell = Callable[[str], object]


TRACES: Final = 2_000
FEW_TRACES: Final = 300
"""For a short proof."""


def prove_models(*, seed: int, is_long: bool, tell: Tell) -> Models:
    """Go through all of them; guards that need long bounds are left out of a short proof."""
    results, guards = list[ModelResult](), list[GuardResult]()
    for case in MODELS:
        for bounds in (*case.quick, *(case.long if is_long else ())):
            tell(f"{case.name}: {bounds.words}")
            results.append(_explored(case, bounds))
        for guard, promise, bounds in _guards(case, is_long=is_long):
            tell(f"{case.name} without {guard!r}")
            found = bounds.explored(guard)
            guards.append(GuardResult(case.name, guard, promise, found.fault, found.states, len(found.trace)))
    traces = TRACES if is_long else FEW_TRACES
    tell(f"{traces:,} traces of the lease's model beside the scripts")
    return Models(results, guards, _conforming(seed, traces))


def _conforming(seed: int, traces: int) -> ConformanceResult:
    """So many traces from that seed on."""
    began, wrong, labels = monotonic(), "", Counter[str]()
    with Server() as server:
        try:
            labels = play_traces(server.url, server.admin, "proof", range(seed, seed + traces))
        except AssertionError as fault:
            wrong = str(fault)
    calls = sum(count for label, count in labels.items() if " arrives" in label)
    late = sum(count for label, count in labels.items() if "its answer is lost" in label)
    return ConformanceResult(seed, traces, labels.total(), calls, late, monotonic() - began, wrong)


def _explored(case: ModelCase, bounds: ModelBounds) -> ModelResult:
    began = process_time()
    found = bounds.explored(None)
    never_done = case.never_done(found.labels) if bounds in case.quick else []
    seconds = process_time() - began
    return ModelResult(
        case.name,
        bounds.words,
        found.states,
        found.ends,
        seconds,
        found.fault,
        found.depth,
        found.whole,
        never_done,
    )


def _guards(case: ModelCase, *, is_long: bool) -> Iterator[tuple[str, str, ModelBounds]]:
    long = {bounds.words for bounds in case.long}
    for guard, (promise, bounds) in case.guards.items():
        if is_long or bounds.words not in long:
            yield guard, promise, bounds
