"""What an event of a source holds: records, each with what came in by it. Powertools knows how AWS writes them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_plus

import msgspec
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord
from aws_lambda_powertools.utilities.data_classes.event_bridge_event import EventBridgeEvent
from aws_lambda_powertools.utilities.data_classes.s3_event import S3EventBridgeNotificationEvent, S3EventRecord
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSMessageAttribute, SQSRecord

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.jobs.incoming import Incoming

Retrying: TypeAlias = Literal["messages", "stream", "event"]
"""What a source repeats: each message by itself, a stream from a record on, or the whole event."""


class UnknownSource(LowkiqError):
    """The event is of no source that the ingest function knows: SQS, EventBridge, S3 or a stream of DynamoDB."""


class Record(NamedTuple):
    """One record of an event."""

    identifier: str
    """By which Lambda is told that it failed."""
    group: str | None
    """Records of one group are in order, and none may overtake another."""
    read: Callable[[], list[Incoming]]
    """What came in by it. Raises any error where the record is not as AWS writes it."""


class Arrived(NamedTuple):
    """All records of an event, in its order."""

    retrying: Retrying
    records: list[Record]


def arrived(event: object) -> Arrived:
    """The records of the event. Raises UnknownSource."""
    if isinstance(event, Mapping):
        records = event.get("Records")
        if isinstance(records, list):
            source = _source_of(records)
            if source in _BY_SOURCE:
                retrying, record_of = _BY_SOURCE[source]
                return Arrived(retrying, [record_of(record) for record in records])
        elif "detail-type" in event and "source" in event:
            return Arrived("event", [Record(str(event.get("id")), None, lambda: [_from_event_bridge(event)])])
        elif _is_test_of_s3(event):
            return Arrived("event", [])
    raise UnknownSource


def _source_of(records: list[Any]) -> object:
    first = records[0] if records else None
    return first.get("eventSource") if isinstance(first, Mapping) else None


def _sqs_record(record: dict[str, Any]) -> Record:
    message = SQSRecord(record)
    # A standard queue may have groups too, but keeps no order in them.
    is_fifo = message.event_source_arn.endswith(".fifo")
    group = message.attributes.message_group_id if is_fifo else None
    return Record(message.message_id, group, lambda: [_from_sqs(message)])


def _from_sqs(message: SQSRecord) -> Incoming:
    return Incoming(
        kind="sqs",
        source=message.event_source_arn,
        id=message.message_id,
        time=int(message.attributes.sent_timestamp) / 1_000,
        body=_json_or_text(message.body),
        attributes={name: _value(attribute) for name, attribute in message.message_attributes.items()},
        group=message.attributes.message_group_id,
        raw=message.raw_event,
    )


def unwrapped(message: Incoming) -> list[Incoming]:
    """The objects that an SQS message names, if it is a notification of S3; else the message itself.

    Any sender to the queue can write such a message: only for a queue that is declared to carry notifications.
    """
    queue, body = message.source, message.body
    if isinstance(body, Mapping):
        if _is_test_of_s3(body):
            return []
        if _source_of(body.get("Records") or []) == "aws:s3":
            return [_from_s3(S3EventRecord(record), via=queue) for record in body["Records"]]
        if body.get("source") == "aws.s3" and "detail-type" in body:
            return [_from_event_bridge(body, via=queue)]
    return [message]


def _value(attribute: SQSMessageAttribute) -> object:
    binary = attribute.data_type.startswith("Binary")
    return attribute.binary_value if binary else attribute.string_value


def _from_event_bridge(envelope: Mapping[str, Any], via: str | None = None) -> Incoming:
    event = EventBridgeEvent(dict(envelope))
    if event.source == "aws.s3" and "object" in event.detail:
        return _from_s3_event(S3EventBridgeNotificationEvent(dict(envelope)), via)
    return Incoming(
        kind="eventbridge",
        source=event.source,
        id=event.get_id,
        time=_seconds(event.time),
        body=event.detail,
        attributes={name: value for name, value in envelope.items() if name not in {"detail", "id", "source", "time"}},
        via=via,
        raw=envelope,
    )


def _from_s3_event(event: S3EventBridgeNotificationEvent, via: str | None) -> Incoming:
    stored_object = event.detail.object
    # Not by the property `key`: here it is as it is, and no part of a URL.
    body = _s3_body(event.detail_type, event.detail.bucket.name, stored_object["key"], stored_object.get("sequencer"))
    body |= {"size": stored_object.size, "etag": stored_object.etag, "version_id": stored_object.get("version-id")}
    return _of_bucket(body, event.get_id, _seconds(event.time), event.raw_event, via)


def _from_s3(record: S3EventRecord, via: str | None = None) -> Incoming:
    stored_object = record.s3.get_object
    body = _s3_body(
        record.event_name, record.s3.bucket.name, unquote_plus(stored_object.key), stored_object.get("sequencer")
    )
    body |= {"size": stored_object.get("size"), "etag": stored_object.etag, "version_id": stored_object.version_id}
    otherwise = f"{record.event_name} {record.event_time}"
    return _of_bucket(body, otherwise, _seconds(record.event_time), record.raw_event, via)


def _s3_body(event: str, bucket: str, key: str, sequencer: str | None) -> dict[str, Any]:
    return {"event": event, "bucket": bucket, "key": key, "sequencer": sequencer}


def _of_bucket(body: dict[str, Any], otherwise: str, time: float, raw: Mapping[str, Any], via: str | None) -> Incoming:
    """`otherwise` tells changes apart that have no sequencer: those that do not write the object."""
    # The same one by whatever way a notification comes, and however often.
    identity = f"{body['bucket']}/{body['key']} {body['sequencer'] or otherwise}"
    return Incoming(kind="s3", source=body["bucket"], id=identity, time=time, body=body, via=via, raw=raw)


def _s3_record(record: dict[str, Any]) -> Record:
    return Record(f"{record.get('eventName')}", None, lambda: [_from_s3(S3EventRecord(record))])


def _dynamodb_record(change: dict[str, Any]) -> Record:
    record = DynamoDBRecord(change)
    stream = record.event_source_arn or ""
    return Record(str(change.get("dynamodb", {}).get("SequenceNumber")), stream, lambda: [_from_dynamodb(record)])


def _from_dynamodb(record: DynamoDBRecord) -> Incoming:
    change = record.dynamodb
    if change is None or record.event_name is None:
        raise UnknownSource("A record of the stream has no change in it.")
    body = {
        "event": record.event_name.name,
        "keys": _plain(change.keys),
        "new": _plain(change.new_image) if "NewImage" in change else None,
        "old": _plain(change.old_image) if "OldImage" in change else None,
        "sequence_number": change.sequence_number,
    }
    return Incoming(
        kind="dynamodb",
        source=str(record.event_source_arn),
        id=str(record.event_id),
        time=float(change["ApproximateCreationDateTime"]),
        body=body,
        raw=record.raw_event,
    )


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever an item holds
    """With numbers and lists as JSON has them. Binary values are base64, as Lambda hands them over."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, set):
        return [_plain(one) for one in sorted(value)]
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _json_or_text(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _is_test_of_s3(event: Mapping[str, Any]) -> bool:
    """Whether it is what S3 sends when notifications are switched on."""
    return event.get("Event") == "s3:TestEvent"


_BY_SOURCE: Final[Mapping[object, tuple[Retrying, Callable[[dict[str, Any]], Record]]]] = {
    "aws:sqs": ("messages", _sqs_record),
    "aws:dynamodb": ("stream", _dynamodb_record),
    "aws:s3": ("event", _s3_record),
}
