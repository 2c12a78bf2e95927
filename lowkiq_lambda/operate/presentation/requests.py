"""Requests for single jobs, and the answers to them, in words."""

from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.operate.presentation.formatting import duration, utc, visible
from lowkiq_lambda.views.requests import JobRequest, Requested

_AT_ONCE: Final = {"cancel": "stopped", "pause_job": "paused", "resume_job": "resumed"}
_IN_FLIGHT: Final = {
    "cancel": "stops at its next checkpoint, or ends by itself, then stops",
    "pause_job": "stops at its next checkpoint, or ends by itself, then waits for the end of the pause",
    "resume_job": "goes on",
}
_GONE: Final = {
    "cancel": "has nothing that waits or runs",
    "pause_job": "has nothing that waits or runs: later pushes wait for the end of the pause",
    "resume_job": "is not paused",
}


def answer_words(action: str, answer: Requested) -> Iterator[str]:
    """What becomes of each id of a `cancel`, `pause_job` or `resume_job`."""
    words = ((answer.at_once, _AT_ONCE), (answer.in_flight, _IN_FLIGHT), (answer.gone, _GONE))
    for ids, of_action in words:
        for job_id in ids:
            yield f"{visible(job_id)}: {of_action[action]}"


def request_words(request: JobRequest, now: float) -> str:
    """A request that is kept, in a sentence."""
    by = f" by {visible(request.by)}" if request.by else ""
    if request.kind == "cancel":
        age = duration(max(0.0, now - request.at))
        return f"It was cancelled{by} {age} ago, and its run has not ended yet."
    until = "until it is resumed" if request.until is None else f"until {utc(request.until)}"
    return f"It is paused{by}, {until}."
