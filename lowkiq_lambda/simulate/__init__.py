"""What a queue would do with other shards, batches, concurrency or compute: a simulation, without an app and a server.

`simulate(Trace, Times, Choice)` gives an Outcome. All four are values; the same ones give the same outcome, always.
The names are imported when they are used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lowkiq_lambda.simulate.choice import Choice, Compute
    from lowkiq_lambda.simulate.outcome import Outcome, ShardOutcome
    from lowkiq_lambda.simulate.running import simulate
    from lowkiq_lambda.simulate.times import BadTimes, Times
    from lowkiq_lambda.simulate.trace import BadTrace, Trace

_PLACES: Final = {
    "BadTimes": "times",
    "BadTrace": "trace",
    "Choice": "choice",
    "Compute": "choice",
    "Outcome": "outcome",
    "ShardOutcome": "outcome",
    "Times": "times",
    "Trace": "trace",
    "simulate": "running",
}
"""The module of each name."""


def __getattr__(name: str) -> object:
    """Import a name when it is used first."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__name__)
    member: object = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = member
    return member


__all__ = ["BadTimes", "BadTrace", "Choice", "Compute", "Outcome", "ShardOutcome", "Times", "Trace", "simulate"]
