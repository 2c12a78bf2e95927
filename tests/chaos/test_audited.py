"""The order audit at the end of these tests is about something."""

import pytest

from tests.chaos.conftest import QUEUES
from tests.chaos.scenario import Scenario
from tests.chaos.steps import drain_to_the_end, kill_at, numbered, push
from tests.kit.servers import Server


def test_a_queue_that_a_process_died_on_is_audited(
    server: Server, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    """Its pushes, claims and outcomes are in the journal, those of other processes too."""
    push(scenario, numbered("ab", 1))
    kill_at(scenario, "before settle")
    drain_to_the_end(server, scenario)

    reports = request.node.stash[QUEUES].reports()
    assert {2} == {report.ids for report in reports}
    assert min(report.events for report in reports) >= 4
