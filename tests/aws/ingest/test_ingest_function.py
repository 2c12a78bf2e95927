"""The ingest function: what becomes of records, and which of them come again."""

from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import Incoming, PushInterrupted, Worker
from lowkiq_lambda.aws import ingest_function
from lowkiq_lambda.aws.ingest_function import IngestFailed
from lowkiq_lambda.aws.sources import UnknownSource
from tests.aws.functions import FunctionContext, Install
from tests.aws.ingest import shapes
from tests.aws.ingest.function import IngestFunction, by_order
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_p8_all_messages_of_an_event_become_one_push(ingest: IngestFunction) -> None:
    """P8: the records are mapped first, and their jobs are pushed together, in the order of the records."""
    pushed = list[list[Any]]()

    def note(worker: type[Worker], jobs: list[Any], call_next: Any) -> Any:
        pushed.append([job["payload"] for job in jobs])
        return call_next(worker, jobs)

    ingest.app.client_middlewares.append(note)
    ingest.app.ingest(by_order(ingest.worker))
    bodies = [{"order": "a", "n": 1}, {"order": "b", "n": 2}, {"order": "a", "n": 3}]

    answer = ingest(shapes.sqs(*(shapes.message(number, body) for number, body in enumerate(bodies))))

    assert {"batchItemFailures": []} == answer
    assert [bodies] == pushed
    assert {"a": [bodies[0], bodies[2]], "b": [bodies[1]]} == ingest.payloads()


def test_a_mapped_job_has_the_time_of_its_source_for_a_score(ingest: IngestFunction) -> None:
    """What was sent earlier comes first, also where SQS hands it over later; a score that is given stands."""

    @ingest.app.ingest
    def orders(record: Incoming) -> Iterator[Any]:
        yield ingest.worker, {"id": "a", "payload": record.body, **({"score": 3} if record.body == "own" else {})}

    ingest(shapes.sqs(*(shapes.message(number, text) for number, text in ((7, "late"), (2, "early"), (1, "own")))))

    waiting = [("own", 3.0), ("early", shapes.SENT_AT + 0.002), ("late", shapes.SENT_AT + 0.007)]
    assert waiting == ingest.waiting("a")


def test_e13_a_crash_between_push_and_answer_repeats_nothing(
    ingest: IngestFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-13: SQS hands the messages over again, and their keys are known, also when the jobs are done by then."""
    ingest.app.ingest(by_order(ingest.worker))
    event = shapes.sqs(shapes.message(1, {"order": "a"}), shapes.message(2, {"order": "b"}))

    with monkeypatch.context() as crashing:
        crashing.setattr(ingest_function, "_answer", lambda *_arguments: pytest.exit("as Lambda's timeout does"))
        with pytest.raises(pytest.exit.Exception):
            ingest(event)
    first = ingest.payloads()
    answer = ingest(event)

    assert {"a": [{"order": "a"}], "b": [{"order": "b"}]} == first
    assert ({"batchItemFailures": []}, {}) == (answer, ingest.payloads())


def test_jobs_of_one_record_have_keys_of_their_own(ingest: IngestFunction) -> None:
    """A record may push an id more than once; a key that is given stands, so that a second record changes nothing."""

    @ingest.app.ingest
    def orders(record: Incoming) -> Iterator[Any]:
        yield ingest.worker, {"id": "a", "payload": 1}
        yield ingest.worker, {"id": "a", "payload": 2}
        yield ingest.worker, {"id": "a", "payload": record.body, "key": "always this one"}

    ingest(shapes.sqs(shapes.message(1, "first"), shapes.message(2, "second")))

    assert {"a": [1, 2, "first"]} == ingest.payloads()


def test_a_failed_message_of_a_standard_queue_comes_again_alone(ingest: IngestFunction) -> None:
    """Others are pushed, and the log names the message and the error."""
    ingest.app.ingest(by_order(ingest.worker, {"order": "b"}))

    answer = ingest(shapes.sqs(*(shapes.message(number, {"order": name}) for number, name in enumerate("abc"))))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert {"a", "c"} == set(ingest.payloads())


def test_a_failed_message_of_a_fifo_queue_holds_its_group(ingest: IngestFunction) -> None:
    """P3: what is behind it in its group comes again with it, and is not pushed; other groups go on."""
    ingest.app.ingest(by_order(ingest.worker, {"order": "a", "n": 1}))
    rows = [("a", 0), ("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    messages = [shapes.message(n, {"order": order, "n": n}, group=order) for order, n in rows]

    answer = ingest(shapes.sqs(*messages))

    assert [shapes.message_id(1), shapes.message_id(3)] == shapes.failed(answer)
    assert {"a": [0], "b": [2, 4]} == numbers(ingest.payloads())


def test_records_that_a_full_queue_refuses_come_again(ingest: IngestFunction, queue_name: str) -> None:
    """Those that it took do not, and neither do those of other queues."""
    full = declare(ingest.app, f"full-{queue_name}", Notes(), shards_count=1, max_waiting=1)

    @ingest.app.ingest
    def orders(record: Incoming) -> Iterator[Any]:
        yield (ingest.worker if record.body["order"] == "other" else full), {"id": record.body["order"]}

    messages = [shapes.message(n, {"order": name}) for n, name in enumerate(("a", "b", "other", "c"))]
    answer = ingest(shapes.sqs(*messages))

    assert [shapes.message_id(1), shapes.message_id(3)] == shapes.failed(answer)
    assert ["a"] == [job.id for job in ingest.app.operate(full).waiting.fetch(["a", "b", "c"])]
    assert {"other"} == set(ingest.payloads())


def test_p3_the_score_of_a_group_does_not_fall(ingest: IngestFunction) -> None:
    """P3: the order of a FIFO queue stands, also where the clocks of SQS disagree about it."""
    ingest.app.ingest(by_order(ingest.worker))
    messages = [shapes.message(n, {"order": "a", "n": n}, group="a") for n in (5, 3, 4)]

    ingest(shapes.sqs(*messages))

    assert {"a": [5, 3, 4]} == numbers(ingest.payloads())


def test_a_failed_change_of_a_stream_holds_all_behind_it(ingest: IngestFunction) -> None:
    """P3: nothing from the first failed record on is pushed, and Lambda is told of it alone: it repeats from there."""
    ingest.app.ingest(by_key(ingest.worker, 2))
    event = shapes.dynamodb(*(shapes.change(n, n, {"n": {"N": str(n)}}) for n in (1, 2, 3)))

    answer = ingest(event)

    assert [shapes.sequence_number(2)] == shapes.failed(answer)
    assert {"1": [1]} == ingest.payloads()


def test_a_failed_event_is_raised(ingest: IngestFunction) -> None:
    """EventBridge and S3 invoke asynchronously: by the error Lambda tries again, and then tells the failure queue."""
    ingest.app.ingest(by_order(ingest.worker, {"order": "a"}))

    with pytest.raises(IngestFailed, match="not an order") as caught:
        ingest(shapes.event_bridge({"order": "a"}))

    assert isinstance(caught.value.__cause__, ValueError)
    assert {} == ingest(shapes.event_bridge({"order": "b"}))
    assert {"b": [{"order": "b"}]} == ingest.payloads()


def test_a_job_that_cannot_be_queued_fails_its_message_alone(ingest: IngestFunction) -> None:
    """Poison: what a mapping function yields may be refused; the others of the push are written all the same."""
    ingest.app.ingest(by_order(ingest.worker))
    bodies = [{"order": "a"}, {"order": ["no", "id"]}, {"order": "c"}]

    answer = ingest(shapes.sqs(*(shapes.message(number, body) for number, body in enumerate(bodies))))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert {"a", "c"} == set(ingest.payloads())


@pytest.mark.parametrize("yielded", ["a job", ({"id": "a"},), (None, {"id": "a"})])
def test_what_is_no_job_fails_its_message(ingest: IngestFunction, yielded: object) -> None:
    """A mapping function that yields anything else than a worker and a job is told so with each of its records."""
    mapped: Any = [yielded]
    ingest.app.ingest(lambda _record: mapped)

    assert [shapes.message_id(1)] == shapes.failed(ingest(shapes.sqs(shapes.message(1, "a"))))


def test_a_record_without_jobs_has_come_in(ingest: IngestFunction) -> None:
    """A mapping function may return nothing: the message is done with."""
    ingest.app.ingest(lambda _record: None)

    assert {"batchItemFailures": []} == ingest(shapes.sqs(shapes.message(1, "a")))
    assert {} == ingest.payloads()


def test_while_redis_is_away_all_messages_come_again(install: Install, make_app: MakeApp, queue_name: str) -> None:
    """One push is tried, not one for each worker; nothing is lost."""
    app, tried = make_app(redis_url="redis://127.0.0.1:1"), list[str]()
    workers = [declare(app, f"{queue_name}-{number}", Notes()) for number in (1, 2)]

    def note(worker: type[Worker], jobs: Any, call_next: Any) -> Any:
        tried.append(worker.queue_name)
        return call_next(worker, jobs)

    app.client_middlewares.append(note)
    app.ingest(lambda record: [(worker, {"id": record.body}) for worker in workers])
    install(app, redis_url="redis://127.0.0.1:1")
    event = shapes.sqs(*(shapes.message(number, f"order {number}") for number in (1, 2)))

    answer = ingest_function.handler(event, FunctionContext(30))

    assert [shapes.message_id(1), shapes.message_id(2)] == shapes.failed(answer)
    assert [workers[0].queue_name] == tried


@pytest.mark.parametrize(("with_middleware", "failed"), [(False, [1, 2]), (True, [0, 1, 2])])
def test_of_a_push_that_breaks_off_the_rest_comes_again(
    ingest: IngestFunction, monkeypatch: pytest.MonkeyPatch, *, with_middleware: bool, failed: list[int]
) -> None:
    """What is not written, or perhaps not, comes again; all of it where a middleware may have moved the positions."""
    ingest.app.ingest(by_order(ingest.worker))
    if with_middleware:
        ingest.app.client_middlewares.append(lambda worker, jobs, call_next: call_next(worker, jobs))

    def break_off(*_arguments: object) -> None:
        raise PushInterrupted(written=[0], not_written=[2], unknown=[1])

    monkeypatch.setattr(ingest.app.core.pushes, "push_or_raise", break_off)
    event = shapes.sqs(*(shapes.message(number, {"order": name}) for number, name in enumerate("abc")))

    assert [shapes.message_id(number) for number in failed] == shapes.failed(ingest(event))


def test_the_jobs_of_a_queue_that_is_refused_fail_alone(ingest: IngestFunction, make_app: MakeApp) -> None:
    """A queue that was declared otherwise fails its own records; those for another are written."""
    name = f"{ingest.worker.queue_name}-mismatched"
    declare(other := make_app(), name, Notes(), shards_count=2).push_many([{"id": 1}])
    assert other.workers
    mismatched = declare(ingest.app, name, Notes(), shards_count=3)
    ingest.app.ingest(lambda record: [(mismatched if record.body == "b" else ingest.worker, {"id": record.body})])

    answer = ingest(shapes.sqs(*(shapes.message(number, text) for number, text in enumerate("abc"))))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert [True, False, True] == [bool(ingest.waiting(text)) for text in "abc"]


@pytest.mark.parametrize(
    "event",
    [None, [], {}, {"Records": []}, {"Records": [{"eventSource": "aws:kinesis"}]}, {"Records": "none"}, {"shard": 3}],
)
def test_an_event_of_no_known_source_is_refused(ingest: IngestFunction, event: object) -> None:
    """It is told that the function takes events of other sources."""
    with pytest.raises(UnknownSource, match="SQS, EventBridge, S3 or a stream of DynamoDB"):
        ingest(event)


def test_the_function_calls_what_the_app_wants_called_before_it_answers(ingest: IngestFunction) -> None:
    """An app's hooks come before the environment is frozen, as with the other functions."""
    ingest.app.ingest(by_order(ingest.worker))
    called = list[float]()
    ingest.app.before_answer.append(called.append)

    ingest(shapes.sqs(shapes.message(1, {"order": "a"})))

    assert 1 == len(called)


def test_what_was_not_read_fails_its_message(ingest: IngestFunction) -> None:
    """A notification of a bucket that is not as S3 writes it is no reason for the others to come again."""
    ingest.app.ingest(via="orders")(lambda record: [(ingest.worker, {"id": record.id})])
    broken = {"Records": [{"eventSource": "aws:s3"}]}

    answer = ingest(shapes.sqs(shapes.message(1, broken), shapes.message(2, shapes.s3("a.csv"))))

    assert [shapes.message_id(1)] == shapes.failed(answer)
    assert 1 == len(ingest.payloads())


def numbers(payloads: dict[str, list[Any]]) -> dict[str, list[int]]:
    """The `n` of each payload."""
    return {job_id: [payload["n"] for payload in of_id] for job_id, of_id in payloads.items()}


def by_key(worker: type[Worker], refused: int) -> Any:
    """A mapping function for changes of orders."""

    def orders(record: Incoming) -> Iterator[Any]:
        if record.body["new"]["n"] == refused:
            raise ValueError("not an order")
        yield worker, {"id": record.body["keys"]["id"], "payload": record.body["new"]["n"]}

    return orders
