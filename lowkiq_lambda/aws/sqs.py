"""Sends messages to a queue of SQS, as many with a call as it takes."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.providers.aws.clients import connect

BATCH_MESSAGES: Final = 10
BATCH_BYTES: Final = 1_048_576
"""Of all messages of a call together, and of a single one."""


class InboxRefused(BackendError):
    """SQS did not take the jobs: its own words are in the cause."""


class SqsMessage(NamedTuple):
    """A message as SendMessageBatch takes it, but for its number in the batch. `place` is up to the caller."""

    place: int
    fields: dict[str, Any]
    size: int


class Sent(NamedTuple):
    """What became of messages: the places of those that SQS took, and the error of those that it may have taken."""

    taken: list[int]
    unknown: list[int]
    error: Exception | None


class Sqs:
    """One queue. Safe to use from several threads."""

    def __init__(self, url: str, region: str | None) -> None:
        self._url = url
        self._region = region
        self._client: Any = None
        self._lock = threading.Lock()

    def send(self, messages: Sequence[SqsMessage]) -> Sent:
        """Send them, at most one for each place. Ends with the first call that fails as a whole."""
        positions, first = list[int](), None
        for batch in _batches(messages):
            try:
                answer = self._connected().send_message_batch(
                    QueueUrl=self._url,
                    Entries=[{"Id": str(number), **message.fields} for number, message in enumerate(batch)],
                )
            except InboxRefused as error:
                return Sent(positions, [], error)
            except Exception as error:
                from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as boto3

                if not isinstance(error, BotoCoreError | ClientError):
                    raise
                unknown = [message.place for message in batch] if _may_have_arrived(error) else []
                return Sent(positions, unknown, error)
            positions += [batch[int(one["Id"])].place for one in answer.get("Successful", [])]
            for failed in answer.get("Failed", []):
                first = first or InboxRefused(f"SQS did not take a message: {failed['Code']}: {failed.get('Message')}.")
        return Sent(positions, [], first)

    def _connected(self) -> Any:  # noqa: ANN401 - boto3 makes its clients' classes when it runs
        with self._lock:
            if self._client is None:
                self._client = connect("sqs", "Sending jobs to SQS", InboxRefused, self._region)
            return self._client


def _batches(messages: Sequence[SqsMessage]) -> Iterator[list[SqsMessage]]:
    batch, size = list[SqsMessage](), 0
    for message in messages:
        if batch and (len(batch) == BATCH_MESSAGES or size + message.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += message.size
    if batch:
        yield batch


def _may_have_arrived(error: Exception) -> bool:
    """Whether the request was sent, and only its answer is missing."""
    from botocore import exceptions  # noqa: PLC0415 - as boto3

    never_sent = (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyConnectionError)
    after_sending = (exceptions.HTTPClientError, exceptions.ConnectionError)
    return isinstance(error, after_sending) and not isinstance(error, never_sent)
