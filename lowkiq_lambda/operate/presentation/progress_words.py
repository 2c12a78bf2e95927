"""The progress of a started job, in words."""

from typing import Final

from lowkiq_lambda.jobs.job import ProgressView
from lowkiq_lambda.operate.presentation.formatting import duration, exact

UNREADABLE: Final = "its progress cannot be read"


def progress_words(progress: ProgressView) -> str:
    """The progress of a started job, in words.

    >>> progress_words(ProgressView(cursor=1, items=61_204, total=100_000, interruptions=3, reason="out of time"))
    '61,204 of 100,000 items, 3 interruptions (last: out of time), 0 s of work'
    >>> progress_words(ProgressView(cursor=1, items=1, interruptions=1, failures=2, seconds=212.0, reason="paused"))
    '1 item, 1 interruption (paused), 2 failures, 3m 32s of work'
    >>> progress_words(ProgressView(cursor=1, items=9, seconds=60.0, fraction=0.75))
    '9 items, 1m of work, about 20 s left'
    """
    if progress.is_unreadable:
        return UNREADABLE
    parts = [_items(progress)]
    if progress.interruptions:
        last = "last: " if progress.interruptions > 1 else ""
        parts.append(
            _many(progress.interruptions, "interruption") + (f" ({last}{progress.reason})" if progress.reason else "")
        )
    if progress.failures:
        parts.append(_many(progress.failures, "failure"))
    parts.append(f"{duration(progress.seconds)} of work")
    if progress.seconds_left is not None:
        parts.append(f"about {duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _items(progress: ProgressView) -> str:
    if progress.total is None:
        return _many(progress.items, "item")
    return f"{exact(progress.items)} of {_many(progress.total, 'item')}"


def _many(count: int, noun: str) -> str:
    return f"{exact(count)} {noun}{'s' if count != 1 else ''}"
