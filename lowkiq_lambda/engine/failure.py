"""Failures: the stored texts of errors, which errors are alike, and the hook for the last ones."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.error_text import brief, call_safely, cut, headline, is_a, loggable, plain, signature, type_name
from lowkiq_lambda.base.forks import InParentAlone
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.perform import about, hook_errors
from lowkiq_lambda.jobs.job import PLACE, MorgueJob, ScoredPayload, WhyDead, score_of

logger = logging.getLogger(__name__)

BRIEF: Final = 200
"""Characters of an error that are kept after another one has come: of its first line and of its last."""


LONGEST_TEXT: Final = 4_000
"""Characters of an error's text that are kept: of a longer one the beginning and the end."""


class ErrorText(msgspec.Struct, frozen=True):
    """Makes and reads the texts of errors: a formatter that breaks never breaks the bookkeeping."""

    format_error: Callable[[BaseException], str]
    dump_error: Callable[[str], bytes]
    load_error: Callable[[bytes], str]

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
            return cut(plain(error), LONGEST_TEXT)
        text, broken = call_safely(lambda raised: plain(str(self.format_error(raised))), error)
        if broken is not None:
            logger.error("format_error raised", exc_info=loggable(broken))
            text = headline(error)
        return cut(text or "", LONGEST_TEXT)

    def failure(self, error: BaseException | str, *, blamed: bool) -> "CountedFailure":
        """The error as a failure that counts."""
        text = self.text(error)
        dumped = self.dump(text)
        return CountedFailure(dumped, self._brief(text, dumped), error, signature(error), blamed)

    def repeated_exit(self, error: BaseException, times: int, *, blamed: bool) -> "CountedFailure":
        """The counted failure of an id that exited `times` times in a row, the last time with this error."""
        name, text = type_name(error), self.text(error)
        # The default format begins with the type, and another need not have it.
        exit_text = text if text.startswith(name) else f"{name}: {text}"
        text = f"The handler exited {times} times in a row, at last with {exit_text}"
        return self.failure(text, blamed=blamed)

    def shared(self, dumped: bytes) -> "CountedFailure":
        """The error that others were kept with, as a failure that counts."""
        text = self.read(dumped)
        return CountedFailure(dumped, self._brief(text, dumped), text, is_charged=True)

    def _brief(self, text: str, dumped: bytes) -> bytes:
        return dumped if len(text) <= BRIEF else self.dump(brief(text, BRIEF))


def digits(error: BaseException | str) -> str:
    """The fingerprint of the error with which a job ended, for the journal."""
    from lowkiq_lambda.base.fingerprint import fingerprint  # noqa: PLC0415 - few jobs end so

    return fingerprint(headline_of(error)).digits


def headline_of(error: BaseException | str) -> str:
    """The error in a line."""
    return headline(error) if is_a(error, BaseException) else plain(error)


class CountedFailure(msgspec.Struct, frozen=True):
    """A failure that counts: its stored error, the short form of that, the error, and the signature of those like it.

    `blamed`: the failure belongs to the id alone. `is_charged`: it belongs to other ids, so the error is only a text.
    """

    dumped: bytes
    brief: bytes
    error: BaseException | str
    signature: str = ""
    blamed: bool = False
    is_charged: bool = False


class Death(NamedTuple):
    """An id whose oldest payload died: that entry, its error, and why, as `MorgueJob.why` says it."""

    id: str
    entry: bytes
    error: bytes
    why: WhyDead


class Deaths(msgspec.Struct, frozen=True):
    """Reads what died of one worker."""

    worker: type[Worker[Any]]
    load_payload: Callable[[bytes], object]
    texts: ErrorText
    clock: Clock

    def tell(self, dead: Sequence[Death]) -> None:
        """Log the ids and call the worker's hook; an error of the hook does not take jobs out of the morgue."""
        message = "jobs are blocked" if self.worker.dead_head == "block" else "jobs went to the morgue"
        logger.warning(message, extra=about(self.worker, [death.id for death in dead]))
        try:
            jobs = [self._morgue_job(death) for death in dead]
            with InParentAlone():
                self.worker().retries_exhausted(jobs)
        except hook_errors() as error:
            name = self.worker.__name__
            logger.error("%s.retries_exhausted raised", name, exc_info=loggable(error))  # noqa: TRY400 - not all of it

    def _morgue_job(self, death: Death) -> MorgueJob:
        entry = death.entry
        payload, broken = call_safely(self.load_payload, entry[PLACE:])
        if broken is not None:
            # The raw bytes are shown after any error of the codec.
            payload = entry[PLACE:]
        text = self.texts.read(death.error)
        return MorgueJob(death.id, [ScoredPayload(payload, score_of(entry))], self.clock.time(), text, why=death.why)
