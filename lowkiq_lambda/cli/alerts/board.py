"""A board of Grafana about an app."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_OF: Final = '{queue=~"$queue"}'


class Panel(NamedTuple):
    """A panel. `expressions`: each with its legend. `kind`: of Grafana. `width`: of 24 columns."""

    title: str
    kind: str
    unit: str
    width: int
    expressions: tuple[tuple[str, str], ...]


def _number(title: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, "stat", unit, 4, ((expression, ""),))


def _lines(title: str, unit: str, *expressions: tuple[str, str]) -> Panel:
    return Panel(title, "timeseries", unit, 12, expressions)


def _quantiles(which: str) -> Iterator[tuple[str, str]]:
    buckets = f"sum by (queue, le) (rate(lowkiq_queue_{which}_seconds_bucket{_OF}[$__rate_interval]))"
    for percent in (50, 95):
        yield f"histogram_quantile({percent / 100}, {buckets})", f"{{{{queue}}}} p{percent}"


PANELS: Final = (
    _number("Done a second", f"sum(rate(lowkiq_queue_done_total{_OF}[5m]))", "ops"),
    _number(
        "Failing",
        f"sum(rate(lowkiq_queue_failed_total{_OF}[5m])) / (sum(rate(lowkiq_queue_failed_total{_OF}[5m])) "
        f"+ sum(rate(lowkiq_queue_done_total{_OF}[5m])))",
        "percentunit",
    ),
    _number("Oldest due", f"max(lowkiq_queue_oldest_due_age_seconds{_OF})", "s"),
    _number("Waiting", f"sum(lowkiq_queue_length{_OF})"),
    _number("In the morgue", f"sum(lowkiq_queue_morgue_length{_OF})"),
    _number("Processes", 'sum(lowkiq_processes{state="running"})'),
    _lines("Done by queue", "ops", (f"rate(lowkiq_queue_done_total{_OF}[5m])", "{{queue}}")),
    _lines("Failures by queue", "ops", (f"rate(lowkiq_queue_failed_total{_OF}[5m])", "{{queue}}")),
    _lines("Lag by queue", "s", (f"lowkiq_queue_lag_seconds{_OF}", "{{queue}}")),
    _lines("Waiting by queue", "short", (f"lowkiq_queue_length{_OF}", "{{queue}}")),
    _lines("Wait until a batch begins", "s", *_quantiles("waited")),
    _lines("Run time of a batch", "s", *_quantiles("took")),
    Panel(
        *("Waits by how long they were", "heatmap", "s", 12),
        ((f"sum by (le) (increase(lowkiq_queue_waited_seconds_bucket{_OF}[$__rate_interval]))", "{{le}}"),),
    ),
    _lines(
        "Shards at work under a limit",
        "short",
        (f"lowkiq_limit_running{_OF}", "{{queue}}"),
        (f"lowkiq_limit_max_running{_OF}", "{{queue}} at most"),
        (f"lowkiq_limit_waiting_shards{_OF}", "{{queue}} waiting"),
    ),
    _lines(
        "Kept back",
        "s",
        (f"lowkiq_queue_paused_lag_seconds{_OF}", "{{queue}} paused"),
        (f"lowkiq_queue_limited_lag_seconds{_OF}", "{{queue}} limited"),
    ),
    _lines(
        "Morgue and blocked ids",
        "short",
        (f"lowkiq_queue_morgue_length{_OF}", "{{queue}} dead"),
        (f"lowkiq_queue_blocked{_OF}", "{{queue}} blocked"),
    ),
    _lines("Processes by state", "short", ("lowkiq_processes", "{{state}}")),
    _lines(
        "Memory of Redis",
        "bytes",
        ("lowkiq_redis_memory_bytes", "{{server}}"),
        ("lowkiq_redis_memory_limit_bytes", "{{server}} limit"),
    ),
    _lines("Items of open tasks", "short", ("lowkiq_open_task_items", "{{status}}")),
    _lines(
        "Late schedules and duties",
        "s",
        (f"lowkiq_schedule_late_seconds{_OF}", "{{queue}}"),
        ("lowkiq_duty_late_seconds", "{{duty}}"),
    ),
    _lines("Failed runs of duties", "short", ("lowkiq_duty_failures", "{{duty}}")),
)


def board_file() -> str:
    """The board, as JSON that Grafana imports."""
    return json.dumps(_board(), indent=2) + "\n"


def _board() -> Mapping[str, Any]:
    return {
        "title": "lowkiq",
        "uid": "lowkiq",
        "tags": ["lowkiq"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source_choice(), _queue_choice()]},
        "panels": _panels(),
    }


def _source_choice() -> Mapping[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _queue_choice() -> Mapping[str, Any]:
    return {
        "name": "queue",
        "label": "Queue",
        "type": "query",
        "datasource": _SOURCE,
        "query": "label_values(lowkiq_queue_length, queue)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> list[Mapping[str, Any]]:
    panels: list[Mapping[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        height = 4 if panel.kind == "stat" else 8
        panels.append(
            {
                "id": number,
                "title": panel.title,
                "type": panel.kind,
                "datasource": _SOURCE,
                "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
                "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
                "targets": [
                    {
                        "refId": chr(ord("A") + place),
                        "datasource": _SOURCE,
                        "expr": expression,
                        "legendFormat": legend,
                        "format": panel.kind if panel.kind == "heatmap" else "time_series",
                    }
                    for place, (expression, legend) in enumerate(panel.expressions)
                ],
            }
        )
        x += panel.width
        if x >= _WIDTH:
            x, y = 0, y + height
    return panels
