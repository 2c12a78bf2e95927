"""One report for each time that Redis is out of reach, and one when it is back, however many threads notice."""

import logging
from collections.abc import Callable, Hashable
from threading import Lock

from lowkiq_lambda.clock import Clock

logger = logging.getLogger(__name__)


class Outage:
    """Lasts from the first failure until all that failed has worked again. Safe to use from several threads."""

    def __init__(self, clock: Clock, last_words: Callable[[BaseException], None]) -> None:
        self._clock = clock
        self._last_words = last_words
        self._failing: set[Hashable] = set()
        self._began_at = 0.0
        self._lock = Lock()

    @property
    def is_on(self) -> bool:
        """Whether something failed that has not worked again."""
        return bool(self._failing)

    def failed(self, what: Hashable, error: Exception) -> None:
        """`what` (a shard, the probe) got this error from Redis."""
        with self._lock:
            is_news = not self._failing
            self._failing.add(what)
            if is_news:
                self._began_at = self._clock.monotonic()
        if is_news:
            logger.error("Redis is unreachable, retrying: %s", error)
            self._last_words(error)

    def worked(self, what: Hashable) -> None:
        """`what` got an answer."""
        if not self._failing:
            return
        with self._lock:
            is_over = self._failing == {what}
            self._failing.discard(what)
            seconds = self._clock.monotonic() - self._began_at
        if is_over:
            logger.warning("Redis is back", extra={"seconds": round(seconds, 3)})
