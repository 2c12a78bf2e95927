"""Lines of the log about failures: each failure has one, and those that are alike share a traceback a minute.

An outage fails the same way thousands of times, and its tracebacks would be all that a log has.
"""

import logging
from collections.abc import Mapping
from threading import Lock
from typing import Final

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.error_text import headline, loggable, own_places
from lowkiq_lambda.base.fingerprint import fingerprint, first_line

logger = logging.getLogger(__name__)

PERIOD: Final = 60.0
"""Seconds for which failures that are alike have no traceback after one that has."""
MOST: Final = 1_000
"""Kinds of failures that are remembered; of more the one whose traceback is the oldest is forgotten."""


class FailureLog:
    """Writes them, from any thread. Failures are alike if queue and fingerprint are the same."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kinds: dict[tuple[object, str], tuple[float, int]] = {}

    def write(self, message: str, about: Mapping[str, object], error: BaseException) -> None:
        """A warning with `error`, its first line, and the fields that say what it is about.

        With the traceback, and as `repeats` how many failures had none since the last one, where there were any; or
        else with `frames`, the places in the user's code.
        """
        line = first_line(headline(error))
        repeats = self._repeats((about.get("queue"), fingerprint(line).digits))
        fields = {**about, "error": line}
        if repeats is None:
            logger.warning(message, extra=fields | {"frames": own_places(error)})
        else:
            logger.warning(message, extra=fields | ({"repeats": repeats} if repeats else {}), exc_info=loggable(error))

    def _repeats(self, kind: tuple[object, str]) -> int | None:
        """How many of the kind had no traceback since the last one; None: this one is to have none either."""
        with self._lock:
            now = self._clock.monotonic()
            at, repeats = self._kinds.get(kind, (None, 0))
            if at is not None and now - at < PERIOD:
                self._kinds[kind] = (at, repeats + 1)
                return None
            # At the end: the first is the oldest.
            self._kinds.pop(kind, None)
            self._kinds[kind] = (now, 0)
            if len(self._kinds) > MOST:
                del self._kinds[next(iter(self._kinds))]
            return repeats


failures: Final = FailureLog(SystemClock())
"""That of this process."""
