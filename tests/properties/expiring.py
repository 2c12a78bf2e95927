"""Expiries beside the model of a shard: each payload has its own, the later of two that become one, or none."""

import struct
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant
from hypothesis.strategies import SearchStrategy

from lowkiq_lambda.store.shard.keys import EXPIRY
from lowkiq_lambda.store.shard.lease_replies import StoredClaim
from tests.kit.stored import Entry
from tests.properties.disturbing import disturbance
from tests.properties.machine import DELAYS, DIGITS, IDS, JOBS, PAYLOADS, SCORES, Job
from tests.properties.model import Flown, NewJob, OutcomeRecord
from tests.properties.operated import OperatedMachine
from tests.properties.operators import OperatedModel

EXPIRED = "expired"
LIFE_OF = {'"x"': 200.0, '"y"': 5_000.0}
"""Of payloads in the other pushes, by their text."""
LIVES = st.sampled_from([None, None, 100.0, 200.0, 5_000.0])
EXPIRING_JOBS = st.lists(st.tuples(IDS, PAYLOADS, SCORES, DELAYS, LIVES), min_size=1, max_size=4)


class ExpiringModel(OperatedModel):
    """A shard whose payloads may expire."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.noted_expiries: dict[int, float] = {}

    @property
    def expiries(self) -> dict[int, float]:
        """Those of payloads that wait, or are in flight."""
        entries = [entry for job in self.waiting.values() for entry in (*job.handed, *job.entries)]
        entries += [entry for flown in self.flight.values() for entry in flown.entries]
        arrivals = {entry.arrival for entry in entries}
        self.noted_expiries = {at: time for at, time in self.noted_expiries.items() if at in arrivals}
        return self.noted_expiries

    def expires(self, entry: Entry, at: float | None) -> None:
        """The payload is over behind that time."""
        if at is not None:
            self.noted_expiries[entry.arrival] = at

    def unite(self, kept: Entry, gone: Entry) -> None:
        """The later one holds, and none if either has none."""
        if kept.arrival == gone.arrival:
            return
        own, other = (self.noted_expiries.pop(entry.arrival, None) for entry in (kept, gone))
        if own is not None and other is not None:
            self.noted_expiries[kept.arrival] = max(own, other)

    def expire_some(self, id_: str, error: str, _brief: str, *arrivals: int) -> None:
        """They end, and the others stay in flight, with their own counts."""
        flown = self.flight[id_]
        gone = [entry for entry in flown.entries if entry.arrival in arrivals]
        self._note_expired(id_, flown, gone, error)
        self.progress.pop(id_, None)
        flown.entries = [entry for entry in flown.entries if entry not in gone]
        flown.retry_count = self.counts.get(flown.entries[0].arrival, -1.0)

    def _to_morgue(self, id_: str, entry: Entry, error: str) -> None:
        # Whoever puts it back wants it done, whenever that is.
        self.noted_expiries.pop(entry.arrival, None)
        super()._to_morgue(id_, entry, error)

    def _note_expired(self, id_: str, flown: Flown, gone: list[Entry], error: str) -> None:
        self.counters[EXPIRED] += len(gone)
        for entry in gone:
            if error:
                self._failed_once_more(id_, flown, error, EXPIRED)
                self._to_morgue(id_, entry, error)
        self._forget_counts(gone)

    def _expired(self, id_: str, flown: Flown, error: str, _brief: str, *arrivals: int) -> None:
        gone = [entry for entry in flown.entries if entry.arrival in arrivals]
        left = [entry for entry in flown.entries if entry not in gone]
        self._note_expired(id_, flown, gone, error)
        self._start_anew(id_, flown, left)

    def _dead(self, id_: str, flown: Flown, *more: Any) -> None:
        self.counters[EXPIRED] += EXPIRED in more
        super()._dead(id_, flown, *more)

    def _retried(self, id_: str, flown: Flown, *more: Any) -> None:
        if len(more) == 8:
            self.noted_expiries[flown.entries[0].arrival] = more[7]
        super()._retried(id_, flown, *more[:7])


class ExpiringMachine(OperatedMachine):
    """Pushes with expiries, and payloads that are over."""

    model: ExpiringModel
    expired: ClassVar[dict[str, int]] = {}
    """How often payloads were over, by the kind of the record."""

    def new_model(self, **fields: Any) -> ExpiringModel:
        """One that knows of expiries."""
        return ExpiringModel(**fields)

    @disturbance(given=JOBS)
    def push(self, given: list[Job]) -> None:
        """Some payloads always expire, so that much of what a holder works on does."""
        self.push_expiring([(*job, LIFE_OF.get(job[1])) for job in given])

    @disturbance(given=EXPIRING_JOBS)
    def push_expiring(self, given: list[tuple[str, str, float | None, float | None, float | None]]) -> None:
        """Payloads arrive, some of them with an expiry that lies behind their due time."""
        now = self.pushed_at = self.model.now
        jobs = [
            NewJob(*job[:3], None if job[3] is None else now + job[3], None if job[4] is None else now + job[4])
            for job in given
        ]
        pushed = self.shard.push(jobs)
        assert self.model.push(jobs) == [(one.merged, one.due_at) for one in pushed]

    @invariant()
    def expiries_are_as_the_model(self) -> None:
        """Of what waits and is in flight, and of nothing else."""
        stored: dict[bytes, bytes] = self.server.admin.hgetall(self.shard.ref.using((EXPIRY,)).key("expiries"))  # type: ignore[assignment]  # no future here
        times = {int.from_bytes(at): struct.unpack(">d", time)[0] for at, time in stored.items()}
        assert self.model.expiries == times

    def teardown(self) -> None:
        """The next example has a shard of its own."""
        self.server.admin.unlink(*self.shard.ref.using((EXPIRY,)).keys)

    def before_outcomes(self, data: st.DataObject) -> list[OutcomeRecord]:
        """Some payloads of an id are over, too."""
        before = super().before_outcomes(data)
        if self.model.claim is None or self.model.claim.kind == "CHARGE":
            return before
        taken = {record[0] for record in before}
        for id_, flown in self.model.flight.items():
            if id_ in taken or len(flown.entries) == 1:
                continue
            arrivals = [entry.arrival for entry in flown.entries]
            some = st.lists(st.sampled_from(arrivals), max_size=len(arrivals) - 1, unique=True)
            if over := data.draw(some, label=f"{id_} is over in part"):
                error = data.draw(st.sampled_from(["", "too late"]))
                before.append((id_, "some_expired", error, "", *over))
                self.note("some")
        return before

    def outcome_of(self, id_: str) -> SearchStrategy[OutcomeRecord | None]:
        """All that is left is over, or the oldest is after its last failure; or a retry says until when."""
        claim, usual = self.model.claim, super().outcome_of(id_)
        if not claim or claim.kind == "CHARGE":
            return usual
        entries = self.left.get(id_) or self.model.flight[id_].entries
        over = [(id_, EXPIRED, error, "", *(entry.arrival for entry in entries)) for error in ("", "too late")]
        over.append((id_, EXPIRED, "", "too late", entries[0].arrival))
        at, count = self.model.now + 7.0, self.count_of(id_) + 1
        too_late = (id_, "dead", "no", "s", "n", "skip", EXPIRED)
        lasting = (id_, "retried", count, at, "no", "s", False, "n", "", self.model.now + 50.0)
        refused = [(id_, "rejected", DIGITS, which, "no", error) for which in (0, 1) for error in ("", "not qualified")]
        # Each of these is as likely as any that is usual.
        own = st.sampled_from(over) | st.just(too_late) | st.just(lasting)
        return usual | own.map(self.noting) | own.map(self.noting) | st.sampled_from(refused)

    def noting(self, outcome: OutcomeRecord) -> OutcomeRecord:
        """The outcome, which is counted."""
        self.note("dead" if EXPIRED in outcome[2:] else outcome[1])
        return outcome

    def note(self, kind: str) -> None:
        """It happens once more."""
        self.expired[kind] = self.expired.get(kind, 0) + 1

    def check_deliveries(self, claim: StoredClaim | None) -> None:
        """Each payload comes with its expiry."""
        super().check_deliveries(claim)
        for delivery in claim.deliveries if claim else ():
            arrivals = [entry.arrival for entry in self.model.flight[delivery.id].entries]
            own = tuple(self.model.expiries.get(arrival, float("inf")) for arrival in arrivals)
            assert (own if min(own) < float("inf") else ()) == delivery.expiries
