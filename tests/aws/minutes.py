"""Minutes of a stack, one after the other, and what its function published in each: series for alarms."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from lowkiq_lambda import LowkiqError
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction

TICK: Final[Mapping[str, object]] = {"tick": True}
METRICS: Final = ("oldest_due_age", "dead", "blocked", "schedules_missed", "verify_violations")
INVOCATIONS: Final = "Invocations"
ERRORS: Final = "errors"
"""Lambda's own count of invocations that failed; zeros of others."""


class Minutes:
    """Lets minutes pass, each with one event of the schedule, and keeps what was published."""

    def __init__(self, drain: DrainFunction, clock: ManualClock) -> None:
        self._drain, self.clock, self.install = drain, clock, drain.install
        self.series: dict[str, list[float | None]] = {name: [] for name in (*METRICS, INVOCATIONS, ERRORS)}

    def __getitem__(self, name: str) -> list[float | None]:
        return self.series[name]

    def go_on(self, count: int = 1, *, ticks: bool = True, event: Mapping[str, object] = TICK) -> "Minutes":
        """So many minutes, each with the event; without `ticks` nothing invokes the function."""
        for _ in range(count):
            ends_at = self.clock.time() + 60
            self._note(event if ticks else None)
            self.clock.advance(max(0.0, ends_at - self.clock.time()))
        return self

    def repeat(self, times: int) -> "Minutes":
        """All minutes so far once more, so many times: nothing was different in them."""
        self.series = {name: values * (1 + times) for name, values in self.series.items()}
        return self

    def _note(self, event: Mapping[str, object] | None) -> None:
        before, failed = len(self._drain.blobs), True
        invoked = event is not None
        if invoked:
            with suppress(LowkiqError):
                self._drain(event)
                failed = False
        published = self._drain.blobs[before:]
        for name in METRICS:
            values = [value for blob in published for value in blob.get(name, [])]
            self.series[name].append(max(values) if values else None)
        self.series[INVOCATIONS].append(1.0 if invoked else None)
        self.series[ERRORS].append(float(failed) if invoked else None)
