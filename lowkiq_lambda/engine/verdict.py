"""What becomes of an id that was performed: pure decisions, and the errors' texts that go with them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.error_text import brief, call_safely, cut, headline, loggable, signature
from lowkiq_lambda.job import Delivery
from lowkiq_lambda.retry import default_retry_in, safe_delay
from lowkiq_lambda.worker import Worker

logger = logging.getLogger(__name__)

BRIEF: Final = 200
"""Characters of an error that are kept after another one has come: of its first line and of its last."""

Outcome: TypeAlias = tuple[Any, ...]
"""As store/lua/include/outcomes.lua reads it: id, kind, and what the kind needs."""

EXITS: Final = 5
"""How often in a row an id that runs alone exits (`sys.exit`, a cancellation) until that is its failure.

Any process is stopped now and then, so one exit says nothing of the id; five in a row are its own.
"""
HOOK_ERRORS: Final = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)
"""What a user's callable may raise without harm: the outcome that it was asked about stands."""

_rng: Final = Random()  # noqa: S311 - spreads retries in time, protects nothing


class BatchResult(msgspec.Struct):
    """What came of a batch. Ids that are named nowhere are done.

    `failed`: their own failures. `unattributed`: ids of an error that nobody was named for. `interrupted`: ids that
    go back as they were; `enders`: those of them that may have exited. `exit`: the exception, no failure, that ended
    the batch.
    """

    failed: dict[str, BaseException | str] = msgspec.field(default_factory=dict)
    unattributed: Sequence[str] = ()
    error: BaseException | None = None
    interrupted: Sequence[str] = ()
    enders: Sequence[str] = ()
    exit: BaseException | None = None


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
        if broken:
            logger.error("dump_error raised", exc_info=loggable(broken))
        elif isinstance(dumped, bytes):
            return dumped
        else:
            logger.error("dump_error must return bytes, not %s", type(dumped).__name__)
        return text.encode(errors="backslashreplace")

    def read(self, dumped: bytes) -> str:
        """The text of an error that was kept."""
        text, broken = call_safely(lambda stored: str(self.load_error(stored)), dumped)
        if broken:
            logger.error("load_error raised", exc_info=loggable(broken))
            return dumped.decode(errors="backslashreplace")
        return text or ""

    def text(self, error: BaseException | str) -> str:
        """The error in words, cut to the longest that is kept."""
        if isinstance(error, str):
            return cut(error, self.max_length)
        text, broken = call_safely(lambda given: str(self.format_error(given)), error)
        if broken:
            logger.error("format_error raised", exc_info=loggable(broken))
            text = headline(error)
        return cut(text or "", self.max_length)

    def failure(self, error: BaseException | str, *, blamed: bool) -> "CountedFailure":
        """The error as a failure that counts."""
        text = self.text(error)
        dumped = self.dump(text)
        return CountedFailure(dumped, self._brief(text, dumped), signature(error), blamed)

    def repeated_exit(self, error: BaseException, *, blamed: bool) -> "CountedFailure":
        """That an id exited once too often, the last time with this error, as a failure that counts."""
        text = f"exited {EXITS} times in a row, at last with {type(error).__name__}: {self.text(error)}"
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


def of_failure(worker: type[Worker], delivery: Delivery, failure: CountedFailure, now: float) -> Outcome:
    """A retry later, or, when those are used up, the morgue for the oldest payload."""
    count = delivery.retry_count + 1
    if count >= worker.max_retry_count:
        return delivery.id, "bury", failure.dumped, failure.signature, failure.brief
    at = now + _delay(worker, int(count))
    return delivery.id, "retry", count, at, failure.dumped, failure.signature, failure.blamed, failure.brief


def of_exit(delivery: Delivery, error: BaseException, *, alone: bool) -> Outcome | None:
    """Back, behind what is due by now; None where so many exits in a row are a failure.

    In company it counts for nobody, and Ctrl-C never does.
    """
    exits = (delivery.exits or 0) + (alone and not isinstance(error, KeyboardInterrupt))
    return None if exits >= EXITS else (delivery.id, "behind", exits)


def _delay(worker: type[Worker], retry_count: int) -> float:
    answer, broken = call_safely(lambda count: worker().retry_in(count), retry_count)
    if broken:
        logger.error("%s.retry_in raised: the default delay is taken", worker.__name__, exc_info=loggable(broken))
    elif safe_delay(answer) is None:
        logger.error("%s.retry_in returned %r: the default delay is taken", worker.__name__, answer)
    delay = safe_delay(answer)
    return default_retry_in(retry_count, _rng) if delay is None else delay
