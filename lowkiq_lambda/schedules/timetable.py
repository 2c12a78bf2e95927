"""The entries that the code of an app declares. They are never copied to Redis: a process fires by its code."""

from collections.abc import Iterator
from hashlib import sha256

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.entry import ScheduleEntry


class Timetable:
    """Entries by queue and name."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], ScheduleEntry] = {}

    def __iter__(self) -> Iterator[ScheduleEntry]:
        """In order of declaration."""
        return iter(self._entries.values())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries)

    def add(self, entry: ScheduleEntry) -> None:
        """Declare it. Raises DeclarationError where its queue has one of that name."""
        if self.get(entry.queue_name, entry.name):
            raise DeclarationError(
                f"Queue {shown(entry.queue_name)} has a schedule entry {shown(entry.name)} already: give this one "
                "another name."
            )
        self._entries[entry.queue_name, entry.name] = entry

    def get(self, queue_name: str, name: str) -> ScheduleEntry | None:
        """The entry of that name."""
        return self._entries.get((queue_name, name))

    def digest(self) -> str:
        """Equal for apps that declare the same entries: these may share the work of firing them."""
        texts = sorted(repr((*key, entry.id, entry.times)) for key, entry in self._entries.items())
        return sha256("\0".join(texts).encode(errors="backslashreplace")).hexdigest()[:16]
