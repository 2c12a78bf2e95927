"""Failures as they are kept with a job: the texts of errors, and what tells whether two of them are alike."""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from lowkiq_lambda.base.error_text import brief, call_safely, cut, headline, is_a, loggable, plain, signature, type_name

logger = logging.getLogger(__name__)

BRIEF: Final = 200
"""Characters of an error that are kept after another one has come: of its first line and of its last."""


class ErrorText(msgspec.Struct, frozen=True):
    """Makes and reads the texts of errors: a formatter that breaks never breaks the bookkeeping."""

    format_error: Callable[[BaseException], str]
    dump_error: Callable[[str], bytes]
    load_error: Callable[[bytes], str]
    max_length: int

    def dump(self, error: BaseException | str) -> bytes:
        """The error as it is kept with the job."""
        text = self.text(error)
        dumped, broken = call_safely(self.dump_error, text)
        if broken is not None:
            logger.error("dump_error raised", exc_info=loggable(broken))
        elif isinstance(dumped, bytes):
            return dumped
        else:
            logger.error("dump_error must return bytes, not %s", type(dumped).__name__)
        return text.encode(errors="backslashreplace")

    def read(self, dumped: bytes) -> str:
        """The text of an error that was kept."""
        text, broken = call_safely(lambda stored: plain(str(self.load_error(stored))), dumped)
        if broken is not None:
            logger.error("load_error raised", exc_info=loggable(broken))
            return dumped.decode(errors="backslashreplace")
        return text or ""

    def text(self, error: BaseException | str) -> str:
        """The error in words, cut to the longest that is kept."""
        if not is_a(error, BaseException):
            return cut(plain(error), self.max_length)
        text, broken = call_safely(lambda raised: plain(str(self.format_error(raised))), error)
        if broken is not None:
            logger.error("format_error raised", exc_info=loggable(broken))
            text = headline(error)
        return cut(text or "", self.max_length)

    def failure(self, error: BaseException | str, *, blamed: bool) -> "CountedFailure":
        """The error as a failure that counts."""
        text = self.text(error)
        dumped = self.dump(text)
        return CountedFailure(dumped, self._brief(text, dumped), signature(error), blamed)

    def repeated_exit(self, error: BaseException, times: int, *, blamed: bool) -> "CountedFailure":
        """That an id exited so many times in a row, the last time with this error, as a failure that counts."""
        name, text = type_name(error), self.text(error)
        # The default format begins with the type, and another need not have it.
        exit_text = text if text.startswith(name) else f"{name}: {text}"
        text = f"The handler exited {times} times in a row, at last with {exit_text}"
        return self.failure(text, blamed=blamed)

    def shared(self, dumped: bytes) -> "CountedFailure":
        """The error that others were kept with, as a failure that counts."""
        return CountedFailure(dumped, self._brief(self.read(dumped), dumped))

    def _brief(self, text: str, dumped: bytes) -> bytes:
        return dumped if len(text) <= BRIEF else self.dump(brief(text, BRIEF))


class CountedFailure(msgspec.Struct, frozen=True):
    """A failure that counts: its error as it is kept, and in brief; what makes it like another; who failed.

    `blamed`: the id alone.
    """

    dumped: bytes
    brief: bytes
    signature: str = ""
    blamed: bool = False
