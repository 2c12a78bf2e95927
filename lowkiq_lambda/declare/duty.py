"""Recurring work of an app as a whole, whichever process does it."""

import re
from collections.abc import Callable, Collection
from typing import Final, NamedTuple, Protocol

from lowkiq_lambda.base.errors import DeclarationError

SHORTEST: Final = 1.0
LONGEST: Final = 86_400.0 * 7
"""Seconds of a period."""
SCHEDULES: Final = "schedules"
"""The name of the duty that fires schedule entries: no other has it."""
TASKS: Final = "tasks"
"""That of the duty that looks after tasks."""
MOVES: Final = "moves"
"""That of the duty that goes on with moves of queues to other shards."""
VERIFY: Final = "verify"
"""That of the duty that verifies a share of the queues' time."""
WATCH: Final = "watch"
"""That of the duty that keeps how each minute was, and tells why a queue is late."""
AUTO: Final = "auto"
"""That of the duty that says how many shards queues need."""
ALERTS: Final = "alerts"
"""That of the duty that tells of what needs somebody."""
ALERTS_EVERY: Final = 60.0
"""Its period in seconds."""
OWN: Final = {
    SCHEDULES: "fires schedule entries",
    TASKS: "looks after tasks",
    MOVES: "goes on with moves of queues",
    VERIFY: "verifies queues by their journals",
    WATCH: "watches how late queues are, and why",
    AUTO: "says how many shards queues need",
    ALERTS: "tells of what needs somebody",
}
"""Names that no duty of a user has, and what those do."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Duty(Protocol):
    """Something to do once in each period, by one of the app's processes.

    A run may be repeated: if the process dies, if its end cannot be written to Redis, or if it takes longer than its
    limit. So a second run must do no harm.
    """

    @property
    def name(self) -> str:
        """Its name in Redis, in logs and on pages: lower-case letters, digits, `-` and `_`."""
        ...

    @property
    def every(self) -> float:
        """The period in seconds: from 1 to a week."""
        ...

    def run(self, remaining: Callable[[], float]) -> object:
        """Work while `remaining` (seconds) is more than 0. The summary of a housekeeping run has the result, as JSON.

        It may return `RunAgain`, to be run sooner than in a period. An exception is logged, and delays only the next
        runs of this duty.
        """
        ...


class RunAgain(NamedTuple):
    """The result of a run that asks for another run soon.

    A daemon follows that to the second. On Lambda housekeeping runs duties, so none starts before the next housekeeping
    run.
    """

    result: object
    """What the summary shows."""
    seconds: float | None
    """From now; None, or more than the period: as ever."""


def check_duty(duty: Duty, names: Collection[str]) -> None:
    """Raises DeclarationError if the duty cannot work beside those of these names."""
    if not _NAME.fullmatch(duty.name):
        raise DeclarationError(
            f"The duty {duty.name!r} needs a name of at most 64 lower-case letters, digits, '-' and '_'."
        )
    if duty.name in OWN:
        raise DeclarationError(f"The name {duty.name!r} is that of the duty which {OWN[duty.name]}: take another.")
    if duty.name in names:
        raise DeclarationError(f"The app has a duty {duty.name!r} already: give this one another name.")
    if not SHORTEST <= duty.every <= LONGEST:
        raise DeclarationError(f"The duty {duty.name!r} must be done every 1 to 604800 seconds, not {duty.every!r}.")
