"""In place of Lambda's API: notes what is invoked, and refuses what it is told to."""

from collections.abc import Callable, Mapping
from typing import Any


class Invocations:
    """Those that were accepted, in order, as function and event; safe to use from several threads."""

    def __init__(self) -> None:
        self.accepted: list[tuple[str, dict[str, Any]]] = []
        self.refused = 0
        self.refusing: Exception | None = None
        self.before: Callable[[Mapping[str, object]], object] = lambda _event: None
        """Called with the event of each, before it is accepted."""

    def invoke(self, function: str, event: Mapping[str, object]) -> None:
        """Accept it, unless told otherwise."""
        if self.refusing:
            self.refused += 1
            raise self.refusing
        self.before(event)
        self.accepted.append((function, dict(event)))

    @property
    def events(self) -> list[dict[str, Any]]:
        """Only the events."""
        return [event for _, event in self.accepted]
