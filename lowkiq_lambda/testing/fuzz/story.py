"""A finding in plain words: what happens in the scenario, what the handler gets, and how the end differs."""

from collections.abc import Iterator, Sequence
from typing import Final

from lowkiq_lambda.testing.fuzz.oracle import MORGUE, NEVER_ENDS, SWALLOWS, Difference
from lowkiq_lambda.testing.fuzz.plan import AT_A_LINE, DrainStep, Fault, FaultKind, Plan, PushStep
from lowkiq_lambda.testing.fuzz.points import CodePlace
from lowkiq_lambda.testing.fuzz.pool import PayloadPool
from lowkiq_lambda.testing.fuzz.process import Delivered

_MOST_CALLS: Final = 8
_LONGEST: Final = 100
"""Characters of a payload, or of a state."""
MISSING: Final = "missing"
"""For an effect that does not happen."""
_PAGES: Final = "idempotent-handlers.md"
ADVICE: Final = {
    "repeat": f"keep a record of what was done, in the same transaction as the work ({_PAGES}: it adds something); a "
    "file has none: write a new one and let it replace the old one, or look for the id in its lines before you add one",
    "late": f"let the write refuse an older version, by the score ({_PAGES}: it sets a state)",
    "merging": 'equal payloads of an id become one: set merge="max" or "latest" if the last one counts, and "never" if '
    "each does (repeats.md#equal-payloads-merge)",
    "batch": "several payloads or ids in one call end otherwise than alone: perform each of them, in order "
    "(idempotent-handlers.md)",
    "two holders": "put the condition into the write itself, WHERE version <= … AND token <= … "
    f"({_PAGES}: the process that wakes up too late)",
    MISSING: "do it before you write down that it is done, with a key that the other side remembers "
    f"({_PAGES}: it calls somebody else)",
    MORGUE: "a repeat of the job fails for ever: let the handler pass over what it has done already (retries.md)",
    NEVER_ENDS: "a job pushes itself again, or fails for ever: let it come to an end (retries.md)",
    SWALLOWS: "catch Exception, not BaseException: no code goes on after a kill (fuzzing.md)",
}
_OF_EFFECTS: Final = f"give the other side a key that stays the same in each run ({_PAGES}: it calls somebody else)"
_AT: Final[dict[FaultKind, str]] = {
    "before_handler": "before the handler runs",
    "after_handler": "after the handler, before Redis has its outcome",
    "after_settle_sent": "after Redis has the outcome, before the process has the answer",
}


def advice_for(difference: Difference) -> str:
    """What helps, in a line, with its page."""
    return ADVICE.get(MISSING if difference.is_missing else difference.fault_class, _OF_EFFECTS)


def story(plan: Plan, difference: Difference, pool: PayloadPool, *, versions: bool) -> list[str]:
    """The lines of the story."""
    lines = [f"  {number}. {line}" for number, line in enumerate(_steps(plan, difference, pool, versions=versions), 1)]
    return [
        *lines,
        f"  the handler's calls: {'; '.join(_calls(difference.observed.calls))}",
        f"  expected  {_cut(difference.expected)}",
        f"  actual    {_cut(difference.actual)}",
        f"  advice: {advice_for(difference)}",
    ]


def _steps(plan: Plan, difference: Difference, pool: PayloadPool, *, versions: bool) -> Iterator[str]:
    places = iter(difference.observed.places)
    is_frozen = False
    for step in plan:
        if isinstance(step, PushStep):
            version = f", version {step.score:g}" if versions else ""
            yield f"push id {step.id!r}: {_cut(repr(pool[step.payload]))}{version}"
        elif isinstance(step, DrainStep):
            place = next(places, None)
            yield _drain(step.fault, place)
            is_frozen = is_frozen or (step.fault is not None and step.fault.kind == "freeze" and place is not None)
        elif is_frozen:
            is_frozen = False
            yield "the process that stood still goes on"
    if difference.observed.was_waited_for:
        yield "(another process waited for a lock of the one that stood still, which went on because of that)"
    yield (
        "other processes drain until no job is left"
        if not is_frozen
        else ("the process that stood still goes on; other processes drain until no job is left")
    )


def _drain(fault: Fault | None, place: CodePlace | None) -> str:
    if fault is None or (fault.kind in AT_A_LINE and place is None):
        return "drain"
    if place is None:
        return f"drain, and the process dies {_AT[fault.kind]}"
    if fault.kind == "die":
        return f"drain, and the process dies before {place.text}"
    if fault.kind == "fail":
        return f"drain, and this line raises: {place.text}"
    if fault.kind == "stop":
        return f"drain, and the process is told to stop before {place.text}"
    return f"drain, and the process stands still before {place.text}; its lease ends"


def _calls(calls: Sequence[Delivered]) -> Iterator[str]:
    before: list[dict[str, list[str]]] = []
    for call in calls[:_MOST_CALLS]:
        payloads = ", ".join(f"{job_id!r}: [{_cut(', '.join(own))}]" for job_id, own in call.payloads.items())
        yield f"{'again ' if call.is_repeated and call.payloads in before else ''}{{{payloads}}}"
        before.append(call.payloads)
    if len(calls) > _MOST_CALLS:
        yield f"and {len(calls) - _MOST_CALLS} more"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
