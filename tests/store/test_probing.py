"""A daemon's look at its shards: what it costs, and that it finds no job later than a look at each shard would."""

from collections.abc import Callable, Iterator
from math import ceil
from random import Random
from threading import Event
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.drainer import WHOLE_LOOK
from lowkiq_lambda.engine.shard_queue import Rests
from lowkiq_lambda.local.listener import Listener
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.store.shard.state import DeclarationLook, ProbeResult, probe_each
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.moving import HandMade
from tests.kit.servers import Cluster, Server

QUEUES, SHARDS = 500, 5
MOST_A_SECOND = 1_500
POLL = 1.0
IN_2096 = 4_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    """Moved by hand: apps, shards and boards go by it."""
    return ManualClock()


@pytest.fixture
def app(own_server: Server, clock: ManualClock) -> Iterator[Lowkiq]:
    """An app with default settings."""
    app = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    yield app
    close_app(app)


def declared(app: Lowkiq, name: str, **options: Any) -> FunctionWorker:
    """A queue with a handler that does nothing."""

    def nothing(_batch: Batch) -> None:
        pass

    return app.worker(queue_name=name, **options)(nothing)


def listener_of(app: Lowkiq, clock: ManualClock) -> Listener:
    """The listener of a daemon, in the hands of a test; it has heard nothing."""
    drainer = app.core.drains.drainer
    board = ShardBoard(drainer.shards(), clock, POLL, Rests.of_daemon(POLL))
    return Listener(
        drainer=drainer,
        boards=[board],
        subscription=Notifications(app.core.connections.url, board.shards, timeout=1.0),
        outage=Outage(clock, lambda _error: None),
        poll_interval=POLL,
        clock=clock,
        rng=Random(1),
        stopping=Event(),
        deal_anew=lambda: board.deal_anew(drainer.shards()),
        check=tuple,
    )


def poll(listener: Listener) -> int:
    """Probe all that is due now; in how many calls."""
    count = 0
    while listener._until_probe() <= 0:
        listener._probe_if_due()
        count += 1
    return count


def commands(server: Server) -> int:
    """How many commands of apps it has executed since they were last reset, those inside scripts too."""
    stats: dict[str, Any] = server.admin.info("commandstats")
    return sum(each["calls"] for name, each in stats.items() if not name.startswith(("cmdstat_config", "cmdstat_info")))


def test_p8_five_hundred_idle_queues_cost_few_commands(app: Lowkiq, clock: ManualClock, own_server: Server) -> None:
    """P8: a poll of 2,500 shards is three commands for 24 of them; and one job costs what one shard costs."""
    workers = [declared(app, f"queue-{number}", shards_count=SHARDS) for number in range(QUEUES)]
    listener = listener_of(app, clock)
    poll(listener)
    clock.advance(POLL)
    own_server.admin.config_resetstat()

    calls = poll(listener)

    idle = commands(own_server)
    # The time and the declarations for each call, and three for each group of 24 shards.
    assert 2 * calls + 3 * ceil(QUEUES * SHARDS / 24) == idle
    # The shortest pause between two polls.
    assert idle / (0.75 * POLL) <= MOST_A_SECOND
    workers[0].push_many([{"id": "a", "delay": 60}])
    clock.advance(POLL)
    own_server.admin.config_resetstat()
    poll(listener)
    assert commands(own_server) <= idle + 24 + 4
    # What shards keep for others, such as items of tasks, is read once a minute.
    clock.advance(WHOLE_LOOK)
    own_server.admin.config_resetstat()
    poll(listener)
    whole = commands(own_server)
    assert 3 * QUEUES * SHARDS < whole
    assert (whole + idle * WHOLE_LOOK / (0.75 * POLL)) / WHOLE_LOOK <= MOST_A_SECOND


class Looks:
    """The looks of one process at the shards of queues, each compared with a look at each shard."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app

    def work(self) -> list[tuple[ShardRef, float | None]]:
        """When each shard that has or will have work has it, in seconds."""
        drainer = self._app.core.drains.drainer
        found = {result.ref: result for result in drainer.probe(drainer.shards())}
        for whole in probe_each(self._app.core.backend, drainer.shards(), 0.0):
            assert isinstance(whole, ProbeResult)
            quick = found[whole.ref]
            assert (whole.ready_in, whole.lag, whole.risky) == (quick.ready_in, quick.lag, quick.risky)
            assert whole == quick or (whole.next_at, quick.obstacle) == (None, "empty")
        return [(ref, result.ready_in) for ref, result in found.items() if result.ready_in is not None]

    def first(self) -> float | None:
        """When the only shard with any work has it."""
        ((_, ready_in),) = self.work()
        return ready_in


@pytest.mark.parametrize("shards_count", [1, 30])
def test_each_look_finds_what_nobody_told(
    app: Lowkiq, clock: ManualClock, own_server: Server, shards_count: int
) -> None:
    """A push, a due time, a lease that ends, a pause that is lifted: the next look has it, without a notification."""
    worker, looks = declared(app, "some", shards_count=shards_count), Looks(app)
    declared(app, "others", shards_count=shards_count)
    assert [] == looks.work()

    worker.push_many([{"id": "a", "delay": 60}])
    assert 60 == looks.first()
    clock.advance(60)
    assert 0 == looks.first()

    operator = app.operate(worker)
    operator.pause(30)
    assert 30 == looks.first()
    operator.resume()
    assert 0 == looks.first()

    ((shard, _),) = looks.work()
    own_server.admin.hset(shard.key("flight"), "a", own_server.admin.hget(shard.key("jobs"), "a"))
    own_server.admin.delete(shard.key("due"))
    own_server.admin.hset(
        shard.key("meta"), mapping={"until": clock.time() + 20, "flight_since": clock.time(), "ttl": 30}
    )
    assert 20 == looks.first()
    clock.advance(20)
    assert -20 == looks.first()


def test_jobs_of_tenants_are_found_beside_queues_without_them(app: Lowkiq) -> None:
    """Queues of other keys lie between: each group has the keys of its own."""
    workers = [
        declared(app, f"queue-{number}", shards_count=2, tenants=tenants)
        for number, tenants in enumerate([None, "spread", None, "spread"])
    ]
    looks = Looks(app)
    assert [] == looks.work()

    for number, worker in enumerate(workers):
        worker.push_many([{"id": "tenant:a"}])
        assert number + 1 == len(looks.work())


def test_a_full_group_is_read_as_before(app: Lowkiq, own_server: Server) -> None:
    """Where many shards have work, no shard is asked first whether it has any."""
    worker = declared(app, "queue", shards_count=5)
    worker.push_many([{"id": number} for number in range(50)])
    drainer = app.core.drains.drainer
    drainer.probe(drainer.shards())
    own_server.admin.config_resetstat()

    assert 5 == len(drainer.probe(drainer.shards()))

    # The script, the time, the declaration, the question, and four for each shard.
    assert 4 + 4 * 5 == commands(own_server)


def test_new_shards_of_an_idle_queue_are_looked_at(app: Lowkiq, clock: ManualClock, own_server: Server) -> None:
    """The old ones, which are closed, have no jobs to show: the declaration tells, and jobs are found at once."""
    worker = declared(app, "queue", shards_count=2)
    declared(app, "other", shards_count=2)
    listener = listener_of(app, clock)
    (board,) = listener.boards
    poll(listener)
    producer = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    pushing = declared(producer, "queue", shards_count=2)
    HandMade(own_server, producer, "queue").through(7)
    pushing.push_many([{"id": number} for number in range(50)])
    close_app(producer)
    clock.advance(POLL)

    poll(listener)

    assert 7 == len(app.core.queues.agreed(worker).shards)
    assert {7} == {view.ref.shards_count for view in board.views() if view.has_work}


def flush(server: Server, _shards: list[ShardRef]) -> None:
    """All is gone."""
    server.admin.flushall()


def forget_one(server: Server, shards: list[ShardRef]) -> None:
    """A shard has lost its meta."""
    server.admin.delete(shards[3].key("meta"))


@pytest.mark.parametrize("lose", [flush, forget_one])
def test_an_idle_queue_that_was_lost_is_declared_again(
    app: Lowkiq, own_server: Server, lose: Callable[[Server, list[ShardRef]], None]
) -> None:
    """Nothing is there any more, or but one meta is gone: the next look opens what is closed."""
    declared(app, "queue")
    drainer = app.core.drains.drainer
    drainer.probe(drainer.shards())
    lose(own_server, drainer.shards())

    drainer.probe(drainer.shards())

    assert all(own_server.admin.hexists(shard.key("meta"), "generation") for shard in drainer.shards())


@pytest.mark.parametrize(
    ("answers", "changed"),
    [
        ([[b"1", None]], set()),
        ([[b"2", None]], {"a"}),
        ([[b"1", b"2"]], {"b"}),
        ([[None, None]], {"a"}),
        ([RedisConnectionError()], set()),
        ([NoPermissionError()], {"a", "b"}),
        ([b"1", RedisConnectionError()], set()),
        ([NoPermissionError(), None], {"a"}),
    ],
)
def test_a_declaration_counts_as_changed_unless_its_node_may_tell_later(answers: list[Any], changed: set[str]) -> None:
    """An error that does not pass is met by the call that reads the declaration, which names the queue."""
    look = DeclarationLook({"a": b"1", "b": b""})

    look.take(answers)

    assert changed == look.changed


def test_in_a_cluster_each_queue_is_looked_at_on_its_node(cluster: Cluster, queue_name: str) -> None:
    """A command cannot read keys of several slots there."""
    app = Lowkiq(Config(redis_url=cluster.url))
    workers = [declared(app, f"{queue_name}-{number}", shards_count=3) for number in range(4)]
    looks = Looks(app)
    try:
        assert [] == looks.work()
        workers[2].push_many([{"id": "a", "due_at": IN_2096}])
        drainer = app.core.drains.drainer
        found = [result.ref for result in drainer.probe(drainer.shards()) if result.next_at == IN_2096]
        assert [f"{queue_name}-2"] == [shard.queue_name for shard in found]
    finally:
        close_app(app)
