"""One entry of a schedule: at which times which job is pushed, and what happens when that cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lowkiq_lambda.schedules.misfire import Missed
from lowkiq_lambda.schedules.times import Times

Overlap: TypeAlias = Literal["merge", "skip"]
"""What a firing does while the id waits or is in flight: it merges into the job, or pushes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """Queue and name identify it. Raises DeclarationError where a field cannot work, naming it and its value."""

    queue_name: str
    name: str
    times: Times
    id: str
    """Of the job, as it is stored."""
    payload: object = ""
    missed: Missed = "once"
    grace: float = 3_600.0
    """Seconds by which a firing may be late."""
    overlap: Overlap = "merge"
    jitter: float = 0.0
    """Seconds over which the starts of many entries are spread."""
    description: str = ""

    @property
    def tz(self) -> str:
        """The zone of its times."""
        return self.times.tz

    def jitter_of(self, planned: float) -> float:
        """Seconds by which the job of this planned time starts later; the same whoever asks."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises DeclarationError where the times cannot work; evaluates them, as a declaration does not."""
        raise NotImplementedError

    def definition(self) -> dict[str, Any]:
        """What a definition at run time stores: kind, text, tz, id, payload, missed, grace, overlap, jitter, description."""
        raise NotImplementedError

    @classmethod
    def from_definition(cls, queue_name: str, name: str, definition: Mapping[str, Any]) -> "ScheduleEntry":
        """The entry of a stored definition. Raises DeclarationError where it cannot be one."""
        raise NotImplementedError


def new_entry(
    queue_name: str,
    times: Times,
    *,
    id: object,  # noqa: A002
    name: object = None,
    **options: Any,
) -> ScheduleEntry:
    """An entry as code declares it: `id` a str, int or UUID, `name` the id's text where none is given.

    `options`: payload, missed, grace, overlap, jitter, description. Raises DeclarationError.
    """
    raise NotImplementedError
