"""Two versions of the library at once: a deploy replaces one process after the other, whose scripts differ."""

import pytest

from lowkiq_lambda.base.errors import QueueMismatch
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    drain_to_the_end,
    journal_of,
    kill_at,
    numbered,
    push,
    shard_of,
    state_of,
    wait_until_free,
)
from tests.chaos.storm.versions import upgraded_script
from tests.kit.order import is_in_order
from tests.kit.servers import Server

IDS = "abc"
POINTS = ("after acquire", "in handler", "before settle", "after settle")


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process is of the next version."""
    monkeypatch.setattr(backend, "script", upgraded_script)


def check(server: Server, scenario: Scenario) -> None:
    """AssertionError where anything is left, was lost or came out of order, or where somebody was blamed."""
    end = drain_to_the_end(server, scenario)
    performed = journal_of(scenario).performed()
    for job_id in IDS:
        assert {1, 2, 3} == {number for numbers in performed[job_id] for number in numbers}
        assert is_in_order(performed[job_id])
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]
    assert 0 == end["counters"]["retried"] == end["counters"]["dead"]


@pytest.mark.usefixtures("upgrade")
@pytest.mark.parametrize("point", POINTS)
def test_the_next_version_takes_over_from_one_that_was_killed(server: Server, scenario: Scenario, point: str) -> None:
    """It recovers what the old version had in flight, and performs what both of them pushed."""
    with child(scenario, "push", jobs=numbered(IDS, 1, 2)) as producer:
        producer.ended()
    kill_at(scenario, point, jobs=numbered(IDS, 3))

    check(server, scenario)


@pytest.mark.parametrize("point", POINTS)
def test_a_deploy_can_be_taken_back(server: Server, scenario: Scenario, point: str) -> None:
    """The old version takes over from the next one in the same way."""
    with child(scenario, "push", jobs=numbered(IDS, 1, 2), upgraded=True) as producer:
        producer.ended()
    kill_at(scenario, point, jobs=numbered(IDS, 3), upgraded=True)

    check(server, scenario)


@pytest.mark.usefixtures("upgrade")
def test_a_holder_of_the_old_version_finishes_what_it_has(server: Server, scenario: Scenario) -> None:
    """The lease of one version keeps the other out, and what was pushed meanwhile is the next holder's."""
    push(scenario, numbered(IDS, 1, 2))
    with child(scenario, stops=["in handler 1"]) as holder:
        holder.wait_at("in handler")
        push(scenario, numbered(IDS, 3))
        holder.go_on()
        assert {"done": 6} == holder.ended().counts

    check(server, scenario)
    assert 2 == max(len(executions) for executions in journal_of(scenario).performed().values())


def test_a_shard_that_needs_the_next_version_refuses_the_old_one(server: Server, scenario: Scenario) -> None:
    """Where the contract itself has changed the old holder writes nothing more; what it had is not lost."""
    push(scenario, numbered(IDS, 1, 2, 3))
    meta = shard_of(scenario).key("meta")
    with child(scenario, stops=["in handler"]) as holder:
        holder.wait_at("in handler")
        server.admin.hset(meta, "least_version", CONTRACT_VERSION + 1)
        holder.go_on()
        assert QueueMismatch.__name__ == holder.ended().error
    assert set(IDS) == state_of(server, scenario)["flight"].keys()

    wait_until_free(server, scenario)
    server.admin.hset(meta, "least_version", CONTRACT_VERSION)
    check(server, scenario)
