"""Payloads as people read them: whatever they are, a text of a bounded length."""

import json
import re
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.formatting import visible
from lowkiq_lambda.dashboard.masking import MaskFailed, Masking
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import ScoredPayload

LARGEST: Final = 100_000
"""Bytes that are shown of a payload."""
_DEEPEST: Final = 40
_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_PREVIEW: Final = 160
_TIME_WITHIN: Final = 5 * 365 * 86_400.0
"""Seconds from now within which a score is taken for a time, too."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A payload. `cut`: bytes that are not shown. `looks_like`: the moment that its score may be, in Unix seconds."""

    text: str
    score: float
    cut: int = 0
    unreadable: bool = False
    looks_like: float | None = None


class Reader:
    """Makes texts of the payloads of one queue, through the mask that the app gave."""

    def __init__(self, visit: Visit, queue_name: str) -> None:
        self._masking = Masking(visit, queue_name)
        self._now = visit.site.now()

    def whole(self, job_id: str, scored: ScoredPayload) -> Shown:
        """As pretty JSON, where it can be."""
        payload = self._masked(job_id, scored.payload)
        encoded = _encoded(payload)
        if len(encoded) <= LARGEST and not isinstance(payload, bytes):
            encoded = _pretty(encoded)
        text = encoded[:LARGEST].decode(errors="backslashreplace")
        return Shown(
            text=visible(text),
            score=scored.score,
            cut=max(0, len(encoded) - LARGEST),
            unreadable=isinstance(payload, bytes),
            looks_like=scored.score if abs(scored.score - self._now) < _TIME_WITHIN else None,
        )

    def line(self, job_id: str, scored: ScoredPayload) -> str:
        """The beginning of it."""
        encoded = _encoded(self._masked(job_id, scored.payload))
        return shortened(visible(encoded[: 4 * _PREVIEW].decode(errors="backslashreplace")))

    def _masked(self, job_id: str, payload: object) -> object:
        try:
            return self._masking.of(job_id, payload)
        except MaskFailed:
            return "(the mask failed)"


def shortened(text: str, length: int = _PREVIEW) -> str:
    """In one line, of that length at most."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _encoded(payload: object) -> bytes:
    if isinstance(payload, bytes):
        return payload
    for way in _WAYS:
        try:
            return way(payload)
        except Exception:  # noqa: BLE001, S112 - an app's codec makes what it likes, and the next way may do
            continue
    return b"(cannot be shown)"


def _as_json(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=repr)


def _as_escaped_json(value: object) -> bytes:
    return json.dumps(value, default=repr).encode()


def _as_python(value: object) -> bytes:
    return repr(value).encode(errors="backslashreplace")


_WAYS: Final = (_as_json, _as_escaped_json, _as_python)


def _pretty(encoded: bytes) -> bytes:
    depth = deepest = 0
    for found in _BRACKET.finditer(encoded):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        # Indented, it would grow with the square of its depth.
        return encoded
    try:
        return msgspec.json.format(encoded, indent=2)
    except Exception:  # noqa: BLE001 - not JSON: as it is
        return encoded
