"""The progress of a started job, decoded so that none can break a page."""

import math
from typing import Final

import msgspec

from lowkiq_lambda.jobs.job import ProgressView
from lowkiq_lambda.jobs.progress import load_progress
from lowkiq_lambda.store.shard.codec import load_json

_LONGEST_REASON: Final = 200


def progress_view(data: bytes | None) -> ProgressView | None:
    """As it was kept; None for a job that has not started."""
    if not data:
        return None
    try:
        return _read(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ProgressView(cursor=data)


def _read(data: bytes) -> ProgressView:
    progress = load_progress(data)
    if not all(map(math.isfinite, (progress.seconds, progress.started_at, progress.measured or 0.0))):
        raise ValueError(progress)
    return ProgressView(
        cursor=None if progress.cursor is None else load_json(progress.cursor),
        items=progress.items,
        total=progress.total,
        interruptions=progress.interruptions,
        failures=progress.failures,
        seconds=progress.seconds,
        started_at=progress.started_at or None,
        reason=progress.reason[:_LONGEST_REASON],
        fraction=progress.fraction,
    )
