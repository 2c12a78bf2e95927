"""A simulated process at a shard: it is handed ids, performs some of them, and writes what became of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.lease_replies import StoredClaim
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSession, Next, OutcomeRecord, Settlement
from tests.kit.stored import entry_of
from tests.proof.generated_mutants.accounts import number_of
from tests.proof.generated_mutants.features import RETRIES
from tests.proof.generated_mutants.verdict import look_at_claim

if TYPE_CHECKING:
    from tests.proof.generated_mutants.world import ShardWorld

RETRY_FOR: Final = 60.0
RETRY_IN: Final = 7.0
_RAN: Final = {
    "done": "done",
    "rejected": "done",
    "expired": "done",
    "retried": "failed",
    "dead": "failed",
    "blocked": "failed",
}
"""What a handler's run came to; it did not run where the outcome is another one."""


class ShardVisitor(LeaseSession):
    """One session of one process. Raises AssertionError where the shard does not do as it should."""

    def __init__(self, world: "ShardWorld", number: int, nonce: str) -> None:
        super().__init__(world.backend, world.shard, nonce, world.settings)
        self.number = number
        self.prefix = nonce[:16]
        self.deliveries: dict[str, Delivery] = {}
        self.holds = True
        self.is_killed = False
        """Whether it is about to die of a payload."""
        self._world = world
        self._planned: dict[str, str] = {}
        self.is_lone = False
        self._charge: bytes | None = None
        self._is_rest = False
        self._batches = 0

    def begin(self, claim: StoredClaim | None, limits: ClaimLimits, *, beside: bool = False) -> None:
        """It is handed a claim, beside what it has or in its place; None: nothing is left to do, the lease is gone."""
        if not beside:
            self.deliveries = {}
            self.holds = claim is not None
        if claim is None:
            return
        world = self._world
        self.is_lone, self._charge, self._is_rest = claim.lone_suspect, claim.charge, claim.is_rest
        new = claim.deliveries
        charged = claim.charge is not None or claim.is_rest
        assert not {one.id for one in new} & self.deliveries.keys(), "an id is handed over beside itself"
        world.account.hand_over(new, limits, world.clock.time(), charged=charged)
        if claim.lone_suspect:
            (lone,) = new
            self.start(lone.id, RETRY_FOR)
        for one in new:
            self.deliveries[one.id] = one
            self._planned[one.id] = self._plan(one)
            if world.workload.headers:
                world.account.check_headers(one)
            if self._runs(one):
                self._write("begin", one, repeated=world.account.repeated(one))
        if not (beside or charged or claim.lone_suspect or any(one.repeated for one in new)):
            look_at_claim(world, new, limits)
        if any(job_id.startswith("kill") for job_id in self.deliveries) and not charged:
            self.is_killed = True

    def settle_some(self, next_step: Next, limits: ClaimLimits) -> bool:
        """Write outcomes of some ids or all; whether it goes on. Raises AssertionError where it has lost the lease."""
        rng = self._world.rng
        stays = next_step in ("more", "part")
        ended = [one for one in self.deliveries.values() if not (stays and rng.random() < 0.5)]
        if stays and (self.is_lone or self._charge is not None or self._is_rest):
            ended, next_step = [*self.deliveries.values()], "claim"
        if rng.random() < 0.2 and self.deliveries and not self._is_rest and self._charge is None:
            self._save(rng.choice([*self.deliveries.values()]))
        self._settle(ended, next_step, limits)
        return self.holds

    def settle_all(self, next_step: Next) -> None:
        """The same for all of them."""
        self._settle([*self.deliveries.values()], next_step, ClaimLimits(50, 1_000, 1_000_000))

    def come_late(self, limits: ClaimLimits, *, is_last: bool) -> None:
        """It stood still, and its lease is over: it settles only if nobody else has come since."""
        try:
            self._settle([*self.deliveries.values()], "release", limits, is_late=True)
        except LeaseLost:
            assert not is_last, "nobody came since, and its outcomes were refused"
        else:
            assert is_last, "somebody came since, and the outcomes of a stale holder were taken"

    def _settle(
        self, ended: Sequence[Delivery], next_step: Next, limits: ClaimLimits, *, is_late: bool = False
    ) -> None:
        world, records = self._world, [self._record(one) for one in ended]
        left = {one.id: one.due_at for one in self.deliveries.values() if one not in ended}
        for one, (_, word, *_) in zip(ended, records, strict=True):
            if self._runs(one):
                outcome = "stale" if is_late else _RAN.get(word, "failed")
                self._write("end", one, outcome=outcome)
        named = [
            record
            for record in records
            if record[1] != "done" or next_step in ("more", "part") or world.rng.random() < 0.5
        ]
        saved = [(one.id, "saved", b"%d" % self.number) for one in ended if self._planned[one.id] == "saved"]
        settlement = Settlement([*saved, *named], next_step, "0.1 0.1 0.1 0.0", 1, left)
        world.account.unknown += is_late * len(ended)
        claim = self.settle(settlement, limits, retry_for=RETRY_FOR)
        for one, record in zip(ended, records, strict=True):
            self._note(one, record, is_late=is_late)
        if next_step == "part":
            return
        self.begin(claim, limits, beside=next_step == "more")
        self.holds = next_step == "more" or claim is not None
        if next_step == "release":
            assert claim is None, "it was to let go, and was handed a claim"

    def _note(self, one: Delivery, record: OutcomeRecord, *, is_late: bool) -> None:
        world, word = self._world, record[1]
        if word in ("done", "rejected", "expired"):
            self._write("settled", one)
        if not is_late:
            world.account.end(one, record)
            if self._planned[one.id] == "saved":
                world.account.progress[one.id] = b"%d" % self.number
        del self.deliveries[one.id]

    def _plan(self, one: Delivery) -> str:
        if one.id.startswith("bad"):
            return "retried"
        weights = self._world.workload.weights
        words = [word for word in weights if not (self.is_lone and word == "suspected")]
        if self._world.backend.rng is None:
            return "done"
        return self._world.rng.choices(words, [weights[word] for word in words])[0]

    def _runs(self, one: Delivery) -> bool:
        if self._charge is not None or self._is_rest:
            return False
        return self._planned[one.id] != "returned"

    def _record(self, one: Delivery) -> OutcomeRecord:
        world, word = self._world, self._planned[one.id]
        if self._is_rest:
            return one.id, "rest"
        if self._charge is not None:
            word = "retried"
        at = world.clock.time() + RETRY_IN
        if word == "retried":
            return self._failed(one, at)
        if word == "later":
            when, moved = world.rng.choice(["", repr(at)]), int(world.rng.random() < 0.5)
            return one.id, "later", when, moved
        others: dict[str, OutcomeRecord] = {
            "suspected": (one.id, "suspected", 0),
            "rejected": (one.id, "rejected", "0" * 16, 0, f"refused: {one.id}".encode(), ""),
            "expired": (one.id, "expired", "", "", *(entry_of(entry).arrival for entry in one.entries)),
            "exited": (one.id, "returned", (one.exit_count or 0) + 1),
            "saved": (one.id, "returned"),
        }
        return others.get(word, (one.id, word))

    def _failed(self, one: Delivery, at: float) -> OutcomeRecord:
        world, count = self._world, one.retry_count + 1
        error, number = self._charge, number_of(entry_of(one.entries[0]))
        if count < RETRIES or not one.id.startswith("bad"):
            error = error or b"%d failed" % number
            return one.id, "retried", count, at, error, "s", world.rng.random() < 0.3, b"brief"
        error, dead_head = error or b"%d failed for the last time" % number, world.workload.dead_head
        if dead_head == "block":
            return one.id, "blocked", error, "s", b"brief"
        return one.id, "dead", error, "s", b"brief", *([] if dead_head == "skip" else [dead_head])

    def _save(self, one: Delivery) -> None:
        progress = b"at %d" % self._world.rng.randint(1, 99)
        self.checkpoint(one.id, progress, clears=self.is_lone, retry_for=RETRY_FOR)
        self._world.account.progress[one.id] = progress
        self._world.account.counts[one.id].clear()
        self._world.account.is_known[one.id] = False

    def _write(self, what: Any, one: Delivery, **fields: Any) -> None:
        numbers = [number_of(entry_of(entry)) for entry in one.entries]
        self._world.write(what, one.id, numbers, process=self.number, token=self.token, scope="shard", **fields)
