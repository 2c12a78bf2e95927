"""Payloads and cursors as texts of a bounded length."""

import re
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.jobs.job import ProgressView, ScoredPayload
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.presentation.masking import MaskFailed, Masking
from lowkiq_lambda.operate.presentation.payload_json import payload_json
from lowkiq_lambda.operate.presentation.progress_words import progress_words

LARGEST: Final = 100_000
"""Bytes of a payload on a page."""
_DEEPEST: Final = 40
_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_PREVIEW: Final = 160
_LONGEST_CURSOR: Final = 2_000
_TIME_WITHIN: Final = 5 * 365 * 86_400.0
"""Seconds around now in which a score may be a time."""


class RenderedPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload. `cut`: bytes that are left out. `looks_like`: the score, if it may be a time in Unix seconds."""

    text: str
    score: float
    cut: int = 0
    unreadable: bool = False
    looks_like: float | None = None


class RenderedProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a started job.

    `cut`: bytes of the cursor that are left out. `total`: None where it makes no bar.
    """

    text: str
    items: int
    total: int | None
    started_at: float | None
    cursor: str
    cut: int
    unreadable: bool


class PayloadRenderer:
    """Renders the payloads and cursors of one queue, masked."""

    def __init__(self, context: RequestContext, queue_name: str) -> None:
        self._masking = Masking(context.mask, queue_name)
        self._now = context.site.now()

    def whole(self, job_id: str, scored: ScoredPayload) -> RenderedPayload:
        """The payload as indented JSON, if possible."""
        payload = self._masked(job_id, scored.payload)
        encoded = _encoded(payload)
        if len(encoded) <= LARGEST and not isinstance(payload, bytes):
            encoded = _pretty(encoded)
        text = encoded[:LARGEST].decode(errors="backslashreplace")
        return RenderedPayload(
            text=visible(text),
            score=scored.score,
            cut=max(0, len(encoded) - LARGEST),
            unreadable=isinstance(payload, bytes),
            looks_like=scored.score if abs(scored.score - self._now) < _TIME_WITHIN else None,
        )

    def progress(self, job_id: str, progress: ProgressView) -> RenderedProgress:
        """The progress, with the beginning of its cursor in one line."""
        encoded = _encoded(self._masked(job_id, progress.cursor))
        has_bar = progress.total is not None and progress.total > 0 and progress.items >= 0
        return RenderedProgress(
            text=visible(progress_words(progress)),
            items=progress.items,
            total=progress.total if has_bar else None,
            started_at=progress.started_at,
            cursor=visible(encoded[:_LONGEST_CURSOR].decode(errors="backslashreplace")),
            cut=max(0, len(encoded) - _LONGEST_CURSOR),
            unreadable=progress.is_unreadable,
        )

    def line(self, job_id: str, scored: ScoredPayload) -> str:
        """The beginning of the payload in one line."""
        encoded = _encoded(self._masked(job_id, scored.payload))
        return shortened(visible(encoded[: 4 * _PREVIEW].decode(errors="backslashreplace")))

    def _masked(self, job_id: str, payload: object) -> object:
        try:
            return self._masking.of(job_id, payload)
        except MaskFailed:
            return "(the mask failed)"


def shortened(text: str, length: int = _PREVIEW) -> str:
    """The text in one line of at most `length` characters."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _encoded(payload: object) -> bytes:
    return payload if isinstance(payload, bytes) else payload_json(payload)


def _pretty(encoded: bytes) -> bytes:
    depth = deepest = 0
    for match in _BRACKET.finditer(encoded):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        # Indentation grows with the square of the depth.
        return encoded
    try:
        return msgspec.json.format(encoded, indent=2)
    except Exception:  # noqa: BLE001 - not JSON
        return encoded
