"""What a shard is meant to do, in plain Python: lists and dicts, no bytes, no Redis.

Nothing here is fast, and nothing knows of formats: the store is compared with it after each step.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

STRIKES = 3
ALIKE = 3
"""So many failures alike, the first of their group, show that the failure was systemic."""


class Entry(NamedTuple):
    """A payload in its place: entries of an id are handed over in the order of these tuples."""

    score: float
    arrival: int
    payload: str


Trouble: TypeAlias = dict[str, Any]
Outcome: TypeAlias = tuple[Any, ...]
Limits: TypeAlias = tuple[int, int, int]
"""Of a claim: ids, payloads, bytes."""


@dataclass
class Job:
    """An id that waits, or (then without `since` and `touched`) one in flight."""

    entries: list[Entry]
    perform_in: float
    retry_count: float = -1.0
    since: float | None = None
    touched: int = 0


@dataclass
class Group:
    """Ids that failed together, nobody being named; `ids` are those that failed alike since."""

    left: int = 0
    signature: str | None = None
    ids: list[str] = field(default_factory=list)
    error: str = ""
    systemic: bool = False


@dataclass
class Buried:
    """An id's payloads in the morgue."""

    at: float
    error: str
    entries: list[Entry]


class NewPush(NamedTuple):
    """One job of a push; None is now."""

    id: str
    payload: str
    score: float | None = None
    perform_in: float | None = None


class Claimed(NamedTuple):
    """A claimed window: how it is to be treated, its ids in order, and the error that a charge is for."""

    kind: str
    ids: list[str]
    charge: str | None = None


@dataclass
class Model:
    """One shard. Methods are its transitions; who may call them is decided by `holder`, not by time."""

    merge: str
    ttl: float
    morgue_limits: tuple[int, int, float]
    now: float
    waiting: dict[str, Job] = field(default_factory=dict)
    flight: dict[str, Job] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    trouble: dict[str, Trouble] = field(default_factory=dict)
    suspects: dict[str, float] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    morgue: dict[str, Buried] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    arrival: int = 0
    last_default: float = 0.0
    holder: object = None
    token: int = 0
    until: float = 0.0
    lease_key: bool = False
    window: Claimed | None = None
    abandoned: bool = False

    # What waits

    def push(self, jobs: Sequence[NewPush]) -> list[tuple[bool, float]]:
        """For each job, whether its id waited already, and the time that holds."""
        default, answers = max(self.now, self.last_default), []
        for number, new in enumerate(jobs, 1):
            if new.score is None:
                self.last_default = default
            merged = new.id in self.waiting
            place = (default if new.score is None else new.score, self.arrival + number)
            self._put(new.id, [Entry(*place, new.payload)], self.now if new.perform_in is None else new.perform_in)
            answers.append((merged, self.waiting[new.id].perform_in))
        self.arrival += len(jobs)
        return answers

    def _put(self, id_: str, entries: Iterable[Entry], perform_in: float) -> Job:
        job = self.waiting.setdefault(id_, Job([], perform_in))
        for new in entries:
            old = next((one for one in job.entries if one.payload == new.payload), None)
            if old is None or self.merge == "never":
                job.entries.append(new)
            else:
                job.touched = max(job.touched, new.arrival, old.arrival)
                job.entries.remove(old)
                job.entries.append((min if self.merge == "min" else max)(new, old))
            job.entries.sort()
        return job

    def _put_back(self, id_: str, entries: Iterable[Entry], perform_in: float, retry_count: float) -> None:
        job = self._put(id_, entries, perform_in)
        job.perform_in, job.retry_count, job.since = perform_in, retry_count, None

    def _give_back(self, id_: str) -> float:
        job = self.flight[id_]
        self._put_back(id_, job.entries, job.perform_in, job.retry_count)
        return job.perform_in

    # The lease

    def acquire(self, holder: object, limits: Limits) -> str:
        """ "held", "empty", or "ok": then `window` says what was claimed."""
        if self.lease_key or self.now < self.until:
            return "held"
        due = any(job.perform_in <= self.now for job in self.waiting.values())
        if not (self.flight or due or self.suspects):
            return "empty"
        self.holder, self.token = holder, max(self.token + 1, int(self.now * 1_000_000))
        self._recover()
        self.claim_or_let_go(limits)
        return "ok"

    def hold(self, seconds: float) -> None:
        """The lease lasts for so long from now."""
        self.until, self.lease_key = self.now + seconds, True

    def let_go(self) -> None:
        """The lease is free."""
        self.until, self.lease_key, self.window = 0.0, False, None

    def claim_or_let_go(self, limits: Limits) -> None:
        """Go on with a window, or end the holding where nothing is due."""
        self.window = self._claim(limits)
        if self.window:
            self.hold(self.ttl)
        else:
            self.let_go()

    def abandon(self, seconds: float) -> None:
        """The holder's process is about to exit."""
        self.abandoned, self.holder = True, None
        self.hold(seconds)

    # Recovery

    def _recover(self) -> None:
        kind = self.window.kind if self.window else "DUE"
        self.counters["recovered"] += len(self.flight)
        for id_ in self.flight:
            if self.abandoned:
                self._give_back(id_)
                self._note(id_, x=None)
            elif kind == "LONE" and self.trouble[id_].get("x"):
                self._strike(id_)
            else:
                self._suspect(id_, self.trouble.get(id_, {}).get("g", ""))
        self.flight, self.abandoned = {}, False
        self._trim()

    def _strike(self, id_: str) -> None:
        entries, trouble = self.flight[id_].entries, self.trouble[id_]
        if len(entries) > 1:
            self._note(id_, l=len(entries) // 2)
        elif trouble.get("n", 0) + 1 < STRIKES:
            self._note(id_, n=trouble.get("n", 0) + 1)
        else:
            self._bury(id_, entries[0], "crashed")
            self._clear(id_)
            self.counters["dead"] += 1
            if id_ in self.waiting:
                self._put_back(id_, [], self.now, -1.0)
            else:
                self.errors.pop(id_, None)
            return
        self._suspect(id_, trouble["g"])

    def _suspect(self, id_: str, group: str) -> None:
        self.suspects[id_] = self._give_back(id_)
        self._note(id_, g=group, x=None)

    def _note(self, id_: str, **changes: object) -> None:
        known = {**self.trouble.pop(id_, {}), **changes}
        if kept := {name: value for name, value in known.items() if value is not None}:
            self.trouble[id_] = kept

    # Claims

    def _claim(self, limits: Limits) -> Claimed | None:
        kind, charge, (most_ids, most_payloads, most_bytes) = "DUE", None, limits
        if self.suspects:
            ids = _first(self.suspects, most_ids)
            group = self.trouble[ids[0]]["g"]
            if group in self.groups and self.groups[group].systemic:
                kind, charge, most_payloads = "CHARGE", self.groups[group].error, most_ids
                ids = [id_ for id_ in ids if self.trouble[id_]["g"] == group]
            else:
                kind, ids = "LONE", ids[:1]
        else:
            due = {id_: job.perform_in for id_, job in self.waiting.items() if job.perform_in <= self.now}
            ids = _first(due, most_ids)
        room = most_bytes
        for id_ in ids:
            if most_payloads:
                taken = self._take(id_, most_payloads, room)
                most_payloads -= len(taken)
                room -= sum(_size(entry) for entry in taken)
        claimed = [id_ for id_ in ids if id_ in self.flight]
        return Claimed(kind, claimed, charge) if claimed else None

    def _take(self, id_: str, most: int, room: int) -> list[Entry]:
        job = self.waiting[id_]
        most = min(most, self.trouble.get(id_, {}).get("l", most)) if len(job.entries) > 1 else most
        taken: list[Entry] = []
        for entry in job.entries[:most]:
            if (taken or self.flight) and sum(map(_size, taken)) + _size(entry) > room:
                break
            taken.append(entry)
        if taken:
            own_time = job.perform_in if job.since is None else job.since
            own_time = self.suspects.get(id_, own_time) if job.since is None else own_time
            self.flight[id_] = Job(taken, own_time, job.retry_count)
            job.entries = job.entries[len(taken) :]
            if job.entries:
                job.since, job.perform_in, job.retry_count = own_time, self.now, -1.0
            else:
                del self.waiting[id_]
        return taken

    # Outcomes

    def settle(self, call: int, outcomes: Sequence[Outcome], *, partial: bool = False) -> None:
        """Apply what became of ids in flight; with `partial` those that are not named stay there."""
        for id_, kind, *more in outcomes:
            getattr(self, f"_{kind}")(id_, *([f"{self.token}:{call}:{more[0]}"] if kind == "suspect_" else more))
            del self.flight[id_]
        if not partial:
            for id_ in self.flight:
                self._done(id_)
            self.flight = {}
        self._trim()

    def _done(self, id_: str) -> None:
        self.counters["processed"] += 1
        self.errors.pop(id_, None)
        self._clear(id_)

    def _retry(self, id_: str, count: float, at: float, error: str, signature: str, *, blamed: bool) -> None:
        self.counters["retried"] += 1
        self.errors[id_] = error
        self._put_back(id_, self.flight[id_].entries, at, count)
        self._clear(id_, signature, error, blamed=blamed)


def _first(times: dict[str, float], most: int) -> list[str]:
    return sorted(times, key=lambda id_: (times[id_], id_.encode()))[:most]


def _size(entry: Entry) -> int:
    return len(entry.payload.encode())
