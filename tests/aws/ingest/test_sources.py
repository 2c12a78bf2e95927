"""What came in, by each way, as a mapping function sees it."""

from typing import Any

import pytest

from lowkiq_lambda import Incoming
from lowkiq_lambda.aws.sources import UnknownSource, arrived, unwrapped
from tests.aws.ingest import shapes


def came_in(event: dict[str, Any]) -> list[Incoming]:
    """All of an event."""
    return [incoming for record in arrived(event).records for incoming in record.read()]


def told_by(event: dict[str, Any]) -> list[Incoming]:
    """All of an event, where the queues of its messages are declared to carry notifications."""
    return [
        one for incoming in came_in(event) for one in (unwrapped(incoming) if incoming.kind == "sqs" else [incoming])
    ]


def test_a_message_is_its_body_with_its_attributes() -> None:
    """JSON is read, other text stays; attributes are texts, binary ones as base64; the time is that of sending."""
    attributes = {
        "tenant": {"stringValue": "acme", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
        "weight": {"stringValue": "7", "stringListValues": [], "binaryListValues": [], "dataType": "Number"},
        "digest": {"binaryValue": "AQID", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
    }
    event = shapes.sqs(
        shapes.message(1, {"order": 7}, attributes=attributes),
        shapes.message(2, "no JSON {"),
        shapes.message(3, "x", group="g"),
    )

    first, second, third = came_in(event)

    assert ("sqs", shapes.QUEUE, shapes.message_id(1)) == (first.kind, first.source, first.id)
    assert (shapes.SENT_AT + 0.001, {"order": 7}, None) == (first.time, first.body, first.group)
    assert {"tenant": "acme", "weight": "7", "digest": "AQID"} == first.attributes
    assert event["Records"][0] == first.raw
    assert ("no JSON {", "g", shapes.FIFO) == (second.body, third.group, third.source)


def test_only_a_fifo_queue_keeps_groups_in_order() -> None:
    """A standard queue may have groups for fairness, and promises no order in them."""
    records = [
        shapes.message(1, "x", group="g"),
        shapes.message(2, "x", group="g", queue=shapes.QUEUE),
        shapes.message(3, "x"),
    ]

    assert ["g", None, None] == [record.group for record in arrived(shapes.sqs(*records)).records]


def test_an_event_of_a_bus_is_its_detail() -> None:
    """Its `source` is the source, and what else it says are attributes."""
    event = shapes.event_bridge({"order": 7})

    (incoming,) = came_in(event)

    assert ("eventbridge", "shop.orders", event["id"]) == (incoming.kind, incoming.source, incoming.id)
    assert (shapes.SENT_AT, {"order": 7}, None) == (incoming.time, incoming.body, incoming.via)
    assert ("Order Paid", "eu-west-1") == (incoming.attributes["detail-type"], incoming.attributes["region"])


OBJECT = {
    "event": "ObjectCreated:Put",
    "bucket": "reports",
    "key": "a b/ü.csv",
    "sequencer": "0C0F6F405D6ED20900",
    "size": 1305107,
    "etag": "b21b84d653bb07b05b1e6b33684dc11b",
    "version_id": None,
}
WRITTEN = "a+b/%C3%BC.csv"
"""The object's key as it stands in a notification."""


@pytest.mark.parametrize(
    ("event", "via", "name"),
    [
        (shapes.s3(WRITTEN), None, "ObjectCreated:Put"),
        (shapes.sqs(shapes.message(1, shapes.s3(WRITTEN))), shapes.QUEUE, "ObjectCreated:Put"),
        (shapes.s3_by_event_bridge("a b/ü.csv"), None, "Object Created"),
        (shapes.sqs(shapes.message(1, shapes.s3_by_event_bridge("a b/ü.csv"))), shapes.QUEUE, "Object Created"),
    ],
    ids=["direct", "by SQS", "by EventBridge", "by EventBridge and SQS"],
)
def test_an_object_is_the_same_by_each_way(event: dict[str, Any], via: str | None, name: str) -> None:
    """One value and one identity, so that a notification that comes by two ways is one; the key is as S3 has it."""
    (incoming,) = told_by(event)

    assert {**OBJECT, "event": name} == incoming.body
    assert ("s3", "reports", via, shapes.SENT_AT) == (incoming.kind, incoming.source, incoming.via, incoming.time)
    assert "reports/a b/ü.csv 0C0F6F405D6ED20900" == incoming.id


def test_a_plus_in_the_key_of_an_object_stays_one() -> None:
    """EventBridge has keys as they are; a notification has them as in a URL."""
    events = (shapes.s3_by_event_bridge("a+b %41"), shapes.s3("a%2Bb+%2541"))

    assert ["a+b %41"] * 2 == [incoming.body["key"] for event in events for incoming in came_in(event)]


def test_a_change_without_a_sequencer_is_told_apart_by_its_time() -> None:
    """Only what writes or deletes an object has one."""
    event = shapes.s3("a.csv", event="ObjectRestore:Completed")
    del event["Records"][0]["s3"]["object"]["sequencer"]

    (incoming,) = came_in(event)

    assert "reports/a.csv ObjectRestore:Completed 2026-11-18T11:06:40.000Z" == incoming.id


@pytest.mark.parametrize("event", [shapes.S3_TEST, shapes.sqs(shapes.message(1, shapes.S3_TEST))])
def test_the_test_of_s3_is_nothing(event: dict[str, Any]) -> None:
    """What S3 sends when notifications are switched on is no object, and must not end in the dead-letter queue."""
    assert [] == told_by(event)


def test_a_notification_of_several_objects_is_one_record() -> None:
    """All its objects come in by the message that Lambda hands over."""
    event = shapes.sqs(shapes.message(1, shapes.s3("a.csv", "b.csv")))

    (message,) = came_in(event)

    assert ["a.csv", "b.csv"] == [one.body["key"] for one in unwrapped(message)]


def test_a_change_of_an_item_has_its_values_as_json_has_them() -> None:
    """Images before and after, numbers as numbers, sets as lists; what an event does not have is None."""
    new = {"id": {"N": "7"}, "price": {"N": "9.5"}, "tags": {"SS": ["b", "a"]}, "sizes": {"NS": ["2", "1"]}}
    nested = {"lines": {"L": [{"M": {"n": {"N": "3"}}}]}, "gone": {"NULL": True}, "paid": {"BOOL": False}}

    inserted, removed = came_in(shapes.dynamodb(shapes.change(1, 7, new | nested), shapes.change(2, 7, None, new)))

    plain = {"id": 7, "price": 9.5, "tags": ["a", "b"], "sizes": [1, 2]}
    assert ("INSERT", {"id": 7}, None) == (inserted.body["event"], inserted.body["keys"], inserted.body["old"])
    assert {**plain, "lines": [{"n": 3}], "gone": None, "paid": False} == inserted.body["new"]
    assert ("REMOVE", None, plain) == (removed.body["event"], removed.body["new"], removed.body["old"])
    assert ("dynamodb", shapes.STREAM, shapes.SENT_AT) == (removed.kind, removed.source, removed.time)
    assert (shapes.sequence_number(2), "c4ca4238a0b923820dcc509a6f700002") == (
        removed.body["sequence_number"],
        removed.id,
    )


def test_a_record_of_a_stream_without_a_change_cannot_be_read() -> None:
    """It is told when it is read, as a failure of that record."""
    event = shapes.dynamodb({"eventSource": "aws:dynamodb", "eventSourceARN": shapes.STREAM})

    (record,) = arrived(event).records

    with pytest.raises(UnknownSource, match="no change in it"):
        record.read()


@pytest.mark.parametrize(
    ("source", "via", "names"),
    [
        (shapes.FIFO, None, [shapes.FIFO, "orders.fifo"]),
        (shapes.STREAM, None, [shapes.STREAM, "orders"]),
        ("shop.orders", None, ["shop.orders"]),
        ("reports", shapes.QUEUE, ["reports"]),
    ],
)
def test_what_a_pattern_may_match(source: str, via: str | None, names: list[str]) -> None:
    """ARN and name of what it came from; the queue that it came through is named apart."""
    assert names == Incoming(kind="sqs", source=source, id="1", time=0.0, via=via).names
