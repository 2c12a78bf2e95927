"""One shard in a simulated world: holders come and go by chance behind a bad network, and time is given.

What happens is written as a history, as in every other run of a proof, and judged by the same checker: the world knows
what was pushed and what handlers were given. Beside that stand the accounts, and after each step the keys of the
shard may not contradict each other.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, cast
from uuid import UUID, uuid4

from redis import RedisError

from lowkiq_lambda import Config, Lowkiq, LowkiqError, MorgueLimits, Worker
from lowkiq_lambda.jobs.job import ItemRef
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.dead_holders import release_dead
from lowkiq_lambda.store.shard.keys import IN_USE
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.nodes import FAR, GivenTime
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSettings, Next
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.tracking import check_items
from tests.proof.generated_mutants.accounts import ShardAccount
from tests.proof.generated_mutants.features import Workload
from tests.proof.generated_mutants.network import UntrueBackend
from tests.proof.generated_mutants.verdict import judged, look_at_rest
from tests.proof.generated_mutants.visitor import RETRY_FOR, ShardVisitor
from tests.proof.history import Event
from tests.proof.history.events import What

TTL: Final = 100.0
MORGUE: Final = MorgueLimits(10_000, 10_000_000, 1e6)
TASK: Final = b"twelve bytes"
STEPS: Final[Sequence[Next]] = ("claim",) * 6 + ("release",)
STEPS_BESIDE: Final[Sequence[Next]] = ("more",) * 5 + ("part",)
MOST_ROUNDS: Final = 600
"""Claims at the end of a run, until nothing is left."""


class ShardWorld:
    """Plays runs of one workload, one at a time; the shard is emptied before each."""

    def __init__(self, server: Server, workload: Workload) -> None:
        self.workload = workload
        self.admin = server.admin
        self.clock = ManualClock()
        self.client = connect(server.url, max_connections=2, timeout=5.0, pool_timeout=5.0)
        self.backend = UntrueBackend(
            self.client, self.clock, partial(GivenTime, self.clock), self.clock.sleep, Random(0)
        )
        self.backend.held, self.backend.errors = [], []
        self.backend.held_below += workload.late / 100
        self._app = Lowkiq(Config(redis_url=server.url), clock=self.clock)
        self._app.core.connections._backend = self.backend
        body = {"perform": lambda _self, _batch: None, "queue_name": f"shard-{uuid4().hex}", "shards_count": 1}
        self._worker: type[Worker] = self._app.worker(type("Simulated", (Worker,), {**body, **workload.declared}))
        self.shard = self._app.core.queues.agreed(self._worker).shards[0]
        merge = str(workload.declared.get("merge", "min"))
        self.settings = LeaseSettings(TTL, merge, MORGUE, b"crashed", workload.dead_head)
        self._meta = cast("dict[bytes, bytes]", self.admin.hgetall(self.shard.key("meta")))
        self._keys = [*{*self.shard.using(IN_USE).keys}]

    def play(self, seed: int) -> list[str]:
        """A run by this seed; what was wrong with it."""
        try:
            self._begin(seed)
            for number in range(self.workload.steps):
                self._step()
                if number % 3 == 0:
                    self._look()
            self._end()
        except AssertionError as wrong:
            return [str(wrong) or "an assertion"]
        except (LowkiqError, RedisError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            # What was read is not what was written.
            return [f"{type(error).__name__}: {error}"]
        if self.backend.errors:
            return self.backend.errors
        return judged(self.events, self.workload)

    def close(self) -> None:
        """Close connections."""
        self.client.close()
        close_app(self._app)

    def write(self, what: What, job_id: str = "", numbers: list[int] | None = None, **fields: Any) -> None:
        """Note an event, later than all before it."""
        self.events.append(Event(len(self.events) + 1.0, what, id=job_id, numbers=numbers or [], **fields))

    def _begin(self, seed: int) -> None:
        self.rng = Random(f"{self.workload.name} {seed}")
        self.backend.held, self.backend.errors, self.backend._in_use = [], [], {}
        pipe = self.admin.pipeline(transaction=False)
        pipe.delete(*self._keys)
        pipe.hset(self.shard.key("meta"), mapping=cast("Any", self._meta))
        pipe.execute()
        if self.workload.journal:
            self.backend.run("set_journal", self.shard, ["all", "1000"], retry_for=RETRY_FOR)
        self.backend.rng = self.rng
        self.events = list[Event]()
        self.account = ShardAccount()
        self.limits = self._draw_limits()
        """Of the claims of a run. A process that has others may take a part of what a dead one had."""
        self._number, self._visits = 0, 0
        self.pushed: dict[int, str] = {}
        self._jobs: dict[int, dict[str, Any]] = {}
        self.live: ShardVisitor | None = None
        self._has_ghost = False
        self.stale: list[ShardVisitor] = []

    def _step(self) -> None:
        chance, deaths = self.rng.random() * 100, self.workload.deaths
        if chance < 26 or not self.pushed:
            self._push()
        elif chance < 26 + deaths:
            self._harm()
        elif chance < 34 + deaths:
            self._wait(self.rng.choice([0.5, 3.0, 11.0, 60.0]))
        elif chance < 38 + deaths:
            self._intrude()
        elif chance < 40 + deaths and self.stale:
            self._thaw()
        elif chance < 40 + deaths + self.workload.late:
            self._deliver()
        elif self.live is None:
            self._acquire()
        elif self.live.is_killed:
            self._kill(self.live)
        else:
            self._work(self.live)

    def _push(self) -> None:
        workload, rng = self.workload, self.rng
        jobs, sent = [], {}
        for job_id in rng.sample(workload.ids, min(len(workload.ids), rng.choice([1, 2, 3, len(workload.ids)]))):
            most = workload.followers if job_id.startswith(("bad", "kill")) else workload.many
            if self.settings.merge == "latest":
                # What is superseded takes along what is known of it.
                self.account.forget([job_id])
            sent[job_id] = [self._next_number(job_id) for _ in range(rng.randint(1, most))]
            jobs += [self._job(job_id, number) for number in sent[job_id]]
        again = self._again() if rng.random() < workload.once_more else []
        jobs += again
        rng.shuffle(jobs)
        for job_id, numbers in sent.items():
            self.write("push-begin", job_id, numbers)
        with suppress(LowkiqError, RedisError):
            self._worker.push_many(jobs)
            for job_id, numbers in sent.items():
                self.write("push-end", job_id, numbers, outcome="ok")
            return
        for job in again:
            # Whether it was written is unknown.
            self.account.scores.pop(int(job["payload"].partition(":")[0]), None)

    def _again(self) -> list[dict[str, Any]]:
        """Payloads that nobody was handed yet, pushed once more with other scores: they become one with what waits."""
        free = [job for number, job in self._jobs.items() if number not in self.account.handed]
        jobs = [{**job, "score": job["score"] + self.rng.choice([-0.5, 0.0, 0.5])} for job in free[-3:]]
        better = max if self.settings.merge == "max" else min
        for job in jobs:
            number = job["score"] and int(job["payload"].partition(":")[0])
            self.account.scores[number] = better(job["score"], self.account.scores.get(number, float(number)))
        return jobs

    def _next_number(self, job_id: str) -> int:
        self._number += 1
        self.pushed[self._number] = job_id
        return self._number

    def _job(self, job_id: str, number: int) -> dict[str, Any]:
        workload = self.workload
        payload = f"{number}:{'z' * self.rng.randint(0, workload.pad)}"
        job: dict[str, Any] = {"id": job_id, "payload": payload, "score": number}
        if workload.headers:
            job["headers"] = {"number": str(number)}
        if workload.tracked:
            job["item"] = ItemRef(TASK, number, str(number))
        if workload.once_more:
            self._jobs[number] = job
        if self.rng.random() < 0.1:
            job = {**job, "delay": 7.0}
        return job

    @property
    def live_ids(self) -> set[str]:
        """What its holder has in its hands."""
        return set(self.live.deliveries) if self.live else set()

    def _draw_limits(self) -> ClaimLimits:
        rng = self.rng
        return ClaimLimits(
            rng.choice([1, 2, 4, 100]),
            rng.choice([1, 3, 100, 1_000]),
            rng.choice([90, 3_000, 1_000_000]),
            rng.choice([0, 0, 1, 2]),
            2 if self.workload.beside else 1,
        )

    def new_visitor(self) -> ShardVisitor:
        """Somebody who may acquire the shard."""
        self._visits += 1
        nonce = UUID(int=self.rng.getrandbits(128)).hex
        return ShardVisitor(self, self._visits, nonce)

    def _deliver(self) -> None:
        """A copy of an acquisition may take a free shard, which nobody knows then; one of a renewal prolongs one."""
        before = self._token()
        self.backend.deliver()
        self._has_ghost = True
        assert self.live is None or self._token() == before, "a copy took the lease from its holder"

    def _token(self) -> int:
        return int(self.admin.hget(self.shard.key("meta"), "token") or 0)

    def _acquire(self) -> None:
        visitor, before = self.new_visitor(), self.stored()
        answer = visitor.acquire("somebody", limits := self.limits, RETRY_FOR)
        if isinstance(answer, Acquired):
            self.account.take(answer.token)
            self.live = visitor
            visitor.begin(answer.claim, limits)
            return
        if answer.reason == "held" and self._has_ghost:
            self._let_lease_end()
            return
        assert answer.reason == "empty", f"nobody holds the shard, and it is {answer.reason}"
        due = [job_id for job_id, job in before["waiting"].items() if job[1] <= self.clock.time()]
        assert [] == due, f"{due} are due, and nothing was claimed"
        assert not before["flight"], "what a dead holder left was not recovered"

    def _intrude(self) -> None:
        if self.live is None:
            return
        # Each of the two ends of a lease stands in for the other, so not both are untrue at once.
        now, has_key = self.clock.time(), self.admin.exists(self.shard.key("lease"))
        is_ahead = has_key and self.rng.random() < 0.3
        if is_ahead:
            self.clock.set_wall(now + 2 * TTL)
        answer = self.new_visitor().acquire("another", self.limits, RETRY_FOR)
        assert not isinstance(answer, Acquired), "the lease was taken from its holder"
        if is_ahead:
            self.clock.set_wall(now)
            return
        assert answer.reason == "held", f"it is held, and said to be {answer.reason}"
        assert answer.until is None or answer.until <= self.clock.time() + TTL + 1, f"held until {answer.until}"

    def _work(self, live: ShardVisitor) -> None:
        steps: list[Next] = [*STEPS, *(STEPS_BESIDE if self.workload.beside else ())]
        if self.rng.random() < 0.15:
            live.renew(RETRY_FOR)
        if not live.settle_some(self.rng.choice(steps), self.limits):
            self.live = None

    def _wait(self, seconds: float) -> None:
        if self.live is not None:
            self.live.renew(RETRY_FOR)
        self.clock.advance(seconds)

    def _harm(self) -> None:
        if self.live is None:
            return
        live, kind = self.live, self.rng.choice(["die", "die", "die", "known death", "freeze", "evict the key"])
        if kind == "evict the key":
            self.admin.delete(self.shard.key("lease"))
            return
        self.live = None
        self.account.die(live.deliveries.values(), is_lone=live.is_lone)
        if kind == "freeze":
            self.write("frozen", process=live.number)
            self.stale.append(live)
        else:
            self.write("died", process=live.number)
        if kind != "known death" or not release_dead(self.backend, [self.shard], live.prefix, RETRY_FOR):
            self._let_lease_end()

    def _kill(self, visitor: ShardVisitor) -> None:
        """It dies of what it was handed."""
        self.live = None
        self.account.die(visitor.deliveries.values(), is_lone=visitor.is_lone)
        self.write("died", process=visitor.number)
        self._let_lease_end()

    def _let_lease_end(self) -> None:
        key = self.shard.key("lease")
        left = self.admin.pttl(key)
        assert -2 == left or 0 < left <= (TTL + 1) * 1_000, f"the lease ends in {left} ms"
        self.clock.advance(TTL + 1)
        self.admin.delete(key)
        self._has_ghost = False

    def _thaw(self) -> None:
        visitor = self.stale.pop(self.rng.randrange(len(self.stale)))
        self.write("thawed", process=visitor.number)
        visitor.come_late(self.limits, is_last=visitor.token == self._token())

    def stored(self) -> dict[str, Any]:
        """What lies in the shard."""
        return stored(self.admin, self.shard)

    def _look(self) -> None:
        """The keys of the shard hold together."""
        self.stored()
        if self.workload.tracked:
            check_items(self.admin, self.shard)
        assert not self.backend.errors, self.backend.errors[0]

    def _end(self) -> None:
        """No more harm: all that is left is worked off, at the times that the shard tells."""
        self.backend.rng, self.backend.held = None, []
        if self._has_ghost:
            self._let_lease_end()
        for visitor in self.stale:
            self.write("died", process=visitor.number)
        if self.live is not None and self.live.is_killed:
            self._kill(self.live)
        elif self.live is not None:
            self.live.settle_all("release")
        self.live = None
        rounds = iter(range(MOST_ROUNDS))
        for _ in rounds:
            visitor = self.new_visitor()
            answer = visitor.acquire("the last", limits := ClaimLimits(50, 1_000, 1_000_000), RETRY_FOR)
            if isinstance(answer, Acquired):
                self.account.take(answer.token)
                visitor.begin(answer.claim, limits)
                while visitor.holds and not visitor.is_killed and next(rounds, None) is not None:
                    visitor.settle_all("claim")
                assert not visitor.holds or visitor.is_killed, "it never ends"
                if visitor.is_killed:
                    self._kill(visitor)
                continue
            assert answer.reason == "empty", f"nobody is there, and the shard is {answer.reason}"
            if answer.until is None or answer.until >= FAR:
                break
            # Callers tell the time in microseconds.
            self.clock.advance(max(0.0, answer.until - self.clock.time()) + 0.001)
        else:
            raise AssertionError("it never ends")
        look_at_rest(self)
