"""Code that type checkers accept: typed payloads in each form, and all that worked before there were any."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple, TypedDict, assert_type
from uuid import UUID

from lowkiq_lambda import (
    DISCARD,
    KILL,
    Batch,
    BatchJob,
    ErrorRule,
    Job,
    JobDict,
    Lowkiq,
    MorgueJob,
    Pushed,
    Rejected,
    Worker,
    discard_on,
    kill_on,
    retry_on,
)
from tests.kit.orders import OrderChanged

app = Lowkiq()


@dataclass
class Renamed:
    """Another one."""

    name: str


class Moved(TypedDict):
    """A dict with known keys."""

    place: str


class PiecesCounted(NamedTuple):
    """A tuple with names."""

    pieces: int


@app.worker
class TypedSync(Worker[OrderChanged]):
    """A worker with payloads of a type."""

    shards_count = 8

    def perform(self, batch: Batch[OrderChanged]) -> None:
        """Its handler knows the type."""
        for job_id, payloads in batch.items():
            assert_type(job_id, str)
            assert_type(payloads, list[OrderChanged])
            assert_type(batch.job(job_id).payloads[-1].version, int)

    def retries_exhausted(self, jobs: Sequence[MorgueJob]) -> None:
        """A hook."""


@app.worker
class Rename(Worker[Renamed]):
    """A worker that gets one job at a time."""

    def perform_job(self, job: BatchJob[Renamed]) -> Iterator[int]:
        """A handler that yields cursors."""
        yield len(job.payloads[0].name)


@app.worker
def move(batch: Batch[Moved]) -> None:
    """A function whose annotation is the declaration."""
    assert_type(batch["a"][0]["place"], str)


@app.worker(shards_count=2, batch_size=100)
def count(batch: Batch[PiecesCounted]) -> None:
    """The same with options."""
    assert_type(batch["a"][0].pieces, int)


@app.worker(queue_name="later")
async def later(batch: Batch[OrderChanged]) -> None:
    """A coroutine function."""
    assert_type(batch["a"], list[OrderChanged])


class ThrottledCall(Exception):
    """An error with a field."""

    seconds = 5.0


def seconds_of(retry_count: int, error: ThrottledCall) -> float:
    """A delay that sees the error of its rule."""
    return error.seconds * retry_count


class RuledBase(Worker[OrderChanged]):
    """Rules that others add to, and a delay by the count alone."""

    on_error: ClassVar[Sequence[ErrorRule]] = (kill_on(KeyError), retry_on(TimeoutError, delay=30, most=3))

    def retry_in(self, retry_count: int) -> float:
        """The default, doubled."""
        return 2 * super().retry_in(retry_count)


@app.worker
class Ruled(RuledBase):
    """Each form of a rule."""

    on_error = (
        *RuledBase.on_error,
        retry_on(ThrottledCall, delay=seconds_of),
        retry_on(ThrottledCall, delay=lambda retry_count: timedelta(minutes=retry_count), when=lambda e: e.seconds > 1),
        retry_on(OSError, ConnectionError),
        discard_on(ThrottledCall, when=lambda error: error.seconds == 0, all=True),
    )

    def perform(self, batch: Batch[OrderChanged]) -> None:
        """A rejection that is kept."""
        str(batch)
        raise Rejected("not qualified", keep=True)


@app.worker
class RuledByError(Worker):
    """A delay that sees the error, and constants."""

    on_error = [kill_on(KeyError)]  # noqa: RUF012 - a list is all right, too

    def retry_in(self, retry_count: int, error: BaseException | str) -> float:
        """Any of three."""
        if isinstance(error, str):
            return DISCARD
        return KILL if retry_count else 10.0

    def perform(self, batch: Batch) -> None:
        """Nothing."""


@app.worker(on_error=(kill_on(KeyError),), retry_in=lambda retry_count: 5.0 * retry_count)
def ruled(batch: Batch) -> None:
    """Options of a function."""


def by_error(retry_count: int, error: BaseException | str) -> float:
    """A delay that sees the error."""
    return KILL if isinstance(error, KeyError) else float(retry_count)


@app.worker(on_error=[discard_on(KeyError)], retry_in=by_error)
def ruled_by_error(batch: Batch) -> None:
    """The same with the error."""


def push_typed() -> None:
    """Each way to push payloads of a type."""
    assert_type(TypedSync.push(1, OrderChanged("paid"), score=2), Pushed)
    TypedSync.push(
        "a", OrderChanged("paid", 3), score=datetime.now(UTC), delay=timedelta(seconds=5), key="once", key_ttl=60.0
    )
    TypedSync.push("a", OrderChanged("paid"), due_at=datetime.now(UTC), headers={"trace": "1"})
    assert_type(
        TypedSync.push_many([Job(1, OrderChanged("paid")), Job(2, OrderChanged("sent"), score=7)]), list[Pushed]
    )
    TypedSync.push_many([{"id": 1, "payload": OrderChanged("paid"), "score": 7, "delay": 5}])
    TypedSync.push_many(Job(number, OrderChanged("paid")) for number in range(3))
    jobs: list[Job[OrderChanged]] = [Job(1, OrderChanged("paid"))]
    TypedSync.push_many(jobs)
    dicts: list[JobDict[OrderChanged]] = [{"id": 1, "payload": OrderChanged("paid")}]
    TypedSync.push_many(dicts)
    Rename.push(UUID(int=1), Renamed("a"))
    move.push(1, {"place": "here"})
    move.push_many([{"id": 1, "payload": {"place": "here"}}])
    count.push(1, PiecesCounted(1))
    later.push(1, OrderChanged("paid"))
    app.push_many(TypedSync, jobs)
    app.push_many(TypedSync, [{"id": 1, "payload": {"status": "paid"}}])


async def push_typed_from_a_loop() -> None:
    """The same on an event loop."""
    await TypedSync.apush(1, OrderChanged("paid"), score=2)
    await TypedSync.apush_many([Job(1, OrderChanged("paid"))])
    await count.apush(1, PiecesCounted(1))
    await asyncio.gather(*(later.apush(number, OrderChanged("paid")) for number in range(3)))


@app.worker
class Untyped(Worker):
    """A worker as they were before."""

    def perform(self, batch: Batch) -> None:
        """Payloads are any JSON."""
        for job_id, payloads in batch.items():
            batch.fail(job_id, payloads[-1]["why"])


@app.worker
class MappingWorker(Worker):
    """A worker whose handler says no more than it needs."""

    def perform(self, batch: Mapping[str, Sequence[Any]]) -> None:
        """Payloads are any JSON."""
        str(batch)


@app.worker
def bare(batch):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - as people write it
    """A function without annotations."""


@app.worker(batch_size=10)
def plain(batch: Batch) -> None:
    """A function with a batch of anything."""
    str(batch["a"][0]["b"])


@app.worker(batch_size=10)
def mapped(batch: Mapping[str, Sequence[Any]]) -> None:
    """A function that says no more than it needs."""
    str(batch)


@app.worker
def anything(batch: Any) -> None:
    """A function of anything."""
    str(batch)


def push_untyped(worker: type[Worker], row: Mapping[str, Any]) -> None:
    """Pushes of payloads that are any JSON, as they were before."""
    jobs = [{"id": number, "payload": {"status": "paid"}} for number in range(3)]
    worker.push_many(jobs)
    Untyped.push_many([{"id": 1}, {"id": "a", "payload": [1, None, "b"], "score": 7.5}])
    Untyped.push_many([row, {**row, "delay": 5}])
    Untyped.push_many([Job(1), Job(2, {"any": "JSON"}, score=1)])
    Untyped.push(1)
    Untyped.push("a", {"any": ["JSON", None]}, score=None)
    MappingWorker.push("a", 17)
    for function in (plain, mapped, anything):
        function.push(1)
        function.push("a", {"any": "JSON"})
        function.push_many([{"id": 1, "payload": 17}, row])
    bare.push(1, "a")
    app.push_many(plain, jobs)
    declared: list[type[Worker[Any]]] = [TypedSync, Untyped]
    for one in declared:
        app.push_many(one, jobs)
