"""All queues in numbers, as Prometheus reads them: one series for each queue and number, none for ids or shards."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from starlette.responses import Response

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.metrics import stream_totals
from lowkiq_lambda.store.shard.declarations import agrees
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views import Metrics

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Series(NamedTuple):
    """A number of each queue."""

    name: str
    kind: str
    field: str
    help: str


SERIES: Final = (
    Series("lag_seconds", "gauge", "lag", "How long the oldest due id has waited, those in flight too."),
    Series("oldest_due_age_seconds", "gauge", "oldest_due_age", "The same of ids that nobody holds."),
    Series("length", "gauge", "length", "Ids that wait."),
    Series("fresh", "gauge", "fresh", "Ids that wait and have not failed."),
    Series("retries", "gauge", "retries", "Ids that wait and have failed."),
    Series("in_flight", "gauge", "in_flight", "Ids in flight."),
    Series("morgue_length", "gauge", "morgue_length", "Ids in the morgue."),
    Series("paused_shards", "gauge", "paused", "Shards that are paused."),
    Series("paused_lag_seconds", "gauge", "paused_lag", "The lag of shards that are paused, which is in no other."),
    Series("done_total", "counter", "done", "Ids done since the queue was made."),
    Series("failed_total", "counter", "failed", "Failures of ids that counted."),
    Series("buried_total", "counter", "buried", "Failures that were an id's last."),
    Series("payloads_total", "counter", "payloads", "Payloads handed to the handler and done."),
    Series("damaged_total", "counter", "damaged", "Records that were set aside, as nobody could read them."),
)


def show(visit: Visit) -> Response:
    """The numbers of all queues."""
    return Response("".join(f"{line}\n" for line in lines(_measured(visit.app))), media_type=MEDIA_TYPE)


def lines(queues: Mapping[str, Metrics | None]) -> Iterator[str]:
    """The text format, line by line; None stands for a queue that was declared otherwise."""
    labels = {name: f'{{queue="{_escaped(name)}"}}' for name in queues}
    yield from _head("mismatched", "gauge", "1 where the queue was made with another declaration: not measured.")
    for queue, metrics in queues.items():
        yield f"lowkiq_queue_mismatched{labels[queue]} {int(metrics is None)}"
    for name, kind, field, text in SERIES:
        yield from _head(name, kind, text)
        for queue, metrics in queues.items():
            if metrics is not None:
                yield f"lowkiq_queue_{name}{labels[queue]} {getattr(metrics, field)!r}"


def _measured(app: Lowkiq) -> dict[str, Metrics | None]:
    """A queue that drains refuse must not hide the others; it may have been declared anew since the app began."""
    queues = {name: queue.shards for name, queue in app.queues.items()}
    keys = map(declaration_key, queues)
    reader, codec = ShardReader(app.backend, app.config.patience), app.config.codec_name
    with stream_totals(reader, [*queues.values()], [(key, ("GET", key)) for key in keys]) as (declared, measured):
        return {
            name: metrics if agrees(queue.declaration(codec), stored) else None
            for (name, queue), stored, metrics in zip(app.queues.items(), declared, measured, strict=True)
        }


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP lowkiq_queue_{name} {text}"
    yield f"# TYPE lowkiq_queue_{name} {kind}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
