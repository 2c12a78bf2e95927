"""Looks at many shards: what comes one by one is whole, or it is told that it is not."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError

from lowkiq_lambda import BackendUnavailable, Lowkiq
from lowkiq_lambda.base.errors import ShardDamaged
from lowkiq_lambda.store.server.connection import connect, is_cluster
from lowkiq_lambda.store.server.pipelines import Command, send_each, stream
from lowkiq_lambda.store.shard import reader
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import ServerTime
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.state import probe, probe_each
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import Overview
from tests.kit.apps import MakeApp
from tests.kit.desk import Desk
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Cluster, Server
from tests.kit.workers import declare

QUEUES = 5
LENGTHS = [*range(1, QUEUES + 1)]


def declare_some(app: Lowkiq, queue_name: str) -> None:
    """Queues, the first with one job, the next with two, and so on."""
    for count in LENGTHS:
        worker = declare(app, f"{queue_name}-{count}", FailingHandler(), shards_count=3)
        worker.push_many([{"id": job_id} for job_id in range(count)])


def lengths(app: Lowkiq) -> list[int]:
    """How much waits in each queue."""
    with app.operate.overview() as seen:
        return [queue.now.length for queue in seen.queues]


class Disturbed:
    """In place of `stream`: something happens before the answer at each of these places, once."""

    def __init__(self, happens: Callable[[], object], *places: int) -> None:
        self.happens = happens
        self.left = [*places]

    def __call__(self, client: redis.Redis, commands: Iterable[Command]) -> Generator[Any]:
        """The answers."""
        for place, answer in enumerate(stream(client, commands)):
            if place in self.left:
                self.left.remove(place)
                self.happens()
            yield answer


def cut() -> None:
    """The connection breaks."""
    raise RedisConnectionError("cut")


FIRST_QUEUE = 1 + 1 + 2 * QUEUES
"""What is answered before the first of the queues: the time, INFO, declarations and pasts."""


def test_a_look_that_cannot_begin_is_tried_again(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-41: nobody has seen anything of it yet."""
    declare_some(app, queue_name)
    disturbed = Disturbed(cut, 0, FIRST_QUEUE - 1)
    monkeypatch.setattr(reader, "stream", disturbed)

    assert LENGTHS == lengths(app)
    assert [] == disturbed.left


def test_a_look_that_breaks_off_says_so(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a look is none."""
    declare_some(app, queue_name)
    lengths(app)
    monkeypatch.setattr(reader, "stream", Disturbed(cut, FIRST_QUEUE + 2))

    with pytest.raises(BackendUnavailable):
        lengths(app)
    assert LENGTHS == lengths(app)


def test_numbers_that_break_off_are_asked_for_again(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-41: who wants all of them at once has them all of one moment."""
    declare_some(app, queue_name)
    total = sum(LENGTHS)
    asks: list[Callable[[], int]] = [
        lambda: app.operate.stats()["total"]["length"],
        lambda: sum(queue.length for queue in app.operate.metrics().values()),
        lambda: sum(shard.length for worker in app.workers for shard in app.operate(worker).shards()),
    ]
    for ask in asks:
        disturbed = Disturbed(cut, 1, 3)
        monkeypatch.setattr(reader, "stream", disturbed)
        assert total == ask()
        assert [] == disturbed.left


def test_a_look_at_a_cluster_is_tried_again(
    cluster: Cluster, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-41: a node that breaks off there has not been looked at by anybody."""
    app, times = make_app(redis_url=cluster.url), [1, 2]
    declare_some(app, queue_name)

    def losing(client: Any, commands: Sequence[tuple[str, Command]]) -> list[Any]:
        answers = send_each(client, commands)
        return [*answers[:-1], RedisConnectionError("cut")] if times and times.pop() else answers

    monkeypatch.setattr(reader, "send_each", losing)

    assert LENGTHS == lengths(app)
    assert [] == times


def test_a_look_needs_one_connection_and_no_script(make_app: MakeApp, server: Server, queue_name: str) -> None:
    """E-36: a server that forgot its scripts is told, though there is no other connection than the look's."""
    app = make_app(client_pool_size=1)
    declare_some(app, queue_name)
    server.admin.script_flush()

    assert LENGTHS == lengths(app)


def test_scripts_forgotten_again_and_again_end_no_look(
    app: Lowkiq, server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-36: each time one answer more is there."""
    declare_some(app, queue_name)
    server.admin.script_flush()

    def forgetful(client: redis.Redis, commands: Iterable[Command]) -> Generator[Any]:
        server.admin.script_flush()
        return stream(client, commands)

    monkeypatch.setattr(reader, "stream", forgetful)

    assert LENGTHS == lengths(app)


def test_what_is_wrong_with_who_looks_is_his(make_app: MakeApp, queue_name: str) -> None:
    """An error of a page is no error of Redis, whatever its kind, and leaves no answers to who comes next."""
    app = make_app(client_pool_size=1)
    declare_some(app, queue_name)

    with pytest.raises(FileNotFoundError), app.operate.overview() as seen:
        raise FileNotFoundError(next(iter(seen.queues)).name)
    assert LENGTHS == lengths(app)
    assert sum(LENGTHS) == app.operate.stats()["total"]["length"]


def test_a_look_ends_with_its_block(app: Lowkiq, queue_name: str) -> None:
    """What was not seen by then is not made up."""
    declare_some(app, queue_name)

    def escaped() -> Overview:
        with app.operate.overview() as seen:
            return seen

    with pytest.raises(RuntimeError, match="take its replies inside it"):
        list(escaped().queues)


def test_an_app_without_queues_is_looked_at_all_the_same(app: Lowkiq) -> None:
    """The server is shown, and no queue."""
    with app.operate.overview() as seen:
        queues = [*seen.queues]

    assert ["primary"] == [server.role for server in seen.servers]
    assert [] == queues


@pytest.mark.parametrize("unreadable", [("SET", "due", "x"), ("HSET", "meta", "until", "x")], ids=["type", "value"])
def test_a_shard_that_cannot_be_mended_is_alone_with_its_error(
    app: Lowkiq, queue_name: str, server: Server, monkeypatch: pytest.MonkeyPatch, unreadable: tuple[str, ...]
) -> None:
    """One call of the script reads it together with others, and these have their state all the same."""
    worker = declare(app, queue_name, FailingHandler(), shards_count=30)
    worker.push_many([{"id": job_id} for job_id in range(100)])
    shards = app.core.queues.agreed(worker).shards
    sound = probe(app.core.backend, shards, retry_for=0.0)
    (command, name), values = unreadable[:2], unreadable[2:]
    server.admin.delete(shards[7].key(name))
    server.admin.execute_command(command, shards[7].key(name), *values)
    monkeypatch.setattr(app.core.backend.mender, "mend", lambda _shard: False)

    found = probe_each(app.core.backend, shards, retry_for=0.0)

    assert isinstance(found[7], ShardDamaged)
    assert [state for state in sound if state.ref is not shards[7]] == found[:7] + found[8:]
    with pytest.raises(ShardDamaged):
        probe(app.core.backend, shards, retry_for=0.0)


@pytest.mark.unverified("a key is damaged by hand")
@pytest.mark.parametrize(("again", "ends"), [(2, nullcontext()), (9, pytest.raises(ShardDamaged))])
def test_a_shard_that_is_damaged_again_is_mended_a_few_times(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, again: int, ends: AbstractContextManager[object]
) -> None:
    """What a call has left that met damage half-way is mended too, and a call does not go on with that for ever."""
    desk.push([{"id": "a"}])
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    mender, mended = desk.app.core.backend.mender, list[bool]()
    mend = mender.mend

    def damage() -> None:
        desk.admin.delete(shard.key("since"))
        desk.admin.set(shard.key("since"), "damaged")

    def mend_and_damage(one: ShardRef) -> bool:
        mended.append(mend(one))
        if len(mended) <= again:
            damage()
        return mended[-1]

    monkeypatch.setattr(mender, "mend", mend_and_damage)
    damage()
    with ends:
        desk.app.core.backend.run("shard_state", shard, [], retry_for=0.0)

    assert [True] * 3 == mended


def test_a_wait_for_a_connection_is_no_part_of_a_round_trip(
    server: Server, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What time it is on the node does not depend on how long others kept the connections."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1)
    assert not is_cluster(client)
    backend = Backend(client, clock, lambda: ServerTime(clock), clock.sleep, Random(1))
    reader, shard, get = (
        ShardReader(backend, retry_for=0.0),
        ShardRef(queue_name, 1, 0),
        client.connection_pool.get_connection,
    )
    reader.read_each("shard_state", [shard])

    def get_late() -> Any:
        clock.advance(3.0)
        return get()

    monkeypatch.setattr(client.connection_pool, "get_connection", get_late)

    for ask in (backend.nodes.stamp, lambda shard, **_: reader.read_each("shard_state", [shard])):
        ask(shard, measure=True)
        seconds, _ = server.admin.time()
        assert seconds - 1 <= backend.now(shard) <= seconds + 1
    client.close()
