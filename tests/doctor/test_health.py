"""What the health check of a container tells: whether a restart of its daemon may help."""

import socket
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq, Rate
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.operate.doctor.health import MISSED_HEARTBEATS, DaemonHealth, health_of
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Doing, Process
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of

BUSY = {"doing": (Doing(queue="orders", shard=0, since=0.0, count=1, ids=("a",)),)}


@pytest.fixture
def send_heartbeat(app: Lowkiq) -> Callable[..., None]:
    """Has a daemon of this machine tell that it lives, and more of itself."""
    heartbeat = Heartbeat(app.core.drains.drainer, "daemon", 5, str)

    def tell(**more: Any) -> None:
        told: Process = msgspec.structs.replace(heartbeat.told(), **more)
        heartbeat.sender.send(told)

    return tell


def test_a_daemon_that_sends_heartbeats_is_well(
    app: Lowkiq, clock: ManualClock, send_heartbeat: Callable[..., None]
) -> None:
    """Until three of its heartbeats are missing; one of another machine, or an invocation, is not asked for."""
    declare(app, "orders", Notes())
    before = health_of(app.core)
    send_heartbeat(host="elsewhere")
    elsewhere = health_of(app.core)
    send_heartbeat()
    well = health_of(app.core)
    clock.advance(MISSED_HEARTBEATS * app.config.heartbeat_interval + 1)
    missing = health_of(app.core)

    here = socket.gethostname()
    assert [DaemonHealth(is_well=False, says=f"No daemon of {here} has been heard of.")] * 2 == [before, elsewhere]
    assert (True, False) == (well.is_well, missing.is_well)
    assert missing.says.startswith(f"No daemon of {here} has been heard of for 31 ")


@pytest.mark.parametrize(
    ("told", "is_well"), [({}, False), (BUSY, True), ({"state": "quiet"}, True), ({"state": "stopping"}, True)]
)
def test_a_daemon_that_sends_heartbeats_and_does_nothing_is_not_well(
    app: Lowkiq,
    clock: ManualClock,
    send_heartbeat: Callable[..., None],
    told: dict[str, Any],
    is_well: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Where work has been due for two minutes, and nobody has told it to be quiet; one that is busy is well."""
    declare(app, "orders", Notes()).push_many(jobs_of("a"))
    send_heartbeat(**told)
    fresh = health_of(app.core)
    clock.advance(LATE + 1)
    send_heartbeat(**told)
    late = health_of(app.core)

    assert (True, is_well) == (fresh.is_well, late.is_well)
    assert is_well or "does nothing, and 'orders' has had due work for" in late.says


def test_what_may_not_be_begun_is_no_reason(
    app: Lowkiq, clock: ManualClock, send_heartbeat: Callable[..., None]
) -> None:
    """Of a queue that is paused, or limited, nothing has to be begun."""
    paused, limited = declare(app, "paused", Notes()), declare(app, "limited", Notes(), rate=Rate(1, 3_600.0))
    for worker in (paused, limited):
        worker.push_many(jobs_of("a"))
    app.operate(paused).pause()
    clock.advance(LATE + 1)
    send_heartbeat()

    assert health_of(app.core).is_well


def test_a_server_that_is_away_is_no_reason(make_server: MakeServer) -> None:
    """A daemon that is restarted would wait for it too."""
    own = make_server()
    with closing_app(Lowkiq(Config(redis_url=own.url, redis_timeout=0.2))) as app:
        declare(app, "orders", Notes())
        own.kill()

        assert DaemonHealth(
            is_well=True, says="The server is out of reach: a daemon waits until it is back."
        ) == health_of(app.core)
