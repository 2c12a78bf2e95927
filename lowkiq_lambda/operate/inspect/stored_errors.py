"""Errors as an app stores them: their texts, and what those that are alike share."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from lowkiq_lambda.base.error_text import bytes_to_text, call_safely, plain
from lowkiq_lambda.base.fingerprint import Fingerprint, fingerprint


class StoredErrors(NamedTuple):
    """Reads errors by the app's `Config.load_error`."""

    load: Callable[[bytes], str] = bytes_to_text

    @property
    def part(self) -> Literal["line", "text"]:
        """What a script brings of one: of bytes that only a codec can read all."""
        return "line" if self.load is bytes_to_text else "text"

    def text(self, stored: bytes) -> str:
        """The text; the bytes where the codec cannot decode them."""
        # A codec may raise anything, and the rest of the page can be shown.
        text, broken = call_safely(lambda data: plain(str(self.load(data))), stored)
        return stored.decode(errors="replace") if broken is not None or text is None else text

    def fingerprint(self, stored: bytes) -> Fingerprint:
        """The fingerprint, computed again because it is not stored."""
        return fingerprint(self.text(stored))
