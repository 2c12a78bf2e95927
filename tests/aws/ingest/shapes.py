"""Events as AWS documents them, with what a test wants in them."""

import json
from collections.abc import Sequence
from typing import Any, Final

QUEUE: Final = "arn:aws:sqs:eu-west-1:123456789012:orders"
FIFO: Final = f"{QUEUE}.fifo"
INBOX: Final = "arn:aws:sqs:eu-west-1:123456789012:inbox-of-the-shop"
STREAM: Final = "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-11-22T00:00:00.000"
SENT_AT: Final = 1_795_000_000.0
"""Unix seconds of a message without a number, of every event and of every object; message 7 is 7 ms younger."""


def sqs(*messages: dict[str, Any]) -> dict[str, Any]:
    """What Lambda's poller hands over."""
    return {"Records": list(messages)}


def message(
    number: int,
    body: object,
    *,
    group: str | None = None,
    attributes: dict[str, Any] | None = None,
    queue: str | None = None,
) -> dict[str, Any]:
    """One message; of a FIFO queue, where it has a group."""
    system = {
        "ApproximateReceiveCount": "1",
        "SentTimestamp": str(int(SENT_AT * 1_000) + number),
        "SenderId": "AIDAIENQZJOLO23YVJ4VO",
        "ApproximateFirstReceiveTimestamp": str(int(SENT_AT * 1_000) + number + 6),
    }
    if group is not None:
        system |= {
            "SequenceNumber": f"1885385625371{number:07}",
            "MessageGroupId": group,
            "MessageDeduplicationId": f"deduplicated-{number}",
        }
    return {
        "messageId": message_id(number),
        "receiptHandle": f"AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a-{number}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": system,
        "messageAttributes": attributes or {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": queue or (QUEUE if group is None else FIFO),
        "awsRegion": "eu-west-1",
    }


def message_id(number: int) -> str:
    """The id of a message."""
    return f"059f36b4-87a3-44ab-83d2-66197{number:07}"


def event_bridge(detail: dict[str, Any], *, source: str = "shop.orders", kind: str = "Order Paid") -> dict[str, Any]:
    """An event as a rule hands it over."""
    return {
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": kind,
        "source": source,
        "account": "123456789012",
        "time": "2026-11-18T11:06:40Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": detail,
    }


def s3(*keys: str, event: str = "ObjectCreated:Put") -> dict[str, Any]:
    """A notification of a bucket; keys as they are written in a URL."""
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "awsRegion": "eu-west-1",
                "eventTime": "2026-11-18T11:06:40.000Z",
                "eventName": event,
                "userIdentity": {"principalId": "AWS:AIDAINPONIXQXHT3IKHL2"},
                "requestParameters": {"sourceIPAddress": "205.255.255.255"},
                "responseElements": {"x-amz-request-id": "D82B88E5F771F645", "x-amz-id-2": "vlR7PnpV2Ce81l0P"},
                "s3": {
                    "s3SchemaVersion": "1.0",
                    "configurationId": "828aa6fc-f7b5-4305-8584-487c791949c1",
                    "bucket": {
                        "name": "reports",
                        "ownerIdentity": {"principalId": "A3I5XTEXAMAI3E"},
                        "arn": "arn:aws:s3:::reports",
                    },
                    "object": {
                        "key": key,
                        "size": 1305107,
                        "eTag": "b21b84d653bb07b05b1e6b33684dc11b",
                        "sequencer": f"0C0F6F405D6ED209{number:02}",
                    },
                },
            }
            for number, key in enumerate(keys)
        ]
    }


def s3_by_event_bridge(key: str) -> dict[str, Any]:
    """The event of the same object, where the bucket tells EventBridge; the key is as it is."""
    detail = {
        "version": "0",
        "bucket": {"name": "reports"},
        "object": {
            "key": key,
            "size": 1305107,
            "etag": "b21b84d653bb07b05b1e6b33684dc11b",
            "sequencer": "0C0F6F405D6ED20900",
        },
        "request-id": "D82B88E5F771F645",
        "requester": "123456789012",
        "source-ip-address": "205.255.255.255",
        "reason": "PutObject",
    }
    return event_bridge(detail, source="aws.s3", kind="Object Created")


S3_TEST: Final = {
    "Service": "Amazon S3",
    "Event": "s3:TestEvent",
    "Time": "2026-11-18T11:06:40.000Z",
    "Bucket": "reports",
    "RequestId": "5582815E1AEA5ADF",
    "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
}


def dynamodb(*changes: dict[str, Any]) -> dict[str, Any]:
    """A batch of a stream."""
    return {"Records": list(changes)}


def change(number: int, order: int, new: dict[str, Any] | None, old: dict[str, Any] | None = None) -> dict[str, Any]:
    """One change of the item of an order; images in DynamoDB's own types."""
    name = "REMOVE" if new is None else "INSERT" if old is None else "MODIFY"
    images = {key: image for key, image in (("NewImage", new), ("OldImage", old)) if image is not None}
    return {
        "eventID": f"c4ca4238a0b923820dcc509a6f7{number:05}",
        "eventName": name,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": SENT_AT,
            "Keys": {"id": {"N": str(order)}},
            **images,
            "SequenceNumber": sequence_number(number),
            "SizeBytes": 26,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": STREAM,
    }


def sequence_number(number: int) -> str:
    """That of a change."""
    return f"4421584500000000017450{number:03}"


def failed(answer: dict[str, Any]) -> Sequence[str]:
    """The records that are to come again, as the function names them."""
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]
