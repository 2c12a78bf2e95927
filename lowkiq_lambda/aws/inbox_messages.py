"""Jobs as the messages of an inbox hold them: JSON that people can read where a message is set aside.

A message has the jobs of one id, as one call gave them. They went through the client middlewares before.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.declare.ingest import Inboxes
from lowkiq_lambda.declare.worker import Worker, in_seconds
from lowkiq_lambda.jobs.incoming import Incoming
from lowkiq_lambda.jobs.job import ItemRef, id_text
from lowkiq_lambda.settings.config import Config

ATTRIBUTE: Final = "lowkiq"
"""The attribute by which a message of an inbox is known; its value is the version of the body's form."""
VERSION: Final = "1"
MOST_JOBS: Final = 1_000
"""Of one message: the others of its batch come again with it where it takes longer than the function has."""


class UnreadableMessage(LowkiqError):
    """A message of the inbox cannot be read here: deploy the functions together with the processes that push."""


class Body(msgspec.Struct):
    """What a message says."""

    queue: str
    jobs: list[dict[str, Any]]


def packed_job(job: Mapping[str, Any], config: Config) -> bytes:
    """A checked job in the form of a message: its id as text, times in seconds; payloads of a codec as base64."""
    fields: dict[str, Any] = {**job, "id": id_text(job["id"])}
    if config.dump_payload and "payload" in fields:
        fields["dumped"] = b64encode(config.dump_payload(fields.pop("payload"))).decode()
    if "item" in fields and not any(fields["item"][3:]):
        fields["item"] = fields["item"][:3]
    for name, value in fields.items():
        if isinstance(value, datetime):
            fields[name] = value.timestamp()
        elif isinstance(value, timedelta):
            fields[name] = value.total_seconds()
    # These two stand in no message of SQS, and in JSON only within texts.
    return msgspec.json.encode(fields).replace(b"\xef\xbf\xbe", b"\\ufffe").replace(b"\xef\xbf\xbf", b"\\uffff")


def body_of(worker: type[Worker[Any]], packed_jobs: Sequence[bytes]) -> str:
    """The body of a message with these jobs."""
    queue = msgspec.json.encode(worker.queue_name)
    return (b'{"queue":' + queue + b',"jobs":[' + b",".join(packed_jobs) + b"]}").decode()


def says_it_is_of_an_inbox(incoming: Incoming) -> bool:
    """Whether the message claims to be of a `SqsInbox`; any sender to the queue can claim that."""
    return incoming.kind == "sqs" and ATTRIBUTE in incoming.attributes


def jobs_in(
    incoming: Incoming, app: Lowkiq, inbox_arn: str | None
) -> Iterator[tuple[type[Worker[Any]], Mapping[str, Any]]]:
    """The jobs of a message, due and over when they would have been.

    Raises UnreadableMessage, and what `load_payload` does.
    """
    inbox = app.core.registry(Inboxes).for_queue(incoming.source, inbox_arn)
    if inbox is None:
        raise UnreadableMessage(
            f"The message names a queue of the app, and {incoming.source} is not an inbox: declare it by app.inbox(), "
            "if all who send to it may push to any queue."
        )
    body = _body_in(incoming)
    worker = app.core.queues.worker_named(body.queue) if inbox.lets_in(body.queue) else None
    if worker is None:
        lacking = "which this app does not declare" if inbox.lets_in(body.queue) else "which its inbox is not for"
        raise UnreadableMessage(f"The message is for the queue {body.queue!r}, {lacking}.")
    for job in body.jobs:
        if "delay" in job:
            job["due_at"] = incoming.time + job.pop("delay")
        if "expires_at" not in job and (seconds := job.pop("expires_in", worker.expires_in)) is not None:
            job["expires_at"] = max(incoming.time, job.get("due_at", 0.0)) + in_seconds(seconds)
        if "item" in job:
            task, number, label, *more = job["item"]
            params, is_watched = more or ("", False)
            job["item"] = ItemRef(b64decode(task), number, label, b64decode(params), is_watched)
        if "dumped" in job:
            job["payload"] = _loaded(job.pop("dumped"), app.config)
        yield worker, job


def _body_in(incoming: Incoming) -> Body:
    version = incoming.attributes[ATTRIBUTE]
    if version != VERSION:
        raise UnreadableMessage(f"The message is of version {version}, and this library reads {VERSION}: deploy anew.")
    try:
        body = msgspec.convert(incoming.body, Body)
    except msgspec.ValidationError as error:
        raise UnreadableMessage(f"The message is none of an inbox: {error}.") from error
    if len(body.jobs) > MOST_JOBS:
        raise UnreadableMessage(f"The message has {len(body.jobs):,} jobs, and may have {MOST_JOBS:,}.")
    return body


def _loaded(dumped: str, config: Config) -> object:
    if config.load_payload is None:
        raise UnreadableMessage(
            "The payload was made by a codec: give this app the same dump_payload and load_payload."
        )
    return config.load_payload(b64decode(dumped))
