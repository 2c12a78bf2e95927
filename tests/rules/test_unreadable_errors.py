"""Errors that raise where they are read, and faults of the engine: P2, P6, P7."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.leased_shard import LeasedShard
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import Performer
from lowkiq_lambda.engine.running import RunningBatches
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.beside import Crowd, declare_threads, wait_for
from tests.kit.deaths import outlive, outlive_gone
from tests.kit.examples import crossed
from tests.kit.looks import left_behind
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

NEIGHBOURS = ["a", "b", "c"]


def no(*_args: object) -> Any:
    """What an odd object does where it is read."""
    raise ValueError("this cannot be read")


class OddText(str):
    """A text that raises wherever it is read."""

    __slots__ = ()
    __str__ = __repr__ = __len__ = __format__ = __getitem__ = __eq__ = __add__ = no
    __hash__ = str.__hash__


class OddFloat(float):
    """A number that raises where it is compared."""

    __slots__ = ()
    __le__ = __ge__ = __lt__ = __gt__ = __float__ = __repr__ = no


class OddInt(int):
    """As above."""

    __slots__ = ()
    __le__ = __ge__ = __lt__ = __gt__ = __float__ = __int__ = __index__ = __repr__ = no


class OddName(type):
    """Classes without a name."""

    __name__ = property(no)


def odd(name: str, base: type[BaseException] = Exception) -> type[BaseException]:
    """Exceptions of which one attribute raises."""
    return type("Odd", (base,), {name: property(no)})


def odd_by(name: str) -> type[BaseException]:
    """Exceptions of which one method raises."""
    return type("Odd", (Exception,), {name: no})


class OddGroup(ExceptionGroup[Exception]):
    """A group whose members cannot be had."""

    exceptions = property(no)
    split = derive = no


def error_of(kind: Callable[..., BaseException]) -> BaseException:
    """One of that kind."""
    return kind("odd", [ValueError()]) if kind is OddGroup else kind("odd")


ODD_KINDS: dict[str, Callable[..., BaseException]] = {
    **{
        name: odd(name)
        for name in (
            "__cause__",
            "__context__",
            "__suppress_context__",
            "__class__",
            "__traceback__",
            "__notes__",
        )
    },
    **{name: odd_by(name) for name in ("__getattribute__", "__str__", "__repr__", "__eq__", "__hash__", "__bool__")},
    "exceptions": OddGroup,
    "name": OddName("Odd", (Exception,), {}),
    "message": lambda text: Exception(OddText(text)),
    "returned": type("Odd", (Exception,), {"__str__": lambda _self: OddText("odd")}),
    "system exit": odd("__class__", BaseException),
}


def drained(app: Lowkiq, clock: ManualClock, seconds: float = 60.0, drains: int = 8) -> None:
    """Drain again and again, as a daemon does, whatever a drain raises."""
    for _ in range(drains):
        with suppress(Injected):
            app.drain()
        clock.advance(seconds)


class Injected(RuntimeError):
    """A fault of the engine."""


@pytest.mark.parametrize(("odd_kind", "way"), crossed(ODD_KINDS, ["batch", "jobs", "coroutine", "threads"]))
def test_p6_an_error_that_cannot_be_read_is_blamed_on_its_id_alone(
    app: Lowkiq, clock: ManualClock, queue_name: str, odd_kind: str, way: str
) -> None:
    """P6, P7: it ends in the morgue with a text of its own; its neighbours run twice at most, and the shard goes on."""
    runs: Counter[str] = Counter()

    def perform(batch: Batch) -> None:
        runs.update([*batch])
        if "bad" in batch:
            raise error_of(ODD_KINDS[odd_kind])

    def perform_job(_self: object, job: Any) -> None:
        runs[job.id] += 1
        if job.id == "bad":
            raise error_of(ODD_KINDS[odd_kind])

    async def push_many(_self: object, batch: Batch) -> None:
        perform(batch)

    by_way: dict[str, dict[str, Any]] = {
        "batch": {},
        "threads": {"concurrency": 2},
        "jobs": {"perform_job": perform_job},
        "coroutine": {"perform": push_many},
    }
    worker = declare(app, queue_name, perform, batch_size=10, max_retry_count=0, **by_way[way])
    worker.push_many(jobs_of([*NEIGHBOURS, "bad"]))
    drained(app, clock, drains=2)

    (dead,) = app.operate(worker).morgue.list("id")
    assert ("bad", True) == (dead.id, bool(dead.error))
    assert all(runs[job_id] <= 2 for job_id in [*NEIGHBOURS, "bad"])
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize(
    ("odd_kind", "hook"),
    crossed(ODD_KINDS, ["retry_in", "format_error", "dump_error", "load_error", "load_payload"]),
)
def test_p6_a_hook_that_raises_what_cannot_be_read_costs_no_other_id_a_run(
    make_app: MakeApp, clock: ManualClock, queue_name: str, odd_kind: str, hook: str
) -> None:
    """P6, P7: whatever a hook raises, the id that has failed is retried, and its neighbours run once."""
    runs: Counter[str] = Counter()

    def raises(*_args: object) -> Any:
        raise error_of(ODD_KINDS[odd_kind])

    def load_payload(stored: bytes) -> object:
        return raises() if b"odd" in stored else json.loads(stored)

    def perform(batch: Batch) -> None:
        runs.update([*batch])
        if "bad" in batch:
            batch.fail("bad", "broken")

    settings: dict[str, dict[str, Any]] = {
        "retry_in": {},
        "load_payload": {"load_payload": load_payload, "dump_payload": lambda payload: json.dumps(payload).encode()},
    }
    app = make_app(**settings.get(hook, {hook: raises}))
    fields = {"retry_in": raises} if hook == "retry_in" else {}
    worker = declare(app, queue_name, perform, batch_size=10, **fields)
    worker.push_many([*jobs_of(NEIGHBOURS), {"id": "bad", "payload": "odd"}])
    drained(app, clock, seconds=0.0, drains=3)

    assert Counter(NEIGHBOURS) == Counter(runs) - Counter({"bad": 3})
    (job,) = app.operate(worker).waiting.fetch(["bad"])
    assert (0, True) == (job.retry_count, bool(job.error))


ODD_ANSWERS = [OddFloat(5.0), OddInt(5), OddText("5"), 10**400, float("nan"), OddName("Odd", (), {})]


@pytest.mark.parametrize("answer", ODD_ANSWERS, ids=["float", "int", "text", "huge", "nan", "class"])
def test_p6_an_odd_delay_is_a_default_one(app: Lowkiq, clock: ManualClock, queue_name: str, answer: object) -> None:
    """Whatever `retry_in` returns, the id fails once and its neighbours do not run again."""
    runs: Counter[str] = Counter()

    def perform(batch: Batch) -> None:
        runs.update([*batch])
        if "bad" in batch:
            batch.fail("bad", OddText("odd"))

    worker = declare(app, queue_name, perform, batch_size=10, retry_in=lambda _self, _count: answer)
    worker.push_many(jobs_of([*NEIGHBOURS, "bad"]))
    drained(app, clock, seconds=0.0, drains=3)

    assert Counter([*NEIGHBOURS, "bad"]) == runs
    (job,) = app.operate(worker).waiting.fetch(["bad"])
    assert (0, "odd", True) == (job.retry_count, job.error, job.due_at > clock.time())


STEPS = {
    "what came of the batch": (Performer, "_sum_up"),
    "the text of the error": (ErrorText, "failure"),
    "the outcomes of the batch": (PendingOutcomes, "add"),
    "the time it took": (LeasedShard, "note_batch"),
}


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_of_the_engine_ends_with_the_id_that_causes_it(  # noqa: PLR0913, PLR0917 - as many fixtures
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, step: str, concurrency: int
) -> None:
    """P2, P6: between a handler's end and its settling a fault is as a death: its id is dead, the others are done."""
    runs: Counter[str] = Counter()
    latest: list[set[str]] = [set()]

    def perform(batch: Batch) -> None:
        runs.update([*batch])
        latest[0] = {*batch}
        if "bad" in batch:
            batch.fail("bad", "broken")

    kind, name = STEPS[step]
    unbroken = getattr(kind, name)

    def breaks(*args: Any, **kwargs: Any) -> object:
        if "bad" in latest[0]:
            raise Injected(step)
        return unbroken(*args, **kwargs)

    monkeypatch.setattr(kind, name, breaks)
    worker = declare(app, queue_name, perform, batch_size=10, max_retry_count=0, concurrency=concurrency)
    worker.push_many(jobs_of([*NEIGHBOURS, "bad"]))
    drained(app, clock)

    (dead,) = app.operate(worker).morgue.list("id")
    assert "bad" == dead.id
    assert {} == left_behind(app, worker)
    assert max(runs[job_id] for job_id in NEIGHBOURS) <= 1 + concurrency


def test_p1_a_fault_beside_a_handler_that_cannot_be_waited_for_keeps_the_shard_from_others(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: the engine meets a second fault as it ends, so a handler runs on: the lease lasts as after a death."""
    app, other, may_end = make_app(), make_app(), threading.Event()

    def wait(batch: Batch) -> None:
        if "a" in batch:
            wait_for(may_end)
        else:
            eventually(lambda: "a" in crowd.begun)

    def fault(*_given: object) -> None:
        raise Injected

    crowd, late = Crowd(wait), Crowd()
    worker = declare_threads(app, queue_name, crowd, batch_size=1)
    declare_threads(other, queue_name, late)
    worker.push_many(jobs_of("ab"))
    monkeypatch.setattr(PendingOutcomes, "add", fault)
    monkeypatch.setattr(RunningBatches, "cancel", fault)
    with pytest.raises(Injected):
        app.drain()
    monkeypatch.undo()
    outlive_gone(app, clock, worker)
    assert ({}, []) == (other.drain(), late.begun)
    may_end.set()
    assert eventually(lambda: "a" in crowd.ended)
    outlive(app, clock, worker)
    other.drain()

    assert ["a", "b"] == sorted(late.begun)
