"""What the calculator (`lowkiq costs`) assumes of the functions is what they do."""

from collections.abc import Iterator
from typing import Any

from lowkiq_lambda import Batch
from lowkiq_lambda.aws.dispatch_function import dispatch
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.cli.costs.bills import Month, metrics
from tests.aws.functions import DrainFunction, FunctionContext, overdue
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken
from tests.kit.workers import declare


class TickContext(FunctionContext):
    """The dispatcher's, whose metrics stand under a name of its own."""

    function_name = "shop-dispatch"


def billed(blobs: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """CloudWatch's metrics: a name under the values of a set of dimensions is one."""

    def each() -> Iterator[tuple[str, ...]]:
        for blob in blobs:
            for directive in blob["_aws"]["CloudWatchMetrics"]:
                for dimensions in directive["Dimensions"]:
                    where = tuple(f"{name}={blob[name]}" for name in sorted(dimensions))
                    yield from ((metric["Name"], *where) for metric in directive["Metrics"])

    return set(each())


def test_as_many_metrics_are_published_as_are_paid_for(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """Of two queues: those of an idle hour, and those of one in which jobs are done and one fails."""

    def perform(batch: Batch) -> None:
        if "bad" in batch:
            batch.fail("bad", Broken())

    app = make_app()
    workers = [declare(app, f"{queue_name}-{name}", perform) for name in "ab"]
    drain.install(app)
    drain()
    dispatch(app, Settings(), Invocations(), TickContext(30))
    assert metrics(Month(jobs=0, queues=2)) == len(billed(drain.blobs))

    for worker in workers:
        worker.perform_async(overdue(["good", "bad"]))
    drain()
    assert metrics(Month(jobs=1, queues=2)) == len(billed(drain.blobs))
