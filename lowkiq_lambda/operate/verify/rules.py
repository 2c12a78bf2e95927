"""The rules of order and of account, applied to a shard's journal, event by event."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from lowkiq_lambda.operate.verify.ledger import FLIGHT, MORGUE, WAITING, Ledger, Place
from lowkiq_lambda.views.journal import JournalEntry

Content: TypeAlias = Mapping[str, Mapping[int, str]]
"""Where the payloads of ids are in a shard, by their arrival numbers: "waiting", "in flight" or "in the morgue"."""


class Violation(msgspec.Struct, frozen=True):
    """A rule that does not hold, for which id, and the number of the entry that shows it (0: the shard's content)."""

    rule: str
    id: str
    number: int
    what: str
    shard: int = 0
    shards_count: int = 0

    def __str__(self) -> str:
        where = f"entry {self.number}" if self.number else "at the end"
        return f"{self.rule}: id {self.id!r}, shard {self.shard} of {self.shards_count}, {where}: {self.what}"


_BACK: Final = frozenset({"retried", "returned", "suspected", "checkpointed", "rest", "blocked"})
"""Outcomes after which delivered payloads wait again."""
_MOVES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "killed": (frozenset({WAITING, FLIGHT}), MORGUE),
    "cancelled": (frozenset({WAITING, FLIGHT}), "cancelled"),
    "deleted": (frozenset({WAITING, MORGUE}), "deleted"),
    "requeued": (frozenset({MORGUE}), WAITING),
    "restored": (frozenset({"deleted"}), WAITING),
    "restored_dead": (frozenset({"deleted"}), MORGUE),
    "trimmed": (frozenset({MORGUE}), "trimmed"),
    "superseded": (frozenset({WAITING, FLIGHT}), "superseded"),
    "dead": (frozenset({WAITING, FLIGHT}), MORGUE),
    "ended": (frozenset({FLIGHT}), "done"),
    "discarded": (frozenset({WAITING, FLIGHT}), "discarded"),
}
"""By the kind of an entry: where a payload has to be before, and where it is then."""
_ENDS_OLDEST: Final = frozenset({"dead", "discarded"})
"""Ends of the oldest payload in flight: the others go back to wait."""


def violations(
    entries: Iterable[JournalEntry], content: Content | None = None, *, known_from: float = 0.0
) -> list[Violation]:
    """What a shard's journal shows to be wrong, in the order of its entries.

    The journal is one of level "all" without gaps. `known_from`: the shard's arrival number at its beginning, 0 where
    the shard was new. `content`: what the ids of the journal have in the shard at its end.
    """
    return judged(entries, content, known_from).violations


def judged(entries: Iterable[JournalEntry], content: Content | None, known_from: float) -> "Judge":
    """As `violations`, with all that is known in the end."""
    judge = Judge(known_from)
    for entry in entries:
        judge.read(entry)
    if content is not None:
        judge.compare(content)
    return judge


class Judge:
    """Reads one shard's journal."""

    def __init__(self, known_from: float) -> None:
        self.violations: list[Violation] = []
        self.ledger = Ledger(known_from)
        self._token = 0
        self._number = 0
        self._shard = (0, 0)
        self._kind = ""
        self._holder = 0
        self._holders: dict[str, int] = {}
        """The token under which each id was claimed last."""
        self._tokens: set[int] = set()
        self._first = 0
        """The token of the first holder: the recording may have begun amid its visit."""
        self._met: set[str] = set()
        """Ids that this one has claimed, or settled, since."""
        self._replaced: dict[str, tuple[int, str]] = {}
        """What ends the flight of ids whose payload in flight is replaced: the same call tells their outcome."""
        self._rejected: dict[str, tuple[int, str]] = {}
        """In which call ids were rejected, as payloads of them may go to the morgue in the same one."""
        self._expired: dict[tuple[str, Place], tuple[int, str]] = {}
        """In which call payloads expired, as these may go to the morgue in the same one."""
        self._died: dict[tuple[str, Place], tuple[int, str]] = {}
        """In which call payloads went to the morgue, as that may be told before it is told that they expired."""
        self._call = ""
        self._calls: dict[int, int] = {}
        """The last call under each token."""
        self._read: Mapping[str, Callable[[Sequence[Any]], None]] = {
            "pushed": self._pushed,
            "joined": self._joined,
            "claimed": self._claimed,
            "done": self._done,
            "rejected": self._reject,
            "expired": self._expire,
            **dict.fromkeys(_BACK, self._back),
            **dict.fromkeys(_MOVES, self._moved),
        }

    def read(self, entry: JournalEntry) -> None:
        """Go on with the next entry."""
        self._number, self._kind, self._shard = entry.number, entry.kind, (entry.shard, entry.shards_count)
        self._holder, self._call = entry.holder or 0, entry.call
        self._first = self._first or self._holder
        self._count(entry.call)
        if entry.kind == "recovered":
            self._recovered()
        elif entry.kind == "repaired":
            # The content of records that were set aside is unknown.
            self.ledger, self._holders = Ledger(entry.items[0]["arrival"]), {}
            self._tokens, self._first, self._met = set(), 0, set()
        for item in entry.items if entry.kind in self._read else ():
            self._read[entry.kind](item)

    def compare(self, content: Content, passed_over: Collection[str] = ()) -> None:
        """Compare what is known of ids with what they have, but for ids that change."""
        self._number = 0
        for job_id in {*self.ledger, *content} - {*passed_over}:
            ledger, there = self.ledger.alive(job_id), content.get(job_id, {})
            for arrival in sorted({*ledger, *there}):
                is_known = arrival in ledger or arrival > self.ledger.known_from
                if is_known and ledger.get(arrival) != there.get(arrival):
                    self._violation(
                        "account",
                        job_id,
                        f"payload {arrival} is {there.get(arrival, 'gone')}, and should be "
                        f"{ledger.get(arrival, 'gone')}",
                    )

    def _count(self, call: str) -> None:
        """The calls of a holder are numbered, and each token has one holder: so neither number decreases."""
        if self._holder and int(call) < self._calls.get(self._holder, 0):
            self._violation(
                "tokens", "", f"call {call} under token {self._holder} after call {self._calls[self._holder]}"
            )
        if self._holder:
            self._calls[self._holder] = int(call)

    def _pushed(self, item: Sequence[Any]) -> None:
        job_id, place = item[0], Place(*item[1:3])
        if state := self.ledger.state(job_id, place):
            self._violation("account", job_id, f"payload {place.arrival} is pushed, and is {state} already")
        self.ledger.put(job_id, place, WAITING)

    def _joined(self, item: Sequence[Any]) -> None:
        job_id, survivor, merged = item[0], Place(*item[1:3]), Place(*item[3:5])
        was = self._end_up(job_id, merged, {WAITING, FLIGHT, MORGUE}, "joined")
        self._note_replaced(job_id, was)
        if survivor == merged:
            self._violation("account", job_id, f"payload {survivor.arrival} is joined with itself")
        elif self.ledger.state(job_id, survivor) is None and self.ledger.is_old(survivor):
            self.ledger.put(job_id, survivor, MORGUE if was == MORGUE else WAITING)

    def _claimed(self, item: Sequence[Any]) -> None:
        job_id, first, last, count, is_started = item[0], Place(*item[1:3]), Place(*item[3:5]), item[5], item[6]
        ledger, token = self.ledger, self._holder
        if token < self._token:
            self._violation("tokens", job_id, f"it is claimed under token {token}, after one under {self._token}")
        self._token = max(self._token, token)
        self._tokens.add(token)
        self._note_met(job_id)
        self._replaced.pop(job_id, None)
        if flying := ledger.among(job_id, FLIGHT):
            self._violation("overlap", job_id, f"it is claimed while payload {flying[0].arrival} is in flight")
            ledger.land(job_id, WAITING)
        waiting = self._claimable(job_id, first, last, is_started=bool(is_started))
        for place in {first, last} - {*waiting}:
            state = ledger.state(job_id, place)
            if state is not None or not ledger.is_old(place):
                self._violation("delivery", job_id, f"payload {place.arrival} is claimed, and is {state or 'unknown'}")
        if waiting and waiting[0] < first and not is_started:
            self._violation("order", job_id, f"payload {first.arrival} is claimed before payload {waiting[0].arrival}")
        delivered = [place for place in {*waiting, first, last} if first <= place <= last]
        # Payloads that are older than the entries may be among them.
        if len(delivered) > count or (len(delivered) < count and not ledger.known_from):
            self._violation("order", job_id, f"{count} payloads are claimed where {len(delivered)} wait")
        for place in delivered:
            ledger.put(job_id, place, FLIGHT)
        ledger.handed[job_id] = {*delivered}
        self._holders[job_id] = token

    def _claimable(self, job_id: str, first: Place, last: Place, *, is_started: bool) -> list[Place]:
        """The places that wait. A started job claims only those that were handed out before, not the later ones."""
        waiting = self.ledger.among(job_id, WAITING)
        handed = self.ledger.handed.get(job_id, {first, last}) if is_started else waiting
        return [place for place in waiting if place in handed]

    def _done(self, item: Sequence[Any]) -> None:
        for job_id in item[:1] or self.ledger.flying():
            self._settled(job_id)
            self.ledger.land(job_id, "done")

    def _reject(self, item: Sequence[Any]) -> None:
        """An id, or one payload of it: then the outcome of the id is that of the others."""
        self._rejected[item[0]] = self._holder, self._call
        if len(item) > 2:  # noqa: PLR2004 - with its place
            self._end_up(item[0], Place(*item[1:3]), {FLIGHT}, "rejected")
        else:
            self._done(item)

    def _expire(self, item: Sequence[Any]) -> None:
        """A payload is over: it was in flight, or died of that in this call. The outcome of the id stands beside it."""
        job_id, place = item[0], Place(*item[1:3])
        self._expired[job_id, place] = self._holder, self._call
        self._note_met(job_id)
        # In the morgue it may have been joined with an equal one.
        if self._died.get((job_id, place)) != (self._holder, self._call):
            self._end_up(job_id, place, {FLIGHT}, "expired")

    def _back(self, item: Sequence[Any]) -> None:
        self._settled(item[0])
        self.ledger.land(item[0], WAITING)

    def _settled(self, job_id: str) -> None:
        """An outcome must come from the holder, and be of an id that this holder has in flight."""
        token, is_first = self._holder, self._note_met(job_id)
        if not self.ledger.among(job_id, FLIGHT):
            is_replaced = self._replaced.pop(job_id, None) == (token, self._call)
            is_old = is_first and bool(self.ledger.known_from)
            if token in self._tokens and not (is_replaced or is_old):
                self._violation("outcomes", job_id, f"it is {self._kind} and was not in flight")
        elif self._holders.get(job_id, token) != token:
            self._violation("tokens", job_id, f"it is {self._kind} under token {token}, not {self._holders[job_id]}")

    def _note_met(self, job_id: str) -> bool:
        """Whether its holder is the first known one, and no earlier entry under its token named the id."""
        is_first = self._holder == self._first and job_id not in self._met
        if self._holder == self._first:
            self._met.add(job_id)
        return is_first

    def _recovered(self) -> None:
        for job_id in self.ledger.flying():
            if self._holders.get(job_id) != self._holder:
                self._violation("tokens", job_id, f"it is recovered from token {self._holder}, which has not got it")
            self.ledger.land(job_id, WAITING)

    def _moved(self, item: Sequence[Any]) -> None:
        job_id, place, kind = item[0], Place(*item[1:3]), self._kind
        before, after = _MOVES[kind]
        if kind == "dead" and self._rejected.get(job_id) == (self._holder, self._call):
            before = before | {"done", "rejected"}
        if kind == "dead" and self._expired.get((job_id, place)) == (self._holder, self._call):
            before = before | {"expired"}
        if kind == "dead":
            self._died[job_id, place] = self._holder, self._call
        oldest = self.ledger.among(job_id, FLIGHT)[:1]
        was_in_flight = (was := self._end_up(job_id, place, before, after)) == FLIGHT
        if kind == "requeued" and len(item) > 3:  # noqa: PLR2004 - with its new place
            self.ledger.put(job_id, place, "requeued")
            place = Place(*item[3:5])
            self.ledger.put(job_id, place, WAITING)
            self.ledger.handed[job_id] = {place}
        if kind == "superseded":
            self._note_replaced(job_id, was)
        if was_in_flight and kind in _ENDS_OLDEST:
            if oldest != [place]:
                self._violation("order", job_id, f"payload {place.arrival} is {kind} before {oldest[0].arrival}")
            self.ledger.land(job_id, WAITING)

    def _note_replaced(self, job_id: str, was: str | None) -> None:
        """Another payload stands for what was there; if it was the last one, the id is not in flight any more."""
        if was == FLIGHT and not self.ledger.among(job_id, FLIGHT):
            self._replaced[job_id] = (self._holder, self._call)

    def _end_up(self, job_id: str, place: Place, before: Collection[str], after: str) -> str | None:
        """Put a payload into its new state; returns the previous one."""
        state = self.ledger.state(job_id, place)
        if state not in before and (state is not None or not self.ledger.is_old(place)):
            self._violation("account", job_id, f"payload {place.arrival} is {self._kind}, and was {state or 'unknown'}")
        self.ledger.put(job_id, place, after)
        return state

    def _violation(self, rule: str, job_id: str, what: str) -> None:
        self.violations.append(Violation(rule, job_id, self._number, what, *self._shard))
