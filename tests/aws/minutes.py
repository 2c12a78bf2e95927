"""Minutes of a stack, one after the other, and what its function published in each: series for alarms."""

from contextlib import suppress
from typing import Final

from lowkiq_lambda import LowkiqError
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction

TICK: Final = {"tick": True}
METRICS: Final = ("oldest_due_age", "dead", "held", "schedules_missed")
INVOCATIONS: Final = "invocations"
FAILURES: Final = "failures"
"""What Lambda puts into the failure queue: an event that failed, as none is tried again."""


class Minutes:
    """Lets minutes pass, each with one event of the schedule, and keeps what was published."""

    def __init__(self, drain: DrainFunction, clock: ManualClock) -> None:
        self._drain, self.clock, self.install = drain, clock, drain.install
        self.series: dict[str, list[float | None]] = {name: [] for name in (*METRICS, INVOCATIONS, FAILURES)}

    def __getitem__(self, name: str) -> list[float | None]:
        return self.series[name]

    def go_on(self, count: int = 1, *, ticks: bool = True) -> "Minutes":
        """So many minutes; without `ticks` nothing invokes the function."""
        for _ in range(count):
            ends_at = self.clock.time() + 60
            self._note(invoked=ticks)
            self.clock.advance(max(0.0, ends_at - self.clock.time()))
        return self

    def repeat(self, times: int) -> "Minutes":
        """All minutes so far once more, so many times: nothing was different in them."""
        self.series = {name: values * (1 + times) for name, values in self.series.items()}
        return self

    def _note(self, *, invoked: bool) -> None:
        before, failed = len(self._drain.blobs), True
        if invoked:
            with suppress(LowkiqError):
                self._drain(TICK)
                failed = False
        published = self._drain.blobs[before:]
        for name in METRICS:
            values = [value for blob in published for value in blob.get(name, [])]
            self.series[name].append(max(values) if values else None)
        self.series[INVOCATIONS].append(1.0 if invoked else None)
        self.series[FAILURES].append(1.0 if invoked and failed else None)
