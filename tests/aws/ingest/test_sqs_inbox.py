"""An inbox: what it sends, what it says where SQS does not take it, and what the ingest function makes of it."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from lowkiq_lambda import ConfigError, DeclarationError, JobError, PushInterrupted, Worker
from lowkiq_lambda.aws.inbox_messages import ATTRIBUTE
from lowkiq_lambda.aws.sqs import InboxRefused
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from lowkiq_lambda.jobs.job import ItemRef
from lowkiq_lambda.store.shard.keys import TRACKING
from tests.aws.functions import Install
from tests.aws.ingest import shapes
from tests.aws.ingest.function import IngestFunction
from tests.aws.ingest.inbox_queue import InboxQueue
from tests.kit.apps import MakeApp
from tests.kit.servers import LocalCloud
from tests.kit.workers import jobs_of, shard_of

MEBIBYTE = 1024 * 1024


@pytest.fixture
def ingest(
    install: Install, make_app: MakeApp, queue_name: str, cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> IngestFunction:
    """The function, in a process that takes the local cloud for AWS."""
    function = IngestFunction(install, make_app(), queue_name)
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)
    return function


@pytest.fixture
def fifo(cloud: LocalCloud) -> Iterator[InboxQueue]:
    """An inbox that keeps order."""
    queue = InboxQueue(cloud, fifo=True)
    yield queue
    queue.delete()


@pytest.fixture(params=[True, False], ids=["FIFO", "standard"])
def either(cloud: LocalCloud, request: pytest.FixtureRequest) -> Iterator[InboxQueue]:
    """An inbox of either kind."""
    queue = InboxQueue(cloud, fifo=request.param)
    yield queue
    queue.delete()


class Faults:
    """Stands before SQS: refuses single messages by a text in their bodies, and fails calls by their number."""

    def __init__(self, inbox: SqsInbox) -> None:
        self._real = inbox._sqs._connected()
        self.refused = ""
        self.failing: dict[int, Exception] = {}
        self.calls: list[list[dict[str, Any]]] = []
        inbox._sqs._client = self

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as boto3
        """Send those that are not refused."""
        self.calls.append(Entries)
        if error := self.failing.get(len(self.calls)):
            raise error
        refused = [entry for entry in Entries if self.refused and self.refused in entry["MessageBody"]]
        passed = [entry for entry in Entries if entry not in refused]
        answer: dict[str, Any] = (
            self._real.send_message_batch(QueueUrl=QueueUrl, Entries=passed) if passed else {"Successful": []}
        )
        failed = [{"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in refused]
        return {**answer, "Failed": failed}


def test_jobs_come_to_their_queue_in_order(ingest: IngestFunction, either: InboxQueue) -> None:
    """P3: those of one id as they were pushed; what `push` returns tells that Redis has not got them yet."""
    jobs = [{"id": name, "payload": number} for number, name in enumerate("abacab")]

    pushed = either.inbox.push_many(ingest.worker, jobs)
    event = either.event()
    answer = ingest(event)

    assert list("abacab") == [one.id for one in pushed]
    assert {(True, False, 0)} == {(one.buffered, one.merged, one.shard) for one in pushed}
    assert 3 == len(event["Records"])
    assert {"batchItemFailures": []} == answer
    assert {"a": [0, 2, 4], "b": [1, 5], "c": [3]} == ingest.payloads()


def test_a_job_asks_when_it_is_pushed(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """It is dropped if its id has work then, which is no failure of its message."""
    ingest.worker.push("a", "old")
    fifo.inbox.push_many(
        ingest.worker,
        [{"id": name, "payload": "new", "unless": "busy", "on_conflict": "raise"} for name in ("a", "b")],
    )

    assert {"batchItemFailures": []} == ingest(fifo.event())
    assert {"a": ["old"], "b": ["new"]} == ingest.payloads()
    with pytest.raises(JobError, match="another process pushes this job later"):
        fifo.inbox.push(ingest.worker, "a", on_conflict=print)


def test_each_id_is_a_group_of_its_own(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """Whatever an id is made of: the group is a digest of queue and id, the same with each call."""
    ids = ["a", "день ￿￾\x00\n", "x" * 5_000]
    for _ in range(2):
        fifo.inbox.push_many(ingest.worker, [{"id": job_id} for job_id in ids])

    event = fifo.event()
    groups = [record["attributes"]["MessageGroupId"] for record in event["Records"]]

    assert (6, 3) == (len(groups), len({*groups}))
    assert {"batchItemFailures": []} == ingest(event)
    assert {*ids} == ingest.payloads().keys()


def test_the_score_is_the_time_of_sending_and_a_delay_counts_from_it(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """It does not matter when the message is taken from the queue; what a job says of itself stands."""
    at = datetime(2030, 1, 1, tzinfo=UTC)
    ttl = timedelta(hours=1)
    due = fifo.inbox.push_many(
        ingest.worker,
        [
            {"id": "a", "payload": 1, "score": 17, "key": "k", "key_ttl": ttl},
            {"id": "b", "delay": timedelta(days=9_000)},
            {"id": "c", "due_at": at},
        ],
    )

    event = fifo.event()
    sent = {
        json.loads(record["body"])["jobs"][0]["id"]: int(record["attributes"]["SentTimestamp"]) / 1_000
        for record in event["Records"]
    }
    ingest(event)

    assert [(1, 17.0)] == ingest.waiting("a")
    assert [("", sent["b"])] == ingest.waiting("b")
    (later, planned) = ingest.app.operate(ingest.worker).waiting.fetch(["b", "c"])
    assert (sent["b"] + 9_000 * 86_400, at.timestamp()) == (later.due_at, planned.due_at)
    assert at.timestamp() == due[2].due_at


def test_an_expiry_counts_from_the_time_of_sending(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """Whether the job or its worker says it: the message may lie in SQS for as long as it likes."""
    ingest.worker.expires_in = 500
    fifo.inbox.push_many(ingest.worker, [{"id": "a"}, {"id": "b", "expires_in": 60}, {"id": "c", "delay": 1_000}])

    event = fifo.event()
    sent = {
        json.loads(record["body"])["jobs"][0]["id"]: int(record["attributes"]["SentTimestamp"]) / 1_000
        for record in event["Records"]
    }
    ingest(event)

    explained = {id_: ingest.app.operate(ingest.worker).explain(id_).expires_at for id_ in "abc"}
    assert {"a": sent["a"] + 500, "b": sent["b"] + 60, "c": sent["c"] + 1_500} == explained


def test_client_middlewares_see_a_job_once(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """In the process that pushes, which knows for whom; not again where it is taken from the queue."""

    def add(worker: type[Worker], jobs: Any, call_next: Any) -> Any:
        return call_next(worker, [{**job, "payload": [*job["payload"], "seen"]} for job in jobs])

    ingest.app.client_middlewares.append(add)
    fifo.inbox.push_many(ingest.worker, [{"id": "a", "payload": []}])
    ingest(fifo.event())

    assert {"a": [["seen"]]} == ingest.payloads()


def test_of_an_inbox_what_a_push_has_written_comes_not_again_whatever_the_apps_middlewares(
    ingest: IngestFunction, fifo: InboxQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They saw these jobs before they were sent, so no position has moved since, and what is written is known."""
    ingest.app.client_middlewares.append(lambda worker, jobs, call_next: call_next(worker, jobs))
    for job_id in "abc":
        fifo.inbox.push_many(ingest.worker, jobs_of(job_id))
    event = fifo.event()

    def break_off(*_arguments: object) -> None:
        raise PushInterrupted(written=[0], not_written=[2], unknown=[1])

    monkeypatch.setattr(ingest.app.core.pushes, "push_past_middlewares", break_off)
    assert [record["messageId"] for record in event["Records"][1:]] == shapes.failed(ingest(event))


def test_headers_and_items_travel_with_a_job(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """The trace of a push goes on, and a job of a task stays its item, by whatever way it comes in."""
    item = ItemRef(bytes(range(12)), 7, "row 7")
    fifo.inbox.take(ingest.worker, [{"id": "a", "headers": {"traceparent": "00-ab"}, "item": item}])

    answer = ingest(fifo.event())
    shard = shard_of(ingest.app, ingest.worker, "a").using([TRACKING])
    rows = ingest.app.core.backend.client.hkeys(shard.key("rows"))
    ingest.app.drain()

    assert [] == shapes.failed(answer)
    assert [item.task + item.number.to_bytes(4)] == rows
    assert [[{"traceparent": "00-ab"}]] == [job.headers for job in ingest.notes.jobs[0]]


def test_payloads_of_a_codec_travel_as_it_writes_them(
    install: Install, make_app: MakeApp, ingest: IngestFunction, fifo: InboxQueue
) -> None:
    """Bytes are no JSON: a message has them as base64."""
    app = make_app(dump_payload=bytes, load_payload=bytes)
    coded = IngestFunction(install, app, f"{ingest.worker.queue_name}-coded")
    fifo.inbox.push_many(coded.worker, [{"id": "a", "payload": b"\xff\x00"}])

    answer = coded(fifo.event())

    assert ([], {"a": [b"\xff\x00"]}) == (shapes.failed(answer), coded.payloads())


def test_a_call_takes_as_many_messages_as_sqs_does(ingest: IngestFunction, either: InboxQueue) -> None:
    """Ten, or a mebibyte; a message of each id."""
    faults = Faults(either.inbox)
    either.inbox.push_many(ingest.worker, [{"id": number} for number in range(12)])
    either.inbox.push_many(ingest.worker, [{"id": number, "payload": "x" * 400_000} for number in range(3)])

    assert [10, 2, 2, 1] == [len(entries) for entries in faults.calls]


def test_jobs_of_an_id_that_fit_into_no_message_follow_each_other(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """P3: they are sent one call after the other, so that SQS cannot take the second without the first."""
    faults = Faults(fifo.inbox)
    fifo.inbox.push_many(ingest.worker, [{"id": "a", "payload": letter * 400_000} for letter in "uvwxy"])

    assert [1, 1, 1] == [len(entries) for entries in faults.calls]
    ingest(fifo.event())
    assert list("uvwxy") == [payload[0] for payload in ingest.payloads()["a"]]


def test_jobs_of_an_id_that_are_too_many_for_one_message_follow_each_other(
    ingest: IngestFunction, fifo: InboxQueue
) -> None:
    """P3: a message has a thousand jobs at most, so that none takes the time that others of its batch need."""
    fifo.inbox.push_many(ingest.worker, [{"id": "a", "payload": number} for number in range(2_001)])

    event = fifo.event()
    answer = ingest(event)

    assert [1_000, 1_000, 1] == [len(json.loads(record["body"])["jobs"]) for record in event["Records"]]
    assert [] == shapes.failed(answer)
    ingest.app.drain()
    assert [*range(2_001)] == [payload for batch in ingest.notes.batches for payload in batch["a"]]


def test_a_job_that_no_message_takes_is_refused(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """By its position, before anything is sent; as overflow it is SQS that did not take it."""
    jobs = [{"id": "a"}, {"id": "b", "payload": "x" * MEBIBYTE}]

    with pytest.raises(JobError, match=r"^job 1: payload: takes 1,048,\d+ bytes of a message, and SQS takes 1,047,552"):
        fifo.inbox.push_many(ingest.worker, jobs)
    with pytest.raises(InboxRefused, match="SQS cannot take the jobs: job 1"):
        fifo.inbox.take(ingest.worker, jobs)

    assert {"Records": []} == fifo.event()


@pytest.mark.parametrize("job", [{"id": "a", "scores": 1}, {"id": ["a"]}, {"id": "a", "score": "1"}])
def test_a_job_is_checked_before_it_is_sent(ingest: IngestFunction, fifo: InboxQueue, job: Mapping[str, Any]) -> None:
    """As by `push_many`: nothing of the call is sent."""
    with pytest.raises(JobError, match=r"^job 1:"):
        fifo.inbox.push_many(ingest.worker, [{"id": "b"}, job])

    assert {"Records": []} == fifo.event()


@pytest.mark.parametrize(
    ("fields", "messages"),
    [({}, 2), ({"key": "k"}, 1), ({"key": "k", "key_ttl": 299}, 2), ({"key": "k", "key_ttl": 300}, 1)],
)
def test_a_key_is_known_to_a_fifo_queue(
    ingest: IngestFunction, fifo: InboxQueue, fields: Mapping[str, Any], messages: int
) -> None:
    """A second message with the key is not even kept, unless the key is to be forgotten sooner than SQS forgets."""
    for _ in range(2):
        fifo.inbox.push_many(ingest.worker, [{"id": "a", "payload": 1, **fields}])

    event = fifo.event()
    ingest(event)

    assert messages == len(event["Records"])
    assert {"a": [1]} == ingest.payloads()


def test_after_a_refused_message_none_of_its_id_is_sent(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """P3: a later one would overtake it; of other ids all are sent, and the error tells which are not."""
    faults = Faults(fifo.inbox)
    faults.refused = "v" * 100
    jobs = [{"id": "a", "payload": letter * 600_000} for letter in "uvw"] + [{"id": "b", "payload": 1}]

    with pytest.raises(PushInterrupted, match=r"SQS took 2 of 4 jobs \(SQS did not take a message: Internal") as caught:
        fifo.inbox.push_many(ingest.worker, jobs)

    assert ([0, 3], [1, 2], []) == (caught.value.written, caught.value.not_written, caught.value.unknown)
    ingest(fifo.event())
    assert {"a": ["u" * 600_000], "b": [1]} == ingest.payloads()


def test_where_no_message_is_taken_nothing_is_sent(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """The error is one of the back end, so that whoever handles those handles this."""
    faults = Faults(fifo.inbox)
    faults.refused = "queue"

    with pytest.raises(InboxRefused, match="InternalError"):
        fifo.inbox.push_many(ingest.worker, jobs_of("ab"))


def test_where_sqs_cannot_be_reached_the_first_call_is_the_last(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """No push waits for it more than once."""
    faults = Faults(fifo.inbox)
    faults.failing = {1: EndpointConnectionError(endpoint_url=fifo.url)}

    with pytest.raises(InboxRefused, match="Could not connect"):
        fifo.inbox.push_many(ingest.worker, [{"id": number} for number in range(20)])

    assert 1 == len(faults.calls)


def test_where_an_answer_is_missing_it_is_unknown_what_was_taken(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """What was sent before is written, what was not sent yet is not."""
    faults = Faults(fifo.inbox)
    faults.failing = {2: ReadTimeoutError(endpoint_url=fifo.url)}

    with pytest.raises(PushInterrupted) as caught:
        fifo.inbox.push_many(ingest.worker, [{"id": number} for number in range(25)])

    told = caught.value
    assert ([*range(10)], [*range(20, 25)], [*range(10, 20)]) == (told.written, told.not_written, told.unknown)


def test_a_queue_that_is_not_there_takes_nothing(ingest: IngestFunction, fifo: InboxQueue) -> None:
    """SQS's own words tell why."""
    with pytest.raises(InboxRefused, match=r"SQS did not take the jobs: .*NonExistentQueue"):
        SqsInbox(f"{fifo.url}-gone.fifo").push_many(ingest.worker, jobs_of("a"))


@pytest.mark.parametrize(
    ("body", "version", "why"),
    [
        ({"queue": "nobody's", "jobs": []}, "1", "this app does not declare"),
        ({"queue": "nobody's"}, "1", "is none of an inbox"),
        ("no JSON", "1", "is none of an inbox"),
        ({}, "2", "is of version 2, and this library reads 1"),
        ({"queue": "any", "jobs": [{"id": "a"}] * 1_001}, "1", "has 1,001 jobs, and may have 1,000"),
    ],
)
def test_a_message_that_cannot_be_read_fails(  # noqa: PLR0913, PLR0917 - what it is, and what is said
    install: Install,
    make_app: MakeApp,
    queue_name: str,
    capsys: pytest.CaptureFixture[str],
    body: object,
    version: str,
    why: str,
) -> None:
    """It comes again, and ends in the dead-letter queue; the log says why."""
    function = IngestFunction(install, make_app(), queue_name)
    attributes = {ATTRIBUTE: {"stringValue": version, "dataType": "String"}}

    answer = function(shapes.sqs(shapes.message(1, body, attributes=attributes, queue=shapes.INBOX)))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert why in capsys.readouterr().out


def test_a_payload_of_a_codec_cannot_be_read_without_it(ingest: IngestFunction) -> None:
    """It comes again, until the app that has the codec is deployed."""
    body = {"queue": ingest.worker.queue_name, "jobs": [{"id": "a", "dumped": "AAE="}]}
    attributes = {ATTRIBUTE: {"stringValue": "1", "dataType": "String"}}

    answer = ingest(shapes.sqs(shapes.message(1, body, attributes=attributes, queue=shapes.INBOX)))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert {} == ingest.payloads()


def test_an_inbox_needs_the_url_of_a_queue() -> None:
    """Its name or ARN is refused at once."""
    for name in ("orders.fifo", shapes.FIFO, ""):
        with pytest.raises(ConfigError, match="An inbox takes the URL of a queue"):
            SqsInbox(name)


def test_a_worker_of_no_app_cannot_be_pushed_to() -> None:
    """The inbox has no codec and no middlewares without one."""
    with pytest.raises(DeclarationError, match="Worker is not bound to an app"):
        SqsInbox("https://sqs.eu-west-1.amazonaws.com/1/a").push_many(Worker, [{"id": 1}])
