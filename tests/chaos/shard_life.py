"""The life of a shard, step by step: it calls every script that writes, at the same times in each run."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import msgspec

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.operate.acts.editing import Edited, edit
from lowkiq_lambda.store.shard.dead_holders import release_dead
from lowkiq_lambda.store.shard.keys import EXPIRY, HEADERS, REQUESTS, UNDO, UNIQUE, ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply
from lowkiq_lambda.store.shard.session import ClaimLimits
from lowkiq_lambda.store.shard.waking import unwake, wake
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.requests import Requested
from tests.kit.holders import LIMITS, RETRY_FOR, Holders
from tests.kit.operators import operator_of
from tests.kit.servers import Server

TTL = 30.0
LATER = 600.0
LASTING = 90_000.0
"""Seconds: no payload is over before all of it has happened."""
TOGETHER = msgspec.structs.replace(LIMITS, concurrency=4)


class Step(NamedTuple):
    """One call: the script that it is about, and what is done; its answer does not depend on chance."""

    script: str
    call: Callable[[], object]
    features: tuple[str, ...] = ()
    """With which the script is linked, beside those that the shard has begun to use."""
    needs_room: bool = False
    """Whether the memory may not be full, as a push or a row that is undone later has to be kept."""


class ShardLife:
    """All steps of a shard that is the only one of its queue, reached by `url`; `server` is the one behind the URL."""

    def __init__(self, url: str, server: Server, shard: ShardRef, timeout: float = RETRY_FOR) -> None:
        self.clock = ManualClock()
        self.holders = Holders(
            url,
            shard,
            ttl=TTL,
            timeout=timeout,
            clock=self.clock,
            new_time=GivenTime,
            wait=lambda _seconds: None,
        )
        self._lease_key = shard.key("lease")
        self._admin = server.admin
        self.operator = operator_of(ShardReader(self.holders.backend, RETRY_FOR, only(shard)))
        self._holder = self.holders.new()
        self._shard = shard
        self._nonce = ""
        self._to_undo: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.holders.__exit__(None, None, None)

    def steps(self) -> Iterator[Step]:
        """All of it, in order; each step is to be taken before the next is asked for."""
        yield from self.crashing()
        yield from self.producing()
        yield from self.waking()
        yield from self.working()
        yield from self.operating()
        yield from self.requesting()
        yield from self.undoing()
        yield from self.finishing()

    def crashing(self) -> Iterator[Step]:
        """A holder of several batches dies; what it left runs once more together, for the next, which lives."""
        yield self._push(("p", 1), ("q", 1))
        yield self._take(TOGETHER)
        self._die()
        yield self._take(TOGETHER)
        yield self._write("part", ("p", "done"))
        yield self._write("claim")

    def producing(self) -> Iterator[Step]:
        """Payloads arrive, some under one id, some equal, some for later."""
        later = self.clock.time() + LATER
        yield self._push(("a", 1), ("a", 2), ("b", 1), ("c", 1), ("a", 1), ("d", 1, later))

    def waking(self) -> Iterator[Step]:
        """Somebody is about to start a drain, gives it up, and is followed by another; pushes meet what waits."""
        yield Step("wake", self._wake)
        unless = self._given(
            ({"id": "a", "payload": 9, "unless": "busy"}, {"id": "d", "payload": 1, "on_conflict": "replace"})
        )
        yield Step("enqueue", lambda: self.holders.push(unless), (UNIQUE,), needs_room=True)
        yield Step("unwake", lambda: unwake(self.holders.backend, self._nonce, [self._shard], RETRY_FOR))
        yield Step("wake", self._wake)

    def working(self) -> Iterator[Step]:
        """Holders come, settle in every way, and die."""
        yield self._take()
        yield self._write("part", ("a", "retried", 0.0, self.clock.time() + 7.0, b"no", "s", True, b"n"))
        yield Step("renew", lambda: self._holder.renew(RETRY_FOR))
        yield self._push(("a", 3), ("b", 2), ("e", 1))
        left = {"b": self.clock.time(), "c": self.clock.time()}
        yield Step("settle", lambda: self._holder.write_more(left))
        save = partial(self._holder.checkpoint, "e", b"1", clears=False, retry_for=RETRY_FOR, left_since=left["b"])
        yield Step("checkpoint", save)
        yield self._write("claim", ("b", "suspected", 0), ("c", "suspected", 0))
        yield Step("start", lambda: self._holder.start("b", RETRY_FOR))
        late = self._holder
        self._die()
        yield self._take()
        yield Step("survive", lambda: late.survive(RETRY_FOR))
        yield Step("abandon", self._abandon)
        self._die()
        yield self._take()
        yield Step("release_dead", self._release_dead)
        yield self._take()
        yield Step("quiet", lambda: self.operator.in_flight.quiet_holder(self._shard, self._holder.token))
        yield Step("set_journal", lambda: self.operator.journal("trouble"))
        yield Step("evict", lambda: self.operator.in_flight.evict_holder(self._shard, self._holder.token))
        self._die()
        yield self._take()
        yield self._write("claim", ("b", "dead", b"dead", "s", b"d"))
        yield self._write("release", ("c", "returned"), ("b", "returned"))

    def operating(self) -> Iterator[Step]:
        """An operator does everything once."""
        yield Step("requeue_waiting", lambda: self.operator.waiting.requeue(everything=True, rate=1.0))
        yield Step("run_now", lambda: self.operator.waiting.run_now(everything=True), (UNDO,))
        yield Step("kill", lambda: self.operator.waiting.kill(everything=True), (UNDO,))
        yield Step("requeue", lambda: self.operator.morgue.requeue(["a"]), (UNDO,))
        yield Step("unblock", lambda: self.operator.unblock(["c"], "skip"), (UNDO,))
        yield Step("delete", lambda: self.operator.waiting.delete(["c"]), (UNDO,))
        yield Step("delete_morgue", lambda: self.operator.morgue.delete(["b"]), (UNDO,))
        yield Step("repair", self.operator.repair)
        yield Step("delete_damaged", self.operator.delete_damaged)

    def requesting(self) -> Iterator[Step]:
        """Jobs are paused and stopped, before a holder has them and while it does, and it hears of that."""
        yield self._push(*((job_id, number) for job_id in "rstuvw" for number in (1, 2)))
        yield self._request("pause_jobs", lambda: self.operator.pause_jobs(["r"], LATER))
        yield self._request("cancel", lambda: self.operator.cancel(["s"]))
        yield self._request("cancel", lambda: self.operator.cancel(["t"], kill=True))
        yield self._take()
        yield self._request("cancel", lambda: self.operator.cancel(["u"]))
        yield self._request("pause_jobs", lambda: self.operator.pause_jobs(["v"], LATER))
        yield Step("renew", lambda: self._holder.renew(RETRY_FOR))
        yield self._push(("u", 3))
        yield self._write("part", ("u", "returned"), ("v", "retried", 0.0, self.clock.time(), b"no", "s", True, b"n"))
        yield self._request("cancel", lambda: self.operator.cancel(["w"], kill=True))
        self._die()
        yield self._take()
        yield self._write("release")
        yield self._request("resume_jobs", lambda: self.operator.resume_jobs(["r", "v"]))

    def undoing(self) -> Iterator[Step]:
        """What an operator did is taken back, and so is that."""
        yield self._undone("cancel", lambda: self.operator.cancel(["r"]))
        yield from self._undo(2)
        yield self._undone("edit", lambda: self._edit("v", "waiting", b"8"))
        yield from self._undo(2)
        yield self._undone("kill", lambda: self.operator.waiting.kill(["v"]))
        yield self._undone("edit", lambda: self._edit("v", "dead", b"9"))
        yield from self._undo(1)
        yield self._undone("delete_morgue", lambda: self.operator.morgue.delete(["v"]))
        yield from self._undo(1)
        yield self._undone("requeue", lambda: self.operator.morgue.requeue(["v"]))
        yield from self._undo(2)
        yield self._undone("delete_morgue", lambda: self.operator.morgue.delete(["t", "w"]))

    def finishing(self) -> Iterator[Step]:
        """The rest is performed, after a pause, and after limits that were set."""
        yield Step("pause", lambda: self.operator.pause(TTL))
        yield self._take()
        yield Step("pause", self.operator.resume)
        yield Step("forget_timing", self.operator.forget_timing)
        yield Step("mark_limited", lambda: self._order("mark_limited", 1, "1"))
        yield self._take()
        yield Step("mark_limited", lambda: self._order("mark_limited", 2, ""))
        yield self._take()
        for _ in range(3):
            yield self._write("claim")
        yield Step("close", lambda: self._order("close", 2))
        yield Step("open", lambda: self._order("open", 2, "min"))

    def start_over(self, ids: str) -> None:
        """The holder is gone, all is due, and two payloads arrive for each of the ids (each letter)."""
        self._die()
        self.clock.advance(LATER)
        self.holders.push([{"id": job_id, "payload": number} for job_id in ids for number in (7, 8)])

    def undoable(self) -> list[tuple[str, int, int]]:
        """What can be undone: the action, how many of its ids, of how many."""
        return sorted((one.act, one.ids, one.changed) for one in self.operator.undoable())

    def perform_all(self) -> set[str]:
        """Ids that holders got until the shard was empty."""
        performed = set[str]()
        while isinstance(granted := self._take().call(), Acquired):
            claim = granted.claim
            while claim:
                performed |= {delivery.id for delivery in claim.deliveries}
                claim = self._holder.write()
        return performed

    def _push(self, *jobs: tuple[Any, ...]) -> Step:
        fields = ("id", "payload", "due_at")
        given = self._given([dict(zip(fields, job, strict=False)) for job in jobs])
        return Step("enqueue", lambda: self.holders.push(given), needs_room=True)

    def _given(self, given: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """The jobs, with what the shard is to have of each."""
        if HEADERS in self._shard.features:
            given = [{**job, "headers": {"number": str(number)}} for number, job in enumerate(given)]
        if EXPIRY in self._shard.features:
            given = [{**job, "expires_in": LASTING} for job in given]
        return given

    def _take(self, limits: ClaimLimits = LIMITS) -> Step:
        self._holder = self.holders.new()
        return Step("acquire", partial(self._holder.acquire, "somebody", limits, RETRY_FOR))

    def _write(self, next_step: Any, *outcomes: tuple[Any, ...]) -> Step:
        def write() -> object:
            claim = self._holder.write(outcomes, next_step)
            return claim, self._holder.requests, self._holder.cancelled

        return Step("settle", write)

    def _request(self, script: str, ask: Callable[[], Requested]) -> Step:
        return Step(script, lambda: msgspec.structs.replace(ask(), action_id=""), _features(script))

    def _undone(self, script: str, act: Callable[[], Any]) -> Step:
        """What can be undone by the next steps."""

        def acted() -> object:
            done = act()
            self._to_undo.append(done.action_id)
            return done if isinstance(done, int) else msgspec.structs.replace(done, action_id="")

        return Step(script, acted, _features(script), needs_room=True)

    def _undo(self, times: int) -> Iterator[Step]:
        for _ in range(times):
            yield self._undone("undo", lambda: self.operator.undo(self._to_undo[-1]))

    def _edit(self, job_id: str, place: str, payload: bytes) -> Edited:
        first = next(one for one in self.operator.payloads(job_id) if one.place == place)
        parts = self.operator._parts
        return edit(
            parts.runner, parts.jobs, job_id, first.arrival, payload, digest=first.digest, keep_cursor=False, by="ann"
        )

    def _wake(self) -> list[int]:
        woken = wake(self.holders.backend, [self._shard], TTL, RETRY_FOR)
        self._nonce = woken.nonce
        return [shard.index for shard in woken.shards]

    def _order(self, script: str, *args: Argument) -> Reply:
        return self.holders.backend.run(script, self._shard, args, retry_for=RETRY_FOR)

    def _abandon(self) -> None:
        try:
            self._holder.abandon(1.0, RETRY_FOR)
        except LeaseLost:
            # The answer to a repeat: the lease is no longer its own.
            return

    def _release_dead(self) -> list[int]:
        freed = release_dead(self.holders.backend, [self._shard], self._holder.nonce_prefix, RETRY_FOR)
        return [shard.index for shard in freed]

    def _die(self) -> None:
        self.clock.advance(TTL + 1.0)
        self._admin.delete(self._lease_key)


def _features(script: str) -> tuple[str, ...]:
    """With which an operator's action on ids is linked."""
    return {"pause_jobs": (REQUESTS,), "resume_jobs": (REQUESTS,), "cancel": (REQUESTS, UNDO)}.get(script, (UNDO,))
