"""Started jobs, transition by transition: progress is only ever true of the payloads that lie beside it (I1 to I4)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from lowkiq_lambda.settings.protocols import MorgueLimits
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.lease_replies import Acquired, Checkpoint, StoredClaim
from lowkiq_lambda.store.shard.session import ClaimLimits, Next, Settlement
from tests.kit.servers import Server
from tests.kit.stored import State, stored
from tests.properties.model import NewJob
from tests.properties.store import RETRY_FOR, RepeatingHolder, Shard

TTL: Final = 30.0
LIMITS: Final = ClaimLimits(10, 100, 10_000)


class ShardByHand:
    """A shard with one holder at a time, whose calls a test makes."""

    def __init__(self, server: Server, merge: str = "min") -> None:
        self._server = server
        self._client = connect(server.url, max_connections=2, timeout=5.0, pool_timeout=5.0)
        self.shard = Shard(self._client, server.url, merge, TTL, MorgueLimits(100, 100_000, 1_000.0))
        self.holder = self.shard.holder()

    def close(self) -> None:
        """No connection is left."""
        self._client.close()

    def push(self, job_id: str, *payloads: int, **fields: Any) -> list[bool]:
        """Whether each met its id waiting."""
        jobs = [NewJob(job_id, str(payload), **{"score": float(payload), **fields}) for payload in payloads]
        return [one.merged for one in self.shard.push(jobs)]

    def take(self, limits: ClaimLimits = LIMITS) -> StoredClaim | None:
        """Acquire, as a new holder."""
        self.holder = self.shard.holder()
        acquired = self.holder.acquire("somebody", limits, RETRY_FOR)
        return acquired.claim if isinstance(acquired, Acquired) else None

    def save(self, job_id: str, progress: bytes = b"1", *, clears: bool = False) -> Checkpoint:
        """The job in flight has come so far."""
        return self.holder.checkpoint(job_id, progress, clears=clears, retry_for=RETRY_FOR)

    def settle(
        self, *outcomes: tuple[Any, ...], next_step: Next = "release", limits: ClaimLimits = LIMITS
    ) -> StoredClaim | None:
        """What became of the jobs in flight."""
        return self.holder.settle(Settlement(outcomes, next_step, "0 0 0 0", 0), limits, retry_for=RETRY_FOR)

    def retried(self, job_id: str, seconds: float = 10.0) -> tuple[Any, ...]:
        """The job failed."""
        return job_id, "retried", 0, self.now + seconds, b"broken", "s", False, b"broken"  # fmt: skip

    def begin(self, job_id: str, *payloads: int, progress: bytes = b"1") -> None:
        """A started job that waits, due now."""
        self.push(job_id, *payloads)
        assert self.take() is not None
        self.save(job_id, progress)
        self.settle((job_id, "later", "", 0))

    def kill(self, job_id: str) -> None:
        """The job in flight failed for the last time."""
        self.settle((job_id, "dead", b"broken", "s", b"broken"))

    def die(self) -> None:
        """The holder dies, and its lease ends."""
        self.pass_time(TTL + 1)
        self._server.admin.delete(self.shard.ref.key("lease"))

    def pass_time(self, seconds: float) -> None:
        """Time passes."""
        self.shard.clock.advance(seconds)

    def look(self) -> ShardSnapshot:
        """What an operator sees, who acts later."""
        (seen,) = self.shard.operator().runner.snapshots()
        return seen

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.shard.clock.time()

    @property
    def state(self) -> State:
        """All of the shard; AssertionError where its keys contradict one another (I1 to I3)."""
        return stored(self._server.admin, self.shard.ref)

    def waiting(self, job_id: str) -> tuple[list[int], list[int]]:
        """Payloads that a started job was handed, and those that wait behind."""
        entries, *_, handed = self.state["waiting"].get(job_id, ([], []))
        return [int(entry.payload) for entry in handed], [int(entry.payload) for entry in entries]

    def due_at(self, job_id: str) -> float:
        """The id's time."""
        at: float = self.state["waiting"][job_id][1]
        return at


@pytest.fixture
def stage(server: Server) -> Iterator[ShardByHand]:
    """An empty shard."""
    stage = ShardByHand(server)
    yield stage
    stage.close()


def handed(claim: StoredClaim | None) -> list[tuple[str, list[int], bytes]]:
    """What a holder was given: ids, payloads, progress."""
    deliveries: Sequence[Any] = claim.deliveries if claim else ()
    return [(one.id, [int(entry[14:]) for entry in one.entries], one.progress) for one in deliveries]


def test_a_started_job_goes_on_with_what_it_was_handed(stage: ShardByHand) -> None:
    """Its payloads and its progress come again together, and nothing that was pushed since."""
    stage.begin("a", 5, 7)
    assert [True, True, True] == stage.push("a", 1, 5, 9)

    assert ([5, 7], [1, 5, 9]) == stage.waiting("a")
    assert [("a", [5, 7], b"1")] == handed(stage.take())
    assert [("a", [1, 5, 9], b"")] == handed(stage.settle(("a", "done"), next_step="claim"))
    stage.settle()
    assert {} == stage.state["waiting"]
    assert {} == stage.state["progress"]


def test_a_push_to_a_started_job_in_flight_waits_for_its_end(stage: ShardByHand) -> None:
    """Nothing met it waiting; equal payload or not, it is performed afterwards."""
    stage.begin("a", 1)
    stage.take()

    assert [False, True] == stage.push("a", 1, 2)
    stage.save("a", b"2")
    stage.settle(("a", "later", "", 1))

    assert ([1], [1, 2]) == stage.waiting("a")
    assert {"a": "2"} == stage.state["progress"]


def test_one_payload_that_came_meanwhile_is_kept(stage: ShardByHand) -> None:
    """Single or not, it waits behind the started job; to a save it is no other job that is due."""
    stage.push("a", 1)
    stage.take()
    stage.push("a", 2)
    assert Checkpoint(None, None) == stage.save("a")

    stage.settle(("a", "later", "", 1))

    assert ([1], [2]) == stage.waiting("a")


def test_movement_forgets_the_failures_of_all_that_was_handed_over(stage: ShardByHand) -> None:
    """P7: also of a payload that was the oldest when it failed, and is not now; what waits keeps its own."""
    stage.push("a", 5)
    stage.take()
    stage.settle(stage.retried("a", 0.0))
    stage.push("a", 1)
    stage.take()
    stage.settle(("a", "saved", b"1"), ("a", "later", "", 1))

    assert {} == stage.state["counts"]
    assert ([1, 5], []) == stage.waiting("a")


def test_a_push_leaves_the_time_of_a_started_job(stage: ShardByHand) -> None:
    """Its retry and its postponement stand, whatever comes."""
    stage.push("a", 1)
    stage.take()
    stage.save("a")
    stage.settle(("a", "later", repr(stage.now + 60.0), 0))
    at = stage.due_at("a")

    pushed = stage.shard.push([NewJob("a", "2"), NewJob("a", "1", None, stage.now - 5)])

    assert [(True, at)] * 2 == [(one.merged, one.due_at) for one in pushed]
    assert at == stage.due_at("a")


def test_a_job_that_makes_way_is_behind_all_that_is_due(stage: ShardByHand) -> None:
    """Two long jobs take turns, and a third job runs after the first turn."""
    one = ClaimLimits(1, 100, 10_000)
    stage.push("a", 1)
    stage.push("b", 1)
    order = [handed(stage.take(one))[0][0]]
    stage.push("c", 1)
    for _ in range(5):
        stage.pass_time(1.0)
        stage.save(order[-1])
        claim = stage.settle((order[-1], "later", "", 1), next_step="claim", limits=one)
        order.append(handed(claim)[0][0])

    assert ["a", "b", "c", "a", "b", "c"] == order


def test_later_without_progress_puts_payloads_in_place(stage: ShardByHand) -> None:
    """What was never saved is no started job: it merges by place, due then, with what was known of it."""
    stage.push("a", 5)
    stage.take()
    stage.push("a", 1)

    stage.settle(("a", "later", repr(stage.now + 30.0), 0))

    assert ([], [1, 5]) == stage.waiting("a")
    assert stage.now + 30.0 == stage.due_at("a")
    assert (1, 0) == (stage.state["counters"]["returned"], stage.state["counters"]["checkpointed"])


@pytest.mark.parametrize(("moved", "retry_count", "errors"), [(0, 0.0, {"a": "broken"}), (1, -1.0, {})])
def test_movement_forgets_failures(stage: ShardByHand, moved: int, retry_count: float, errors: dict[str, str]) -> None:
    """P7 since the cursor last moved: a job that came further has all of its tries again; else nothing changes."""
    stage.push("a", 1)
    stage.take()
    stage.save("a")
    stage.settle(stage.retried("a"))
    stage.pass_time(10.0)
    stage.take()

    stage.settle(("a", "saved", b"2"), ("a", "later", "", moved))

    assert errors == stage.state["errors"]
    assert retry_count == stage.state["waiting"]["a"][2]
    assert (moved, 1 - moved) == tuple(stage.state["counters"][name] for name in ("checkpointed", "returned"))


def test_saved_comes_with_the_outcome(stage: ShardByHand) -> None:
    """The newest progress travels with a failure, an exit and a return alike."""
    for progress, outcome in ((b"2", stage.retried("a", 0.0)), (b"3", ("a", "returned", 1)), (b"4", ("a", "returned"))):
        if progress == b"2":
            stage.push("a", 1)
        stage.take()
        stage.settle(("a", "saved", progress), outcome)
        stage.pass_time(1.0)

        assert {"a": progress.decode()} == stage.state["progress"]
        assert ([1], []) == stage.waiting("a")


def test_a_save_is_applied_once(stage: ShardByHand) -> None:
    """A repeat is answered and changes nothing; an older copy is refused; after a release nothing is saved."""
    stage.push("a", 1)
    stage.push("b", 1, due_at=stage.now + 7)
    stage.take()

    assert Checkpoint(stage.now + 7, None) == stage.save("a", b"1")
    assert Checkpoint(stage.now + 7, None) == stage.holder.checkpoint_again("a", b"other")
    assert {"a": "1"} == stage.state["progress"]
    stage.save("a", b"2")
    with pytest.raises(LeaseLost):
        stage.holder.checkpoint_late("a", b"older")
    assert {"a": "2"} == stage.state["progress"]

    stage.save("b", b"not in flight")
    assert {"a": "2"} == stage.state["progress"]


def test_a_thawed_holder_saves_nothing(stage: ShardByHand) -> None:
    """The next holder goes on from the last save that was accepted."""
    stage.push("a", 1)
    stage.take()
    stage.save("a", b"1")
    frozen = stage.holder
    stage.die()

    assert [("a", [1], b"1")] == handed(stage.take())
    with pytest.raises(LeaseLost):
        frozen.checkpoint("a", b"9", clears=False, retry_for=RETRY_FOR)
    assert {"a": "1"} == stage.state["progress"]


def test_a_save_tells_of_a_pause(stage: ShardByHand) -> None:
    """As a renewal does."""
    stage.push("a", 1)
    stage.take()
    stage.shard.operator().pause(60.0)

    assert "paused" == stage.save("a").stop_request
    assert "paused" == stage.holder.stop_request


def test_a_job_that_comes_further_is_no_lag(stage: ShardByHand) -> None:
    """Where it is alone in flight the shard's lag counts from its last save; with others it does not."""
    stage.push("a", 1)
    stage.take()
    stage.pass_time(5.0)
    stage.save("a")
    assert stage.now == stage.state["flight_since"]

    stage.settle(("a", "done"))
    stage.push("a", 1)
    stage.push("b", 1)
    since = stage.now
    stage.take()
    stage.pass_time(5.0)
    stage.save("a")
    assert since == stage.state["flight_since"]


def die_alone(stage: ShardByHand, *, saves: bool = False) -> StoredClaim | None:
    """The holder of a lone suspect dies while its handler runs; the next one comes."""
    stage.holder.start("a", RETRY_FOR)
    if saves:
        stage.save("a", b"further", clears=True)
    stage.die()
    return stage.take()


def test_deaths_without_a_save_are_counted_crashes(stage: ShardByHand) -> None:
    """The third kills a single payload, and its progress with it."""
    stage.begin("a", 1)
    stage.take()
    stage.die()
    stage.take()

    for crashes in (1, 2):
        assert [("a", [1], b"1")] == handed(die_alone(stage))
        assert crashes == len(stage.state["trouble"]["a"]["crashes"])
    assert [] == handed(die_alone(stage))

    assert {} == stage.state["waiting"]
    assert ["1"] == [entry.payload for entry in stage.state["morgue"]["a"][2]]
    assert "1" == stage.state["dead_progress"]["a"][1]


def test_a_save_takes_counted_crashes_back(stage: ShardByHand) -> None:
    """A lone suspect that has come further leaves none, and those before are forgotten."""
    stage.begin("a", 1)
    stage.take()
    stage.die()
    stage.take()
    die_alone(stage)
    die_alone(stage)
    assert 2 == len(stage.state["trouble"]["a"]["crashes"])

    die_alone(stage, saves=True)

    assert "crashes" not in stage.state["trouble"]["a"]
    assert {"a": "further"} == stage.state["progress"]
    stage.holder.start("a", RETRY_FOR)
    stage.save("a", clears=True)
    assert stage.holder.at_risk is None


def test_the_third_counted_crash_of_several_drops_the_progress(stage: ShardByHand) -> None:
    """It was made on all of them: smaller chunks, each from its start, tell which one it is."""
    stage.begin("a", 1, 2, 3, 4)
    stage.take()
    stage.die()
    stage.take()

    die_alone(stage)
    assert [("a", [1, 2, 3, 4], b"1")] == handed(die_alone(stage))
    assert [("a", [1, 2], b"")] == handed(die_alone(stage))

    assert {} == stage.state["progress"]
    assert ([], [3, 4]) == stage.waiting("a")


def test_the_death_of_one_of_several_drops_the_progress(stage: ShardByHand) -> None:
    """The rest starts anew: the progress was made on another set."""
    stage.begin("a", 1, 2)
    stage.take()

    stage.kill("a")

    assert ([], [2]) == stage.waiting("a")
    assert ({}, {}) == (stage.state["progress"], stage.state["dead_progress"])


def dead(stage: ShardByHand, *payloads: int) -> None:
    """A started job of a single payload in the morgue."""
    for payload in payloads:
        stage.begin("a", payload, progress=b"%d" % payload)
        stage.take()
        stage.kill("a")


def test_a_job_comes_back_from_the_morgue_with_its_progress(stage: ShardByHand) -> None:
    """Its only payload goes on where it stopped; an operator who looked before spares it."""
    dead(stage, 1)
    before = stage.look()

    assert 1 == stage.shard.operator().morgue.requeue(["a"])
    assert 0 == stage.shard.operator(before).waiting.delete(["a"])

    assert ({"a": "1"}, {}) == (stage.state["progress"], stage.state["dead_progress"])
    assert [("a", [1], b"1")] == handed(stage.take())


@pytest.mark.parametrize("busy", ["waiting", "flight", "started"])
def test_a_job_comes_back_to_a_busy_id_without_its_progress(stage: ShardByHand, busy: str) -> None:
    """What is there already is not what the progress was made on: the payload starts anew, in its place."""
    dead(stage, 1)
    if busy == "started":
        stage.begin("a", 2, progress=b"2")
    else:
        stage.push("a", 2)
    if busy == "flight":
        stage.take()

    assert 1 == stage.shard.operator().morgue.requeue(["a"])

    expected = {"waiting": ([], [1, 2]), "flight": ([], [1]), "started": ([2], [1])}
    assert expected[busy] == stage.waiting("a")
    assert ({"a": "2"} if busy == "started" else {}) == stage.state["progress"]
    assert {} == stage.state["dead_progress"]


def test_of_several_dead_payloads_none_comes_back_with_progress(stage: ShardByHand) -> None:
    """They would be handed over together."""
    dead(stage, 1, 2)

    stage.shard.operator().morgue.requeue(["a"])

    assert ([], [1, 2]) == stage.waiting("a")
    assert {} == stage.state["progress"]


def test_the_progress_of_a_dead_job_goes_with_it(stage: ShardByHand) -> None:
    """What is deleted from the morgue leaves nothing behind; its bytes are counted."""
    dead(stage, 1)

    assert 1 == stage.shard.operator().morgue.delete(["a"])

    assert ({}, 0) == (stage.state["dead_progress"], stage.state["morgue_bytes"])


def test_delete_takes_a_started_job_with_all_behind_it(stage: ShardByHand) -> None:
    """All of it was there at the look."""
    stage.begin("a", 1, 2)
    stage.push("a", 3)

    assert 1 == stage.shard.operator().waiting.delete(["a"])

    assert ({}, {}) == (stage.state["waiting"], stage.state["progress"])


def test_delete_leaves_what_was_pushed_since_the_look(stage: ShardByHand) -> None:
    """The started job goes, what came behind it stays, and is due at its own time."""
    stage.begin("a", 1)
    before = stage.look()
    stage.push("a", 2)

    assert 1 == stage.shard.operator(before).waiting.delete(["a"])

    assert ([], [2]) == stage.waiting("a")
    assert {} == stage.state["progress"]
    assert [("a", [2], b"")] == handed(stage.take())


def test_delete_spares_a_started_job_that_came_since(stage: ShardByHand) -> None:
    """Its id is left as it is, and still due: nothing behind the look may strand it (P2)."""
    stage.push("a", 5)
    before = stage.look()
    stage.push("a", 1)
    stage.take(ClaimLimits(10, 1, 10_000))
    stage.save("a")
    stage.settle(("a", "later", "", 0))
    assert ([1], [5]) == stage.waiting("a")

    assert 0 == stage.shard.operator(before).waiting.delete(["a"])

    assert ([1], [5]) == stage.waiting("a")
    assert [("a", [1], b"1")] == handed(stage.take())


def test_delete_leaves_a_started_job_in_flight(stage: ShardByHand) -> None:
    """Only what waits behind it goes; when it makes way it is due as ever (P2)."""
    stage.begin("a", 1)
    stage.take()
    stage.push("a", 2)

    assert 1 == stage.shard.operator().waiting.delete(["a"])
    stage.settle(("a", "later", "", 0))

    assert ([1], []) == stage.waiting("a")
    assert [("a", [1], b"1")] == handed(stage.take())


@pytest.mark.parametrize(("payloads", "kept"), [((1,), {"a"}), ((1, 2), set())])
def test_kill_takes_a_started_job_to_the_morgue(stage: ShardByHand, payloads: tuple[int, ...], kept: set[str]) -> None:
    """Each payload with the error; a single one with its progress."""
    stage.push("a", *payloads)
    stage.take()
    stage.save("a")
    stage.settle(stage.retried("a"))

    assert 1 == stage.shard.operator().waiting.kill(everything=True)

    assert ({}, {}) == (stage.state["waiting"], stage.state["progress"])
    assert [*payloads] == [int(entry.payload) for entry in stage.state["morgue"]["a"][2]]
    assert kept == stage.state["dead_progress"].keys()


def test_run_now_makes_a_started_job_due(stage: ShardByHand) -> None:
    """It counts as seen, also where all that waits behind it came later."""
    stage.push("a", 1)
    stage.take()
    stage.save("a")
    stage.settle(("a", "later", repr(stage.now + 60.0), 0))
    before = stage.look()
    stage.push("a", 2)

    assert 1 == stage.shard.operator(before).waiting.run_now(everything=True)

    assert stage.due_at("a") <= stage.now
    assert [("a", [1], b"1")] == handed(stage.take())


def test_a_claim_of_as_many_ids_as_wait_strands_nobody(stage: ShardByHand) -> None:
    """Started jobs with something behind them stay in `jobs` though all ids of the shard are claimed at once (P2)."""
    for job_id in ("a", "b"):
        stage.push(job_id, 1)
    stage.take()
    for job_id in ("a", "b"):
        stage.save(job_id)
    stage.settle(("a", "later", "", 0), ("b", "later", "", 0))
    stage.push("a", 2)
    stage.push("c", 3)

    assert [("a", [1], b"1"), ("b", [1], b"1"), ("c", [3], b"")] == sorted(handed(stage.take()))

    assert ([], [2]) == stage.waiting("a")
    assert ["a"] == list(stage.state["waiting"])


def test_a_started_job_is_claimed_whole_or_not_at_all(stage: ShardByHand) -> None:
    """The limits of a claim never divide what it was handed; the first of a claim passes in any case."""
    stage.begin("a", 1, 2, 3)
    stage.push("b", 1, due_at=stage.now - 5)

    few = ClaimLimits(10, 2, 10_000, 1)
    assert [("b", [1], b"")] == handed(stage.take(few))
    assert [("a", [1, 2, 3], b"1")] == handed(stage.settle(("b", "done"), next_step="claim", limits=few))


def test_what_an_abandoned_or_dead_holder_left_keeps_its_progress(stage: ShardByHand) -> None:
    """From the last save that was written."""
    stage.push("a", 1)
    stage.take()
    stage.save("a", b"1")
    stage.holder.abandon(0.5, RETRY_FOR)
    stage.die()
    assert [("a", [1], b"1")] == handed(stage.take())
    stage.save("a", b"2")
    stage.die()

    claim = stage.take()

    assert claim is not None
    assert claim.lone_suspect
    assert [("a", [1], b"2")] == handed(claim)


def test_a_suspect_that_makes_way_is_none_any_more(stage: ShardByHand) -> None:
    """As after any outcome: it holds up nobody for longer than a turn."""
    stage.begin("a", 1)
    stage.take()
    stage.die()
    stage.take()
    stage.push("b", 1)

    claim = stage.settle(("a", "saved", b"2"), ("a", "later", "", 1), next_step="claim")

    assert claim is not None
    assert not claim.lone_suspect
    assert ["b", "a"] == [one.id for one in claim.deliveries] or {"a", "b"} == {one.id for one in claim.deliveries}


def test_a_claim_told_again_has_its_progress(stage: ShardByHand) -> None:
    """The answer of a claim was lost."""
    stage.begin("a", 1)
    stage.take()

    again: RepeatingHolder = stage.holder
    repeated = again.acquire("somebody", LIMITS, RETRY_FOR)

    assert isinstance(repeated, Acquired)
    assert [("a", [1], b"1")] == handed(repeated.claim)


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_what_waits_behind_a_started_job_merges_among_itself(server: Server, merge: str) -> None:
    """As the worker says; the started job has no part in it."""
    stage = ShardByHand(server, merge)
    stage.begin("a", 1)

    for score in (4.0, 6.0):
        stage.push("a", 1, score=score)

    entries = stage.state["waiting"]["a"][0]
    assert {"min": [4.0], "max": [6.0], "never": [4.0, 6.0]}[merge] == [entry.score for entry in entries]
    assert ([1], [1] * len(entries)) == stage.waiting("a")
    stage.close()


def test_each_payload_keeps_its_tries_behind_a_started_job(stage: ShardByHand) -> None:
    """P7: one that has failed waits with its count while another, started before it, comes and goes."""
    stage.push("a", 5)
    stage.take()
    stage.settle(stage.retried("a", 0.0))
    stage.push("a", 1)
    one = ClaimLimits(10, 100, 10_000, 1)
    assert [("a", [1], b"")] == handed(stage.take(one))
    stage.save("a")
    stage.settle(("a", "later", "", 1), limits=one)
    claim = stage.take(one)
    assert [("a", [1], b"1")] == handed(claim)
    assert claim is not None
    assert [-1.0] == [delivery.retry_count for delivery in claim.deliveries]

    claim = stage.settle(("a", "done"), next_step="claim", limits=one)

    assert [("a", [5], b"")] == handed(claim)
    assert claim is not None
    assert [0.0] == [delivery.retry_count for delivery in claim.deliveries]
