"""Jobs that come into the deployed stack: by its inbox, a queue, a stream, events and objects.

All are changes that leave no file: the other tests compare the files with those of git.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from local.replay.jobs import ApplyChanges
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from tests.e2e.stack import Stack
from tests.kit.waiting import eventually

pytestmark = pytest.mark.timeout(400)  # where it runs alone, it has the packages built and the stack deployed


class Sources:
    """A queue, a table with a stream, and a bucket that tells EventBridge."""

    def __init__(self, stack: Stack) -> None:
        self.name = f"ingest-{uuid4().hex[:8]}"
        self._sqs, self._dynamodb, self._s3 = (stack.cloud.client(name) for name in ("sqs", "dynamodb", "s3"))
        dead = self._made_queue(f"{self.name}-dead")
        redrive = {"deadLetterTargetArn": self._arn_of(dead), "maxReceiveCount": 1}
        self.dead_letters = dead
        self.queue = self._made_queue(self.name, VisibilityTimeout="180", RedrivePolicy=json.dumps(redrive))
        self.queue_arn = self._arn_of(self.queue)
        key = [{"AttributeName": "path", "KeyType": "HASH"}]
        self.stream_arn: str = self._dynamodb.create_table(
            TableName=self.name,
            KeySchema=key,
            AttributeDefinitions=[{"AttributeName": "path", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )["TableDescription"]["LatestStreamArn"]
        self._s3.create_bucket(Bucket=self.name)
        self._s3.put_bucket_notification_configuration(
            Bucket=self.name, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )

    def send(self, **body: Any) -> None:
        """A message."""
        self._sqs.send_message(QueueUrl=self.queue, MessageBody=json.dumps(body))

    def set_visibility(self, seconds: int) -> None:
        """For how long the messages that are received from now on are nobody else's."""
        self._sqs.set_queue_attributes(QueueUrl=self.queue, Attributes={"VisibilityTimeout": str(seconds)})

    def messages(self, url: str) -> int:
        """How many messages a queue has, those among them that somebody has received."""
        wanted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
        return sum(int(told[name]) for name in wanted)

    def put_item(self, path: str, seq: int) -> None:
        """A change of an item."""
        item = {"path": {"S": path}, "seq": {"N": str(seq)}}
        self._dynamodb.put_item(TableName=self.name, Item=item)

    def put_object(self, key: str) -> None:
        """An object."""
        self._s3.put_object(Bucket=self.name, Key=key, Body=b"content")

    def delete(self, key: str) -> None:
        """Take all of it away."""
        for url in (self.queue, self.dead_letters):
            self._sqs.delete_queue(QueueUrl=url)
        self._dynamodb.delete_table(TableName=self.name)
        self._s3.delete_object(Bucket=self.name, Key=key)
        self._s3.delete_bucket(Bucket=self.name)

    def _made_queue(self, name: str, **attributes: str) -> str:
        url: str = self._sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def _arn_of(self, url: str) -> str:
        arn: str = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        return arn


OBJECT = f"{uuid4().hex[:8]}/an object+ü.csv"


@pytest.fixture(scope="module")
def sources(stack: Stack) -> Iterator[Sources]:
    """What the stack takes jobs from."""
    sources = Sources(stack)
    stack.deployment.update(
        Inbox="fifo",
        IngestQueueArn=sources.queue_arn,
        IngestStreamArn=sources.stream_arn,
        StreamFilter='{"eventName": ["INSERT", "MODIFY"]}',
        IngestEventSources="shop",
        IngestEventTypes="File Changed",
        IngestBuckets=sources.name,
    )
    yield sources
    sources.delete(OBJECT)


@pytest.fixture
def wait_for(stack: Stack) -> Callable[[str, int], None]:
    """Drains until a file has had a change."""

    def wait(path: str, seq: int) -> None:
        def is_applied() -> bool:
            stack.invoke("Drain", {})
            return stack.newest(path) == seq

        eventually(is_applied, timeout=60, what=f"change {seq} of {path}")

    return wait


def new_path() -> str:
    """A file that there has never been."""
    return f"{uuid4().hex[:8]}/file"


def test_jobs_come_by_the_inbox_in_order(
    stack: Stack, sources: Sources, wait_for: Callable[[str, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3: a process without a way to Redis pushes by the FIFO queue; the handler checks the order that it meets."""
    assert sources.queue_arn
    for name, value in stack.cloud.environment.items():
        monkeypatch.setenv(name, value)
    inbox, path = SqsInbox(stack.deployment.outputs["InboxUrl"]), new_path()

    for seq in (1, 2, 3):
        inbox.push_many(ApplyChanges, [{"id": path, "payload": [seq, None]}])

    wait_for(path, 3)


def test_a_message_becomes_a_job_and_a_bad_one_stays(sources: Sources, wait_for: Callable[[str, int], None]) -> None:
    """A standard queue: the bad message is to come again, the good one is gone."""
    path = new_path()
    sources.send(no="change")
    sources.send(path=path, seq=7)

    wait_for(path, 7)
    eventually(lambda: sources.messages(sources.queue) == 1, timeout=60, what="the end of the good message")


def test_a_message_that_failed_often_enough_is_set_aside(sources: Sources) -> None:
    """Poison: the queue gives it up after as many tries as its redrive policy says."""
    sources.set_visibility(1)
    sources.send(no="change")

    eventually(lambda: sources.messages(sources.dead_letters) == 1, timeout=60, what="the bad message set aside")


def test_changes_of_an_item_become_jobs(sources: Sources, wait_for: Callable[[str, int], None]) -> None:
    """A stream of DynamoDB: one change after the other."""
    path = new_path()
    for seq in (1, 2):
        sources.put_item(path, seq)

    wait_for(path, 2)


def test_an_event_becomes_a_job(stack: Stack, sources: Sources, wait_for: Callable[[str, int], None]) -> None:
    """EventBridge hands it over by the rule on its source."""
    assert sources.queue_arn
    path = new_path()
    detail = json.dumps({"path": path, "seq": 5})
    entry = {"Source": "shop", "DetailType": "File Changed", "Detail": detail}
    stack.cloud.client("events").put_events(Entries=[entry])

    wait_for(path, 5)


@pytest.mark.nightly("another event of EventBridge becomes a job in each check")
def test_an_object_becomes_a_job(sources: Sources, wait_for: Callable[[str, int], None]) -> None:
    """A bucket that tells EventBridge needs no more than its name; the object's key comes as it is."""
    sources.put_object(OBJECT)

    wait_for(OBJECT, 1)
