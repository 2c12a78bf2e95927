"""Payloads of a declared type go by each way that a job can go."""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine
from sqlalchemy.orm import sessionmaker

from lowkiq_lambda import Buffer, DeclarationError, Incoming, Job, JobError, Lowkiq, Worker
from lowkiq_lambda.aws.ingesting import ingest
from lowkiq_lambda.aws.sources import Record
from lowkiq_lambda.contrib.outbox import Outbox
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.orders import OrderChanged
from tests.kit.servers import FaultProxy
from tests.kit.workers import declare

PAID = OrderChanged("paid")
VALUES = {"status": "paid", "version": 1}
WRONG = "is not of the type OrderChanged: Object missing required field `status`"


def record_of(message_id: str, body: object) -> Record:
    """A record with this body."""
    incoming = Incoming(kind="sqs", source="orders", id=message_id, time=0.0, body=body)
    return Record(message_id, None, lambda: [incoming])


def declared(app: Lowkiq, queue_name: str) -> tuple[type[Worker[Any]], Notes]:
    """A worker with payloads of the type, and what it notes."""
    notes = Notes()
    return declare(app, queue_name, notes, payload=OrderChanged), notes


def test_a_client_middleware_sees_what_was_given_and_what_it_hands_on_is_checked(app: Lowkiq, queue_name: str) -> None:
    """Payloads are objects there; what a middleware puts in their place must be of the type too."""
    worker, notes = declared(app, queue_name)
    seen: list[object] = []

    def version_of(_worker: object, jobs: list[dict[str, Any]], call_next: Callable[..., Any]) -> Any:
        seen.extend(job["payload"] for job in jobs)
        return call_next(worker, [{**job, "payload": {"status": job["payload"].status, "version": 7}} for job in jobs])

    app.client_middlewares.append(version_of)
    worker.push("a", PAID)
    app.drain()

    assert ([PAID], [{"a": [OrderChanged("paid", 7)]}]) == (seen, notes.batches)
    app.client_middlewares[:] = [lambda _worker, _jobs, call_next: call_next(worker, [{"id": 1, "payload": {}}])]
    with pytest.raises(JobError, match=WRONG):
        worker.push("a", PAID)


def test_a_server_middleware_sees_objects(app: Lowkiq, queue_name: str) -> None:
    """The batch that it is around is that of the handler."""
    worker, _ = declared(app, queue_name)
    seen: list[object] = []

    def note(_worker: object, batch: Mapping[str, Any], call_next: Callable[[], object]) -> object:
        seen.extend(batch.values())
        return call_next()

    app.server_middlewares.append(note)
    worker.push("a", PAID)
    app.drain()

    assert [[PAID]] == seen


def test_an_app_and_a_task_push_objects(app: Lowkiq, queue_name: str) -> None:
    """`app.push_many` and `task.push_many` take the jobs that `push_many` takes, and so does a task's callback."""
    worker, notes = declared(app, queue_name)

    app.push_many(worker, [Job("a", PAID)])
    with app.task("export", on_complete=(worker, OrderChanged("exported"))) as task:
        task.push_many(worker, [Job("b", PAID), {"id": "c", "payload": VALUES, "item": "third"}])
    app.drain()
    app.drain()

    assert [{"a": [PAID]}, {"b": [PAID]}, {"c": [PAID]}, {task.id: [OrderChanged("exported")]}] == notes.batches
    assert "completed" == task.progress().state
    with pytest.raises(JobError, match=f"on_complete: the payload {WRONG}"):
        app.task("export", on_complete=(worker, {}))


def test_schedule_entries_push_objects(app: Lowkiq, clock: ManualClock, queue_name: str, tmp_path: Path) -> None:
    """Of code, of a file, and made at run time; a payload of another type is refused where it is declared."""
    worker, notes = declared(app, queue_name)
    path = tmp_path / "entries.toml"
    path.write_text(f'[filed]\nworker = "{queue_name}"\nid = "filed"\nevery = 60\npayload = {{status = "paid"}}\n')

    app.every(60, worker, id="coded", payload=PAID)
    app.entries_from(path)
    app.schedules.put("put", worker, id="put", every=60, payload=PAID)
    app.schedules.tick()
    clock.advance(120)
    app.schedules.tick()
    app.schedules.run("put", worker=worker)
    app.drain()

    assert {"coded": [PAID], "filed": [PAID], "put": [PAID]} == {
        job_id: payloads for batch in notes.batches for job_id, payloads in batch.items()
    }
    with pytest.raises(DeclarationError, match=f"Entry 'wrong' of '{queue_name}': payload: {WRONG}"):
        app.cron("0 4 * * *", worker, id="wrong", payload={})
    with pytest.raises(DeclarationError, match="is not of the type OrderChanged: Expected `object`, got `str`"):
        app.schedules.put("none", worker, id="none", every=60)


def test_an_outbox_writes_objects(app: Lowkiq, queue_name: str, tmp_path: Path) -> None:
    """In its table lies JSON; one of another type rolls nothing back but its own call."""
    worker, notes = declared(app, queue_name)
    sessions = sessionmaker(create_engine(f"sqlite:///{tmp_path / 'shop.db'}"))
    tables = MetaData()
    outbox = Outbox(app, sessions, metadata=tables, name=f"outbox-{queue_name}")
    tables.create_all(sessions.kw["bind"])

    with sessions.begin() as session:
        outbox.push_many(session, worker, [Job("a", PAID)])
        with pytest.raises(JobError, match=WRONG):
            outbox.push_many(session, worker, [{"id": "b", "payload": {}}])
    outbox.sweep()
    app.drain()
    sessions.kw["bind"].dispose()

    assert [{"a": [PAID]}] == [batch for batch in notes.batches if "a" in batch]


def test_what_waits_in_the_process_is_json(
    make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that Redis cannot take now are delivered later, and those that are lost are told as JSON values."""
    # As on Lambda no thread delivers them.
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "producer")
    lost: list[dict[str, Any]] = []
    app = make_app(redis_url=fault_proxy.url, when_unavailable=Buffer(on_lost=lambda _worker, jobs: lost.extend(jobs)))
    worker, notes = declared(app, queue_name)
    fault_proxy.refuse()

    assert worker.push("a", PAID).buffered
    fault_proxy.heal()
    assert 0 == app.flush()
    app.drain()
    fault_proxy.refuse()
    fault_proxy.cut()
    worker.push("b", PAID)
    app.core.pushes.give_up()
    fault_proxy.heal()

    assert [{"a": [PAID]}] == notes.batches
    assert [("b", VALUES)] == [(job["id"], job["payload"]) for job in lost]


def test_a_mapping_function_yields_objects(app: Lowkiq, queue_name: str) -> None:
    """It yields jobs as `push_many` takes them, objects or JSON values."""
    worker, notes = declared(app, queue_name)

    @app.ingest
    def changed(incoming: Incoming) -> Iterator[tuple[type[Worker[Any]], Job[Any]]]:
        yield worker, Job(incoming.id, incoming.body)

    bodies = {"a": PAID, "b": {"status": "paid"}}
    failures = ingest(app, [record_of(message_id, body) for message_id, body in bodies.items()])
    app.drain()

    assert [] == [position for position in range(2) if position in failures]
    assert [{"a": [PAID]}, {"b": [PAID]}] == notes.batches


def test_other_code_with_another_schema_is_told_of_once(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A queue knows which type its payloads had last; another one is a warning, and refuses nothing."""

    def push(**fields: Any) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            worker = declare(make_app(), queue_name, Notes(), **fields)
            worker.push("a", PAID if fields else VALUES)
            worker.push("b", PAID if fields else VALUES)
        return [record.getMessage() for record in caplog.records]

    assert [] == push(payload=OrderChanged)
    assert [] == push(payload=OrderChanged)
    (told,) = push(payload=OrderChanged | int)
    assert f"queue {queue_name!r}: this code declares payloads as " in told
    assert [] == push(payload=OrderChanged | int)
    assert [] == push()
