"""What needs somebody, and what has happened, for the pages: looked for now and then, and not for each visitor."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.operate.inspect.sampling import AppSample
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.store.server.together import SideLook, Together
from lowkiq_lambda.views.activity import ActivityEntry
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.runs import Release

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

LASTS: Final = 15.0
"""Seconds for which a look counts where a page refreshes itself."""
LASTS_FOR_NEW: Final = 60.0
"""Seconds for which it counts where a page is opened: nobody is to wait for it, and the page soon refreshes itself."""
SHARE: Final = 20.0
"""A look counts for so many times as long as it took, if that is more: on a slow way to Redis looks are fewer."""


_OF_EACH: Final = 20
"""Of the activity of each queue so many are read, and of all:"""
_ACTS: Final = 100

Read = TypeVar("Read")


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A look. `problem`: why nothing is known of what needs somebody, in a sentence, or empty."""

    needs: "tuple[Need, ...]" = ()
    problem: str = ""
    processes: tuple[Process, ...] = ()
    releases: tuple[Release, ...] = ()
    samples: tuple[AppSample, ...] = ()
    activity: tuple[ActivityEntry, ...] = ()


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
        from lowkiq_lambda.operate.doctor.checkup import look_and_sample  # noqa: PLC0415 - imported lazily: cold start
        from lowkiq_lambda.operate.inspect.activity import read_activity  # noqa: PLC0415 - imported lazily: cold start

        began_at, core = self._now(), operations.core
        with Together() as side:
            looked_for, processes = side.look(look_and_sample, operations), side.look(operations.processes)
            # An app without releases asks for none.
            releases = side.look(operations.releases) if core.config.release else None
            activity = side.look(
                read_activity, core.backend, core.config.redis_retry_for, [*core.queues], _ACTS, _OF_EACH
            )
        try:
            needs, samples = looked_for.result
            looked = Looked(needs=needs, samples=tuple(samples))
        except BackendUnavailable:
            raise
        except LowkiqError as error:
            looked = Looked(problem=str(error))
        looked = msgspec.structs.replace(
            looked,
            processes=_unless_refused(processes),
            releases=_unless_refused(releases) if releases else (),
            activity=_unless_refused(activity),
        )
        self._looked, self._at = looked, self._now()
        self._lasts = max(LASTS, SHARE * (self._at - began_at))
        return looked


def _unless_refused(look: SideLook[Sequence[Read]]) -> tuple[Read, ...]:
    """What was read; nothing if the server refuses. Raises BackendUnavailable."""
    try:
        return tuple(look.result)
    except BackendUnavailable:
        raise
    except LowkiqError:
        return ()
