"""State machines of the suite as further runs: each compares all of a shard with a model of it after each step."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import seed as seeded

from tests.kit.servers import Server
from tests.properties.expiring import ExpiringMachine
from tests.properties.journalled import JournalledMachine
from tests.properties.laned import LaneMachine
from tests.properties.operated import OperatedMachine, run
from tests.properties.tracked import TrackedMachine
from tests.properties.troubled import TroubledMachine

MACHINES: Final[Mapping[str, type[OperatedMachine]]] = {
    "beside a model": OperatedMachine,
    "tenants beside a model": LaneMachine,
    "expiries beside a model": ExpiringMachine,
    "items beside a model": TrackedMachine,
    "trouble beside a model": TroubledMachine,
    "journal beside a model": JournalledMachine,
}
"""By the name of the workload."""
EXAMPLES: Final = 14
"""Of one run."""
_SETTINGS: Final[Mapping[str, Any]] = {
    "phases": [Phase.generate],
    "database": None,
    "verbosity": Verbosity.quiet,
    "suppress_health_check": [*HealthCheck],
    "print_blob": False,
}


class ModelledWorld:
    """Plays runs of one machine, one at a time."""

    def __init__(self, server: Server, machine: type[OperatedMachine]) -> None:
        self._server = server
        self._machine = machine

    def play(self, seed: int) -> list[str]:
        """A run by this seed; what was wrong with it."""
        machine = seeded(seed)(type(self._machine.__name__, (self._machine,), {}))
        try:
            run(machine, self._server, EXAMPLES, **_SETTINGS)
        except (Exception, pytest.fail.Exception) as wrong:  # noqa: BLE001 - what a fault of a script makes of a machine
            return [f"{type(wrong).__name__}: {wrong}".partition("\n")[0]]
        return []

    def close(self) -> None:
        """Nothing stays open between runs."""
