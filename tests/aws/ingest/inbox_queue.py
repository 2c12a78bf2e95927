"""A queue of the local cloud, as an inbox sends to it and as Lambda's poller takes from it."""

from typing import Any
from uuid import uuid4

from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from tests.kit.servers import LocalCloud


class InboxQueue:
    """A queue of its own."""

    def __init__(self, cloud: LocalCloud, *, fifo: bool) -> None:
        self._api = cloud.client("sqs")
        attributes = {"FifoQueue": "true"} if fifo else {}
        name = f"inbox-{uuid4().hex}{'.fifo' if fifo else ''}"
        self.url: str = self._api.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.inbox = SqsInbox(self.url)

    def delete(self) -> None:
        """Take it away."""
        self._api.delete_queue(QueueUrl=self.url)

    def event(self) -> dict[str, Any]:
        """All its messages, as Lambda hands them over; they are gone from the queue."""
        records = list[dict[str, Any]]()
        while batch := self._api.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages"):
            for message in batch:
                records.append(_record(message, self.url.rpartition("/")[2]))
                self._api.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return {"Records": records}


def _record(message: dict[str, Any], name: str) -> dict[str, Any]:
    """A message in the form of Lambda, which begins its names in small letters."""
    attributes = {
        attribute: {field[0].lower() + field[1:]: value for field, value in said.items()}
        for attribute, said in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{name}",
        "awsRegion": "us-east-1",
    }
