"""What is on its way between processes, as this version writes it: to SQS, into a database, and to functions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from sqlalchemy import MetaData, create_engine, select
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import StaticPool

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws.events import selected, ticks
from lowkiq_lambda.aws.sqs import Sent, Sqs, SqsMessage
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from lowkiq_lambda.contrib.outbox import Outbox
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION
from lowkiq_lambda.testing import ManualClock

URL: Final = "https://sqs.eu-west-1.amazonaws.com/123456789012/inbox-shop.fifo"
DRAINS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"shard": 1},
    {"queue": "Orders"},
    {"queue": "Orders", "shard": 1, "generation": 3},
    {"source": "aws.events", "tick": True},
    {"tick": "only"},
)
"""Events of the drain function, as schedules, rules and people send them."""
JOBS: Final[tuple[dict[str, Any], ...]] = (
    {"id": "wired", "payload": {"n": 1, "text": "ünïcödé €"}, "headers": {"trace": "00-ef"}},
    {"id": "wired", "payload": [2], "score": 2.0**52, "key": "k-2", "key_ttl": 86_400},
    {"id": 7, "payload": "seven", "delay": 60, "expires_in": 86_400},
)


def messages_of(app: Lowkiq, clock: ManualClock) -> dict[str, Any]:
    """By kind; bytes are letters of Latin-1."""
    shards = app.core.drains.loop().drainer.shards()
    return {
        "contract": CONTRACT_VERSION,
        "written_at": clock.time(),
        "sqs": _sent(app, clock),
        "outbox": _rows(app, clock),
        "drain": [*DRAINS],
        "drained": [[len(selected(event, shards)), ticks(event)] for event in DRAINS],
    }


def _sent(app: Lowkiq, clock: ManualClock) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    def send(_self: Sqs, messages: Sequence[SqsMessage]) -> Sent:
        sent.extend(message.fields for message in messages)
        return Sent([message.place for message in messages], [], None)

    with patch.object(Sqs, "send", send):
        SqsInbox(URL, clock=clock).push_many(_orders(app), JOBS)
    return sent


def _rows(app: Lowkiq, clock: ManualClock) -> list[dict[str, Any]]:
    with outbox_database() as (sessions, metadata):
        outbox = Outbox(app, sessions, metadata=metadata, clock=clock)
        metadata.create_all(sessions.kw["bind"])
        with sessions() as session:
            outbox.push_many(session, _orders(app), JOBS)
            rows = [dict(row) for row in session.execute(select(outbox.table)).mappings()]
    return [row | {"payload": row["payload"].decode("latin-1")} for row in rows]


@contextmanager
def outbox_database() -> Iterator[tuple[sessionmaker[Any], MetaData]]:
    """A database in memory for an outbox, until the block ends."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        yield sessionmaker(engine), MetaData()
    finally:
        engine.dispose()


def _orders(app: Lowkiq) -> Any:
    return next(worker for worker in app.workers if worker.queue_name == "Orders")
