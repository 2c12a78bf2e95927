"""The task of a tick that runs the app's duties."""

import json
from typing import Any, Final

from lowkiq_lambda.aws.tick import Tick, TickFailed
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.error_text import headline

SHARE: Final = 0.5
"""Of the time that the tick has left: the rest is for the start of drains."""


def run_duties(tick: Tick) -> dict[str, Any]:
    """What the duties returned that were due and that no other process runs."""
    keep = tick.remaining() * (1 - SHARE)
    runner = DutyRunner(tick.app, tick.app.declared_duties, tick.app.backend.clock)
    ran = runner.run_due(lambda: tick.remaining() - keep)
    for name, error in ran.errors.items():
        failed = TickFailed(f"The duty {name!r} failed: {headline(error)}.")
        failed.__cause__ = error
        tick.note(failed)
    return {name: _as_json(result) for name, result in ran.results.items()}


def _as_json(result: object) -> Any:  # noqa: ANN401 - whatever the duty returned
    try:
        return json.loads(json.dumps(result, default=repr))
    except (TypeError, ValueError, RecursionError):
        return repr(result)
