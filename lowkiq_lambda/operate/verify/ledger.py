"""Where the payloads of a shard are, as far as its journal records it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

WAITING: Final = "waiting"
FLIGHT: Final = "in flight"
MORGUE: Final = "in the morgue"
ALIVE: Final = frozenset({WAITING, FLIGHT, MORGUE})
"""A payload in another state has ended, and the state is the word for its end."""


class Place(NamedTuple):
    """A payload's place among those of its id: they are handed over in the order of these tuples."""

    score: float
    arrival: int


class Ledger:
    """Each payload by its place: first it waits, then it is delivered, and some time it ends.

    `known_from`: payloads with a larger arrival number are known from their push on. The others are unknown until the
    journal names them.
    """

    def __init__(self, known_from: float) -> None:
        self.known_from = known_from
        self._states: dict[str, dict[Place, str]] = defaultdict(dict)
        self._flying: set[str] = set()
        self.handed: dict[str, set[Place]] = {}
        """The places that each id was handed at its last claim: a started job goes on with those."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    @property
    def payloads(self) -> int:
        """How many payloads the entries have named."""
        return sum(map(len, self._states.values()))

    def state(self, job_id: str, place: Place) -> str | None:
        """Where the payload is, the word for its end, or None if no entry has named it."""
        return self._states[job_id].get(place)

    def is_old(self, place: Place) -> bool:
        """Whether it may be older than the entries."""
        return place.arrival <= self.known_from

    def put(self, job_id: str, place: Place, state: str) -> None:
        """From now on the payload is there, or has ended so."""
        self._states[job_id][place] = state
        if state == FLIGHT:
            self._flying.add(job_id)

    def among(self, job_id: str, state: str) -> list[Place]:
        """The payloads of an id that are there, in their order."""
        return sorted(place for place, where in self._states[job_id].items() if where == state)

    def flying(self) -> list[str]:
        """The ids of which payloads are in flight."""
        self._flying = {job_id for job_id in self._flying if FLIGHT in self._states[job_id].values()}
        return sorted(self._flying)

    def land(self, job_id: str, state: str) -> None:
        """All that is in flight of an id goes there, or ends so."""
        for place in self.among(job_id, FLIGHT):
            self._states[job_id][place] = state

    def alive(self, job_id: str) -> dict[int, str]:
        """Where each payload of an id is that has not ended, by its arrival number."""
        return {place.arrival: state for place, state in self._states[job_id].items() if state in ALIVE}
