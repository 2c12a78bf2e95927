"""The page of metrics, made of what is published to CloudWatch, Prometheus and OpenTelemetry."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from lint.reference.tables import code, table
from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws.logs import METRICS
from lowkiq_lambda.contrib.otel.metrics import PushMetrics, QueueGauges, SettledMetrics
from lowkiq_lambda.dashboard.api.monitoring import BUILD_INFO, METRIC_FAMILIES, MISMATCHED, UP
from lowkiq_lambda.dashboard.api.server_metrics import LABELLED_FAMILIES
from lowkiq_lambda.engine.budget import STOP_REASONS

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

_CLOUDWATCH: Final = """\
# Metrics

No metric has an id of a job among its labels or dimensions.

## CloudWatch

The functions write these into their logs, from where CloudWatch takes them. With `LOWKIQ_METRICS=summary`, the
default, those of a summary are published, of the app and under the dimension `function` alone. With `queues` all are,
and most have the dimensions `function` and `queue`, too. The namespace is that of `LOWKIQ_METRICS_NAMESPACE`.
[lambda](../lambda.md#metrics) says when each is published.
"""
_ENDED: Final = """\
With `queues` a drain also counts the shards that an invocation left, by [reason](../lambda.md#what-it-answers):
"""
_PROMETHEUS: Final = """\
## Prometheus

`GET /metrics` of the dashboard has these, with the label `queue` but for the first two and those that name labels.
"""
_OTEL: Final = """\
## OpenTelemetry

`instrument(app)` makes these: see [telemetry](../telemetry.md).
"""


class _Meter:
    """Notes which instruments are made."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as a Meter has it
        kind = name.removeprefix("create_").removeprefix("observable_")

        def create(name: str, *words: Any, **_options: object) -> None:  # noqa: ANN401 - as above
            unit, meaning = words[-2:]
            self.made.append([code(name), kind, unit, meaning])

        return create


def page() -> str:
    """The text of the page."""
    reasons = ", ".join(code(f"ended_{reason.replace(' ', '_')}") for reason in STOP_REASONS)
    parts = [
        _CLOUDWATCH,
        table(("metric", "unit", "with", "published by", "meaning"), _cloudwatch()),
        "",
        f"{_ENDED.rstrip()}\n{reasons}.\n",
        _PROMETHEUS,
        table(("metric", "kind", "meaning"), _prometheus()),
        "",
        _OTEL,
        table(("metric", "kind", "unit", "meaning"), _otel()),
        "",
    ]
    return "\n".join(parts)


def _cloudwatch() -> Iterator[list[str]]:
    for name, metric in METRICS.items():
        yield [code(name), metric.unit, code(metric.level), metric.by, metric.meaning]


def _prometheus() -> Iterator[list[str]]:
    for family in (UP, BUILD_INFO):
        yield [code(f"lowkiq_{family.name}"), family.kind, family.help]
    for family in (MISMATCHED, *METRIC_FAMILIES):
        yield [code(f"lowkiq_queue_{family.name}"), family.kind, family.help]
    for labelled in LABELLED_FAMILIES:
        labels = ", ".join(labelled.labels)
        yield [code(f"lowkiq_{labelled.name}{{{labels}}}"), "gauge", labelled.help]


def _otel() -> list[list[str]]:
    meter = _Meter()
    PushMetrics(cast("Meter", meter))
    SettledMetrics(cast("Meter", meter))
    QueueGauges(cast("Meter", meter), Lowkiq())
    return meter.made
