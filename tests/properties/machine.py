"""Drives one shard and the model of it alike: pushes, holders that come, settle, die and come too late."""

from collections import Counter
from typing import Any, ClassVar, Literal, TypeAlias

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from hypothesis.strategies import SearchStrategy

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.engine.partial import without
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.server.connection import Client
from lowkiq_lambda.store.shard.lease_replies import Acquired, Checkpoint, StopRequest, StoredClaim
from lowkiq_lambda.store.shard.session import ClaimLimits, Next
from lowkiq_lambda.store.shard.state import NEAR
from tests.kit.servers import Server
from tests.kit.stored import Entry, entry_of, stored_and_seen
from tests.properties.disturbing import DisturbedMachine, disturbance
from tests.properties.model import Claimed, Limits, Model, NewJob, OutcomeRecord
from tests.properties.observed import expected, in_numbers
from tests.properties.store import RETRY_FOR, RepeatingHolder, Shard

TTL = 100.0
MORGUE = (3, 400, 500.0)

# Few ids and few payloads: then merges, and pushes to an id in flight with several payloads, happen often.
ALL_IDS = ("a", "b:", "b:c", "é:{}\n")
IDS = st.sampled_from(ALL_IDS)
PAYLOADS = st.sampled_from(['""', '"x"', '"y"', '"' + "z" * 50 + '"'])
SCORES = st.sampled_from([None, 0.0, 1.0, 2.5, -1.0])
DELAYS = st.sampled_from([None, None, None, -5.0, 0.0, 7.0, 60.0])
JOBS = st.lists(st.tuples(IDS, PAYLOADS, SCORES, DELAYS), min_size=1, max_size=4)
CHUNKS = st.sampled_from([0, 0, 0, 1, 2])
SIDES = st.sampled_from([1, 2])
LIMITS = st.builds(
    Limits,
    st.sampled_from([4, 3, 2, 1]),
    st.sampled_from([100, 4, 2, 1]),
    st.sampled_from([9999, 90, 33]),
    CHUNKS,
    SIDES,
)
# Two long ones share what follows their first line, and the last has none.
TRACE = "\n" + "nö" * 40
ERRORS = st.sampled_from(["no", "nö", "no" + TRACE, "never" + TRACE, "no" * 120 + TRACE])
BEGINNINGS = st.sampled_from(["n", "nö"])
PROGRESS = st.sampled_from(["1", "22", "é"])
RULE, DIGITS = "kill_on(SchemaError)", "0" * 16
SIGNATURES = st.sampled_from(["s", "s", "t"])

DUE_JOBS: SearchStrategy[list[Any]] = st.lists(st.tuples(IDS, PAYLOADS, SCORES, st.none()), min_size=2, max_size=5)
WIDE_LIMITS = st.builds(
    Limits, st.sampled_from([4, 4, 4, 3, 2, 1]), st.sampled_from([100, 100, 4, 3]), st.just(9999), CHUNKS, SIDES
)
NEXT_STEPS: SearchStrategy[Next] = st.sampled_from(["claim", "claim", "more", "more", "release", "part"])
STEPS_OF_WORK = st.lists(
    st.sampled_from(["claim", "claim", "more", "more", "die", "die", "part", "release"]), min_size=2, max_size=4
)

Job: TypeAlias = tuple[str, str, float | None, float | None]
"""Id, payload, score, and seconds until it is due."""


class StoreMachine(DisturbedMachine):
    """Drives one shard and the model of it alike, and compares all of it after each step."""

    server: Server
    client: Client
    model: Model
    settled: ClassVar[Counter[int]] = Counter()
    """How many settlements there were with so many ids in flight."""
    kinds: ClassVar[Counter[str]] = Counter()
    """How many claims of each kind were settled."""
    declared: ClassVar[dict[str, object]] = {}
    """More that the worker declares."""
    ended_in_part: ClassVar[Counter[int]] = Counter()
    """How often payloads ended before their id, by how many others it had."""
    claims_beside: ClassVar[Counter[bool]] = Counter()
    """How many claims beside what stayed in flight; True: payloads of that were waiting."""

    @initialize(merge=st.sampled_from(["min", "max", "never"]))
    def begin(self, merge: str) -> None:
        """A shard of its own."""
        self.shard = Shard(self.client, self.server.url, merge, TTL, MorgueLimits(*MORGUE), **self.declared)
        self.clock = self.shard.clock
        self.model = self.new_model(merge=merge, ttl=TTL, morgue_limits=MORGUE, now=self.clock.time())
        self.holder = self.shard.holder()
        self.former: list[RepeatingHolder] = []
        self.left: dict[str, list[Entry]] = {}
        self.pushed_at = 0.0

    def new_model(self, **fields: Any) -> Model:
        """An empty shard."""
        return Model(**fields)

    def teardown(self) -> None:
        """The next example has a shard of its own."""
        self.server.admin.unlink(*self.shard.ref.keys)

    @invariant()
    def store_is_as_the_model(self) -> None:
        """The whole shard is as the model says."""
        self.model.forget_failures()
        known, (found, after) = expected(self.model), stored_and_seen(self.server.admin, self.shard.ref)
        for state in (known, found):
            state["trouble"] = in_numbers(state["trouble"])
        assert known == found
        before = self.model.seen_at
        assert after in {before, self.model.now}
        # A measured time wins but for what is near, and any other one is refused from a second on.
        assert after >= before or before - self.model.now > NEAR, "what is near is not set back"
        self.model.seen_at = after

    @disturbance(given=JOBS)
    def push(self, given: list[Job]) -> None:
        """Payloads arrive."""
        now = self.pushed_at = self.model.now
        jobs = [NewJob(*job[:3], None if job[3] is None else now + job[3]) for job in given]
        pushed = self.shard.push(jobs)
        assert self.model.push(jobs) == [(one.merged, one.due_at) for one in pushed]

    @disturbance(lambda self: self.pushed_at <= self.model.now < self.pushed_at + 60)
    def push_again(self) -> None:
        """The reply of the last push was lost."""
        self.shard.backend.push_again()

    @disturbance(limits=LIMITS, twice=st.booleans())
    def acquire(self, limits: Limits, *, twice: bool) -> None:
        """Somebody tries to take the lease."""
        holder = self.shard.holder()
        answer = self.model.acquire(holder, limits)
        granted = holder.acquire("somebody", ClaimLimits(*limits), RETRY_FOR)
        if not isinstance(granted, Acquired):
            assert answer == granted.reason
            return
        assert "ok" == answer
        assert granted.token == self.model.token
        self.check_claim(granted.claim)
        self.former.append(self.holder)
        self.holder = holder
        if twice:
            again = holder.acquire("somebody", ClaimLimits(*limits), RETRY_FOR)
            assert isinstance(again, Acquired)
            assert (granted.token, granted.recovered, granted.dead) == (again.token, again.recovered, again.dead)
            self.check_claim(again.claim)

    @disturbance(limits=LIMITS)
    def lose_and_acquire(self, limits: Limits) -> None:
        """The holder, if any, is dead for longer than its lease, and somebody else comes."""
        self.expire()
        self.acquire(limits, twice=False)

    @disturbance(
        lambda self: self.has_claim(),
        data=st.data(),
        next_step=NEXT_STEPS,
        limits=LIMITS,
    )
    def settle(self, data: st.DataObject, next_step: Next, limits: Limits) -> None:
        """The holder writes what became of its claim, perhaps twice."""
        self.settled[len(self.model.flight)] += 1
        stays = st.booleans() if next_step in {"part", "more"} else st.just(value=False)
        ended = [id_ for id_ in self.model.flight if not data.draw(stays, label=f"{id_} stays")]
        before, self.left = self.before_outcomes(data), {}
        for id_, kind, *details in before:
            if kind == "ended":
                entries = self.model.flight[id_].entries
                self.left[id_] = [entry for entry in entries if entry.arrival not in details[::4]]
            if kind == "some_expired":
                entries = self.left.get(id_, self.model.flight[id_].entries)
                self.left[id_] = [entry for entry in entries if entry.arrival not in details[2:]]
        drawn = [data.draw(self.outcome_of(id_), label=id_) for id_ in ended]
        outcomes = [*before, *(outcome for outcome in drawn if outcome)]
        if next_step == "more":
            self.settle_more(outcomes, limits)
            return
        if self.model.claim:
            self.kinds[self.model.claim.kind] += 1
        call = self.holder.call + 1
        claim = self.holder.settle_as(call, _encoded(outcomes), next_step, limits)
        self.model.settle(call, outcomes, partial=next_step == "part")
        if next_step == "part":
            self.model.hold(TTL)
        elif next_step == "claim":
            self.model.go_on(limits)
        else:
            self.model.let_go()
        self.check_claim(claim, told=next_step == "claim")
        if data.draw(st.booleans(), label="twice"):
            again = self.holder.settle_as(call, _encoded(outcomes), next_step, limits)
            self.check_claim(again, told=next_step == "claim")
        if call > 1 and data.draw(st.booleans(), label="late"):
            with pytest.raises(LeaseLost):
                self.holder.settle_as(call - 1, _encoded(outcomes), next_step, limits)

    def before_outcomes(self, data: st.DataObject) -> list[OutcomeRecord]:
        """What is said of ids before their outcomes: how far they came, and which of their payloads have ended."""
        if self.model.claim is None or self.model.claim.kind == "CHARGE":
            return []
        names = [id_ for id_ in self.model.flight if data.draw(st.booleans(), label=f"{id_} saves")]
        saved = [(id_, "saved", f"p{at}") for at, id_ in enumerate(names)]
        ended: list[OutcomeRecord] = []
        for id_, flown in self.model.flight.items():
            if len(flown.entries) > 1 and (gone := data.draw(_parts_of(flown.entries), label=f"{id_} ends")):
                self.ended_in_part[len(flown.entries) - len(gone)] += 1
                reasons = data.draw(self.reasons(len(gone)))
                ended.append(
                    (id_, "ended", *(part for at, why in zip(gone, reasons, strict=True) for part in (at, *why)))
                )
        marks_first = ended and saved and data.draw(st.booleans(), label="marks first")
        return [*ended, *saved] if marks_first else [*saved, *ended]

    def reasons(self, count: int) -> SearchStrategy[list[tuple[str, str, str]]]:
        """Why so many payloads end before their id, the error that keeps each, and its digits: "" for well."""
        ends = [("", "", ""), ("", "", ""), ("no", "", DIGITS), ("no", "not qualified", DIGITS)]
        return st.lists(st.sampled_from(ends), min_size=count, max_size=count)

    def settle_more(self, outcomes: list[OutcomeRecord], limits: Limits) -> None:
        """The holder claims more beside what still runs, twice."""
        ended = {id_ for id_, kind, *_ in outcomes if kind not in {"saved", "ended", "some_expired"}}
        left = {id_: flown.due_at for id_, flown in self.model.flight.items() if id_ not in ended}
        self.claims_beside[bool(left.keys() & self.model.waiting.keys())] += 1
        call = self.holder.call + 1
        claim = self.holder.settle_as(call, _encoded(outcomes), "more", limits, left)
        self.model.settle(call, outcomes, partial=True)
        new = self.model.more(limits, left)
        due_at = self.model.next_due(self.model.flight) if self.model.may_claim_beside() else None
        assert due_at == self.holder.due_at
        again = self.holder.settle_as(call, _encoded(outcomes), "more", limits, left)
        for told in (claim, again):
            assert sorted(new) == sorted(delivery.id for delivery in told.deliveries) if told else not new
            self.check_deliveries(told)
            assert due_at == self.holder.due_at

    @rule(data=st.data(), jobs=DUE_JOBS, steps=STEPS_OF_WORK, seconds=st.sampled_from([0.0, 0.0, 7.0]))
    def work(self, data: st.DataObject, jobs: list[Job], steps: list[Next | Literal["die"]], seconds: float) -> None:
        """A holder at work: claim after claim, while more is pushed; one that dies is followed by another."""
        self.wait(seconds)
        self.push(jobs)
        if not self.has_claim():
            self.store_is_as_the_model()
            self.make_free()
            self.acquire(data.draw(WIDE_LIMITS, label="limits"), twice=False)
        for step in steps:
            self.store_is_as_the_model()
            if not self.has_claim():
                return
            if step == "die":
                self.lose_and_acquire(data.draw(WIDE_LIMITS, label="limits"))
                continue
            if step == "more" or data.draw(st.booleans(), label="push"):
                self.push(data.draw(DUE_JOBS, label="jobs"))
            if self.model.claim and self.model.claim.kind != "CHARGE" and data.draw(st.booleans(), label="save"):
                self.checkpoint(data)
                self.store_is_as_the_model()
            self.settle(data, step, data.draw(WIDE_LIMITS, label="limits"))

    def make_free(self) -> None:
        """See to it that somebody can take the shard."""
        if self.model.lease_key or self.model.now < self.model.until:
            self.expire()

    @disturbance(
        lambda self: self.has_claim() and self.model.claim.kind == "LONE" and self.model.flight, twice=st.booleans()
    )
    def start(self, *, twice: bool) -> None:
        """The handler of a lone suspect is about to run."""
        (id_,) = self.model.flight
        self.holder.start(id_, RETRY_FOR)
        self.model.start(id_)
        if twice:
            self.holder.start_again(id_)

    @disturbance(
        lambda self: self.has_claim() and self.model.claim.kind != "CHARGE",
        data=st.data(),
    )
    def checkpoint(self, data: st.DataObject) -> None:
        """A job in flight has come so far; perhaps the call comes twice, or one before it comes once more."""
        assert self.model.claim
        id_ = data.draw(st.sampled_from([*self.model.flight, *self.model.flight, "a"]), label="id")
        progress = data.draw(PROGRESS)
        tells, twice, late = (data.draw(st.booleans(), label=label) for label in ("tells", "twice", "late"))
        clears = self.model.claim.kind == "LONE" and id_ in self.model.flight
        beside = [flown.due_at for other, flown in self.model.flight.items() if other != id_]
        left_since = min(beside, default=None) if tells else None
        told = self.holder.checkpoint(id_, progress.encode(), clears=clears, retry_for=RETRY_FOR, left_since=left_since)
        self.model.checkpoint(id_, progress, clears=clears, left_since=left_since)
        requested: StopRequest | None = "paused" if self.model.paused_until > self.model.now else None
        assert Checkpoint(self.model.next_due({id_}), requested, self.model.asked_of_holder()) == told
        if twice:
            assert told == self.holder.checkpoint_again(id_, b"another")
        if late and self.holder.call > 1:
            with pytest.raises(LeaseLost):
                self.holder.checkpoint_late(id_, b"older")

    @disturbance(
        lambda self: self.has_claim() and self.model.claim.kind != "CHARGE" and self.model.flight,
        seconds=st.sampled_from([None, 7.0, 60.0]),
        moved=st.booleans(),
        next_step=st.sampled_from(["claim", "release"]),
        limits=LIMITS,
    )
    def interrupt(self, seconds: float | None, next_step: Next, limits: Limits, *, moved: bool) -> None:
        """All that is in flight makes way, with its progress."""
        at = None if seconds is None else self.model.now + seconds
        outcomes = [(id_, *more) for id_ in self.model.flight for more in (("saved", "p"), ("later", at, int(moved)))]
        call = self.holder.call + 1
        claim = self.holder.settle_as(call, _encoded(outcomes), next_step, limits)
        self.model.settle(call, outcomes)
        if next_step == "claim":
            self.model.go_on(limits)
        else:
            self.model.let_go()
        self.check_claim(claim, told=next_step == "claim")

    @disturbance(lambda self: self.started_waiting(), data=st.data(), payload=PAYLOADS, score=SCORES, delay=DELAYS)
    def push_to_started(self, data: st.DataObject, payload: str, score: float | None, delay: float | None) -> None:
        """A payload arrives for a started job that waits."""
        self.push([(data.draw(st.sampled_from(self.started_waiting()), label="id"), payload, score, delay)])

    @disturbance(lambda self: self.has_claim())
    def renew(self) -> None:
        """The keeper renews the lease."""
        self.holder.renew(RETRY_FOR)
        self.model.hold(TTL)

    @disturbance(lambda self: self.has_claim(), seconds=st.sampled_from([20.0, 50.0]))
    def abandon(self, seconds: float) -> None:
        """The holder's process is about to exit with its handler still running."""
        self.holder.abandon(seconds, RETRY_FOR)
        self.model.abandon(seconds)

    @disturbance(data=st.data(), limits=LIMITS)
    def too_late(self, data: st.DataObject, limits: Limits) -> None:
        """Who held the shard before wakes up: nothing that it writes is accepted."""
        others = self.former if self.model.holder is self.holder and self.model.claim else [*self.former, self.holder]
        if others := [one for one in others if one.token]:
            late = data.draw(st.sampled_from(others), label="late")
            with pytest.raises(LeaseLost):
                late.renew(RETRY_FOR)
            with pytest.raises(LeaseLost):
                late.abandon(1.0, RETRY_FOR)
            if late is not self.model.holder:
                with pytest.raises(LeaseLost):
                    late.settle_as(late.call + 1, [], "claim", limits)
                with pytest.raises(LeaseLost):
                    late.settle_as(late.call, [], "claim", limits)
                with pytest.raises(LeaseLost):
                    late.start("a", RETRY_FOR)

    @disturbance(id_=IDS, data=st.data())
    def survive(self, id_: str, data: st.DataObject) -> None:
        """One who holds the shard, or held it, could not settle, and says that it lives."""
        late = data.draw(st.sampled_from([*self.former[-3:], self.holder]), label="late")
        late.at_risk = id_
        late.survive(RETRY_FOR)
        self.model.survive(late, id_)

    @disturbance(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """One who holds the shard, or held it, is known to be dead; perhaps that is told twice."""
        late = data.draw(st.sampled_from([*self.former[-3:], self.holder]), label="late")
        held = late is self.holder and (self.model.until > 0 or self.model.is_dead)
        assert held == late.is_dead()
        if held:
            self.model.release_dead()
        assert held == late.is_dead()

    @disturbance(seconds=st.sampled_from([0.5, 6.0, 40.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; the lease key would outlive it."""
        self.clock.advance(seconds)
        self.model.now += seconds

    @disturbance()
    def expire(self) -> None:
        """Time passes, longer than any lease."""
        self.wait(TTL + 1)
        self.server.admin.delete(self.shard.ref.key("lease"))
        self.model.lease_key = False

    @disturbance()
    def evict(self) -> None:
        """A full cache drops the lease key, as it has a time to live."""
        self.server.admin.delete(self.shard.ref.key("lease"))
        self.model.lease_key = False

    @disturbance(seconds=st.sampled_from([0.0625, 0.5, 30.0, 4000.0]))
    def jump_back(self, seconds: float) -> None:
        """The server's clock is put back."""
        self.model.now -= seconds
        self.clock.set_wall(self.model.now)

    @disturbance()
    def forget_scripts(self) -> None:
        """The server loses its scripts."""
        self.server.admin.script_flush()

    def started_waiting(self) -> list[str]:
        """Ids of started jobs that wait."""
        return sorted(id_ for id_, job in self.model.waiting.items() if job.handed)

    def has_claim(self) -> bool:
        """Whether somebody holds the shard."""
        return self.model.holder is self.holder and self.model.claim is not None

    def outcome_of(self, id_: str) -> "st.SearchStrategy[OutcomeRecord | None]":
        """What may become of an id in flight; None is not to name it."""
        claim = self.model.claim
        assert claim
        at = self.model.now + 7.0
        count = self.count_of(id_) + 1
        if claim.kind == "CHARGE":
            assert claim.charge
            retry = st.just((id_, "retried", count, at, claim.charge, "", False, "n"))
            return retry | st.just((id_, "dead", claim.charge, "", claim.charge))
        blamed = st.booleans()
        rules = st.sampled_from([(), (RULE,)])
        retry = st.builds(
            lambda *more: (id_, "retried", count, at, *more[:-1], *more[-1]),
            *(ERRORS, SIGNATURES, blamed, BEGINNINGS, rules),
        )
        kill = st.builds(lambda *more: (id_, "dead", *more), ERRORS, SIGNATURES, BEGINNINGS)
        by_rule = [(id_, "dead", error, signature, "n", "skip", RULE) for error, signature in (("no", ""), ("nö", "s"))]
        kill |= st.sampled_from([*by_rule, *((id_, "discarded", "n", DIGITS, RULE, every) for every in (0, 1))])
        later: list[OutcomeRecord] = [(id_, "later", when, moved) for when in (None, at) for moved in (0, 1)]
        later += [(id_, "later", at, moved, "429") for moved in (0, 1)]
        plain = st.sampled_from(
            [None, (id_, "done"), (id_, "returned"), (id_, "returned", 0), (id_, "returned", 4), *later]
        )
        suspect = st.sampled_from([(id_, "suspected", 0), (id_, "suspected", 0), (id_, "suspected", 1)])
        return plain | retry | kill if claim.kind == "LONE" else plain | retry | kill | suspect

    def count_of(self, id_: str) -> float:
        """The retry_count of the oldest payload of an id in flight that has not ended."""
        left = self.left.get(id_)
        return self.model.flight[id_].retry_count if left is None else self.model.counts.get(left[0].arrival, -1.0)

    def check_claim(self, claim: StoredClaim | None, *, told: bool = True) -> None:
        """The holder was given what the model claimed."""
        claimed: Claimed | None = self.model.claim if told else None
        assert (claimed is None) == (claim is None)
        if claimed is None or claim is None:
            return
        assert (claimed.kind == "LONE") == claim.lone_suspect
        assert claimed.charge == (None if claim.charge is None else claim.charge.decode())
        assert sorted(claimed.ids) == sorted(delivery.id for delivery in claim.deliveries)
        self.check_deliveries(claim)

    def check_deliveries(self, claim: StoredClaim | None) -> None:
        """Each is as the model has it, and the oldest comes first."""
        if claim is None:
            return
        flight = self.model.flight
        times = [delivery.due_at for delivery in claim.deliveries]
        assert sorted(times) == times
        for delivery in claim.deliveries:
            flown, trouble = flight[delivery.id], self.model.trouble.get(delivery.id, {})
            error = self.model.errors.get(delivery.id)
            assert flown.entries == [entry_of(entry) for entry in delivery.entries]
            assert (flown.due_at, flown.retry_count) == (delivery.due_at, delivery.retry_count)
            assert error == (None if delivery.error is None else delivery.error.decode())
            assert ("blamed" in trouble, "group" in trouble or "abandoned" in trouble) == (
                delivery.blamed,
                delivery.repeated,
            )
            assert trouble.get("exit_count") == delivery.exit_count
            assert self.model.progress.get(delivery.id, "") == delivery.progress.decode()
            self.check_counts(delivery)

    def check_counts(self, delivery: Delivery) -> None:
        """The holder knows how often each payload has failed, so that it can go on with any of them as the oldest."""
        entries = self.model.flight[delivery.id].entries
        for at in range(1, len(entries)):
            assert self.model.counts.get(entries[at].arrival, -1.0) == without(delivery, range(at)).retry_count


def _parts_of(entries: list[Entry]) -> SearchStrategy[list[int]]:
    """Some payloads, but not all: none, the first of them, or any; by their arrival numbers."""
    arrivals = [entry.arrival for entry in entries]
    first = st.sampled_from([arrivals[:at] for at in range(len(arrivals))])
    return first | st.lists(st.sampled_from(arrivals), max_size=len(arrivals) - 1, unique=True)


def _encoded(outcomes: list[OutcomeRecord]) -> list[OutcomeRecord]:
    # The errors are bytes to the store, and the only ones of these texts in their place.
    positions = {"retried": (4, 7), "dead": (2, 4), "saved": (2,), "noted": (2,), "rejected": (4, 5), "discarded": (2,)}
    positions |= {"expired": (2, 3), "some_expired": (2,), "later": (4,)}
    encoded = []
    for outcome in outcomes:
        if outcome[1] == "ended":
            reasons = [part.encode() if part and at % 4 in {1, 2} else part for at, part in enumerate(outcome[2:])]
            encoded.append((*outcome[:2], *reasons))
            continue
        texts = positions.get(outcome[1], ())
        parts = [part.encode() if at in texts and part else part for at, part in enumerate(outcome)]
        if outcome[1] == "later":
            parts[2] = "" if parts[2] is None else repr(parts[2])
        encoded.append(tuple(parts))
    return encoded
