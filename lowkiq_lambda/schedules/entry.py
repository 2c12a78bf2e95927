"""One entry of a schedule: at which times which job is pushed, and what happens when that cannot be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, Unpack, get_args
from zlib import crc32

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.declare.declaring import in_session
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.schedules.cron import digest_of
from lowkiq_lambda.schedules.misfire import Missed, Overlap
from lowkiq_lambda.schedules.times import Times, parse_times, problem_of_seconds, seconds_of

if TYPE_CHECKING:
    from datetime import timedelta


_TEXTS: Final = (
    ("queue_name", 1, 65_536),
    ("id", 1, 65_536),
    ("name", 1, 200),
    ("description", 0, 1_000),
)
_CHOICES: Final = (("missed", get_args(Missed)), ("overlap", get_args(Overlap)))
_NUMBERS: Final = (("grace", 60, 366 * 86_400), ("jitter", 0, 86_400))
"""Seconds. A tick comes once a minute, so a smaller grace would miss firings while all goes well."""
LONGEST_EXPIRY: Final = 366 * 86_400
OPTIONS: Final = ("payload", "missed", "grace", "overlap", "jitter", "expires_in", "enabled", "description")
"""What `EntryOptions` has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """An entry, known by its queue and its name. Raises DeclarationError, naming field and value, if it cannot work."""

    queue_name: str
    name: str
    times: Times
    id: str
    """Of the job, as it is stored."""
    payload: object = ""
    missed: Missed = "once"
    grace: float = 3_600.0
    """Seconds by which a firing may be late, where `missed` is not "skip"."""
    overlap: Overlap = "merge"
    jitter: float = 0.0
    """Seconds within which the job starts after its planned time, so that not all start at once."""
    expires_in: float | None = None
    """Seconds from that start to when the payload is no longer handed over; None: as the worker says."""
    enabled: bool = True
    """False: it is off until somebody switches it on; once somebody switched it, that counts and not this."""
    description: str = ""

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise DeclarationError(f"{self.label}: {problem}.")

    @property
    def label(self) -> str:
        """What errors call it."""
        return label_of(self.queue_name, self.name)

    @property
    def tz(self) -> str:
        """The zone of its times."""
        return self.times.tz

    @property
    def digest(self) -> str:
        """Equal for equal planned times; other ones while it is off, as nothing fires later for that time."""
        return self.times.digest if self.enabled else digest_of(self.times.digest, "off")

    def jitter_of(self, planned: float) -> float:
        """Seconds by which the job of this planned time starts later; the same in each process and at each call."""
        milliseconds = int(self.jitter * 1_000)
        return crc32(f"{self.name}:{planned!r}".encode()) % milliseconds / 1_000 if milliseconds else 0.0

    def check_declared(self) -> None:
        """Check the times as far as a declaration can at no cost. Raises DeclarationError if they cannot work."""
        self._check(self.times.check_declared)

    def check(self) -> None:
        """Evaluate the times, which a declaration does not. Raises DeclarationError if they cannot work."""
        self._check(self.times.check)

    def _check(self, times: Callable[[], None]) -> None:
        try:
            times()
        except DeclarationError as error:
            raise DeclarationError(f"{self.label}: {error}") from None

    def definition(self) -> dict[str, Any]:
        """What makes the entry anew under its queue and name, for JSON if the payload is."""
        times = {"kind": self.times.kind, "text": self.times.text, "tz": self.tz}
        options = {option: getattr(self, option) for option in OPTIONS}
        if self.expires_in is None:
            # Not a byte for entries that have none.
            del options["expires_in"]
        if self.enabled:
            del options["enabled"]
        return {**times, "id": self.id, **options}

    @classmethod
    def from_definition(cls, queue_name: str, name: str, definition: Mapping[str, Any]) -> "ScheduleEntry":
        """The entry of a definition; fields that it does not have are as by default. Raises DeclarationError."""
        try:
            times = parse_times(definition.get("kind"), definition.get("text"), definition.get("tz", "UTC"))
        except DeclarationError as error:
            raise DeclarationError(f"{label_of(queue_name, name)}: {error}") from None
        options = {option: definition[option] for option in OPTIONS if option in definition}
        return cls(queue_name=queue_name, name=name, times=times, id=definition.get("id", ""), **options)

    def _problem(self) -> str | None:
        """What is wrong with its fields, of which any may have come from a file or from Redis."""
        for field, least, most in _TEXTS:
            if not _is_text(value := getattr(self, field), least, most):
                return f"{field} must be a text of {least} to {most:,} characters, not {shown(value)}"
        if not self.name.isprintable():
            return f"name must have printable characters only, not {shown(self.name)}"
        for field, choices in _CHOICES:
            if (value := getattr(self, field)) not in choices:
                return f"{field} must be one of {', '.join(choices)}, not {shown(value)}"
        for field, least, most in _NUMBERS:
            if problem := problem_of_seconds(getattr(self, field), least, most):
                return f"{field} {problem}"
        if self.expires_in is not None and (problem := problem_of_seconds(self.expires_in, 1, LONGEST_EXPIRY)):
            return f"expires_in {problem}"
        enabled: object = self.enabled
        return None if isinstance(enabled, bool) else f"enabled must be True or False, not {shown(self.enabled)}"


def new_entry(
    queue_name: str,
    times: Times,
    *,
    id: object,
    name: object = None,
    **options: Unpack["EntryOptions"],
) -> ScheduleEntry:
    """An entry as code declares it: `id` is a str, an int or a UUID, and its text the name where none is given.

    Raises DeclarationError.
    """
    try:
        job_id = id_text(id)
    except JobError as error:
        raise DeclarationError(f"An entry of {shown(queue_name)}: id {error.reason}.") from None
    fields: dict[str, Any] = {"name": job_id if name is None else name, **options}
    if unknown := next((option for option in options if option not in OPTIONS), None):
        names = ", ".join(("name", "tz", *OPTIONS))
        raise DeclarationError(
            f"{label_of(queue_name, fields['name'])}: {shown(unknown)} is not an option of it: there are {names}."
        )
    fields |= {field: seconds_of(fields[field]) for field in ("grace", "jitter", "expires_in") if field in fields}
    return ScheduleEntry(queue_name=queue_name, times=times, id=job_id, **fields)


def label_of(queue_name: object, name: object) -> str:
    """What errors call an entry, whatever its names are."""
    return f"Entry {shown(name)} of {shown(queue_name)}"


def _is_text(value: object, least: int, most: int) -> bool:
    # Surrogates cannot be written as UTF-8.
    return (
        isinstance(value, str) and least <= len(value) <= most and not any("\ud800" <= one <= "\udfff" for one in value)
    )


class EntryOptions(TypedDict, total=False):
    """The options of an entry beside its queue, its name, its times and the id of its job. Times are seconds."""

    payload: object
    missed: "Missed"
    """The rule for planned times that were missed: `once` fires the newest of them, `skip` none that is more than two
    minutes late, `all` each. The default is `once`."""
    grace: "float | timedelta"
    """How late a planned time may fire; 3,600 by default."""
    overlap: "Overlap"
    """`merge`, or `skip`: no push while the id waits or is in flight."""
    jitter: "float | timedelta"
    """Over how many seconds the starts of many entries are spread; 0 by default."""
    expires_in: "float | timedelta | None"
    """For how many seconds from its start the job may be handed to a handler; None, the default: as its worker says."""
    enabled: bool
    """False: off until somebody switches it on; a person's switch counts more than this from then on."""
    description: str


class FiringOptions(EntryOptions, total=False):
    """What may be said of an entry beside its name, its times, its worker and its id."""

    tz: str
    """The zone of its times; UTC if none is given."""


class DeclaredOptions(FiringOptions, total=False):
    """As `FiringOptions`, with the name."""

    name: str
    """The id, if none is given; a queue has one entry of a name."""


class BrokenEntry(NamedTuple):
    """An entry of code that cannot work, and why; it fires nothing."""

    queue_name: str
    name: str
    problem: str

    def __str__(self) -> str:
        """The sentence that names it."""
        return f"{label_of(self.queue_name, self.name)}: {self.problem}"


class Timetable:
    """Entries by queue and name."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], ScheduleEntry] = {}
        self._workers: dict[tuple[str, str], object] = {}
        """Those of the entries, as they were declared."""
        self.broken: list[BrokenEntry] = []

    def __iter__(self) -> Iterator[ScheduleEntry]:
        """In order of declaration."""
        return iter(self._entries.values())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries)

    def add(self, entry: ScheduleEntry, worker: object) -> None:
        """Declare it. Raises DeclarationError if its worker has one of that name, and nobody types the code."""
        key = entry.queue_name, entry.name
        # A reload of their module declares the worker again before its entries.
        if key in self._entries and self._workers[key] is worker and not in_session():
            raise DeclarationError(
                f"Queue {shown(entry.queue_name)} has a schedule entry {shown(entry.name)} already: give this one "
                "another name."
            )
        self._entries[key], self._workers[key] = entry, worker

    def get(self, queue_name: str, name: str) -> ScheduleEntry | None:
        """The entry of that name."""
        return self._entries.get((queue_name, name))

    def digest(self) -> str:
        """Equal for apps that declare the same entries: these may share the work of firing them."""
        texts = sorted(repr((*key, entry.id, entry.times)) for key, entry in self._entries.items())
        return sha256("\0".join(texts).encode(errors="backslashreplace")).hexdigest()[:16]
