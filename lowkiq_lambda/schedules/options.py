"""The options that every form of a schedule entry takes."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from datetime import timedelta

    from lowkiq_lambda.schedules.misfire import Missed, Overlap


class EntryOptions(TypedDict, total=False):
    """What an entry has beside its queue, its name, its times and the id of its job. Times are seconds."""

    payload: object
    missed: "Missed"
    """What becomes of planned times that nobody was there for: `once` fires the newest of them, `skip` none that is
    more than two minutes late, `all` each. `once` if nothing is given."""
    grace: "float | timedelta"
    """How late a planned time may fire; 3,600 if nothing is given."""
    overlap: "Overlap"
    """`merge`, or `skip`: push nothing while the id waits or is in flight."""
    jitter: "float | timedelta"
    """Over how many seconds the starts of many entries are spread; 0 if nothing is given."""
    description: str


class FiringOptions(EntryOptions, total=False):
    """What may be said of an entry beside its name, its times, its worker and its id."""

    tz: str
    """The zone of its times; UTC if none is given."""


class DeclaredOptions(FiringOptions, total=False):
    """As `FiringOptions`, with the name."""

    name: str
    """The id, if none is given; a queue has one entry of a name."""
