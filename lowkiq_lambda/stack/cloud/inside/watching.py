"""Alarms of the local cloud, evaluated each minute as CloudWatch evaluates them.

The emulator takes no alarm over several metrics, and looks neither at dimensions nor at what is missing.
"""

import importlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from .alarms import states
from .metrics import CloudMetrics

_MINUTE: Final = 60
_LATE: Final = 3.0
"""Seconds into a minute, when what belongs to the last one is there."""
_LONGEST: Final = 5
"""Minutes of the longest period: series begin where one does."""

logger = logging.getLogger("lowkiq")


class Watch:
    """Takes the place of the emulator's evaluation."""

    def __init__(self, metrics: CloudMetrics) -> None:
        self._metrics = metrics
        self._cloudwatch: Any = importlib.import_module("ministack.services.cloudwatch")
        self._responses: Any = importlib.import_module("ministack.core.responses")

    def install(self) -> None:
        """From now on alarms are evaluated here."""
        self._cloudwatch._evaluate_alarm = lambda _: None
        provisioners: Any = importlib.import_module("ministack.services.cloudformation.provisioners")
        record = provisioners._cw_metric_alarm_record

        def recorded(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
            several = properties.get("Metrics")
            one = {**properties, "Metrics": None, "MetricName": "-", "Namespace": "-"} if several else properties
            alarm: dict[str, Any] = record(name, one)
            before = self._cloudwatch._alarms.get(name, {})
            alarm["CreatedAt"] = before.get("CreatedAt", time.time())
            return alarm | ({"Metrics": several} if several else {})

        provisioners._cw_metric_alarm_record = recorded
        threading.Thread(target=self._look_each_minute, name="alarms", daemon=True).start()

    def look(self, now: float) -> None:
        """Evaluate all alarms by the minutes that are over."""
        self._metrics.add_queues()
        for name, alarm in list(self._cloudwatch._alarms.items()):
            first = int(alarm["CreatedAt"] // _MINUTE) // _LONGEST * _LONGEST
            end = int(now // _MINUTE)
            skipped = int(alarm["CreatedAt"] // _MINUTE) - first
            state = states(alarm, self._series(alarm, first, end), {})[-1] if end > first + skipped else None
            if state and state != alarm["StateValue"]:
                self._change(name, alarm, state)

    def _series(self, alarm: Mapping[str, Any], first: int, end: int) -> Any:
        if "Metrics" not in alarm:
            return self._metrics.minutes(alarm, alarm["Statistic"], first, end)
        measured = {one["Id"]: one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one}
        return {name: self._metrics.minutes(one["Metric"], one["Stat"], first, end) for name, one in measured.items()}

    def _change(self, name: str, alarm: dict[str, Any], state: str) -> None:
        before, reason = alarm["StateValue"], f"By the last {alarm['EvaluationPeriods']} periods."
        alarm |= {"StateValue": state, "StateReason": reason, "StateUpdatedTimestamp": int(time.time())}
        self._cloudwatch._record_history(name, before, state, reason)
        self._cloudwatch._dispatch_alarm_actions(alarm, before, state, reason)

    def _look_each_minute(self) -> None:
        self._responses.set_request_account_id("0" * 12)
        self._responses.set_request_region("us-east-1")
        while True:
            time.sleep(_MINUTE - (time.time() - _LATE) % _MINUTE)
            try:
                self.look(time.time())
            except Exception:
                logger.exception("The alarms could not be evaluated.")
