"""Requests for single jobs, and the answers to them, in words."""

from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.operate.presentation.formatting import duration, utc, visible
from lowkiq_lambda.views.requests import JobRequest, Requested, StopsAt

_AT_ONCE: Final = {"cancel": "stopped", "pause_job": "paused", "resume_job": "resumed"}
_RUNS: Final[dict[StopsAt | None, str]] = {
    "yield": "stops at its next yield",
    "await": "is cancelled at its next await if all ids of its batch are; else it runs to its own end",
    "end": "runs to its own end, because nothing stops its handler; if it hangs, evict the holder of its shard",
    None: "runs to its own end, or to its next yield if it is a generator",
}
_GONE: Final = {
    "cancel": "has nothing that waits or runs",
    "pause_job": "has nothing that waits or runs: later pushes wait for the end of the pause",
    "resume_job": "is not paused",
}


def answer_words(action: str, answer: Requested) -> Iterator[str]:
    """What becomes of each id of a `cancel`, `pause_job` or `resume_job`."""
    runs = "goes on" if action == "resume_job" else run_words(answer.stops_at)
    for ids, words in ((answer.at_once, _AT_ONCE[action]), (answer.in_flight, runs), (answer.gone, _GONE[action])):
        for job_id in ids:
            yield f"{visible(job_id)}: {words}"


def run_words(stops_at: StopsAt | None) -> str:
    """When the run of an id ends, of which a cancel or a pause is wanted; behind the word for it."""
    return _RUNS[stops_at]


def request_words(request: JobRequest, now: float) -> str:
    """A request that is kept, in a sentence."""
    by = f" by {visible(request.by)}" if request.by else ""
    if request.kind == "cancel":
        age = duration(max(0.0, now - request.at))
        return f"It was cancelled{by} {age} ago, and its run has not ended yet."
    until = "until it is resumed" if request.until is None else f"until {utc(request.until)}"
    return f"It is paused{by}, {until}."
