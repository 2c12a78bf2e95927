"""The task of a tick that runs the app's duties."""

import json
from collections.abc import Mapping
from typing import Any, Final

from lowkiq_lambda.aws.emf import publish
from lowkiq_lambda.aws.tick import Tick, TickFailed
from lowkiq_lambda.duties.duty import SCHEDULES
from lowkiq_lambda.duties.runner import runners_of
from lowkiq_lambda.error_text import headline

SHARE: Final = 0.5
"""Of the time that the tick has left: the rest is for the start of drains."""


def run_duties(tick: Tick) -> dict[str, Any]:
    """What the duties returned that were due and that no other process runs."""
    keep = tick.remaining() * (1 - SHARE)
    results: dict[str, Any] = {}
    for runner in runners_of(tick.app, tick.app.backend.clock):
        ran = runner.run_due(lambda: tick.remaining() - keep)
        for name, error in ran.errors.items():
            failed = TickFailed(f"The duty {name!r} failed: {headline(error)}.")
            failed.__cause__ = error
            tick.note(failed)
        results |= ran.results
    if tick.app.fires_schedules and (ticked := results.get(SCHEDULES)):
        publish(tick.settings.metrics_namespace, tick.function_name, None, _of_schedules(ticked))
    return {name: _as_json(result) for name, result in results.items()}


def _of_schedules(ticked: Mapping[str, Any]) -> dict[str, float]:
    """What a tick says of schedule entries: planned times that were missed, and how late the latest firing was."""
    return {"schedules_missed": ticked["missed"], "schedules_late": ticked["late"]}


def _as_json(result: object) -> Any:  # noqa: ANN401 - whatever the duty returned
    try:
        return json.loads(json.dumps(result, default=repr))
    except (TypeError, ValueError, RecursionError):
        return repr(result)
