"""The first push into an idle shard starts its drain, others do not."""

import logging
from functools import partial
from threading import Barrier, Thread

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.providers.aws import waking
from lowkiq_lambda.providers.aws.invoker import InvocationRefused, LambdaUnreachable
from lowkiq_lambda.providers.aws.waking import REST, LambdaStarter
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.store.shard.waking import WINDOW, unwake, wake
from lowkiq_lambda.testing import ManualClock
from tests.aws.invocations import Invocations
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster, FaultProxy, MakeServer, Server
from tests.kit.workers import declare, jobs_of, shard_of


@pytest.fixture
def invocations() -> Invocations:
    """What was invoked."""
    return Invocations()


@pytest.fixture
def make_app(make_app: MakeApp, clock: ManualClock, invocations: Invocations) -> MakeApp:
    """Builds apps whose pushes start drains."""
    return lambda **settings: make_app(**{"wake_function": starter(invocations, clock), **settings})


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """One of them."""
    return make_app()


def starter(invocations: Invocations, clock: ManualClock) -> LambdaStarter:
    """Starts drains by the function `drain`."""
    return LambdaStarter("drain", invocations, clock)


def test_the_first_push_into_an_idle_shard_invokes_and_later_ones_do_not(
    app: Lowkiq, clock: ManualClock, queue_name: str, invocations: Invocations
) -> None:
    """One invocation, for the shard that was pushed to, however much comes until its drain does."""
    worker = declare(app, queue_name, Notes())

    for number in range(5):
        worker.push_many(jobs_of("abc", payload=number))
        clock.advance(1.0)

    assert [("drain", {"queue": queue_name, "shard": 0})] == invocations.accepted


def test_each_idle_shard_is_woken_by_itself(app: Lowkiq, queue_name: str, invocations: Invocations) -> None:
    """A push into several shards starts one drain for each, and one into another shard one more."""
    worker = declare(app, queue_name, Notes(), shards_count=5)
    first, *others = (str(number) for number in range(100))
    alone = shard_of(app, worker, first).index

    worker.push_many(jobs_of([first]))
    assert [{"queue": queue_name, "shard": alone}] == invocations.events

    worker.push_many(jobs_of(others))
    assert list(range(5)) == sorted(event["shard"] for event in invocations.events)


def test_a_shard_that_was_drained_is_woken_again(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """A wake counts only until somebody has taken the lease: after that an idle shard is idle again."""
    worker = declare(app, queue_name, Notes())

    for count in (1, 2, 3):
        worker.push_many(jobs_of("a"))
        assert count == len(invocations.accepted)
        app.drain()
        clock.advance(0.01)


def test_a_drain_that_does_not_come_is_started_again_after_the_window(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """Lambda may lose an invocation: a push after the window starts another, though it is behind what waits."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))

    clock.advance(WINDOW - 0.5)
    worker.push_many(jobs_of("b"))
    assert 1 == len(invocations.accepted)

    clock.advance(1.0)
    worker.push_many(jobs_of("c"))
    worker.push_many(jobs_of("d"))
    assert 2 == len(invocations.accepted)


def test_producers_that_push_at_once_invoke_once(make_app: MakeApp, queue_name: str, invocations: Invocations) -> None:
    """Which of them finds the shard idle is decided in the shard."""
    workers = [declare(make_app(), queue_name, Notes()) for _ in range(4)]
    ready = Barrier(len(workers))

    def produce(worker: type[Worker], number: int) -> None:
        ready.wait()
        for payload in range(10):
            worker.push_many(jobs_of([f"{number}"], payload=payload))

    threads = [Thread(target=produce, args=(worker, number)) for number, worker in enumerate(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len(invocations.accepted)


def test_a_shard_that_is_held_is_not_woken(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """Who holds the lease will find what is pushed meanwhile; what a handler pushes too."""

    def push_more(batch: Batch) -> None:
        if "a" in batch:
            worker.push_many(jobs_of("bc"))

    notes = Notes(push_more)
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    clock.advance(WINDOW + 1)
    app.drain()

    assert [["a"], ["b"], ["c"]] == notes.ids
    assert 1 == len(invocations.accepted)


def test_what_is_due_later_wakes_nobody(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """A drain that is started now would find nothing; what is due at once wakes, though other work is due later."""
    worker = declare(app, queue_name, Notes())

    worker.push_many(jobs_of("a", delay=5))
    assert [] == invocations.accepted

    worker.push_many(jobs_of("b"))
    assert 1 == len(invocations.accepted)

    app.drain()
    clock.advance(4.0)
    worker.push_many(jobs_of("c", delay=30))
    assert 1 == len(invocations.accepted)


def test_a_paused_shard_is_not_woken(
    app: Lowkiq, server: Server, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """It would find a closed door."""
    worker = declare(app, queue_name, Notes())
    meta = shard_of(app, worker, "a").key("meta")
    server.admin.hset(meta, "paused_until", clock.time() + 60)
    worker.push_many(jobs_of("a"))
    assert [] == invocations.accepted

    clock.advance(61.0)
    worker.push_many(jobs_of("b"))
    assert 1 == len(invocations.accepted)


def test_a_shard_whose_holder_died_is_woken_once_its_lease_has_ended(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations
) -> None:
    """E-14: what a dead holder left is work too."""
    mortal = Mortal(app)
    worker = declare(app, queue_name, Notes(mortal.die))
    worker.push_many(jobs_of("a"))
    assert mortal.drain() is None

    worker.push_many(jobs_of("b", delay=600))
    assert 1 == len(invocations.accepted)

    outlive(app, clock, worker)
    worker.push_many(jobs_of("c", delay=300))
    assert 2 == len(invocations.accepted)


def test_a_refused_invocation_fails_no_push_and_the_next_one_tries_again(
    app: Lowkiq, queue_name: str, invocations: Invocations, caplog: pytest.LogCaptureFixture
) -> None:
    """The push is written and returns as ever; a warning tells why nobody was woken."""
    worker = declare(app, queue_name, Notes())
    invocations.refusing = InvocationRefused("drain was not started: no right.")

    with caplog.at_level(logging.WARNING):
        (pushed,) = worker.push_many(jobs_of("a"))
    assert not pushed.merged
    assert [f"Shard 0 of {queue_name} was not woken: drain was not started: no right."] == caplog.messages

    worker.push_many(jobs_of("b"))
    assert 2 == invocations.refused

    invocations.refusing = None
    worker.push_many(jobs_of("c"))
    worker.push_many(jobs_of("d"))
    assert 1 == len(invocations.accepted)
    assert {"done": 4} == app.drain()


def test_a_plug_that_breaks_fails_no_push(make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a wake function of one's own raises, the push is written."""

    def broken(_queue_name: str, _shard: int) -> None:
        raise ZeroDivisionError("oh")

    app = make_app(wake_function=broken)
    worker = declare(app, queue_name, Notes())

    worker.push_many(jobs_of("a"))

    assert [f"Shard 0 of {queue_name} was not woken: oh"] == caplog.messages
    assert {"done": 1} == app.drain()


def test_where_lambda_cannot_be_reached_pushes_do_not_wait_for_it_again(
    app: Lowkiq, queue_name: str, clock: ManualClock, invocations: Invocations, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a route out of the VPC one push a minute pays for the attempt; the others are as fast as ever."""
    worker = declare(app, queue_name, Notes())
    invocations.refusing = LambdaUnreachable()

    for _ in range(3):
        worker.push_many(jobs_of("a"))
    assert 1 == invocations.refused
    assert "interface endpoint for lambda" in caplog.messages[0]

    invocations.refusing = None
    clock.advance(REST)
    worker.push_many(jobs_of("a"))
    assert 1 == len(invocations.accepted)


def test_a_wake_whose_answer_is_lost_fails_no_push(
    make_app: MakeApp,
    queue_name: str,
    clock: ManualClock,
    invocations: Invocations,
    fault_proxy: FaultProxy,
) -> None:
    """Nobody is woken then; the first push after the window tries again."""
    app = make_app(redis_url=fault_proxy.url)
    worker = declare(app, queue_name, Notes())
    fault_proxy.drop_reply_after(script("wake").sha.encode())

    worker.push_many(jobs_of("a"))
    fault_proxy.wait_dropped()
    worker.push_many(jobs_of("b"))
    assert [] == invocations.accepted

    clock.advance(WINDOW)
    worker.push_many(jobs_of("c"))
    assert 1 == len(invocations.accepted)


def test_a_server_that_refuses_wakes_fails_no_push(
    make_app: MakeApp,
    make_server: MakeServer,
    queue_name: str,
    invocations: Invocations,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A wake that cannot be noted is a wake that is not sent, so that there are never two."""
    own = make_server()
    url = own.add_user("pusher", "+@all", "~*", "&*", "-hdel")
    app = make_app(redis_url=url)
    worker = declare(app, queue_name, Notes())

    worker.push_many(jobs_of("a"))

    assert [] == invocations.accepted
    assert caplog.messages[0].startswith(f"Shard 0 of {queue_name} was not woken: Redis refused the user")
    assert 1 == own.admin.zcard(shard_of(app, worker, "a").key("due"))


def test_shards_of_a_full_server_can_be_woken(make_app: MakeApp, make_server: MakeServer, queue_name: str) -> None:
    """E-41: it is drains that make room, so starting them must not take any."""
    own = make_server()
    app = make_app(redis_url=own.url, wake_function=None)
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    own.admin.config_set("maxmemory", 1)
    shard = shard_of(app, worker, "a")

    woken = wake(app.core.backend, [shard], WINDOW, retry_for=0.0)

    assert ([shard], {}) == (woken.shards, woken.errors)
    assert {} == unwake(app.core.backend, woken.nonce, [shard], retry_for=0.0)


def test_one_shard_that_cannot_be_asked_hides_no_other(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """Each has its answer or its error."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of([str(number) for number in range(20)]))
    closed, other = app.core.queues.agreed(worker).shards
    app.drain()
    worker.push_many([{"id": str(number), "delay": 1} for number in range(20)])
    server.admin.hset(closed.key("meta"), "closed", 1)
    clock.advance(2.0)

    woken = wake(app.core.backend, [closed, other], WINDOW, retry_for=0.0)

    assert [other] == woken.shards
    assert [closed] == list(woken.errors)


def test_the_environment_names_the_function(
    server_url: str, queue_name: str, invocations: Invocations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOWKIQ_WAKE_FUNCTION is all that a pushing process needs."""
    monkeypatch.setattr(waking, "shared_invoker", lambda: invocations)
    environ = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_WAKE_FUNCTION": "shop-drain"}
    app = Lowkiq(Config.from_env(environ))
    worker = declare(app, queue_name, Notes())

    for _ in range(2):
        worker.push_many(jobs_of("a"))

    assert [("shop-drain", {"queue": queue_name, "shard": 0})] == invocations.accepted
    app.core.backend.client.close()


def test_shards_on_the_nodes_of_a_cluster_are_woken_alike(
    make_app: MakeApp, cluster: Cluster, queue_name: str, invocations: Invocations
) -> None:
    """A push asks each node for its own shards."""
    worker = declare(make_app(redis_url=cluster.url), queue_name, Notes(), shards_count=10)

    for payload in range(3):
        worker.push_many(jobs_of([str(number) for number in range(100)], payload=payload))

    assert list(range(10)) == sorted(event["shard"] for event in invocations.events)


def test_nobody_is_woken_by_default(make_app: MakeApp, queue_name: str, invocations: Invocations) -> None:
    """The option is off where nothing is named, and leaves nothing in the shard."""
    app = make_app(wake_function=None)
    worker = declare(app, queue_name, Notes())

    worker.push_many(jobs_of("a"))

    assert [] == invocations.accepted
    assert not app.core.backend.client.hexists(shard_of(app, worker, "a").key("meta"), "woken_until")


def test_only_the_wake_that_is_noted_can_be_taken_back(app: Lowkiq, queue_name: str, clock: ManualClock) -> None:
    """Who gives up late takes nothing from the one who was told to start after him."""
    worker = declare(app, queue_name, Notes())
    app.push_many(worker, jobs_of("a", delay=1))
    clock.advance(1.0)
    shard = shard_of(app, worker, "a")
    ask = partial(wake, app.core.backend, [shard], WINDOW, 0.0)

    early = ask()
    clock.advance(WINDOW)
    late = ask()
    assert [shard] == early.shards == late.shards

    unwake(app.core.backend, early.nonce, [shard], 0.0)
    assert [] == ask().shards

    unwake(app.core.backend, late.nonce, [shard], 0.0)
    assert [shard] == ask().shards
