"""What each released version wrote is still read: its data in Redis, its messages, its declaration, its answers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.aws.events import selected, ticks
from lowkiq_lambda.aws.ingesting import ingest
from lowkiq_lambda.aws.sources import arrived
from lowkiq_lambda.contrib.outbox import Outbox
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION
from lowkiq_lambda.tasks.duty import task_runner
from lowkiq_lambda.testing import ManualClock
from tests.frozen.answers import answers, described, lacking, seen
from tests.frozen.messages import JOBS, outbox_database
from tests.frozen.names import public_names
from tests.frozen.redis_text import lines_of, restore, unordered
from tests.frozen.writing import FOLDER, declaration, write
from tests.kit.apps import closing_app
from tests.kit.servers import Server

VERSIONS: Final = sorted(FOLDER.parent.glob("[0-9]*.[0-9]*.[0-9]*"))
_HOURS: Final = 48

each_version = pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
pytestmark = pytest.mark.xdist_group("frozen")  # which share a server


class Restored(NamedTuple):
    """The app of a version's declaration, on a server with the data of that version."""

    app: Lowkiq
    clock: ManualClock
    module: ModuleType

    @property
    def workers(self) -> dict[str, type[Worker[Any]]]:
        """By the names of their queues."""
        return {worker.queue_name: worker for worker in self.app.workers}

    def drain(self) -> dict[tuple[str, str], list[Any]]:
        """What is due, as the handlers got it, by queue and id."""
        self.module.HANDED.clear()
        self.app.drain()
        got: dict[tuple[str, str], list[Any]] = {}
        for queue, job_id, payload in self.module.HANDED:
            got.setdefault((queue, job_id), []).append(payload)
        return got


@contextmanager
def restored(folder: Path, server: Server) -> Iterator[Restored]:
    """The data on the server, by the code of today, at the moment at which it was written."""
    restore(server.admin, lines(folder, "redis.jsonl"))
    clock, module = ManualClock(messages(folder)["written_at"]), declaration(folder)
    with closing_app(module.new_app(server.url, clock)) as app:
        yield Restored(app, clock, module)


def lines(folder: Path, name: str) -> list[str]:
    """The lines of a file of a version."""
    return (folder / name).read_text().splitlines()


def messages(folder: Path) -> dict[str, Any]:
    """What a version had on its way."""
    kinds: dict[str, Any] = json.loads((folder / "messages.json").read_text())
    return kinds


def to_be_handed(folder: Path) -> dict[tuple[str, str], list[Any]]:
    """The payloads that a version was given and had not run, by queue and id, in order."""
    left = map(json.loads, lines(folder, "handed.jsonl"))
    return {(each["queue"], each["id"]): each["payloads"] for each in left}


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    """A server for these tests."""
    with Server() as started:
        yield started


@pytest.fixture
def empty(one_server: Server) -> Server:
    """With nothing on it."""
    one_server.admin.flushall()
    return one_server


@pytest.fixture
def old(folder: Path, empty: Server) -> Iterator[Restored]:
    """The data of a version."""
    with restored(folder, empty) as data:
        yield data


def test_this_version_writes_what_is_kept_of_it(empty: Server) -> None:
    """Each line. A version that is not released may write its folder anew, a released one has a form broken here."""
    assert CONTRACT_VERSION == messages(FOLDER)["contract"]
    for name, written in write(empty, FOLDER).items():
        by_line: Callable[[str], Any] = unordered if name == "redis.jsonl" else str
        kept, now = (list(map(by_line, each)) for each in (lines(FOLDER, name), written))
        assert kept == now, f"{name}: python -m tests.frozen.writing, if it is not released"


@each_version
def test_a_server_is_restored_with_plain_commands(folder: Path, empty: Server) -> None:
    """What is kept is all that was there."""
    restore(empty.admin, lines(folder, "redis.jsonl"))

    assert lines(folder, "redis.jsonl") == [*lines_of(empty.admin)]


@each_version
def test_each_payload_is_handed_over_as_it_was_pushed(folder: Path, old: Restored) -> None:
    """Once, in order, whatever state its id was in; operators bring back what is dead, blocked, paused or moving."""
    (task,) = old.app.tasks.list().tasks
    for queue, worker in old.workers.items():
        operate = old.app.operate(worker)
        operate.resume()
        operate.morgue.requeue(everything=True)
        if queue == "Blocking":
            operate.unblock(everything=True)
    old.app.operate(old.workers["Orders"]).resume_jobs(["paused"])
    old.app.operate(old.workers["Spread"]).resume(tenant="acme")
    old.app.operate(old.workers["Moving"]).resharding().go_on(lambda *_: None)

    got: dict[tuple[str, str], list[Any]] = {}
    for _ in range(_HOURS):
        for key, payloads in old.drain().items():
            got.setdefault(key, []).extend(payloads)
        old.clock.advance(3_600.0)
        task_runner(old.app.core, old.clock).run_due(lambda: 10.0)

    callback = got.pop(("Orders", task.id))
    assert to_be_handed(folder) == got
    assert [{"done": True}] == callback


@each_version
def test_operators_see_what_they_saw(folder: Path, old: Restored) -> None:
    """Each record with its values: jobs in all states, runs, tasks, entries, processes, and people's requests."""
    before = json.loads((folder / "seen.json").read_text())

    assert [] == [*lacking(before, seen(old.app, old.clock))]


@each_version
def test_answers_have_what_they_had(folder: Path, old: Restored) -> None:
    """Of the API and of `--json`: each path with its type, of records that the version wrote."""
    before = lines(folder, "answers.txt")
    looks = tuple(dict.fromkeys(line.partition("\t")[0] for line in before))

    assert set() == {*before} - {*answers(old.app, old.clock, looks)}


@pytest.mark.parametrize(("name", "today"), [("api.txt", described), ("names.txt", public_names)])
@each_version
def test_calls_take_and_give_what_they_did(folder: Path, name: str, today: Callable[[], list[str]]) -> None:
    """Of the API and of the public names nothing is gone, and nothing more has to be given."""
    before, now = {*lines(folder, name)}, {*today()}
    calls = {line.partition(" <")[0].partition(" >")[0] for line in before}
    demanded = {line for line in now if " <! " in line and line.partition(" <")[0] in calls}

    assert set() == before - now
    assert demanded <= before


def ingested(folder: Path, old: Restored) -> None:
    """What a version has sent to SQS is pushed."""
    at = str(int(old.clock.time() * 1_000))
    _, records = arrived({"Records": [_record(n, at, sent) for n, sent in enumerate(messages(folder)["sqs"])]})
    assert not ingest(old.app, records)


def swept(folder: Path, old: Restored) -> None:
    """The rows that a version has written for an outbox are pushed."""
    with outbox_database() as (sessions, metadata):
        outbox = Outbox(old.app, sessions, metadata=metadata, clock=old.clock)
        metadata.create_all(sessions.kw["bind"])
        with sessions.begin() as session:
            rows = [row | {"payload": row["payload"].encode("latin-1")} for row in messages(folder)["outbox"]]
            session.execute(outbox.table.insert(), rows)
        outbox.sweep()


@pytest.mark.parametrize("push", [ingested, swept])
@each_version
def test_messages_on_their_way_arrive(folder: Path, old: Restored, push: Callable[[Path, Restored], None]) -> None:
    """Each payload is handed over when it is due, in the order of its id."""
    old.drain()
    push(folder, old)
    first = old.drain()
    old.clock.advance(120.0)

    assert [job["payload"] for job in JOBS[:2]] == first["Orders", "wired"]
    assert [JOBS[2]["payload"]] == old.drain()["Orders", "7"]


@each_version
def test_the_drain_function_understands_its_events(folder: Path, old: Restored) -> None:
    """Each selects the shards that it did."""
    # By then it knows of the move.
    old.drain()
    shards = old.app.core.drains.loop().drainer.shards()
    selections = [(len(selected(event, shards)), ticks(event)) for event in messages(folder)["drain"]]

    assert messages(folder)["drained"] == [[*each] for each in selections]


def _record(number: int, at: str, sent: dict[str, Any]) -> dict[str, Any]:
    """What Lambda hands over of a message that was sent."""
    texts = {
        name: {"stringValue": of["StringValue"], "dataType": of["DataType"]}
        for name, of in sent["MessageAttributes"].items()
    }
    return {
        "messageId": str(number),
        "body": sent["MessageBody"],
        "attributes": {
            "SentTimestamp": at,
            "MessageGroupId": sent["MessageGroupId"],
            "SequenceNumber": str(number),
        },
        "messageAttributes": texts,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:inbox-shop.fifo",
    }
