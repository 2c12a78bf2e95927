"""The model of an operator's acts on one id beside the real scripts: a trace of the model is played, call by call.

Each call reaches the server twice, and has to be answered twice as the first time.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest
import redis

from lowkiq_lambda import Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.base.errors import LeaseLost, ShardClosed
from lowkiq_lambda.operate.acts.editing import EditRefused, StoredPayload
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.shard.keys import REQUESTS, ShardRef
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.store.shard.session import ClaimLimits, LeaseSettings, OutcomeRecord
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.handlers import Notes
from tests.kit.holders import RETRY_FOR, Holder
from tests.kit.stored import stored
from tests.kit.workers import declare
from tests.models.requests import Guard, PlacedPayload, RequestBounds, RequestedWorld, steps

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot

ID: Final = "a"
TTL: Final = 10.0
LONGEST: Final = 30
"""Steps of a trace."""
BOUNDS: Final = RequestBounds(pushes=4, sessions=4, acts=8, fails=2, moves=1)
_REFUSED: Final = {"runs": "runs now", "gone": "neither waits", "changed": "changed since you looked"}
_SETTLES: Final = re.compile(r"holder (\d) settles (\w+)")
_ACTS: Final = re.compile(r"operator (\d) (cancels|edits): (\w+)")
_UNDOES: Final = re.compile(r"an undo of (\d+), a \w+(?:: (.*))?")


def payload_of(entry: PlacedPayload) -> int:
    """A number for each payload and each edit of it."""
    return entry.number * 1_000 + entry.version


class ConformingRequests:
    """A queue that a trace of the model is played to. Raises AssertionError if the two differ."""

    def __init__(self, app: Lowkiq, clock: ManualClock, admin: redis.Redis, queue_name: str) -> None:
        self._app = app
        self._clock = clock
        self._admin = admin
        self._worker: type[Worker] = declare(app, queue_name, Notes())
        self._terms = LeaseSettings(TTL, "min", MorgueLimits(100, 100_000, 1_000.0), b"crashed")
        self._sessions: list[Holder] = []
        self._looks: dict[int, tuple[ShardSnapshot, Sequence[StoredPayload]]] = {}
        self._runs: dict[int, str] = {}
        """The ids of actions, by their numbers in the model."""
        self._wrong: list[str] = []
        self._send_all_twice()

    @property
    def _desk(self) -> QueueOperations:
        return self._app.operate(self._worker)

    @property
    def _shard(self) -> ShardRef:
        return self._desk.reader.shards.home_of(ID).using((REQUESTS,))

    def play(self, trace: Sequence[tuple[str, RequestedWorld]]) -> None:
        """All steps, from the empty world."""
        before = RequestedWorld()
        for label, world in trace:
            self._step(label, before, world)
            self._compare(label, world)
            before = world

    def _send_all_twice(self) -> None:
        backend = self._app.core.backend
        run = backend.run

        def run_twice(name: str, *args: Any, **options: Any) -> Reply:
            answer = run(name, *args, **options)
            if name in {"cancel", "pause_jobs", "resume_jobs", "edit", "undo", "settle"}:
                again = run(name, *args, **options)
                if answer != again:
                    self._wrong.append(f"{name} is answered {answer}, and then {again}")
            return answer

        vars(backend)["run"] = run_twice

    def _step(self, label: str, before: RequestedWorld, world: RequestedWorld) -> None:
        plain: dict[str, Callable[[RequestedWorld], object]] = {
            "a push": self._push,
            "a holder comes": lambda world: self._come(world, 100),
            "a holder comes for one payload": lambda world: self._come(world, 1),
            "a holder finds nothing to do": lambda _: self._come_for_nothing(),
            "the lease is lost": lambda _: self._lose_lease(),
            "a pause": lambda _: self._desk.pause_jobs([ID]),
            "a resume": lambda _: self._desk.resume_jobs([ID]),
            "the shard moves": lambda _: self._move(),
        }
        if label in plain:
            plain[label](world)
        elif " looks" in label:
            self._looks[int(label.split()[1])] = (self._desk.runner.snapshots([self._shard])[0], self._payloads())
        elif match := _SETTLES.match(label):
            self._settle(match, label, before)
        elif match := _ACTS.match(label):
            self._act(match, before, world)
        elif match := _UNDOES.match(label):
            self._undo(int(match[1]), match[2], world)

    def _push(self, world: RequestedWorld) -> None:
        self._worker.push(ID, world.pushed * 1_000, score=float(world.pushed))

    def _holder(self) -> Holder:
        return Holder(self._app.core.backend, self._shard, uuid4().hex, self._terms)

    def _come_for_nothing(self) -> None:
        answer = self._holder().take()
        assert not isinstance(answer, Acquired), f"a holder is handed {answer}"

    def _come(self, world: RequestedWorld, payloads: int) -> None:
        holder = self._holder()
        self._sessions.append(holder)
        answer = holder.acquire("somebody", ClaimLimits(10, payloads, 10_000), RETRY_FOR)
        claim = answer.claim if isinstance(answer, Acquired) else None
        entries = [entry for one in claim.deliveries for entry in one.entries] if claim else []
        given = [int(entry[14:]) for entry in entries]
        assert [payload_of(one) for one in world.shard.flight] == given, f"a holder is handed {given}"

    def _lose_lease(self) -> None:
        self._clock.advance(TTL + 1.0)
        self._admin.delete(self._shard.key("lease"))

    def _settle(self, match: re.Match[str], label: str, before: RequestedWorld) -> None:
        holder, outcome, flight = self._sessions[int(match[1]) - 1], match[2], before.shard.flight
        records: dict[str, OutcomeRecord] = {
            "done": (ID, "done"),
            "returned": (ID, "returned"),
            "failed": (ID, "retried", float(flight[0].failed if flight else 0), self._now(), b"no", "s", True, b"n"),
        }
        if "too late" in label:
            # Behind a move its shard is closed.
            with pytest.raises((LeaseLost, ShardClosed)):
                holder.write([records[outcome]], "release")
            return
        holder.write([records[outcome]], "release")
        assert ("it is cancelled" in label) == (ID in holder.cancelled), f"{label}, is told {holder.cancelled}"

    def _now(self) -> float:
        return self._app.core.backend.now(self._shard)

    def _payloads(self) -> list[StoredPayload]:
        return [one for one in self._desk.payloads(ID) if one.place == "waiting"]

    def _act(self, label: re.Match[str], before: RequestedWorld, world: RequestedWorld) -> None:
        snapshot, payloads = self._looks.pop(int(label[1]))
        desk, act, word = self._desk, label[2], label[3]
        if act == "cancels":
            desk.runner.snapshots = lambda shards=None: [snapshot]  # type: ignore[method-assign]  # noqa: ARG005 - the look of before
            answer = desk.cancel([ID])
            told = {"done": answer.at_once, "asked": answer.in_flight, "gone": answer.gone}
            assert [word] == [name for name, ids in told.items() if ids], f"a cancel is answered {answer}"
            self._keep_run(world, answer.action_id)
            return
        seen = payloads[0]
        payload = int(str(seen.payload)) // 1_000 * 1_000 + before.edits + 1
        edit = partial(desk.edit, ID, seen.arrival, payload, reason="a test", digest=seen.digest)
        if word in _REFUSED:
            with pytest.raises(EditRefused, match=_REFUSED[word]):
                edit()
            return
        edited = edit()
        assert (word, False) == (edited.place, edited.merged)
        self._keep_run(world, edited.action_id)

    def _undo(self, run: int, reason: str | None, world: RequestedWorld) -> None:
        undone = self._desk.undo(self._runs.pop(run))
        skipped = {reason: 1} if reason else {}
        assert (int(not reason), skipped) == (undone.restored, undone.skipped), f"an undo is answered {undone}"
        self._keep_run(world, undone.action_id)

    def _keep_run(self, world: RequestedWorld, action_id: str) -> None:
        if action_id:
            self._runs[world.shard.run] = action_id

    def _move(self) -> None:
        count = len(self._desk.reader.shards)
        self._desk.reshard(to=3 - count)
        self._looks.clear()

    def _compare(self, label: str, world: RequestedWorld) -> None:
        assert [] == self._wrong
        shard, ref = world.shard, self._shard
        state = stored(self._admin, ref)
        waiting, due_at, *_ = state["waiting"].get(ID, ([], 0.0))
        flight = state["flight"].get(ID, ([],))[0]
        kinds = sorted(one.kind for one in self._desk.requests())
        model = (
            [payload_of(one) for one in shard.waiting],
            [payload_of(one) for one in shard.flight],
            shard.late,
            ["cancel"] * (shard.cancel >= 0) + ["pause"] * shard.paused,
            shard.abandoned,
            sorted(self._runs[row.run] for row in shard.rows),
        )
        real = (
            [int(one.payload) for one in waiting],
            [int(one.payload) for one in flight],
            due_at > self._now() + 1_000,
            kinds,
            bool(state["trouble"].get(ID, {}).get("abandoned")),
            sorted(one.id for one in self._desk.undoable()),
        )
        assert model == real, f"after {label!r} the model and the shard differ:\n{model}\n{real}"

    def close(self) -> None:
        """Close its connections, and forget the queue."""
        close_app(self._app)
        keys = [*self._admin.scan_iter(f"*{self._worker.queue_name}*", count=1_000)]
        self._admin.delete(*keys)


def random_trace(rng: Random, longest: int) -> list[tuple[str, RequestedWorld]]:
    """A way through the model, each step by chance."""
    world, trace = RequestedWorld(), list[tuple[str, RequestedWorld]]()
    while len(trace) < longest and (choices := [*steps(world, bounds=BOUNDS)]):
        # What is done by many is not done more often than what one does.
        kinds = sorted({_kind(label) for label, _ in choices})
        kind = rng.choice(kinds)
        label, world = rng.choice([one for one in choices if _kind(one[0]) == kind])
        trace.append((label, world))
    return trace


def _kind(label: str) -> str:
    return re.sub(r" \d+|: .*", "", label)


def tells(trace: Sequence[tuple[str, RequestedWorld]], guard: Guard) -> bool:
    """Whether some step of the trace would be another one without this guard."""
    befores = [RequestedWorld(), *(world for _, world in trace)]
    return any(
        step not in {*steps(before, bounds=BOUNDS, without=guard)} for before, step in zip(befores, trace, strict=False)
    )


def play_requests(
    make_app: MakeApp, clock: ManualClock, admin: redis.Redis, queue_name: str, seeds: Iterable[int]
) -> Counter[str]:
    """The traces of these seeds, each on a queue of its own; how often each step was made. Raises AssertionError."""
    labels = Counter[str]()
    for seed in seeds:
        trace = random_trace(Random(seed), LONGEST)
        labels.update(label for label, _ in trace)
        conforming = ConformingRequests(make_app(), clock, admin, f"{queue_name}-{seed}")
        try:
            conforming.play(trace)
        except (AssertionError, pytest.fail.Exception) as wrong:
            steps_made = "\n".join(label for label, _ in trace)
            raise AssertionError(f"trace {seed}: {wrong}\n{steps_made}") from wrong
        finally:
            conforming.close()
    return labels
