"""What a shard is meant to do, in plain Python: dicts and lists, no bytes, no Redis.

Nothing here is fast, and nothing knows of formats: the store is compared with it after each step.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Literal, NamedTuple, TypeAlias

from tests.kit.stored import Entry

MAX_CRASHES = 3
ALIKE = 3
"""So many failures alike, the first of their group, show that the failure was systemic."""
REMEMBERED = 5
"""Failures of an id."""
SHORTEST_SHARED = 64
LONGEST_LINE = 200
"""Bytes of an error's text: what others have too, and what each id has for itself."""

OutcomeRecord: TypeAlias = tuple[Any, ...]
"""Id, kind, and what the method of that name takes."""
Noted: TypeAlias = tuple[float, float, str, str]
"""A failure: when, with which retry_count, its error in brief, and the rule that decided."""


class NewJob(NamedTuple):
    """One job of a push; None is now."""

    id: str
    payload: str
    score: float | None = None
    due_at: float | None = None
    expires_at: float | None = None


class Limits(NamedTuple):
    """What one claim may carry."""

    ids: int
    payloads: int
    bytes: int
    chunk: int = 0
    concurrency: int = 1


NEAR = 0.1
"""Seconds by which a client may misjudge the time."""
MISJUDGED = 1.0
"""Seconds that a lease may seem to last beyond its TTL."""


FEW = 8
"""An id with so many payloads is not cut in two by the room that a claim has left."""


@dataclass
class Job:
    """An id that waits. `since`: its own time, while its next chunk queues behind what is due."""

    entries: list[Entry]
    due_at: float
    since: float | None = None
    touched: int = 0
    handed: list[Entry] = field(default_factory=list)
    """What a started job was handed: it goes on with these, before `entries`, which wait for its end."""


@dataclass
class Flown:
    """An id in flight."""

    entries: list[Entry]
    due_at: float
    retry_count: float


@dataclass
class Group:
    """Ids that failed together, nobody being named; `ids`: those that failed alike since."""

    left: int = 0
    signature: str | None = None
    error: str | None = None
    ids: list[str] = field(default_factory=list)
    systemic: bool = False


@dataclass
class DeadPayloads:
    """An id's payloads in the morgue."""

    at: float
    error: str
    entries: list[Entry]


class Claimed(NamedTuple):
    """A claim: ids in order, and how to treat them: "DUE", "LONE", "TOGETHER", or "CHARGE" with the error."""

    kind: str
    ids: list[str]
    charge: str | None
    since: float


@dataclass
class Model:
    """One shard. That only its holder settles is for the caller to see to; `morgue_limits`: payloads, bytes, age."""

    merge: str
    ttl: float
    morgue_limits: tuple[int, int, float]
    now: float
    waiting: dict[str, Job] = field(default_factory=dict)
    flight: dict[str, Flown] = field(default_factory=dict)
    counts: dict[int, float] = field(default_factory=dict)
    """The retry_count of each payload that was the oldest of its id when that failed, by its arrival number."""
    errors: dict[str, str] = field(default_factory=dict)
    noted: dict[str, list[Noted]] = field(default_factory=dict)
    trouble: dict[str, dict[str, Any]] = field(default_factory=dict)
    suspects: dict[str, float] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    morgue: dict[str, DeadPayloads] = field(default_factory=dict)
    progress: dict[str, str] = field(default_factory=dict)
    """How far each started job has come."""
    dead_progress: dict[str, tuple[tuple[float, int], str]] = field(default_factory=dict)
    """Place of a dead payload, and how far the started job had come that was handed this one alone."""
    counters: Counter[str] = field(default_factory=Counter)
    arrival: int = 0
    last_default: float = 0.0
    holder: object = None
    token: int = 0
    until: float = 0.0
    lease_key: bool = False
    claim: Claimed | None = None
    abandoned: bool = False
    is_dead: bool = False
    evicted: bool = False
    paused_until: float = 0.0
    to_trim: bool = False
    seen_at: float = 0.0

    @property
    def due_by(self) -> float:
        """The latest time that a call was seen with: a clock may be a little behind the one of the last push."""
        return self.seen_at if self.now < self.seen_at <= self.now + NEAR else self.now

    @property
    def failures(self) -> dict[str, list[Noted]]:
        """When, with which retry_count and how each id failed, newest first: of those that have an error anywhere."""
        return {id_: noted for id_, noted in self.noted.items() if id_ in self.errors or id_ in self.morgue}

    def forget_failures(self) -> None:
        """Of ids without an error: it may get one, or be killed, and has no earlier failure then."""
        self.noted = self.failures

    def retry_count(self, job: Job) -> float:
        """The id's: the largest of those of its payloads."""
        return max(self.counts.get(entry.arrival, -1.0) for entry in [*job.handed, *job.entries])

    def push(self, jobs: Sequence[NewJob]) -> list[tuple[bool, float]]:
        """For each job, whether its id waited already, and the time that holds."""
        default, answers = max(self.now, self.last_default), []
        for number, new in enumerate(jobs, self.arrival + 1):
            if new.score is None:
                self.last_default = default
            merged = new.id in self.waiting
            entry = Entry(default if new.score is None else new.score, number, new.payload)
            self.expires(entry, new.expires_at)
            self._put(new.id, [entry], self.now if new.due_at is None else new.due_at)
            answers.append((merged, self.waiting[new.id].due_at))
        self.arrival += len(jobs)
        return answers

    def acquire(self, holder: object, limits: Limits) -> str:
        """What the store answers; after "ok" `claim` says what was claimed."""
        if self.paused_until > self.now:
            return "paused"
        if self.lease_key or self.now < self.until:
            # No lease can last longer from now on: the clock was ahead.
            self.until = min(self.until, self.now + self.ttl + MISJUDGED)
            return "held"
        if not (self.flight or self.is_due() or self.suspects):
            return "empty"
        self.evicted, self.is_dead, former = False, False, self.holder
        self.holder, self.token = holder, max(self.token + 1, int(self.now * 1_000_000))
        self._recover(former)
        self.go_on(limits)
        return "ok"

    def settle(self, call: int, outcomes: Sequence[OutcomeRecord], *, partial: bool = False) -> None:
        """Ids in flight that are not named are done; with `partial` they stay there."""
        for id_, kind, *details in outcomes:
            if kind == "saved":
                self.progress[id_] = details[0]
                continue
            if kind == "noted":
                continue
            if kind == "ended":
                self._end_payloads(id_, details)
                continue
            if kind == "some_expired":
                self.expire_some(id_, *details)
                continue
            more = [f"{self.token}:{call}:{details[0]}"] if kind == "suspected" else details
            getattr(self, f"_{kind}")(id_, self.flight.pop(id_), *more)
            self.forget_failures()
        self._trim()
        while self.flight and not partial:
            self._done(*self.flight.popitem())
        self.forget_failures()

    def go_on(self, limits: Limits) -> None:
        """Claim and hold; or let go, where nothing is due."""
        self.claim = None if self.paused_until > self.now else self._claim(limits)
        if self.claim:
            self.hold(self.ttl)
        else:
            self.let_go()

    def more(self, limits: Limits, left: Mapping[str, float]) -> dict[str, Flown]:
        """Claim beside what is in flight: what is new there. `left`: that, and since when it waits."""
        assert self.claim
        assert set(left) == set(self.flight)
        self.hold(self.ttl)
        beside, new = self.flight, dict[str, Flown]()
        if self.paused_until <= self.now and self.may_claim_beside():
            self.flight = new
            for id_ in self.next_ids(limits.ids, besides=beside):
                if not self._take(id_, self.waiting[id_].due_at, limits):
                    break
            self.served(new)
        self.flight = {**beside, **new}
        assert len(self.flight) == len(beside) + len(new), "an id is in flight twice"
        since = min([*left.values(), *(flown.due_at for flown in new.values())], default=0.0)
        self.claim = self.claim._replace(ids=list(self.flight), since=since)
        return new

    def expires(self, entry: Entry, at: float | None) -> None:
        """The payload is over behind that time."""

    def unite(self, kept: Entry, gone: Entry) -> None:
        """Of two equal payloads one is kept."""

    def expire_some(self, id_: str, error: str, _brief: str, *arrivals: int) -> None:
        """These payloads of an id in flight are over, and others go on."""

    def is_due(self) -> bool:
        """Whether something that waits may be claimed."""
        return any(job.due_at <= self.due_by for job in self.waiting.values())

    def next_ids(self, most: int, besides: Collection[str] = ()) -> list[str]:
        """What a claim takes that is no suspect, in its order."""
        return _first(self._due(besides), most)

    def next_due(self, besides: Collection[str]) -> float | None:
        """When an id beside these can be claimed."""
        return min((job.due_at for id_, job in self.waiting.items() if id_ not in besides), default=None)

    def asked_of_holder(self) -> Mapping[str, Literal["cancel"]]:
        """What operators want of ids in flight."""
        return {}

    def served(self, ids: Iterable[str]) -> None:
        """These have just been claimed."""

    def may_claim_beside(self) -> bool:
        """Whether something may be claimed beside what is in flight."""
        return self.claim is not None and self.claim.kind == "DUE" and not self.suspects

    def hold(self, seconds: float) -> None:
        """The lease lasts for so long from now."""
        self.until, self.lease_key = max(self.until, self.now + seconds), True

    def let_go(self) -> None:
        """The lease is free."""
        self.until, self.lease_key, self.claim = 0.0, False, None

    def start(self, id_: str) -> None:
        """The handler of a lone suspect is about to run."""
        self._note(id_, at_risk=True)
        self.hold(self.ttl)

    def checkpoint(self, id_: str, progress: str, *, clears: bool, left_since: float | None = None) -> None:
        """A job in flight has come so far; what else is there waits since then, where that is told."""
        if id_ in self.flight:
            self.progress[id_] = progress
            if self.claim and (left_since is not None or len(self.flight) == 1):
                self.claim = self.claim._replace(since=min(self.now, left_since or self.now))
        if clears:
            self._note(id_, at_risk=None, crashes=None, crashed_payload=None)
        self.hold(self.ttl)

    def abandon(self, seconds: float) -> None:
        """The holder's process is about to exit."""
        self.abandoned, self.holder, self.until = True, None, 0.0
        self.hold(seconds)

    def release_dead(self) -> None:
        """Who took the shard last is gone, and nothing more is heard of it."""
        self.holder, self.is_dead, self.until, self.lease_key = object(), True, 0.0, False

    def survive(self, holder: object, id_: str) -> None:
        """One who could not settle lives: what was taken for its death is taken back."""
        if holder is self.holder:
            if self.until:
                self.abandoned, self.holder = True, None
                self.until, self.lease_key = 0.0, False
            return
        known = self.trouble.get(id_, {})
        for kind in ("crashes", "halvings"):
            if holder in known.get(kind, []):
                left = [one for one in known[kind] if one is not holder]
                self._note(id_, **{kind: left or None})
                if kind == "crashes" and not left:
                    self._note(id_, crashed_payload=None)
                if kind == "halvings":
                    self._note(id_, chunk_limit=known["chunk_limit"] * 2 if left else None)

    # Waiting

    def _put(self, id_: str, entries: Iterable[Entry], due_at: float) -> Job:
        job = self.waiting.setdefault(id_, Job([], due_at))
        for new in entries:
            old = next((one for one in job.entries if one.payload == new.payload), None)
            if old is None or self.merge == "never":
                job.entries.append(new)
            else:
                job.touched = max(job.touched, new.arrival, old.arrival)
                job.entries.remove(old)
                job.entries.append((max if self.merge == "max" else min)(new, old))
                self.unite(job.entries[-1], min(new, old) if job.entries[-1] == max(new, old) else max(new, old))
                if counts := [self.counts.pop(one.arrival) for one in {old, new} if one.arrival in self.counts]:
                    self.counts[job.entries[-1].arrival] = max(counts)
            job.entries.sort()
        return job

    def _put_back(self, id_: str, entries: Iterable[Entry], due_at: float) -> None:
        if id_ in self.progress:
            job = self.waiting.setdefault(id_, Job([], due_at))
            job.handed = list(entries)
        else:
            job = self._put(id_, entries, due_at)
        job.due_at, job.since = due_at, None

    def _forget_counts(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.counts.pop(entry.arrival, None)

    # Claims

    def _claim(self, limits: Limits) -> Claimed | None:
        kind, charge, times = "DUE", None, dict(self.suspects)
        ids = _first(times, limits.ids)
        if not self.suspects:
            times = {id_: job.due_at for id_, job in self.waiting.items()}
            ids = self.next_ids(limits.ids)
        else:
            name = self.trouble[ids[0]]["group"]
            if name in self.groups and self.groups[name].systemic:
                kind, charge = "CHARGE", self.groups[name].error
                ids = [id_ for id_ in ids if self.trouble[id_]["group"] == name]
                limits = limits._replace(payloads=limits.ids)
            elif limits.concurrency > 1 and self._may_run_together(ids[0]):
                kind, ids = "TOGETHER", [id_ for id_ in ids if self._may_run_together(id_)]
            else:
                kind, ids = "LONE", ids[:1]
        for id_ in ids:
            if not self._take(id_, times[id_], limits):
                break
        if not self.flight:
            return None
        self.served(self.flight)
        return Claimed(kind, list(self.flight), charge, min(flown.due_at for flown in self.flight.values()))

    def _may_run_together(self, id_: str) -> bool:
        trouble = self.trouble[id_]
        return not trouble["group"] and not trouble.keys() & {"crashes", "halvings", "run_alone"}

    def _due(self, besides: Container[str] = ()) -> dict[str, float]:
        due_by = self.due_by
        return {id_: job.due_at for id_, job in self.waiting.items() if job.due_at <= due_by and id_ not in besides}

    def _take(self, id_: str, time: float, limits: Limits) -> bool:
        job, carried = self.waiting[id_], [entry for flown in self.flight.values() for entry in flown.entries]
        most, room = limits.payloads - len(carried), limits.bytes - sum(entry.size for entry in carried)
        if most < 1:
            return False
        if job.handed:
            fits = len(job.handed) <= most and sum(entry.size for entry in job.handed) <= room
            return (fits or not carried) and self._fly(id_, job.handed, time)
        chunk = len(job.entries)
        if chunk > 1:
            chunk = min(chunk, limits.chunk or chunk, self.trouble.get(id_, {}).get("chunk_limit", chunk))
            most = min(most, chunk)
        taken: list[Entry] = []
        for entry in job.entries[:most]:
            room -= entry.size
            if room < 0 and (taken or carried):
                break
            taken.append(entry)
        if carried and len(taken) < chunk and len(job.entries) <= FEW:
            return False
        return bool(taken) and self._fly(id_, taken, time)

    def _fly(self, id_: str, taken: list[Entry], time: float) -> bool:
        job = self.waiting[id_]
        time = time if job.since is None else job.since
        self.flight[id_] = Flown(taken, time, self.counts.get(taken[0].arrival, -1.0))
        if job.handed:
            job.handed = []
        else:
            del job.entries[: len(taken)]
        job.since, job.due_at = time, self.due_by
        if not job.entries:
            del self.waiting[id_]
        return True

    # Recovery

    def _recover(self, former: object) -> None:
        self.counters["recovered"] += len(self.flight)
        for id_, flown in self.flight.items():
            if self.abandoned:
                self._put_back(id_, flown.entries, flown.due_at)
                self._note(id_, at_risk=None, abandoned=True)
            elif self.claim and self.claim.kind == "LONE" and self.trouble[id_].get("at_risk"):
                self._count_crash(id_, flown, former)
            else:
                self._make_suspect(id_, flown, self.trouble.get(id_, {}).get("group", ""))
                self._note(id_, abandoned=True)
                if self.claim and self.claim.kind == "TOGETHER":
                    self._note(id_, run_alone=True)
        self.flight, self.abandoned = {}, False
        self._trim()

    def _count_crash(self, id_: str, flown: Flown, former: object) -> None:
        kind = "crashes" if len(flown.entries) == 1 or id_ in self.progress else "halvings"
        payload = sha1(flown.entries[0].payload.encode(), usedforsecurity=False).hexdigest()
        if kind == "crashes" and self.trouble[id_].get("crashed_payload") != payload:
            self._note(id_, crashes=None, crashed_payload=payload)
        crashes = [*self.trouble[id_].get(kind, []), former]
        if kind == "crashes" and len(crashes) == MAX_CRASHES and len(flown.entries) > 1:
            del self.progress[id_]
            self._note(id_, crashes=None, crashed_payload=None)
            kind, crashes = "halvings", [*self.trouble[id_].get("halvings", []), former]
        if kind == "crashes" and len(crashes) == MAX_CRASHES:
            self._kill_progress(id_, flown)
            self.counters["dead"] += 1
            self._failed_once_more(id_, flown, "crashed")
            known = self.trouble.pop(id_)
            self.groups.pop(known["group"], None)
            self._drop_suspect(id_)
            self._forget_counts(flown.entries)
            if id_ in self.waiting:
                self._put_back(id_, [], self.now)
                self._note_halved(id_, known)
            else:
                self.errors.pop(id_, None)
            self._to_morgue(id_, flown.entries[0], "crashed")
            return
        self._note(id_, **{kind: crashes})
        if kind == "halvings":
            self._note(id_, chunk_limit=len(flown.entries) // 2)
        self._make_suspect(id_, flown, self.trouble[id_]["group"])
        self._note(id_, abandoned=True)

    def _make_suspect(self, id_: str, flown: Flown, group: str) -> None:
        self._put_back(id_, flown.entries, flown.due_at)
        self.suspects[id_] = flown.due_at
        self._note(id_, group=group, at_risk=None)

    def _note(self, id_: str, **changes: object) -> None:
        known = {**self.trouble.pop(id_, {}), **changes}
        if kept := {name: value for name, value in known.items() if value is not None}:
            self.trouble[id_] = kept

    # Outcomes

    def _later(self, id_: str, flown: Flown, at: float | None, moved: int, reason: str | None = None) -> None:
        self.counters["checkpointed" if moved else "returned"] += 1
        if moved:
            self._forget_counts(flown.entries)
            self.errors.pop(id_, None)
        self._put_back(id_, flown.entries, self.due_by if at is None else at)
        blamed = not moved and self.trouble.get(id_, {}).get("blamed", False)
        self._clear(id_, blamed=blamed, stays=not moved)
        self._note(id_, put_off=reason)

    def _kill_progress(self, id_: str, flown: Flown) -> None:
        progress = self.progress.pop(id_, None)
        if progress is not None and len(flown.entries) == 1:
            self.dead_progress[id_] = (flown.entries[0][:2], progress)

    def _done(self, id_: str, flown: Flown) -> None:
        self.counters["done"] += 1
        self._ended(id_, flown)

    def _rejected(self, id_: str, flown: Flown, _digits: str, which: int, reason: str, error: str) -> None:
        self.counters["rejected"] += 1
        kept = [] if not error else flown.entries[which - 1 : which] if which else flown.entries
        for entry in kept:
            self._failed_once_more(id_, flown, reason, "Rejected(keep=True)")
            self._to_morgue(id_, entry, error)
        if kept:
            self._kill_progress(id_, flown)
        self._ended(id_, flown)

    def _end_payloads(self, id_: str, details: Sequence[Any]) -> None:
        flown = self.flight[id_]
        reasons = {at: (reason, error) for at, reason, error, _ in zip(*[iter(details)] * 4, strict=True)}
        gone = [entry for entry in flown.entries if entry.arrival in reasons]
        for entry in gone:
            reason, error = reasons[entry.arrival]
            if error:
                self._failed_once_more(id_, flown, reason, "Rejected(keep=True)")
                self._to_morgue(id_, entry, error)
        self._forget_counts(gone)
        self.progress.pop(id_, None)
        flown.entries = [entry for entry in flown.entries if entry not in gone]
        flown.retry_count = self.counts.get(flown.entries[0].arrival, -1.0)

    def _discarded(self, id_: str, flown: Flown, _brief: str, _digits: str, _rule: str, every: int) -> None:
        for name in ("discarded", "rejected"):
            self.counters[name] += 1
        left = [] if every else flown.entries[1:]
        self._start_anew(id_, flown, left)

    def _start_anew(self, id_: str, flown: Flown, left: list[Entry]) -> None:
        """Payloads of an id are dropped: what is left of it waits as if it had been pushed now."""
        if not left:
            self._ended(id_, flown)
            return
        known = self.trouble.get(id_, {})
        self.progress.pop(id_, None)
        self._clear(id_, stays=True)
        self._forget_counts(entry for entry in flown.entries if entry not in left)
        self._put_back(id_, left, self.now)
        self._note_halved(id_, known)
        if all(entry.arrival not in self.counts for entry in self.waiting[id_].entries):
            self.errors.pop(id_, None)

    def _ended(self, id_: str, flown: Flown) -> None:
        self.progress.pop(id_, None)
        self._forget_counts(flown.entries)
        self.errors.pop(id_, None)
        self._clear(id_)

    def _failed_once_more(self, id_: str, flown: Flown, beginning: str, rule: str = "") -> None:
        new = (self.now, flown.retry_count + 1, beginning, rule)
        self.noted[id_] = [new, *self.failures.get(id_, [])][:REMEMBERED]

    def _retried(self, id_: str, flown: Flown, *more: Any) -> None:
        count, at, error, signature, blamed, beginning, *rule = more
        self.counters["retried"] += 1
        self._failed_once_more(id_, flown, beginning, *rule)
        self.errors[id_] = error
        self.counts[flown.entries[0].arrival] = count
        self._put_back(id_, flown.entries, at)
        self._clear(id_, signature, error, blamed=blamed, stays=True)

    def _dead(self, id_: str, flown: Flown, error: str, signature: str, beginning: str, *by: str) -> None:
        self.counters["dead"] += 1
        self._failed_once_more(id_, flown, beginning, *by[1:])
        self._kill_progress(id_, flown)
        known = self.trouble.get(id_, {})
        self._clear(id_, signature, error, stays=len(flown.entries) > 1)
        self._forget_counts(flown.entries[:1])
        if flown.entries[1:] or id_ in self.waiting:
            self._put_back(id_, flown.entries[1:], self.now)
            self._note_halved(id_, known)
            self.errors[id_] = error
        else:
            self.errors.pop(id_, None)
        self._to_morgue(id_, flown.entries[0], error)

    def _returned(self, id_: str, flown: Flown, exit_count: int | None = None) -> None:
        self.counters["returned"] += 1
        self._put_back(id_, flown.entries, flown.due_at)
        if exit_count is None:
            self._note(id_, at_risk=None)
            return
        known = self.trouble.get(id_, {})
        self._clear(id_)
        self._note(id_, blamed=known.get("blamed"), exit_count=exit_count, abandoned=True)
        job = self.waiting[id_]
        job.due_at, job.since = self.due_by, flown.due_at

    def _suspected(self, id_: str, flown: Flown, group: str) -> None:
        self.counters["suspected"] += 1
        self.groups.setdefault(group, Group()).left += 1
        self._make_suspect(id_, flown, group)

    def _clear(
        self,
        id_: str,
        signature: str | None = None,
        error: str | None = None,
        *,
        blamed: bool = False,
        stays: bool = False,
    ) -> None:
        """No suspect any more. `stays`: what was delivered goes on, so that a death before still counts."""
        known = self.trouble.pop(id_, {})
        name = known.get("group")
        self._note(id_, blamed=blamed or None, abandoned=(stays and known.get("abandoned")) or None)
        self._note_halved(id_, known)
        if name in self.groups:
            self._tell(name, id_, signature, error)
        self._drop_suspect(id_)

    def _note_halved(self, id_: str, known: Mapping[str, object]) -> None:
        """What waits of an id that was halved was in the hands of a holder that died, too."""
        if "chunk_limit" in known and id_ in self.waiting:
            self._note(id_, abandoned=True)

    def _drop_suspect(self, id_: str) -> None:
        self.suspects.pop(id_, None)
        if not self.suspects:
            self.groups = {}

    def _tell(self, name: str, id_: str, signature: str | None, error: str | None) -> None:
        group = self.groups[name]
        group.left -= 1
        if not group.systemic:
            if not signature or group.signature not in {None, signature}:
                del self.groups[name]
                return
            group.signature, group.error = signature, error
            group.ids.append(id_)
            if len(group.ids) == ALIKE:
                group.systemic = True
                while group.ids:
                    self._note(group.ids.pop(), blamed=None)
        if not group.left:
            del self.groups[name]

    # The morgue

    def _to_morgue(self, id_: str, entry: Entry, error: str) -> None:
        dead = self.morgue.setdefault(id_, DeadPayloads(self.now, error, []))
        dead.at, dead.error = self.now, error
        equal = next((one for one in dead.entries if one.payload == entry.payload), None)
        if equal is not None and self.merge != "never":
            dead.entries.remove(equal)
            entry = (max if self.merge in {"max", "latest"} else min)(equal, entry)
        dead.entries.append(entry)
        dead.entries.sort()
        self.to_trim = True

    def _trim(self) -> None:
        # What is too old goes, by id; then the lowest payload of the id that has the most of them, or, where each has
        # one, of that which was longest left alone, until all limits are kept.
        most, most_bytes, age = self.morgue_limits
        while self.to_trim and self.morgue:
            id_ = _first({one: dead.at for one, dead in self.morgue.items()}, 1)[0]
            size = morgue_bytes(self.morgue, self.failures) + progress_bytes(self.dead_progress)
            count = sum(len(dead.entries) for dead in self.morgue.values())
            if self.morgue[id_].at >= self.now - age:
                if count <= most and size <= most_bytes:
                    break
                sizes = {one: len(dead.entries) for one, dead in self.morgue.items()}
                if max(sizes.values()) > 1:
                    id_ = max(sizes, key=lambda one: (sizes[one], one.encode()))
            del self.morgue[id_].entries[0]
            self.counters["trimmed"] += 1
            if not self.morgue[id_].entries:
                del self.morgue[id_]
                self.dead_progress.pop(id_, None)
        self.to_trim = False


def morgue_bytes(morgue: Mapping[str, DeadPayloads], failures: Mapping[str, Sequence[Noted]]) -> int:
    """What the byte limit of the morgue counts: payloads, errors, of which a long one is kept once, and failures."""
    size = sum(4 + len(id_.encode()) + entry.size for id_, dead in morgue.items() for entry in dead.entries)
    long: dict[str, int] = {}
    for dead in morgue.values():
        beginning, rest = _as_kept(dead.error)
        size += 1 + len(beginning.encode()) + (40 if rest else 0)
        if rest:
            long[rest] = len(rest.encode())
    for id_ in morgue:
        newer = None
        for _, _, brief, rule in failures.get(id_, ()):
            size += 16 + (0 if brief == newer else len(brief.encode())) + len(rule)
            newer = brief
    return size + sum(long.values())


def progress_bytes(dead: Mapping[str, tuple[tuple[float, int], str]]) -> int:
    """What it counts of started jobs: place and progress, as short errors are kept."""
    return sum(1 + 14 + len(progress.encode()) for _, progress in dead.values())


def _as_kept(error: str) -> tuple[str, str]:
    """The first line, unless that is long, and what is shared with other ids; all and nothing of a short one."""
    line, feed, rest = error.partition("\n")
    beginning = line + feed if feed and len((line + feed).encode()) <= LONGEST_LINE else ""
    rest = error[len(beginning) :]
    return (error, "") if len(rest.encode()) < SHORTEST_SHARED else (beginning, rest)


def _first(times: Mapping[str, float], most: int) -> list[str]:
    return sorted(times, key=lambda id_: (times[id_], id_.encode()))[:most]
