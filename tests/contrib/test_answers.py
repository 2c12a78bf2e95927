"""What a push and the queries return is an answer of a web framework as it is."""

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from msgspec.structs import asdict
from pydantic import BaseModel

from lowkiq_lambda import Lowkiq, Pushed
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.web import Browser
from tests.kit.workers import declare


def test_fastapi_writes_what_became_of_jobs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A route that returns the result of a push, or a job that people look at, answers with its fields."""
    worker = declare(app, queue_name, Notes(raising(ValueError("17"))), max_retry_count=0)

    pushed = jsonable_encoder([worker.push("a", {"status": "paid"}, score=2)])
    (waiting,) = jsonable_encoder(app.operate(worker).waiting.fetch(["a"]))
    app.drain()
    (dead,) = jsonable_encoder(app.operate(worker).morgue.fetch(["a"]))

    told = {"id": "a", "shard": 0, "merged": False, "due_at": clock.time(), "repeated": False}
    assert [{**told, "buffered": False, "superseded": False, "paused": False, "dropped": ""}] == pushed
    assert ("a", [[{"status": "paid"}, 2.0]]) == (waiting["id"], waiting["payloads"])
    assert ("17", ["17"]) == (dead["error"], [failure["error"] for failure in dead["failures"]])


class Confirmation(BaseModel):
    """A model of the user's own, with the result of a push in it."""

    pushed: Pushed


def test_a_route_may_say_that_it_returns_what_a_push_returns() -> None:
    """`-> Pushed` is an annotation like any other: its fields are in the schema and in the answers."""
    web = FastAPI()
    pushed = Pushed(id="17", shard=3, merged=True, due_at=1.5)

    @web.get("/one")
    def one() -> Pushed:
        return pushed

    @web.get("/all")
    def many() -> list[Pushed]:
        return [pushed]

    answer = web.openapi()["paths"]["/one"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    written = Confirmation(pushed=pushed).model_dump_json()

    assert {*Pushed.__struct_fields__} == {*answer["properties"]}
    assert ["id", "shard", "merged", "due_at"] == answer["required"]
    assert pushed == Confirmation.model_validate_json(written).pushed
    assert [asdict(pushed), [asdict(pushed)]] == [Browser(web).get(path).json for path in ("/one", "/all")]
