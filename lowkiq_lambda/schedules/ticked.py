"""What a tick did, as a value."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Fired(NamedTuple):
    """A planned time (Unix seconds) that a tick decided. `outcome`: pushed, merged, or busy: nothing was pushed."""

    queue_name: str
    name: str
    planned: float
    outcome: str


@dataclass(slots=True)
class Ticked:
    """What a tick did: planned times that it fired, how many it let go, and what kept entries from firing.

    `missed`: nobody looked at them in time; `replaced`: a newer one of the entry came before the look, and fired in
    their place; of one entry no more than 100 are counted. `late`: seconds by which the latest of those fired was late.
    `next_in`: seconds until the next planned time; None if there is none. Times that another process decided are not
    among them.
    """

    fired: list[Fired] = field(default_factory=list)
    missed: int = 0
    replaced: int = 0
    late: float = 0.0
    next_in: float | None = None
    problems: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """It in brief, as JSON."""
        return {
            "fired": len(self.fired),
            "missed": self.missed,
            "replaced": self.replaced,
            "late": round(self.late, 3),
            "problems": self.problems,
        }

    def wait_at_most(self, seconds: float) -> None:
        """Something is to be decided in so many seconds."""
        self.next_in = max(0.0, seconds if self.next_in is None else min(self.next_in, seconds))
