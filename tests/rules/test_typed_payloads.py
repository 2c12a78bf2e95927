"""Payloads of a declared type: what is pushed, and what a handler is given."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest

from lowkiq_lambda import Batch, DeclarationError, Job, JobError, Lowkiq, Worker
from tests.kit.looks import look
from tests.kit.orders import OrderChanged


@dataclass
class AsDataclass:
    """The same as a dataclass."""

    status: str
    version: int = 1


class AsNamedTuple(NamedTuple):
    """The same as a tuple with names."""

    status: str
    version: int = 1


class AsDict(TypedDict):
    """The same as a dict with known keys."""

    status: str
    version: int


class Rich(msgspec.Struct):
    """Values that JSON has no form for."""

    at: datetime
    price: Decimal
    key: UUID
    tags: set[str]
    counts: dict[int, float]


def sync_order(app: Lowkiq, queue: str, got: list[Any]) -> type[Worker[OrderChanged]]:
    """A worker that notes its payloads."""

    @app.worker
    class SyncOrder(Worker[OrderChanged]):
        queue_name = queue
        shards_count = 1
        batch_size = 10
        max_retry_count = 0

        def perform(self, batch: Batch[OrderChanged]) -> None:
            got.extend(batch.values())

    return SyncOrder


def test_a_handler_is_given_what_was_pushed(app: Lowkiq, queue_name: str) -> None:
    """Objects of the type go in, by each way to push, and objects of the type come out, in order."""
    got: list[Any] = []
    worker = sync_order(app, queue_name, got)

    worker.push(1, OrderChanged("paid", 3), score=2)
    worker.push_many([Job(1, OrderChanged("new"), score=1), {"id": 1, "payload": OrderChanged("sent"), "score": 3}])
    app.drain()

    assert [[OrderChanged("new"), OrderChanged("paid", 3), OrderChanged("sent")]] == got


def test_a_producer_without_the_type_pushes_the_same_bytes(app: Lowkiq, queue_name: str) -> None:
    """A dict of JSON values is taken for what it stands for, so equal payloads merge."""
    worker: Any = sync_order(app, queue_name, [])

    worker.push(1, OrderChanged("paid"))
    worker.push(1, {"status": "paid"})
    worker.push(1, {"version": 1, "status": "paid"})
    found = look(app, worker, "1")

    assert found is not None
    assert [{"status": "paid", "version": 1}] == [payload for payload, _ in found[0]]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (OrderChanged(5), r"Expected `str`, got `int` - at `\$.status`"),  # type: ignore[arg-type]  # wrong on purpose
        ({"status": "paid", "version": "1"}, r"Expected `int`, got `str` - at `\$.version`"),
        ({}, "Object missing required field `status`"),
        ("paid", "Expected `object`, got `str`"),
        (None, "Expected `object`, got `null`"),
        (AsNamedTuple("paid"), "Expected `OrderChanged`, got `AsNamedTuple`"),
        (object(), "Expected `OrderChanged`, got `object`"),
    ],
)
def test_a_payload_of_another_type_is_refused(app: Lowkiq, queue_name: str, payload: Any, why: str) -> None:
    """The error names the job, the type and the field; nothing of the call is written."""
    worker: Any = sync_order(app, queue_name, [])

    with pytest.raises(JobError, match=f"job 1: payload: is not of the type OrderChanged: {why}"):
        worker.push_many([Job(1, OrderChanged("paid")), Job(2, payload)])

    assert look(app, worker, "1") is None


def test_a_job_needs_a_payload(app: Lowkiq, queue_name: str) -> None:
    """No payload is not of the type."""
    worker: Any = sync_order(app, queue_name, [])

    with pytest.raises(JobError, match="job 0: payload: is required, and of the type OrderChanged"):
        worker.push_many([{"id": 1}])


def test_d6_a_payload_that_is_not_of_the_type_fails_its_id_alone(app: Lowkiq, queue_name: str) -> None:
    """One bad id beside nine good ones: the nine are done, and the one says which payload is wrong, and why."""
    got: list[Any] = []
    worker = sync_order(app, queue_name, got)
    worker.push_many([Job(number, OrderChanged("paid")) for number in range(9)])
    # Another process declares another type.
    worker.payload = None
    worker.push(9, {"state": "paid"})  # type: ignore[arg-type]  # as said above
    worker.payload = OrderChanged

    counts = app.drain()

    assert 9 == counts["done"]
    assert [[OrderChanged("paid")]] * 9 == got
    (dead,) = app.operate(worker).morgue.fetch(["9"])
    assert "payload 1 of 1 is not of the type OrderChanged: Object missing required field `status`" == dead.error


@pytest.mark.parametrize("kind", [OrderChanged, AsDataclass, AsNamedTuple])
def test_a_function_says_the_type_by_its_argument(app: Lowkiq, queue_name: str, kind: Callable[..., Any]) -> None:
    """Each kind of a class with fields will do."""
    got: list[Any] = []

    def perform(batch: Any) -> None:
        got.extend(batch.values())

    perform.__annotations__["batch"] = Batch[kind]  # type: ignore[valid-type]  # known when the test runs
    worker = app.worker(queue_name=queue_name)(perform)

    worker.push("a", kind("paid", 2))
    app.drain()

    assert [[kind("paid", 2)]] == got


def test_a_dict_with_known_keys_stays_a_dict(app: Lowkiq, queue_name: str) -> None:
    """The keys of a TypedDict are checked, and nothing is made of it."""
    got: list[Any] = []
    worker = app.worker(queue_name=queue_name, payload=AsDict)(lambda batch: got.extend(batch.values()))

    worker.push("a", {"status": "paid", "version": 2})
    with pytest.raises(JobError, match="Object missing required field `version`"):
        worker.push("a", {"status": "paid"})
    app.drain()

    assert [[{"status": "paid", "version": 2}]] == got


def test_what_json_has_no_form_for_comes_back(app: Lowkiq, queue_name: str) -> None:
    """Times, decimals, UUIDs, sets and keys that are numbers; equal values are equal bytes, and merge."""
    got: list[Any] = []
    worker = app.worker(queue_name=queue_name, payload=Rich)(lambda batch: got.extend(batch.values()))
    rich = Rich(datetime(2026, 11, 1, tzinfo=UTC), Decimal("1.10"), UUID(int=7), {"c", "a", "b"}, {2: 1, 1: 0.5})

    worker.push("a", rich)
    again = worker.push("a", msgspec.structs.replace(rich, tags={"b", "c", "a"}, counts={1: 0.5, 2: 1.0}))
    app.drain()

    assert again.merged
    assert [[rich]] == got


def test_hooks_are_given_the_type(app: Lowkiq) -> None:
    """What a worker is told of its dead jobs has their payloads as its handler would."""
    told: list[Any] = []

    @app.worker
    class Failing(Worker[OrderChanged]):
        queue_name = "hooks-are-given-the-type"
        max_retry_count = 0

        def perform(self, batch: Batch[OrderChanged]) -> None:
            raise RuntimeError(*batch)

        def retries_exhausted(self, jobs: Any) -> None:
            told.extend(payload for job in jobs for payload, _ in job.payloads)

    Failing.push(1, OrderChanged("paid"))
    app.drain()

    assert [OrderChanged("paid")] == told


class Unfit:
    """A class that JSON cannot hold."""


@pytest.mark.parametrize(
    ("kind", "why"),
    [(Unfit, "Unfit cannot be the type of a payload: "), (list[Unfit], "cannot be the type of a payload: ")],
)
def test_a_type_that_cannot_work_is_refused_where_it_is_declared(app: Lowkiq, kind: Any, why: str) -> None:
    """Nobody waits for the first push to learn of it."""
    with pytest.raises(DeclarationError, match=why):
        app.worker(payload=kind)(print)


@pytest.mark.parametrize("payload", ["", None, 5, [1], {"a": {"b": 1}}])
def test_without_a_type_payloads_are_any_json(app: Lowkiq, queue_name: str, payload: Any) -> None:
    """A batch without brackets, or one of Any, declares nothing."""
    got: list[Any] = []

    @app.worker(queue_name=queue_name)
    def perform(batch: Batch[Any]) -> None:
        got.extend(batch.values())

    perform.push(1, payload)
    app.drain()

    assert [[payload]] == got
