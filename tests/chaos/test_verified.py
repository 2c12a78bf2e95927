"""The verification at the end of these tests is about something."""

import msgspec
import pytest

from tests.chaos.conftest import QUEUES
from tests.chaos.scenario import Scenario
from tests.chaos.steps import child, drain_to_the_end, end_lease, journal_of, kill_at, numbered, opened, push
from tests.kit.servers import Server


def test_a_queue_that_a_process_died_on_is_verified(
    server: Server, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    """Its pushes, claims and outcomes are in the journal, those of other processes too."""
    push(scenario, numbered("ab", 1))
    kill_at(scenario, "before settle")
    drain_to_the_end(server, scenario)

    reports = request.node.stash[QUEUES].reports()
    assert {2} == {report.ids for report in reports}
    assert min(report.events for report in reports) >= 4


@pytest.mark.parametrize("end", ["fails", "dies before it settles", "dies when it has settled"])
def test_the_newest_replaces_what_fails_or_dies(server: Server, scenario: Scenario, end: str) -> None:
    """merge="latest": a payload that is replaced in flight has an outcome, or none; both are sound."""
    failing = msgspec.structs.replace(scenario, merge="latest", handler="fail")
    push(failing, numbered("ab", 1))
    stop = "before settle" if end == "dies before it settles" else "after settle"
    with child(failing, stops=["in handler", stop]) as holder:
        holder.wait_at("in handler")
        push(failing, numbered("a", 2))
        holder.go_on()
        holder.wait_at(stop)
        if end == "fails":
            holder.go_on()
            holder.wait_at("in handler")
        holder.kill()
    end_lease(failing)
    drain_to_the_end(server, msgspec.structs.replace(scenario, merge="latest"))

    assert [2] == journal_of(scenario).performed()["a"][-1]
    with opened(failing) as app:
        kinds = {event.kind for event in app.operate(app.workers[0]).biography("a").events}
    assert "superseded" in kinds
