"""Redis is away: what producers push goes by the inbox, and what has come in stays where it is."""

from typing import Any

import pytest

from lowkiq_lambda import Worker
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from tests.aws.functions import Install
from tests.aws.ingest import shapes
from tests.aws.ingest.function import IngestFunction, by_order
from tests.aws.ingest.inbox_queue import InboxQueue
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import FaultProxy, LocalCloud
from tests.kit.workers import declare, jobs_of

NOWHERE = "redis://127.0.0.1:1"


@pytest.fixture
def aws(cloud: LocalCloud, install: Install, monkeypatch: pytest.MonkeyPatch) -> LocalCloud:
    """The local cloud, which this process takes for AWS."""
    del install  # which comes first, as it takes such variables away
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)
    return cloud


def test_s3_what_redis_cannot_take_comes_in_by_the_inbox(
    aws: LocalCloud, install: Install, make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """S-3: a producer goes on while Redis is away, its jobs keep their order, and client middlewares see them once."""
    queue = InboxQueue(aws, fifo=True)
    producer = make_app(redis_url=fault_proxy.url, when_unavailable=queue.inbox)
    pushed_to = declare(producer, queue_name, Notes())

    def mark(worker: type[Worker], jobs: Any, call_next: Any) -> Any:
        return call_next(worker, [{**job, "payload": [job["payload"]]} for job in jobs])

    producer.client_middlewares.append(mark)
    (direct,) = pushed_to.push_many(jobs_of("a", payload=0))
    fault_proxy.refuse()
    fault_proxy.cut()
    overflowed = [one for n in (1, 2) for one in pushed_to.push_many(jobs_of("a", payload=n, score=n))]
    function = IngestFunction(install, make_app(), queue_name)

    answer = function(queue.event())
    queue.delete()

    assert (False, [True, True]) == (direct.buffered, [one.buffered for one in overflowed])
    assert [] == shapes.failed(answer)
    assert [[1], [2], [0]] == function.payloads()["a"]


def test_p2_the_ingest_function_keeps_nothing_in_its_process(
    install: Install, make_app: MakeApp, queue_name: str
) -> None:
    """P2: a record is done with when its jobs are in Redis, whatever the app says; a frozen process sends nothing."""
    app = make_app(redis_url=NOWHERE, when_unavailable="buffer")
    function = IngestFunction(install, app, queue_name)
    app.ingest(by_order(function.worker))

    answer = function(shapes.sqs(shapes.message(1, {"order": "a"}), shapes.message(2, {"order": "b"})))

    assert [shapes.message_id(1), shapes.message_id(2)] == shapes.failed(answer)
    assert 0 == app.flush()


def test_p2_what_came_by_the_inbox_does_not_go_back_to_its_end(
    aws: LocalCloud, install: Install, make_app: MakeApp, queue_name: str
) -> None:
    """P2, P3: while Redis is away a message of the inbox fails and keeps its place; it is not sent once more as new."""
    queue = InboxQueue(aws, fifo=True)
    function = IngestFunction(install, make_app(redis_url=NOWHERE, when_unavailable=SqsInbox(queue.url)), queue_name)
    queue.inbox.push_many(function.worker, [{"id": "a", "payload": 1}])
    event = queue.event()

    answer = function(event)
    left = queue.event()
    queue.delete()

    assert [record["messageId"] for record in event["Records"]] == shapes.failed(answer)
    assert {"Records": []} == left
