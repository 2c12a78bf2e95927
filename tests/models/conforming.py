"""The model of the lease beside the real scripts: a trace of the model is played to a shard, call by call.

A call that the model sends is made by a `LeaseSession`, and its bytes are kept. They reach the server when the model
says so: late, twice, behind another session, or never. The session reads the answers that the model lets through.
As in the model, a copy has the time at which it arrives, and time is moved by hand; so nothing ends by itself.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, cast

import redis

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.lease_replies import Acquired, StoredClaim
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.scripts import Argument, Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.holders import Holder, Holders
from tests.kit.stored import entry_of, stored
from tests.models.lease import AHEAD, DELIVERIES, TTL, LeaseCall, LeaseWorld, answer
from tests.models.lease_steps import NAMES, steps

UNIT: Final = 0.5
"""Seconds of a step of the model's time: so short that no `until` seems longer than a lease can be."""
ID: Final = "a"
LONGEST: Final = 40
"""Steps of a trace."""
_NOW: Final = 4
"""The place of `now` behind the keys of a command, and of the word that it was measured."""


_OF_SERVER: Final = ("a push", "time goes by", "the key is evicted")


class Held(BaseException):
    """A call is on its way, and has no answer."""


class Wire:
    """Keeps the bytes of calls, and brings them to the server when it is told to."""

    def __init__(self, client: redis.Redis, lease_key: str) -> None:
        self._client = client
        self._lease_key = lease_key
        self.sent: Sequence[Argument] | None = None
        self.answer: Reply | None = None

    def execute(self, command: Sequence[Argument]) -> Reply:
        """In place of the backend's own: the call is kept, or answered by an answer that has come."""
        if self.answer is not None:
            answer, self.answer = self.answer, None
            return answer
        self.sent = command
        raise Held

    def deliver(self, command: Sequence[Argument], now: float) -> Reply:
        """The server performs it, at that time; the key of the lease does not end by itself."""
        keys = int(cast("int", command[2]))
        dated = [*command]
        dated[_NOW + keys : _NOW + keys + 2] = [f"{now:.6f}", "1"]
        pipe = self._client.pipeline(transaction=True)
        # A key without an end is damage to the script; between the steps it must not end.
        pipe.pexpire(self._lease_key, round(TTL * UNIT * 1_000))
        pipe.execute_command(*dated)
        pipe.persist(self._lease_key)
        _, answer, _ = pipe.execute()
        return cast("Reply", answer)


class Conforming:
    """A shard that a trace of the model is played to. Raises AssertionError if the two differ."""

    def __init__(self, url: str, admin: redis.Redis, queue_name: str) -> None:
        self._admin = admin
        self._shard = ShardRef(queue_name, 1, 0)
        self._clock = ManualClock()
        self._began_at = self._clock.time()
        self._holders = Holders(url, self._shard, ttl=TTL * UNIT, clock=self._clock, new_time=GivenTime)
        self._wire = Wire(admin, self._shard.key("lease"))
        self._pass_on = self._holders.backend._execute
        self._sessions: dict[int, Holder] = {}
        self._bytes: dict[tuple[int, int], Sequence[Argument]] = {}
        """By nonce and number of the call, in the model's words."""
        self._tokens: dict[int, int] = {0: 0}
        for name in ("acquire", "settle"):
            # As the backend finds it: a test may have planted a fault in it.
            admin.script_load(vars(backend)["script"](name).source)

    def play(self, trace: Sequence[tuple[str, LeaseWorld]]) -> None:
        """All steps, from the empty world."""
        before = LeaseWorld()
        for label, world in trace:
            if self._step(label, before, world):
                self._compare(label, world)
            before = world

    def _step(self, label: str, before: LeaseWorld, world: LeaseWorld) -> bool:
        """Whether it is one that the server takes part in."""
        if label == "a push":
            self._push(world.pushed)
        elif label == "time goes by":
            self._clock.advance(UNIT)
            if world.shard.key <= world.time:
                self._admin.delete(self._shard.key("lease"))
        elif label == "the key is evicted":
            self._admin.delete(self._shard.key("lease"))
        elif label.endswith((" acquires", " settles")):
            (call,) = world.calls - before.calls
            self._send(call)
        elif " arrives" in label:
            call = _arrived(before, world)
            ahead = AHEAD * UNIT if "ahead of time" in label else 0.0
            reply = self._wire.deliver(self._bytes[call.nonce, call.number], self._clock.time() + ahead)
            if "is answered" in label:
                self._hear(call, reply, world)
        return label in _OF_SERVER or " arrives" in label

    def _push(self, number: int) -> None:
        vars(self._holders.backend)["_execute"] = self._pass_on
        self._holders.push([{"id": ID, "payload": number, "score": number}])

    def _send(self, call: LeaseCall) -> None:
        if call.number == 0:
            self._sessions[call.nonce] = self._holders.new()
        with suppress(Held):
            self._make(call)
        assert self._wire.sent is not None
        self._bytes[call.nonce, call.number] = self._wire.sent

    def _make(self, call: LeaseCall) -> StoredClaim | None:
        """The session makes the call. Raises Held if there is no answer yet."""
        vars(self._holders.backend)["_execute"] = self._wire.execute
        session = self._sessions[call.nonce]
        if call.number:
            return session.write()
        answer = session.take()
        return answer.claim if isinstance(answer, Acquired) else None

    def _hear(self, call: LeaseCall, answer: Reply, world: LeaseWorld) -> None:
        self._wire.answer = answer
        claim = None
        with suppress(LeaseLost):
            claim = self._make(call)
        process = world.processes[call.process]
        if process.phase == "runs":
            entries = [entry for one in claim.deliveries for entry in one.entries] if claim else []
            payloads = [int(entry_of(entry).payload) for entry in entries]
            assert list(process.claim) == payloads, f"{NAMES[call.process]} was handed {payloads}: {process}"

    def _compare(self, label: str, world: LeaseWorld) -> None:
        shard = world.shard
        meta: list[Any] = self._admin.hmget(self._shard.key("meta"), "nonce", "call", "token", "until")
        nonce = next((model for model, one in self._sessions.items() if meta[0] and one._nonce.encode() == meta[0]), 0)
        token = self._tokens.setdefault(shard.token, int(meta[2] or 0))
        state = stored(self._admin, self._shard)
        waiting = [int(entry.payload) for entry in state["waiting"].get(ID, [[]])[0]]
        flight = [int(entry.payload) for entry in state["flight"].get(ID, [[]])[0]]
        until = (float(meta[3] or 0) - self._began_at) / UNIT if float(meta[3] or 0) else 0
        real = (nonce, int(meta[1] or 0), int(meta[2] or 0), until, state["lease"][2], tuple(flight), tuple(waiting))
        is_key = shard.key > world.time
        model = (shard.nonce, shard.call, token, shard.until, is_key, shard.flight, shard.waiting)
        assert model == real, f"after {label!r} the model and the shard differ: {model} {real}"

    def close(self) -> None:
        """Close connections, and forget the shard."""
        self._holders.__exit__(None, None, None)
        keys = [*self._admin.scan_iter(f"*{self._shard.queue_name}*", count=1_000)]
        self._admin.delete(*keys)


def random_trace(rng: Random, longest: int) -> list[tuple[str, LeaseWorld]]:
    """A way through the model, each step by chance; sent calls are as likely as all their arrivals together.

    In every other trace the second copies of calls are held back for a while, so that they come behind other sessions.
    """
    world, trace = LeaseWorld(), list[tuple[str, LeaseWorld]]()
    bounded = partial(steps, end=6, payloads=4, sessions=3)
    held_until = rng.choice([0, rng.randint(longest // 3, longest * 2 // 3)])
    while len(trace) < longest and (choices := [*bounded(world)]):
        arrivals = [one for one in choices if " arrives" in one[0]]
        others = [one for one in choices if " arrives" not in one[0]]
        if len(trace) < held_until:
            arrivals = [one for one in arrivals if _arrived(world, one[1]).left == DELIVERIES]
        label, world = rng.choice(arrivals if arrivals and (not others or rng.random() < 0.6) else others or choices)
        trace.append((label, world))
    return trace


def play_traces(url: str, admin: redis.Redis, queue_name: str, seeds: Iterable[int]) -> Counter[str]:
    """The traces of these seeds, each on a shard of its own; how often each step was made. Raises AssertionError."""
    labels = Counter[str]()
    for seed in seeds:
        trace = random_trace(Random(seed), LONGEST)
        labels.update(label for label, _ in trace)
        conforming = Conforming(url, admin, f"{queue_name}-{seed}")
        try:
            conforming.play(trace)
        except AssertionError as wrong:
            raise AssertionError(f"trace {seed}: {wrong}") from wrong
        finally:
            conforming.close()
    return labels


def tells_token(trace: Sequence[tuple[str, LeaseWorld]]) -> bool:
    """Whether some call of the trace would have another effect if tokens were not compared."""
    befores = [LeaseWorld(), *(world for _, world in trace)]
    return any(
        " arrives" in label
        and answer(before, _arrived(before, world), 0, None) != answer(before, _arrived(before, world), 0, "token")
        for before, (label, world) in zip(befores, trace, strict=False)
    )


def _arrived(before: LeaseWorld, world: LeaseWorld) -> LeaseCall:
    """The call that came to the server in this step."""
    (call,) = before.calls - world.calls
    return call
