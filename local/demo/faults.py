"""What goes wrong on purpose: now and then a handler fails or its thread is interrupted."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from random import Random
from threading import Lock

FAILURES = 0.08
INTERRUPTIONS = 0.04
"""The shares of batches that meet with one, where nobody says otherwise."""


class InjectedFailure(Exception):
    """A failure that the demo made up."""


class InjectedInterruption(SystemExit):
    """An end of the thread that the demo made up."""


class FaultKind(Enum):
    """What can befall a batch."""

    FAIL_ONE = "one id fails and is named; the others go on"
    RAISE = "the handler raises in the midst of the batch and names nobody"
    INTERRUPT = "the thread is interrupted in the midst of the batch"


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls a batch, and at which of its ids."""

    kind: FaultKind
    victim: int


class NotOnPurpose(logging.Filter):
    """Lets log records pass unless they tell of a fault that was injected."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is news."""
        values = [*(record.args or ()), *(record.exc_info or ())]
        # An exit is logged by its text, and a failure by that of its error.
        text = f"{record.getMessage()} {getattr(record, 'error', '')}"
        is_injected = any(kind.__name__ in text for kind in (InjectedFailure, InjectedInterruption))
        return not is_injected and not any(isinstance(each, InjectedFailure | InjectedInterruption) for each in values)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keeps the injected faults out of the log, where they would hide what is not on purpose."""
    handlers = [*logging.getLogger().handlers, *logging.getLogger("lowkiq_lambda").handlers, logging.lastResort]
    not_on_purpose = NotOnPurpose()
    for handler in handlers:
        if handler:
            handler.addFilter(not_on_purpose)
    try:
        yield
    finally:
        for handler in handlers:
            if handler:
                handler.removeFilter(not_on_purpose)


class Faults:
    """Draws the faults. Safe to use from several threads, whose order the seed cannot fix.

    `failures` and `interruptions` are the shares of batches, from 0 to 1, that meet with one.
    """

    def __init__(self, failures: float, interruptions: float, seed: int) -> None:
        self._failures = failures
        self._interruptions = interruptions
        self._random = Random(seed)  # noqa: S311 - faults need no cryptography
        self._lock = Lock()

    def draw(self, ids: int) -> Fault | None:
        """What befalls the next batch, which has this many ids; mostly nothing."""
        with self._lock:
            share = self._random.random()
            victim = self._random.randrange(ids)
            kind = self._random.choice((FaultKind.FAIL_ONE, FaultKind.RAISE))
        if share < self._interruptions:
            return Fault(FaultKind.INTERRUPT, victim)
        return Fault(kind, victim) if share < self._interruptions + self._failures else None
