"""One report for each time that Redis is unreachable, and one when it is back, however many threads notice."""

import logging
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.settings.config import variable_of
from lowkiq_lambda.store.server.faults import describe

logger = logging.getLogger(__name__)


CHECK_URL: Final = f"If it never answered, check the URL ({variable_of('redis_url')})."


def unreachable(error: BaseException, advice: str = "") -> str:
    """The failure, its effect, and advice, for the log."""
    cause = describe(error.__cause__ or error)
    return f"Redis is unreachable ({cause}); the daemon retries until it answers. {advice}".rstrip()


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

    def failed(self, what: Hashable, error: Exception, advice: str = "") -> None:
        """`what` (a shard, the probe) got this error from Redis. `advice` goes to the log, too."""
        with self._lock:
            is_news = not self._failing
            self._failing.add(what)
            if is_news:
                self._began_at = self._clock.monotonic()
        if is_news:
            logger.error("%s", unreachable(error, advice))
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
