"""The task of a tick that stays for the next planned times of schedule entries, where the settings ask for it."""

from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.aws.duty_task import note_errors, publish_schedules
from lowkiq_lambda.aws.fan_out import start_drains
from lowkiq_lambda.declare.duty import SCHEDULES

if TYPE_CHECKING:
    from lowkiq_lambda.aws.tick import Tick

TO_START: Final = 1.0
"""Seconds of the tick's time that are left to the start of drains for what has fired last."""
_SHORTEST_WAIT: Final = 0.005
"""Seconds: clocks may differ by less about when a planned time comes."""


def fire_punctually(tick: "Tick") -> dict[str, Any]:
    """Fire at each planned time that comes before the tick's time is over; at once over where none does.

    It comes last, so that nothing else of the tick waits. Returns how many looks there were, and what they did.
    """
    runner = tick.app.schedules.duty_runner(tick.app.core.backend.clock)
    summary: dict[str, Any] = {"looks": 0, "fired": 0, "missed": 0, "replaced": 0, "late": 0.0, "problems": []}

    def remaining() -> float:
        return tick.remaining() - TO_START

    while remaining() > 0:
        ran = runner.run_due(remaining)
        note_errors(tick, ran)
        if ran.errors:
            break
        if ticked := ran.results.get(SCHEDULES):
            _add(summary, ticked)
            if ticked["fired"] and tick.settings.fan_out:
                start_drains(tick)
            continue
        # Nothing is due, or another process looks.
        if ran.next_in >= remaining():
            break
        tick.app.core.backend.clock.sleep(max(ran.next_in, _SHORTEST_WAIT))
    if summary["looks"]:
        publish_schedules(tick, summary)
    return summary


def _add(summary: dict[str, Any], ticked: dict[str, Any]) -> None:
    summary["looks"] += 1
    for count in ("fired", "missed", "replaced"):
        summary[count] += ticked[count]
    summary["late"] = max(summary["late"], ticked["late"])
    summary["problems"] = ticked["problems"]
