"""How a queue does, in a sentence: when it will be empty, or what keeps it from that."""

from typing import Final, NamedTuple

from lowkiq_lambda.operate.presentation.formatting import duration, exact, short
from lowkiq_lambda.views.queues import QueueOverview, Series

_MINUTE: Final = 60
_LATELY: Final = 300
"""Seconds over which it is told how many payloads arrive."""
_SLOW: Final = 1.0
"""Ids a second up to which a rate is told by the minute."""


class PaceWords(NamedTuple):
    """A sentence, and a second one of what is behind it. `empty_in`: seconds, if it can be told."""

    sentence: str
    more: str = ""
    empty_in: float | None = None


def in_a_sentence(queue: QueueOverview, *, is_paused: bool) -> PaceWords:
    """How the queue does, and what arrives; `is_paused`: all of its shards are."""
    words = _pace(queue, is_paused=is_paused)
    return words._replace(more=" ".join([*filter(None, [words.more]), *_arriving(queue.history.series)]))


def _arriving(series: Series) -> list[str]:
    counts = [count for count in series.arrived[-max(1, _LATELY // series.step) :] if count is not None]
    rate = sum(counts) * _MINUTE / (len(counts) * series.step) if counts else 0.0
    return [f"Payloads arrive at {short(rate)} a minute."] if rate else []


def _pace(queue: QueueOverview, *, is_paused: bool) -> PaceWords:
    now, rate = queue.now, queue.history.ended_rate + queue.history.failed_rate
    due, later = now.due, max(0, now.length - now.due - now.paused_due - now.blocked)
    parts = [
        *([f"{_ids(later)} for a later time"] if later else []),
        *([f"{_are(now.blocked)} blocked"] if now.blocked else []),
    ]
    waits = f"{', and '.join(parts)}." if parts else ""
    if is_paused:
        return PaceWords(f"It is paused, and {_are(now.paused_due)} due.", waits)
    if not due:
        kept = f" but for {exact(now.paused_due)} that a pause keeps" if now.paused_due else ""
        if now.in_flight:
            return PaceWords(f"All that is due is in flight{kept}.", waits)
        return PaceWords(f"Nothing is due{kept}." if now.length else "It is empty.", waits)
    limits = "Its limits keep some of them back." if now.limited_lag else ""
    if not rate:
        return PaceWords(f"{_are(due).capitalize()} due, and none has ended in the last half minute.", limits or waits)
    pace = f"{short(rate * _MINUTE)} ids a minute" if rate <= _SLOW else f"{short(rate)} ids a second"
    return PaceWords(
        f"At {pace} it is empty in {duration(due / rate)}",
        f"{_are(due).capitalize()} due, if nobody pushes more. {limits}".rstrip(),
        due / rate,
    )


def _are(count: int) -> str:
    return "1 id is" if count == 1 else f"{exact(count)} ids are"


def _ids(count: int) -> str:
    return "1 id waits" if count == 1 else f"{exact(count)} ids wait"
