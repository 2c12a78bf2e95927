"""Histories of a sound world, made up by chance: two leases, three processes, deaths, freezes and evictions."""

import random
from itertools import count
from typing import Any, Final

from tests.proof.history import Event, Terms
from tests.proof.history.events import What

FAILING: Final = "bad"
EXPIRING: Final = "brief"
RETRIES: Final = 1
SETTLING: Final = 0.5
TERMS: Final = Terms(looked=True, settling=SETTLING, failing=FAILING, retries=RETRIES, running=2, rate=6, per=0.05)
"""What the checker is told of such a world: no more than six ids begin in the time of five steps of its clock."""
STEP: Final = 0.01
IDS: Final = 3


class Lease:
    """One of the two, and the numbers that wait under it, by id. `again`: numbers that were handed out."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.token = 0
        self.waiting: dict[str, list[int]] = {f"{scope}-{number}": [] for number in range(IDS)}
        self.waiting[f"{FAILING}-{scope}"] = []
        self.again: set[tuple[str, int]] = set()
        self.failures: dict[tuple[str, int], int] = {}


class SoundWorld:
    """Writes a history as it should be."""

    def __init__(self, seed: int) -> None:
        self.events: list[Event] = []
        self._rng = random.Random(seed)
        self._now = 0.0
        self._leases = [Lease("x"), Lease("y")]
        self._numbers = dict.fromkeys((job_id for lease in self._leases for job_id in lease.waiting), 0)
        self._processes = count(1)
        self._tasks()
        self._schedules()
        self._expiries()
        # Each kind of visit is in each history; the others come by chance.
        visits = [self._quiet, self._quiet, self._dying, self._deadly, self._frozen, self._evicted]
        for visit in self._rng.sample(visits, len(visits)):
            self._push()
            self._push()
            visit(self._rng.choice(self._leases))
        while any(any(lease.waiting.values()) for lease in self._leases):
            for lease in self._leases:
                self._quiet(lease)

    def _write(self, what: What, job_id: str = "", numbers: list[int] | None = None, **fields: Any) -> None:
        self._now += STEP
        self.events.append(Event(self._now, what, id=job_id, numbers=numbers or [], **fields))

    def _push(self) -> None:
        for lease in self._leases:
            job_id = self._rng.choice([*lease.waiting])
            first = self._numbers[job_id] + 1
            numbers = [*range(first, first + self._rng.randint(1, 3))]
            self._numbers[job_id] = numbers[-1]
            outcome = self._rng.choice(["ok", "ok", "ok", "ok", "unknown", "refused"])
            self._write("push-begin", job_id, numbers, process=9)
            if outcome != "refused" and not (outcome == "unknown" and self._rng.random() < 0.5):
                lease.waiting[job_id] += numbers
            self._write("push-end", job_id, numbers, process=9, outcome=outcome)

    def _claim(self, lease: Lease) -> tuple[dict[str, list[int]], dict[str, Any]]:
        lease.token += 1
        claim = {job_id: numbers[:2] for job_id, numbers in lease.waiting.items() if numbers}
        return claim, {"process": next(self._processes), "token": lease.token, "scope": lease.scope}

    def _begin(self, lease: Lease, job_id: str, numbers: list[int], holder: dict[str, Any]) -> None:
        again = any((job_id, number) in lease.again for number in numbers)
        self._write("begin", job_id, numbers, repeated=again, **holder)
        self._write("write", job_id, numbers, **holder)
        self._write("holds", job_id, **holder)
        lease.again |= {(job_id, number) for number in numbers}

    def _quiet(self, lease: Lease) -> None:
        """A visit to its end."""
        claim, holder = self._claim(lease)
        for job_id, numbers in claim.items():
            self._begin(lease, job_id, numbers, holder)
            if job_id.startswith(FAILING):
                self._fail(lease, job_id, numbers, holder)
                continue
            self._write("end", job_id, outcome="done", **holder)
            del lease.waiting[job_id][: len(numbers)]
            self._write("settled", job_id, **holder)
        # Until the next one all outcomes are durable.
        self._now += SETTLING

    def _fail(self, lease: Lease, job_id: str, numbers: list[int], holder: dict[str, Any]) -> None:
        self._write("end", job_id, outcome="failed", **holder)
        oldest = job_id, numbers[0]
        lease.failures[oldest] = lease.failures.get(oldest, 0) + 1
        if lease.failures[oldest] > RETRIES:
            lease.waiting[job_id].remove(numbers[0])
            self._write("left", job_id, numbers[:1], outcome="dead")

    def _good(self, claim: dict[str, list[int]]) -> list[str]:
        return [job_id for job_id in claim if not job_id.startswith(FAILING)]

    def _dying(self, lease: Lease) -> None:
        """The process dies in a handler."""
        claim, holder = self._claim(lease)
        for job_id in self._good(claim)[:1]:
            self._begin(lease, job_id, claim[job_id], holder)
        self._write("died", process=holder["process"])

    def _deadly(self, lease: Lease) -> None:
        """A payload that runs alone takes three processes with it, and is dead; the others of its id go on."""
        claim, _ = self._claim(lease)
        for job_id in self._good(claim)[:1]:
            head = claim[job_id][:1]
            for _ in range(TERMS.crashes):
                _, holder = self._claim(lease)
                self._begin(lease, job_id, head, holder)
                self._write("died", process=holder["process"])
            lease.waiting[job_id].remove(*head)
            self._write("left", job_id, head, outcome="dead")

    def _frozen(self, lease: Lease) -> None:
        """The process stands still in a handler until somebody else has done all."""
        claim, holder = self._claim(lease)
        stale = self._good(claim)[:1]
        for job_id in stale:
            self._begin(lease, job_id, claim[job_id], holder)
        self._write("frozen", process=holder["process"])
        self._quiet(lease)
        self._write("thawed", process=holder["process"])
        for job_id in stale:
            self._write("write", job_id, claim[job_id], **holder)
            self._write("end", job_id, outcome="stale", **holder)

    def _evicted(self, lease: Lease) -> None:
        """An operator takes the lease while a handler runs, which comes to its end."""
        claim, holder = self._claim(lease)
        for job_id in self._good(claim)[:1]:
            self._begin(lease, job_id, claim[job_id], holder)
            self._write("evicted", scope=lease.scope, token=lease.token)
            self._write("end", job_id, outcome="done", **holder)

    def _tasks(self) -> None:
        self._write("item-begin", "task", [1, 3], outcome="done")
        self._write("item-begin", "task", [2])
        self._write("item-end", "task", [2], outcome="failed")
        self._write("item-end", "task", [1, 3], outcome="done")
        self._write("completed", "task")

    def _expiries(self) -> None:
        """Some are over before anybody comes, one in time is performed, and one is performed whenever that is."""
        holder: dict[str, Any] = {"process": 60, "token": 1, "scope": "z"}
        over, in_time, at_last = [1, 2], [3], [4]
        for numbers, seconds in ((over, STEP), (in_time, 20 * STEP), (at_last, 1e9)):
            self._write("push-begin", EXPIRING, numbers, process=9, expires=self._now + STEP + seconds)
            self._write("push-end", EXPIRING, numbers, process=9, outcome="ok")
        self._write("begin", EXPIRING, [*in_time, *at_last], repeated=False, **holder)
        self._write("end", EXPIRING, outcome="done", **holder)
        self._write("settled", EXPIRING, **holder)

    def _schedules(self) -> None:
        for rule in ("all", "once", "skip"):
            self._write("planned", f"times-{rule}", [60, 120, 180], outcome=rule)
        for number in (60, 120, 180):
            self._write("fired", "times-all", [number])
        self._write("fired", "times-once", [180])
