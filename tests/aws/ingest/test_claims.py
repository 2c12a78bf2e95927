"""What the sender of a message claims of it, and what of that is believed."""

from typing import Any

import pytest

from lowkiq_lambda import Incoming
from lowkiq_lambda.aws.inbox_messages import ATTRIBUTE
from tests.aws.functions import Install
from tests.aws.ingest import shapes
from tests.aws.ingest.function import IngestFunction
from tests.kit.apps import MakeApp

OF_AN_INBOX = {ATTRIBUTE: {"stringValue": "1", "dataType": "String"}}
"""What whoever may send to a queue can write beside a message."""


def order_of(function: IngestFunction, queue: str, job_id: str = "evil") -> dict[str, Any]:
    """An event: a message in the queue of SQS that names a queue of the app."""
    body = {"queue": function.worker.queue_name, "jobs": [{"id": job_id, "payload": 1}]}
    return shapes.sqs(shapes.message(1, body, attributes=OF_AN_INBOX, queue=queue))


def test_a_message_of_a_queue_that_is_not_an_inbox_names_no_queue_of_the_app(
    ingest: IngestFunction, capsys: pytest.CaptureFixture[str]
) -> None:
    """No job of it is pushed past the mapping functions; it comes again, and the log says what to declare."""
    ingest.app.ingest("orders")(lambda _record: None)

    answer = ingest(order_of(ingest, shapes.QUEUE))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert {} == ingest.payloads()
    assert f"{shapes.QUEUE} is not an inbox: declare it by app.inbox()" in capsys.readouterr().out


def test_the_inbox_of_the_stack_needs_no_declaration(install: Install, make_app: MakeApp, queue_name: str) -> None:
    """The template names it by LOWKIQ_INBOX_ARN; no other queue is taken for it, whatever its name."""
    function = IngestFunction(install, app := make_app(), queue_name)
    install(app, inbox_arn=shapes.QUEUE)

    (good, bad, other) = [
        function(order_of(function, queue, job_id))
        for job_id, queue in (("a", shapes.QUEUE), ("b", shapes.QUEUE + "-2"), ("c", shapes.QUEUE.replace("12", "21")))
    ]

    assert [[], [shapes.message_id(1)], [shapes.message_id(1)]] == [shapes.failed(one) for one in (good, bad, other)]
    assert {"a": [1]} == function.payloads()


@pytest.mark.parametrize("pattern", [shapes.QUEUE, "orders", "ord*", "arn:aws:sqs:*:123456789012:orders"])
def test_a_queue_of_ones_own_is_an_inbox_where_the_app_says_so(ingest: IngestFunction, pattern: str) -> None:
    """By its ARN, its name, or a pattern of one."""
    ingest.app.inbox(pattern)

    assert [] == shapes.failed(ingest(order_of(ingest, shapes.QUEUE, "a")))
    assert {"a": [1]} == ingest.payloads()


def test_an_inbox_may_be_for_some_queues_alone(install: Install, make_app: MakeApp, queue_name: str) -> None:
    """Its messages for others come again; that counts for the inbox of the stack, too."""
    function = IngestFunction(install, app := make_app(), queue_name)
    install(app, inbox_arn=shapes.QUEUE)
    app.inbox("orders", queues=["another"])
    app.inbox("partners", queues=[queue_name])

    refused = function(order_of(function, shapes.QUEUE))
    taken = function(order_of(function, shapes.QUEUE.replace("orders", "partners"), "a"))

    assert ([shapes.message_id(1)], []) == (shapes.failed(refused), shapes.failed(taken))
    assert {"a": [1]} == function.payloads()


@pytest.mark.parametrize("body", [shapes.s3("a.csv"), shapes.s3_by_event_bridge("a.csv")], ids=["S3", "EventBridge"])
def test_a_message_does_not_choose_its_own_source(ingest: IngestFunction, body: dict[str, Any]) -> None:
    """A body in the form of a notification is a body, for the mapping function of the queue that it came in."""
    given = list[Incoming]()
    ingest.app.ingest("reports")(lambda _record: [(ingest.worker, {"id": "an object that nobody put"})])
    ingest.app.ingest("orders")(given.append)

    answer = ingest(shapes.sqs(shapes.message(1, body)))

    assert [] == shapes.failed(answer)
    assert [("sqs", shapes.QUEUE, body)] == [(one.kind, one.source, one.body) for one in given]
    assert {} == ingest.payloads()


def test_notifications_come_by_the_queue_that_a_function_names(ingest: IngestFunction) -> None:
    """Other messages of that queue stay what they are; a bucket that no function of the queue is for fails."""

    def note(record: Incoming) -> Any:
        yield ingest.worker, {"id": record.source, "payload": record.kind}

    ingest.app.ingest("reports", via="orders")(note)
    ingest.app.ingest("orders")(note)
    ingest.app.ingest("others")(note)
    foreign = shapes.s3("a.csv")
    foreign["Records"][0]["s3"]["bucket"]["name"] = "others"
    bodies = [shapes.s3("a.csv"), {"order": 7}, foreign, shapes.S3_TEST]

    answer = ingest(shapes.sqs(*(shapes.message(number, body) for number, body in enumerate(bodies))))

    assert [shapes.message_id(2)] == shapes.failed(answer)
    assert {"reports": ["s3"], shapes.QUEUE: ["sqs"]} == ingest.payloads()
