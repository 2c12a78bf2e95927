"""Who runs a duty: one process at a time, once in each period, and another one where that died."""

import logging
import time

import pytest
import redis

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.store.shard.duty_claims import ClaimRequest, DutyClaims, DutyKey
from lowkiq_lambda.store.shard.nodes import ServerTime
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.duties import Noted, record_of, run_due, runs_of, with_queue
from tests.kit.servers import Cluster, MakeServer, Server


@pytest.fixture
def apps(make_app: MakeApp, queue_name: str) -> list[Lowkiq]:
    """Two processes of one app."""
    return [with_queue(make_app(), queue_name) for _ in range(2)]


def each_with(apps: list[Lowkiq], **fields: object) -> list[Noted]:
    """Give each of the apps a duty that notes its own runs."""
    duties = [Noted(**fields) for _ in apps]  # type: ignore[arg-type]  # whatever the test wants
    for app, duty in zip(apps, duties, strict=True):
        app.add_duty(duty)
    return duties


def test_one_of_two_processes_runs_it_in_a_period(apps: list[Lowkiq], clock: ManualClock) -> None:
    """Whichever looks first; the other one is told when it is due."""
    first, second = each_with(apps)
    assert {"sweep": 1} == run_due(apps[0]).results
    assert 60.0 == pytest.approx(run_due(apps[1]).next_in)
    clock.advance(60.0)
    run_due(apps[1])
    run_due(apps[0])

    assert [60.0] == first.runs == second.runs


def test_apps_with_other_queues_have_duties_of_their_own(make_app: MakeApp, queue_name: str) -> None:
    """A process that knows one queue alone cannot do the duty for another one's."""
    apps = [with_queue(make_app(), f"{queue_name}-{name}") for name in "ab"]
    duties = each_with(apps)
    for app in apps:
        run_due(app)
    assert [1, 1] == [len(duty.runs) for duty in duties]


def test_a_run_of_a_process_that_died_is_taken_over_when_its_claim_ends(apps: list[Lowkiq], clock: ManualClock) -> None:
    """Not earlier, as it may still be at it; not a whole period later."""
    _, second = each_with(apps, every=3_600.0)
    claim, _ = DutyClaims(apps[0].core.backend, apps[0].core.queues).claim([ClaimRequest("sweep", 3_600.0, 65.0)], 0.0)

    assert claim
    assert [65.0] == runs_of(apps[1], second, clock, 120)


def test_a_duty_that_ends_its_process_each_time_rests_longer_each_time(app: Lowkiq, clock: ManualClock) -> None:
    """A process that is started anew is not ended by it at once again."""
    claims, claimed_at, began_at = DutyClaims(app.core.backend, app.core.queues), list[float](), clock.time()
    for _ in range(400):
        if claims.claim([ClaimRequest("sweep", 60.0, 5.0)], 0.0)[0]:
            claimed_at.append(clock.time() - began_at)
        clock.advance(1.0)

    # 5 seconds of a claim, then nothing, one period, two of them; each up to a tenth of a period earlier.
    assert [0.0, 5.0, 64.0, 183.0] == claimed_at


def test_a_call_that_is_sent_twice_claims_one_run(app: Lowkiq) -> None:
    """The answer of the first was lost."""
    claims = DutyClaims(app.core.backend, app.core.queues)
    args: list[str | bytes | int | float] = ["nonce", "a", 60.0, 5.0, "b", 60.0, 5.0]
    assert [[b"a", b"0"]] * 2 == [claims._call("claim_duty", args, 0.0) for _ in range(2)]
    claim, _ = claims.claim([ClaimRequest("a", 60.0, 5.0), ClaimRequest("b", 60.0, 5.0)], 0.0)
    assert claim
    assert "b" == claim.name
    assert [True, True] == [claims.finish(claim, "is broken", None, 0.0) for _ in range(2)]
    assert b"1" == record_of(app)[b"b:failed"]


def test_a_run_that_outlasts_its_claim_says_nothing_of_the_next_one(
    apps: list[Lowkiq], clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a pause of its process: what another one found stands, and the log tells."""
    first, second = each_with(apps)

    def outlast() -> None:
        clock.advance(90.0)
        run_due(apps[1])
        raise ValueError("too late")

    first.act = outlast
    with caplog.at_level(logging.WARNING):
        run_due(apps[0])

    (state,) = apps[0].operate.duties()
    assert (1, 0, None) == (len(second.runs), state.failures, state.last_error)
    assert "a duty took longer than its claim lasted" in caplog.text


def test_clocks_of_processes_may_differ(server: Server, queue_name: str) -> None:
    """The server's clock decides, as each process knows it."""

    class Ahead(SystemClock):
        time = staticmethod(lambda: time.time() + 3_600.0)

    made = [Lowkiq(Config(redis_url=server.url)) for _ in range(2)]
    made[0].core.connections.clock = Ahead()
    assert ServerTime is made[0].core.connections.new_time
    apps = [with_queue(app, queue_name) for app in made]
    each_with(apps)

    assert [{"sweep": 1}, {}] == [run_due(app).results for app in apps]
    for app in apps:
        close_app(app)


def test_a_call_that_is_late_ends_no_claim(apps: list[Lowkiq], clock: ManualClock) -> None:
    """Its time was measured before a claim that overtook it: the run goes on alone."""
    each_with(apps)
    requests = [ClaimRequest("sweep", 60.0, 65.0)]
    first, second = (DutyClaims(app.core.backend, app.core.queues) for app in apps)
    claim, _ = first.claim(requests, retry_for=0.0)
    assert claim is not None
    clock.set_wall(clock.time() - 30.0)

    late, due_in = second.claim(requests, retry_for=0.0)

    assert late is None
    assert pytest.approx(95.0) == due_in


def test_a_server_clock_that_was_ahead_holds_nothing_up(app: Lowkiq, clock: ManualClock) -> None:
    """A failover to a server whose clock is an hour behind: the duty goes on at once, and in its period."""
    duty = Noted()
    app.add_duty(duty)
    run_due(app)
    clock.set_wall(clock.time() - 3_600.0)
    assert [0.0, 54.0] == runs_of(app, duty, clock, 70)


def test_what_a_hand_wrote_into_the_record_holds_nothing_up(app: Lowkiq) -> None:
    """A time that is none counts as not there."""
    duty = Noted()
    app.add_duty(duty)
    key = DutyKey.of(app.core.queues).keys[0]
    for n, damaged in enumerate(("nan", "inf", "soon", "")):
        app.core.backend.client.hset(
            key, mapping=dict.fromkeys((f"sweep:{name}" for name in ("until", "began")), damaged)
        )
        run_due(app)
        assert n + 1 == len(duty.runs)


def test_runs_are_claimed_when_memory_is_full(make_server: MakeServer, clock: ManualClock, queue_name: str) -> None:
    """What recurs may be what makes room."""
    server = make_server()
    app = with_queue(Lowkiq(Config(redis_url=server.url), clock=clock), queue_name)
    duty = Noted()
    app.add_duty(duty)
    run_due(app)
    server.admin.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        server.admin.set("a", "b")
    assert [54.0] == runs_of(app, duty, clock, 60)
    close_app(app)


def test_duties_in_a_cluster(cluster: Cluster, queue_name: str) -> None:
    """All that is known of an app's duties lies in one slot."""
    apps = [with_queue(Lowkiq(Config(redis_url=cluster.url)), queue_name) for _ in range(2)]
    each_with(apps)
    assert [{"sweep": 1}, {}] == [run_due(app).results for app in apps]
    assert [False] == [state.is_running for state in apps[1].operate.duties()]
    for app in apps:
        close_app(app)
