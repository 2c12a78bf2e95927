"""Runs the duties of an app that are due, one after the other, each claimed in Redis first."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.error_text import cut, headline, loggable
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.base.forks import InParentAlone
from lowkiq_lambda.declare.duty import Duty, RunAgain
from lowkiq_lambda.store.shard.duty_claims import ClaimRequest, DutyClaim, DutyClaims

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core

logger = logging.getLogger(__name__)

LONGEST_RUN: Final = 60.0
SHORTEST_RUN: Final = 5.0
"""Bounds of the time limit of a run, in seconds. The limit is the period within these bounds."""
GRACE: Final = 5.0
"""Seconds by which a claim outlasts the time of its run."""
_ERROR_LENGTH: Final = 1_000
_ERRORS: Final = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)


class DutiesRun(NamedTuple):
    """The results and the errors of the duties that ran, by name, and in how many seconds the next one is due."""

    results: dict[str, Any]
    errors: dict[str, BaseException]
    next_in: float


class DutyRunner:
    """Runs duties of one app, as often as somebody calls it; `scope` as in `DutyKey.of`.

    `claim_ttl`: for how many seconds a claim lasts, of duties of which two runs at a time do no harm. Such a duty rests
    for no longer at first, where processes die in the middle of it. None: a claim lasts as long as a run may take.
    """

    def __init__(  # noqa: PLR0913 - by name
        self,
        core: "Core",
        duties: Sequence[Duty],
        clock: Clock,
        *,
        name: str = "duties",
        scope: str = "",
        claim_ttl: float | None = None,
    ) -> None:
        self.name = name
        self._claim_ttl = claim_ttl
        self._duties = {duty.name: duty for duty in duties}
        self._clock = clock
        self._claims = DutyClaims(core.backend, core.queues, scope)

    def run_due(self, remaining: Callable[[], float]) -> DutiesRun:
        """Run what is due, each at most once, while `remaining` (seconds) is more than 0.

        The one that has been due for longest comes first. Raises BackendError where Redis cannot be asked.
        """
        ran = DutiesRun({}, {}, 0.0)
        while (left := self._not_run(ran)) and remaining() > 0:
            requests = [self._request(duty, remaining) for duty in left]
            claim, next_in = self._claims.claim(requests, retry_for=0.0)
            if claim is None:
                # A round that ran a duty has not asked when that is due again: the next look, at once, does.
                return ran if ran.results or ran.errors else ran._replace(next_in=next_in)
            if not self._run(claim, remaining, ran):
                break
        return ran

    def _request(self, duty: Duty, remaining: Callable[[], float]) -> ClaimRequest:
        if self._claim_ttl is None:
            return ClaimRequest(duty.name, duty.every, _seconds_of(duty, remaining) + GRACE)
        return ClaimRequest(duty.name, duty.every, self._claim_ttl, rest=self._claim_ttl)

    def _not_run(self, ran: DutiesRun) -> list[Duty]:
        return [duty for name, duty in self._duties.items() if name not in ran.results and name not in ran.errors]

    def _run(self, claim: DutyClaim, remaining: Callable[[], float], ran: DutiesRun) -> bool:
        """Run a duty and note what came of it; whether Redis was told."""
        duty = self._duties[claim.name]
        ends_at = self._clock.monotonic() + _seconds_of(duty, remaining)

        def left() -> float:
            return max(0.0, min(remaining(), ends_at - self._clock.monotonic()))

        error, again_in = None, None
        try:
            with InParentAlone():
                result = duty.run(left)
            if isinstance(result, RunAgain):
                result, again_in = result
            ran.results[claim.name] = result
        except _ERRORS as raised:
            error = ran.errors[claim.name] = raised
            logger.error("a duty failed", extra={"duty": claim.name}, exc_info=loggable(raised))  # noqa: TRY400 - a cut traceback is logged
        try:
            self._finish(claim, error, again_in)
        except BackendError as unreachable:
            ran.errors.setdefault(claim.name, unreachable)
            text = "Redis could not be told that a duty was done, so it will be done again: %s"
            logger.warning(text, unreachable, extra={"duty": claim.name})
            return False
        return True

    def _finish(self, claim: DutyClaim, error: BaseException | None, again_in: float | None) -> None:
        # A text may hold lone surrogates, as of a file's name: no UTF-8 has them.
        text = "" if error is None else cut(headline(error), _ERROR_LENGTH).encode(errors="backslashreplace").decode()
        if not self._claims.finish(claim, text, again_in, retry_for=GRACE) and self._claim_ttl is None:
            text = "a duty took longer than its claim lasted, so another process may have done it at the same time"
            logger.warning(text, extra={"duty": claim.name})


class FiresEntries(Protocol):
    """The schedule entries of an app."""

    def duty_runner(self, clock: Clock) -> DutyRunner:
        """The runner that fires them."""
        ...


def runners_of(core: "Core", schedules: Callable[[], FiresEntries], clock: Clock) -> list[DutyRunner]:
    """The runners of an app's duties. Schedules have a runner of their own: they wait for no other duty."""
    runners = [DutyRunner(core, [*core.housekeeping.duties.values()], clock)] if core.housekeeping.duties else []
    return [*runners, schedules().duty_runner(clock)] if core.housekeeping.fires_schedules else runners


def _seconds_of(duty: Duty, remaining: Callable[[], float]) -> float:
    """How long a run of it may take."""
    return min(remaining(), LONGEST_RUN, max(duty.every, SHORTEST_RUN))
