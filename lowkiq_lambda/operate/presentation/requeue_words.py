"""The effect of a requeue on ids, in words: for the command line and the pages."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from lowkiq_lambda.operate.acts.requeueing import RequeuePreview

_SKIPPED: Final[Mapping[str, str]] = {
    "not in the morgue": "is not in the morgue",
    "newer": "stays: a newer payload waits or runs",
}


def preview_words(preview: RequeuePreview) -> str:
    """The effect on the id, without the id itself."""
    if preview.skipped:
        return _SKIPPED[preview.skipped]
    behind = f", behind {_many(preview.place, 'id')}"
    when = "while its head is blocked" if preview.due_at is None else f"until {moment(preview.due_at)}{behind}"
    left = f"; {preview.stay:,} would stay" if preview.stay else ""
    return f"{_many(preview.payloads, 'payload')} would wait in shard {preview.shard} {when}{left}"


def preview_total(again: int, stay: int) -> str:
    """The numbers of ids that would wait again, and of those that would not."""
    return f"{_many(again, 'id')} would wait again, {stay:,} would not; nothing was changed"


def due_total(number: int, last_due: float | None, *, is_all: bool) -> str:
    """How many ids would be made due, and by when the last."""
    more = "" if is_all else ", or more,"
    when = "now" if last_due is None else f"one after the other, the last by {moment(last_due)}"
    return f"{_many(number, 'id')}{more} would be due {when}; nothing was changed"


def moment(at: float) -> str:
    """Unix seconds as a time that people read."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
