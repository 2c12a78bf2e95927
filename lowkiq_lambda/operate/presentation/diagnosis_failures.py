"""Why an id has failed, and why it is dead, in words: the content of its record, without a guess."""

from typing import Final

from lowkiq_lambda.engine.survivors import CRASHED
from lowkiq_lambda.jobs.job import Failure
from lowkiq_lambda.operate.presentation.diagnosis_words import ago, times
from lowkiq_lambda.views.queues import JobExplanation

_LONGEST: Final = 200
"""Characters of an error in a sentence."""


def error_of(failure: Failure) -> str:
    """The type and the message of the error."""
    line = next(iter(failure.error.strip().splitlines()), "").rstrip(". ")
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line


def failed(situation: JobExplanation) -> str:
    """How often it has failed, with which error, and how long ago: "failed once (…)"."""
    count = times(int(situation.retry_count) + 1)
    if not situation.failures:
        return f"failed {count}"
    last = situation.failures[0]
    which = "" if situation.retry_count < 1 else "the last time "
    return f"failed {count} ({which}with {error_of(last)}, {ago(situation.shard, last.at)} ago)"


def retry(situation: JobExplanation, max_retry_count: int | None) -> str:
    """Which of its retries is the next."""
    number = int(situation.retry_count) + 1
    return f"retry {number}" if max_retry_count is None else f"retry {number} of {max(number, max_retry_count)}"


def has_failed(situation: JobExplanation, max_retry_count: int | None) -> tuple[str, ...]:
    """A sentence on what waits, or is in flight, after a failure."""
    if situation.retry_count < 0:
        return ()
    return (f"It {failed(situation)}; this is {retry(situation, max_retry_count)}.",)


def why_dead(situation: JobExplanation, dead_since: float) -> str:
    """Why its last payload died: a failure is noted at the time of the death that it led to."""
    last = next((failure for failure in situation.failures if failure.at == dead_since), None)
    if last is not None and last.error == CRASHED:
        return "the process died each time this job ran alone"
    if last is not None:
        count = int(last.retry_count) + 1
        tries = "its only try failed, with" if count == 1 else f"all {count:,} tries failed, the last one with"
        return f"{tries} {error_of(last)}"
    if not situation.failures:
        return "an operator killed it before it had ever failed"
    newest = situation.failures[0]
    if newest.at > dead_since:
        # The note is of another payload of the id: the note of this one is gone.
        return f"its error is on its page; since then the id failed with {error_of(newest)}"
    return f"an operator killed it; before, it had failed with {error_of(newest)}"
