"""Code that type checkers refuse, in each line that is marked so for mypy, and in no other."""

from lowkiq_lambda import Batch, Job, Worker, discard_on, kill_on, retry_on
from tests.kit.orders import OrderChanged
from tests.typing.right import PiecesCounted, Renamed, TypedSync, app, count, later, move


def push() -> None:
    """Payloads of other types, and keywords that do not exist."""
    TypedSync.push(1, "paid")  # type: ignore[arg-type]  # a text
    TypedSync.push(1, Renamed("a"))  # type: ignore[arg-type]  # another class
    TypedSync.push(1, OrderChanged("paid"), skore=2)  # type: ignore[call-arg]  # a misspelt keyword
    TypedSync.push(1, OrderChanged("paid"), score="2")  # type: ignore[arg-type]  # a score in words
    TypedSync.push(1)  # type: ignore[call-arg]  # the payload is missing
    TypedSync.push(None, OrderChanged("paid"))  # type: ignore[arg-type]  # not an id
    TypedSync.push(1, OrderChanged(5))  # type: ignore[arg-type]  # a field of another type
    TypedSync.push(1, OrderChanged("paid"), score="2026-11-27")  # type: ignore[arg-type]  # a date in words
    TypedSync.delay(1, OrderChanged("paid"))  # type: ignore[attr-defined]  # a method of another library
    count.push(1, OrderChanged("paid"))  # type: ignore[arg-type]  # another class
    move.push(1, {"plaice": "here"})  # type: ignore[typeddict-item,typeddict-unknown-key]  # a misspelt key


def push_jobs() -> None:
    """Jobs of other types, and fields that do not exist."""
    TypedSync.push_many([{"id": 1, "skore": 17, "payload": OrderChanged("paid")}])  # type: ignore[list-item]  # a misspelt field
    TypedSync.push_many([{"id": 1, "payload": OrderChanged("paid"), "score": None}])  # type: ignore[list-item]  # not a score
    TypedSync.push_many([{"id": 1, "payload": "paid"}])  # type: ignore[list-item]  # a text
    TypedSync.push_many([{"id": 1, "payload": {"status": "paid"}}])  # type: ignore[list-item]  # a dict
    TypedSync.push_many([{"id": 1}])  # type: ignore[list-item]  # the payload is missing
    TypedSync.push_many([{"payload": OrderChanged("paid")}])  # type: ignore[list-item]  # the id is missing
    TypedSync.push_many([Job(1, Renamed("a"))])  # type: ignore[arg-type]  # another class
    TypedSync.push_many([Job(1, OrderChanged("paid"), skore=2)])  # type: ignore[call-arg]  # a misspelt field
    TypedSync.push_many([1, 2])  # type: ignore[list-item]  # no jobs
    count.push_many([Job(1, Renamed("a"))])  # type: ignore[arg-type]  # another class
    count.push_many([{"id": 1, "skore": 17, "payload": PiecesCounted(1)}])  # type: ignore[list-item]  # a misspelt field


async def push_from_a_loop() -> None:
    """The same on an event loop."""
    await TypedSync.apush(1, "paid")  # type: ignore[arg-type]  # a text
    await TypedSync.apush_many([Job(1, Renamed("a"))])  # type: ignore[arg-type]  # another class
    await later.apush(1, PiecesCounted(1))  # type: ignore[arg-type]  # another class


@app.worker
class TypedOtherwise(Worker[OrderChanged]):
    """A worker that takes its payloads for what they are not."""

    def perform(self, batch: Batch[OrderChanged]) -> None:
        """A misspelt field."""
        str(batch["a"][0].state)  # type: ignore[attr-defined]  # a misspelt field
        str(batch.job("a").payloads[0].state)  # type: ignore[attr-defined]  # a misspelt field
        str(batch[1])  # type: ignore[index]  # ids are texts


kill_on(KeyboardInterrupt)  # type: ignore[type-var]  # not an Exception
kill_on(KeyError())  # type: ignore[arg-type]  # an error in place of its class
retry_on(KeyError, delay="30")  # type: ignore[arg-type]  # not a delay
discard_on(KeyError, when=lambda error: error.misspelt)  # type: ignore[attr-defined]  # a misspelt field
retry_on(KeyError, mots=3)  # type: ignore[call-arg]  # a misspelt keyword


class WronglyRuled(Worker):
    """Rules and delays that are none."""

    on_error = kill_on(KeyError)  # type: ignore[assignment]  # the comma is missing

    def retry_in(self, _retry_count: int) -> str:  # type: ignore[override]  # not a number
        """Soon."""
        return "soon"


app.worker(shard_count=3)  # type: ignore[call-overload]  # a misspelt option
