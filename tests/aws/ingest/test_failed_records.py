"""Records that fail are told in a number, as an answer that names them is no error of Lambda's."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.aws.alarms import chosen, rings
from tests.aws.functions import FunctionContext, Install
from tests.aws.ingest import shapes
from tests.aws.ingest.function import IngestFunction, by_order

Published = Callable[[], list[Mapping[str, Any]]]


@pytest.fixture
def published(capsys: pytest.CaptureFixture[str]) -> Published:
    """The lines with metrics that were printed since it was last called."""

    def lines() -> Iterator[Mapping[str, Any]]:
        for line in capsys.readouterr().out.splitlines():
            if "_aws" in (read := json.loads(line)):
                yield read

    return lambda: list(lines())


def test_a_mapping_function_that_fails_every_message_of_a_fifo_queue_rings_on(
    ingest: IngestFunction, published: Published, resources: dict[str, dict[str, Any]]
) -> None:
    """Lambda sees an invocation every three minutes that ended well; the alarm rings until messages are taken."""
    ingest.app.ingest(by_order(ingest.worker, "a", "b"))
    event = shapes.sqs(shapes.message(1, "a", group="one"), shapes.message(2, "b", group="one"))
    alarm = chosen(resources["FailedRecordAlarm"]["Properties"], {"HasAlarmTopic": True})
    both = {"batchItemFailures": [{"itemIdentifier": shapes.message_id(number)} for number in (1, 2)]}
    minutes = list[float | None]()
    for _ in range(10):
        assert both == ingest(event)
        (line,) = published()
        minutes += [*line["records_failed"], None, None]

    assert ([2.0, None, None] * 10, ["ALARM"]) == (minutes, rings(alarm, minutes))
    assert ["ALARM", "OK"] == rings(alarm, [*minutes, *[None] * 30])


def test_failed_records_are_told_of_the_ingest_function(ingest: IngestFunction, published: Published) -> None:
    """In the namespace of the stack, under the function's name, and where there are some."""
    ingest.app.ingest(by_order(ingest.worker, "bad"))
    ingest(shapes.sqs(shapes.message(1, {"order": "a"})))
    nothing = published()
    ingest(shapes.sqs(shapes.message(2, "bad"), shapes.message(3, {"order": "b"})))
    (line,) = published()

    assert [] == nothing
    assert ([1.0], FunctionContext.function_name) == (line["records_failed"], line["function"])
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert ("lowkiq", [["function"]]) == (directive["Namespace"], directive["Dimensions"])


def test_without_metrics_no_failed_record_is_published(
    ingest: IngestFunction, install: Install, published: Published
) -> None:
    """As `LOWKIQ_METRICS=none` says."""
    install(ingest.app, metrics="none")
    ingest.app.ingest(by_order(ingest.worker, "bad"))

    assert ingest(shapes.sqs(shapes.message(1, "bad")))["batchItemFailures"]
    assert [] == published()
