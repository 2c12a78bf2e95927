"""Which types payloads may have, and the ways to declare one."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import attrs
import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field

from lowkiq_lambda import Batch, BatchJob, DeclarationError, Job, JobError, Lowkiq, Worker
from lowkiq_lambda.declare.payloads import payload_type
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.orders import OrderChanged
from tests.kit.workers import declare

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOON = {"status": "paid", "at": "2026-11-01T12:00:00Z"}
T = TypeVar("T")
S = TypeVar("S")


class OrderShipped(msgspec.Struct, frozen=True):
    """Has the fields of the other one."""

    status: str
    version: int = 1


class Latest(OrderChanged, frozen=True):
    """Has a field more than the other one."""

    by: str = ""


@attrs.define
class WithAttrs:
    """A change as a class of attrs."""

    status: str
    at: datetime


class TwoSides(NamedTuple):
    """A tuple with names."""

    left: int
    right: int


class OtherTwoSides(NamedTuple):
    """Another one of the same fields."""

    left: int
    right: int


class OrderModel(BaseModel):
    """A change as a model of pydantic, which takes what JSON has for its types."""

    model_config = ConfigDict(strict=True)

    status: str
    at: datetime
    version: int = Field(default=1, alias="orderVersion")


class OtherOrderModel(BaseModel):
    """Another one of the same fields."""

    status: str
    at: datetime


Positive = Annotated[int, msgspec.Meta(ge=1)]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (WithAttrs, WithAttrs("paid", AT)),
        (OrderModel, OrderModel(status="paid", at=AT, orderVersion=3)),
        (TwoSides, TwoSides(1, 2)),
        (Positive, 17),
        (list[OrderChanged], [OrderChanged("paid")]),
        (OrderChanged | None, None),
        (dict[str, datetime], {"a": AT}),
    ],
)
def test_l14_each_kind_of_type_comes_back_as_it_was_pushed(
    app: Lowkiq, queue_name: str, kind: Any, payload: object
) -> None:
    """L-14: classes of attrs, models of pydantic, tuples with names, types with limits, and types made of types."""
    notes = Notes()
    worker = declare(app, queue_name, notes, payload=kind)

    worker.push("a", payload)
    app.drain()

    assert [{"a": [payload]}] == notes.batches
    assert type(payload) is type(notes.batches[0]["a"][0])


def assigned_to() -> OrderModel:
    """A model that holds what its field does not allow."""
    model = OrderModel(status="paid", at=AT)
    model.version = "new"  # type: ignore[assignment]  # wrong on purpose
    return model


@pytest.mark.parametrize(
    ("kind", "payload", "why"),
    [
        (OrderChanged, OrderShipped("paid"), "Expected `OrderChanged`, got `OrderShipped`"),
        (OrderChanged, Latest("paid"), "Expected `object`, got `Latest`"),
        (TwoSides, OtherTwoSides(1, 2), "Expected `TwoSides`, got `OtherTwoSides`"),
        (TwoSides, TwoSides(1, "2"), "Expected `int`, got `str` - at `$[1]`"),  # type: ignore[arg-type]  # wrong on purpose
        (WithAttrs, WithAttrs("paid", "noon"), "Invalid RFC3339 encoded datetime - at `$.at`"),  # type: ignore[arg-type]  # wrong on purpose
        (Positive, 0, "Expected `int` >= 1"),
        (Positive, True, "Expected `int`, got `bool`"),
        (OrderModel, assigned_to(), "Input should be a valid integer - at `$.orderVersion`"),
        (OrderModel, {"status": 1}, "Input should be a valid string - at `$.status`; Field required - at `$.at`"),
        (OrderModel, OtherOrderModel(status="paid", at=AT), "Encoding objects of type OtherOrderModel is unsupported"),
        (list[OrderChanged], [OrderShipped("paid")], "Expected `object`, got `OrderShipped` - at `$[0]`"),
    ],
)
def test_a_payload_that_is_not_of_the_type_is_refused(
    app: Lowkiq, queue_name: str, kind: Any, payload: object, why: str
) -> None:
    """An object of another class is, whatever its fields, and so is an object with a field of another type."""
    worker = declare(app, queue_name, Notes(), payload=kind)

    with pytest.raises(JobError) as caught:
        worker.push("a", payload)

    assert f"job 0: payload: is not of the type {payload_type(kind).name}: {why}" == str(caught.value)


@pytest.mark.parametrize(
    ("kind", "payload", "values"),
    [
        (WithAttrs, WithAttrs("paid", AT), NOON),
        (
            OrderModel,
            OrderModel(status="paid", at=AT),
            {"status": "paid", "at": "2026-11-01T12:00:00Z", "orderVersion": 1},
        ),
        (OrderModel, OrderModel(status="paid", at=AT), {"status": "paid", "at": AT}),
        (float, 1, 1.0),
    ],
)
def test_json_values_stand_for_an_object(
    app: Lowkiq, queue_name: str, kind: Any, payload: object, values: object
) -> None:
    """A producer that has not the type pushes equal payloads, which merge."""
    worker = declare(app, queue_name, notes := Notes(), payload=kind)

    worker.push_many([{"id": "a", "payload": values}, {"id": "a", "payload": payload}])
    app.drain()

    assert [{"a": [payload]}] == notes.batches


def test_an_apps_own_codec_is_given_json_values(make_app: MakeApp, queue_name: str) -> None:
    """LN-3: between the type and `dump_payload` lie JSON values, there and back."""
    dumped: list[object] = []

    def dump(payload: object) -> bytes:
        dumped.append(payload)
        return msgspec.msgpack.encode(payload)

    app = make_app(dump_payload=dump, load_payload=msgspec.msgpack.decode)
    worker = declare(app, queue_name, notes := Notes(), payload=OrderChanged)

    worker.push("a", OrderChanged("paid"))
    app.drain()

    assert [{"status": "paid", "version": 1}] == dumped
    assert [{"a": [OrderChanged("paid")]}] == notes.batches


class GenericBase(Worker[T], Generic[S, T]):
    """A base whose type of payloads its children say."""

    def perform_job(self, job: BatchJob[T]) -> None:
        """Do nothing with it."""


class OfBase(GenericBase[str, OrderChanged]):
    """Says it."""


class BaseOfLists(Worker[list[T]], Generic[T]):
    """A base whose children say what is in the lists."""

    def perform_job(self, job: BatchJob[list[T]]) -> None:
        """Do nothing with it."""


class OfLists(BaseOfLists[OrderChanged]):
    """Says it."""


class ByName(Worker["OrderChanged"]):
    """Names a class of this module."""

    def perform(self, batch: Batch) -> None:
        """Do nothing with it."""


class ByGenerator(Worker):
    """Says it by the argument of a handler with a cursor."""

    def perform_job(self, job: BatchJob[OrderChanged]) -> Iterator[int]:
        """Do nothing with it."""
        yield len(job.payloads)


class OfGenerator(ByGenerator):
    """Has it of its parent."""


@pytest.mark.parametrize("parent", [OfBase, ByName, ByGenerator, OfGenerator])
def test_the_type_is_found_wherever_it_is_said(app: Lowkiq, parent: type[Worker[Any]]) -> None:
    """By a base, a base of a base, a name, or a handler's argument."""
    worker: type[Worker[Any]] = app.worker(type(f"{parent.__name__}Declared", (parent,), {}))

    assert OrderChanged is worker.payload


def test_the_type_is_found_within_a_type_of_its_base(app: Lowkiq) -> None:
    """A base may make a type of the one that its children say."""
    assert list[OrderChanged] == app.worker(OfLists).payload


class OfAny(Worker[Any]):
    """Any JSON, said in so many words."""

    def perform(self, batch: Batch[Any]) -> None:
        """Do nothing with it."""


def test_any_is_no_type(app: Lowkiq) -> None:
    """Who writes `Any` has said nothing, and nothing is checked."""
    assert app.worker(OfAny).payload is None


def test_two_types_of_one_worker_are_refused(app: Lowkiq) -> None:
    """A handler that takes another type than its worker declares would be given what it does not expect."""
    says = "Torn declares payloads of the type OrderChanged, and its handler takes those of OrderShipped: write one of"

    class Torn(Worker[OrderChanged]):
        def perform(self, batch: Batch[OrderShipped]) -> None:
            """Never be called."""

    with pytest.raises(DeclarationError, match=says):
        app.worker(Torn)


def test_two_types_outside_of_the_handler_are_refused(app: Lowkiq) -> None:
    """In the brackets of two bases, or in brackets and by `payload`."""

    class ByBoth(ByName):
        payload = OrderShipped

    class OfBoth(ByName, Worker[OrderShipped]):
        """Has two types, each by a base."""

    for worker in (ByBoth, OfBoth):
        with pytest.raises(DeclarationError, match=f"{worker.__name__} declares payloads of the types .*: write one"):
            app.worker(worker)


@pytest.mark.parametrize("value", [{"a": 1}, 5, Annotated[int, ["x"]]])
def test_an_attribute_of_that_name_that_is_no_type_is_refused(app: Lowkiq, value: object) -> None:
    """Somebody may have meant another thing by it, and is told what it means here."""
    worker = type("Strange", (ByGenerator,), {"payload": value})

    with pytest.raises(DeclarationError, match=r"Strange.payload is the type of its payloads, and .* cannot be"):
        app.worker(worker)


def test_a_payload_that_is_forgotten_is_named(app: Lowkiq) -> None:
    """It is not taken for an empty text, by none of the ways to push."""
    worker: type[Worker[Any]] = app.worker(type("OfTexts", (OfAny,), {"payload": str}))

    for jobs in ({"id": 1}, Job(1)):
        with pytest.raises(JobError, match="job 0: payload: is required, and of the type str"):
            worker.push_many([jobs])
    with pytest.raises(JobError, match="job 0: payload: is required, and of the type str"):
        worker.push(1)


def test_a_type_that_only_type_checkers_know_is_refused_with_a_way_out(app: Lowkiq, queue_name: str) -> None:
    """Its name means nothing when the program runs; with `payload = ...` the annotation is not needed."""

    def perform(batch: Any) -> None:
        """Never be called."""

    perform.__annotations__ = {"batch": "Batch[Unknown]", "return": "NotThereEither"}

    with pytest.raises(DeclarationError, match="'Unknown' is not there when the program runs: import it out"):
        app.worker(perform)
    assert OrderChanged is app.worker(queue_name=queue_name, payload=OrderChanged)(perform).worker.payload


def test_what_a_handler_returns_need_not_be_known(app: Lowkiq) -> None:
    """Of a handler's annotations that of its batch alone counts."""

    def perform_it(batch: Batch[OrderChanged]) -> None:
        """Never be called."""

    perform_it.__annotations__["return"] = "NotThere"

    assert OrderChanged is app.worker(perform_it).worker.payload


PROGRAM = """
import sys
from lowkiq_lambda import Batch, Lowkiq, Worker

app = Lowkiq()

@app.worker
class Untyped(Worker):
    def perform(self, batch: Batch) -> None: ...

assert not [name for name in sys.modules if name.startswith("lowkiq_lambda.declare.payloads")]

import msgspec

class Changed(msgspec.Struct):
    status: str

@app.worker
def typed(batch: Batch[Changed]) -> None: ...

from lowkiq_lambda.declare.payloads import loader, plain_payload

loader(Changed, None)(b'{"status": "paid"}')
plain_payload(Changed, Changed("paid"))
assert not {"attr", "attrs", "pydantic", "pydantic_core"} & {*sys.modules}
"""


def test_nobody_loads_what_only_other_types_need() -> None:
    """Without a type nothing is loaded for one, and pydantic and attrs are loaded by their users alone."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
