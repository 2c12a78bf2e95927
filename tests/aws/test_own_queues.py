"""One function for each queue, or for some: what a function drains where its settings name queues."""

from typing import Any, NamedTuple

import pytest

from lowkiq_lambda import ConfigError, Lowkiq
from lowkiq_lambda.aws.ticking import tick_alone
from lowkiq_lambda.settings.aws import Settings
from tests.aws.functions import DrainFunction, FunctionContext
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

QUEUES = ("orders", "reports", "exports")


@pytest.fixture
def app(make_app: MakeApp, queue_name: str) -> Lowkiq:
    """One with three queues of two shards, each shard with work."""
    app = make_app()
    for queue in QUEUES:
        declare(app, f"{queue_name}-{queue}", Notes(), shards_count=2).push_many(jobs_of("abcdef"))
    return app


def drained(app: Lowkiq, queue_name: str) -> set[str]:
    """The queues of which nothing waits any more."""
    waiting = {name for name, queue in app.operate.metrics().items() if queue.length}
    return {queue for queue in QUEUES if f"{queue_name}-{queue}" not in waiting}


class Choice(NamedTuple):
    """The names in `queues`, and the queues that the function is left with."""

    names: str
    own: set[str]


@pytest.mark.parametrize(
    "choice",
    [
        Choice("{0}-reports", {"reports"}),
        Choice("{0}-reports, {0}-exports", {"reports", "exports"}),
        Choice("-{0}-reports", {"orders", "exports"}),
        Choice("-{0}-reports,- {0}-gone", {"orders", "exports"}),
    ],
)
@pytest.mark.parametrize("events", [[{}], [{"tick": True}], [{"shard": 0}, {"shard": 1}]], ids=["all", "tick", "each"])
def test_an_event_without_a_queue_is_for_the_own_queues(
    drain: DrainFunction, app: Lowkiq, queue_name: str, choice: Choice, events: list[Any]
) -> None:
    """A schedule's events drain the function's own queues, and touch no other."""
    drain.install(app, queues=choice.names.format(queue_name))

    told = [drain(event) for event in events]

    assert choice.own == drained(app, queue_name)
    assert {f"{queue_name}-{queue}" for queue in choice.own} == {name for each in told for name in each["queues"]}


def test_an_event_that_names_a_queue_is_obeyed(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """What people and wakes ask for by name is drained, whoever else looks after that queue."""
    drain.install(app, queues=f"-{queue_name}-reports")

    drain({"queue": f"{queue_name}-reports"})

    assert {"reports"} == drained(app, queue_name)


def test_a_queue_that_the_app_has_not_is_told(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """A function that drained nothing for a slip of the pen would look idle."""
    drain.install(app, queues=f"{queue_name}-reprots")

    with pytest.raises(ConfigError, match=f"names '{queue_name}-reprots', and this app has no such queue"):
        drain()


def test_names_of_both_kinds_are_refused() -> None:
    """What is drained and what is left out cannot both be said: one of them would be ignored."""
    with pytest.raises(ConfigError, match="LOWKIQ_QUEUES='reports,-orders' is refused: give names of queues that"):
        Settings(queues="reports,-orders")


def test_a_tick_starts_no_drain_of_a_queue_that_another_function_drains(app: Lowkiq, queue_name: str) -> None:
    """Its numbers are published all the same: an alarm on the oldest due job is one for all queues."""
    invocations = Invocations()
    settings = Settings(idle="start", queues=f"-{queue_name}-reports")

    told = tick_alone(app, settings, FunctionContext(30.0), invocations)

    assert {f"{queue_name}-orders", f"{queue_name}-exports"} == {event["queue"] for event in invocations.events}
    assert {f"{queue_name}-{queue}" for queue in QUEUES} == told["queues"].keys()
