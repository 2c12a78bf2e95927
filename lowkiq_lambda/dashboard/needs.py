"""What needs somebody, for the pages: looked for now and then, and not for each visitor."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.operate.operations import Operations

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

LASTS: Final = 15.0
"""Seconds for which a look counts where a page refreshes itself."""
LASTS_FOR_NEW: Final = 60.0
"""Seconds for which it counts where a page is opened: nobody is to wait for it, and the page soon refreshes itself."""
SHARE: Final = 20.0
"""A look counts for so many times as long as it took, if that is more: on a slow way to Redis looks are fewer."""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A look. `problem`: why there was none, in a sentence, or empty."""

    needs: "tuple[Need, ...]" = ()
    problem: str = ""


class Needs:
    """The last look of this process. Visitors that come while another looks get the one before."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = Lock()
        self._looked: Looked | None = None
        self._at = 0.0
        self._lasts = LASTS

    def forget(self) -> None:
        """Something was changed: the next visitor looks anew."""
        self._lasts = 0.0

    def latest(self, operations: Operations, *, is_refresh: bool = True) -> Looked:
        """The last look, or a new one. Raises BackendUnavailable."""
        looked = self._looked
        lasts = self._lasts if is_refresh or not self._lasts else max(self._lasts, LASTS_FOR_NEW)
        if looked is not None and 0.0 <= self._now() - self._at < lasts:
            return looked
        # A visitor for whom there is none before waits for it.
        if self._lock.acquire(blocking=looked is None):
            try:
                return self._look(operations)
            finally:
                self._lock.release()
        return looked or Looked()

    def _look(self, operations: Operations) -> Looked:
        from lowkiq_lambda.operate.doctor.checkup import look_for_needs  # noqa: PLC0415 - imported lazily: cold start

        began_at = self._now()
        try:
            looked = Looked(needs=look_for_needs(operations))
        except BackendUnavailable:
            raise
        except LowkiqError as error:
            looked = Looked(problem=str(error))
        self._looked, self._at = looked, self._now()
        self._lasts = max(LASTS, SHARE * (self._at - began_at))
        return looked
