"""`LOWKIQ_BURST_AFTER` in the functions: what an invocation and a tick leave to daemons."""

import json
from typing import Literal

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws.ticking import WANTED, tick_alone
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction, FunctionContext
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

AFTER = 10.0
FAN_OUT = Settings(idle="start", metrics="none")


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """One whose functions burst."""
    return make_app(burst_after=AFTER)


def test_an_invocation_performs_what_has_waited_for_long(
    drain: DrainFunction, app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """It ends at once for the rest, and lingers for nothing."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    drain.install(app, idle="linger")
    worker.push_many(jobs_of("abc"))
    young = drain()
    clock.advance(AFTER)

    assert ({}, {"done": 3}) == (young["counts"], drain()["counts"])


def test_a_tick_starts_no_drain_for_what_a_daemon_would_take(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """And it starts one for each shard that has waited."""
    worker, invocations = declare(app, queue_name, Notes(), shards_count=3), Invocations()
    worker.push_many(jobs_of([f"id-{n}" for n in range(20)]))
    young = tick_alone(app, FAN_OUT, FunctionContext(30.0), invocations)
    clock.advance(AFTER)
    old = tick_alone(app, FAN_OUT, FunctionContext(30.0), invocations)

    assert {"due": 0, "started": 0} == young["drains"]
    assert ({"due": 3, "started": 3}, {}) == (old["drains"], old["burst"])


@pytest.mark.parametrize("metrics", ["summary", "queues"])
def test_a_tick_publishes_what_containers_are_scaled_by_where_it_is_asked_for(
    app: Lowkiq, queue_name: str, metrics: Literal["summary", "queues"], capsys: pytest.CaptureFixture[str]
) -> None:
    """The shards with work of all queues, without the name of any; nothing without the setting."""
    for name in (queue_name, f"{queue_name}-2"):
        declare(app, name, Notes(), shards_count=3).push_many(jobs_of([f"id-{n}" for n in range(20)]))
    for scaling in (False, True):
        tick_alone(app, Settings(metrics=metrics, scaling=scaling), FunctionContext(30.0), Invocations())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if WANTED in line]

    assert [("shop-drain", False, [6.0])] == [(line["function"], "queue" in line, line[WANTED]) for line in lines]


def test_a_tick_says_where_a_burst_would_not_help(
    make_app: MakeApp, app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """All shards of the queue are held, and jobs wait behind the holder."""
    mortal = Mortal(make_app())
    held = declare(mortal._app, queue_name, mortal.die, batch_size=1)
    held.push_many(jobs_of("ab"))
    mortal.drain()
    declare(app, queue_name, Notes())
    clock.advance(AFTER + 5.0)

    told = tick_alone(app, FAN_OUT, FunctionContext(30.0), Invocations())["burst"]

    assert {queue_name: "burst would not help: 1 of 1 shards are held"} == told
