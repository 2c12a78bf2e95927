"""What the drift guard reads, on real servers."""

from collections.abc import Mapping

import pytest

from lowkiq_lambda import BackendDenied, Config, Lowkiq, Worker
from lowkiq_lambda.aws.drain_schedules.guard import (
    Held,
    QueueFound,
    declarations_of,
    find_stranded,
    queues_in_redis,
    shards_counts,
)
from lowkiq_lambda.store.shard.keys import declaration_key
from tests.kit.servers import Cluster, Server

STRANGE_NAMES = ("a:b", "{a}", "ä *?[x]", "declaration", "a:declaration")


def app_at(url: str, shards: Mapping[str, int]) -> Lowkiq:
    """An app whose workers have these queue names and counts of shards, and fail what they get."""
    app = Lowkiq(Config(redis_url=url))

    def perform(_worker: Worker, batch: Mapping[str, object]) -> None:
        raise ValueError(f"{len(batch)} ids")

    for queue_name, shards_count in shards.items():
        body = {"queue_name": queue_name, "shards_count": shards_count, "perform": perform}
        app.worker(type("Any", (Worker,), body))
    return app


def push(app: Lowkiq, count: int) -> None:
    """Push so many jobs to each queue."""
    for worker in app.workers:
        worker.push_many([{"id": number} for number in range(count)])


def by_name(app: Lowkiq) -> dict[str, QueueFound]:
    """What the guard is told."""
    return {queue.name: queue for queue in queues_in_redis(app)}


def total(queue: QueueFound) -> Held:
    """What a queue holds."""
    assert queue.shards is not None
    return sum(queue.shards, Held())


def test_what_waits_and_what_is_in_the_morgue_is_counted_by_shard(own_server: Server) -> None:
    """Each shard tells what it holds, also of what waits for a retry."""
    app = app_at(own_server.url, {"Orders": 4})
    push(app, 20)
    app.drain()
    assert 20 == app.operate(app.workers[0]).waiting.kill(everything=True)
    push(app, 3)

    found = by_name(app)["Orders"]

    assert Held(waiting=3, in_flight=0, morgue=20) == total(found)
    assert (0, 1, 2, 3) == found.occupied


def test_what_is_in_flight_is_counted(own_server: Server) -> None:
    """A job that a handler has at this moment would be stranded too."""
    app = Lowkiq(Config(redis_url=own_server.url))
    seen: list[Held] = []

    @app.worker(queue_name="Orders", shards_count=2)
    def look(_batch: object) -> None:
        seen.append(total(by_name(app)["Orders"]))

    look.push_many([{"id": 1}])
    app.drain()

    assert [Held(in_flight=1)] == seen
    assert Held() == total(by_name(app)["Orders"])


def test_queues_that_the_app_does_not_have_are_found(own_server: Server) -> None:
    """A queue of a worker that was removed is found by what it left in Redis, with the count of its own."""
    push(app_at(own_server.url, {"Old": 7, **dict.fromkeys(STRANGE_NAMES, 2)}), 5)

    found = by_name(app_at(own_server.url, {"New": 3}))

    assert {"Old", *STRANGE_NAMES} == found.keys()
    assert 7 == len(found["Old"].shards or ())
    assert all(Held(waiting=5) == total(queue) for queue in found.values())


def test_the_guard_writes_nothing(own_server: Server) -> None:
    """A look declares no queue, and leaves every key as it is."""
    push(app_at(own_server.url, {"Old": 2}), 3)
    keys = set(own_server.admin.keys())
    before = {key: own_server.admin.dump(key) for key in keys}

    app = app_at(own_server.url, {"Old": 5, "New": 2})
    stranded = find_stranded(declarations_of(app), queues_in_redis(app))

    assert ["Old"] == [one.queue_name for one in stranded]
    assert before == {key: own_server.admin.dump(key) for key in set(own_server.admin.keys())}


@pytest.mark.parametrize("stored", [b"not json", b"[1]", b"{}", b'{"shards_count": -1}', b'{"shards_count": 1e9}'])
def test_a_declaration_that_cannot_be_read_is_not_taken_for_empty(own_server: Server, stored: bytes) -> None:
    """What another version, or anybody, wrote in its place does not stop the look, and its queue is unknown."""
    own_server.admin.set(declaration_key("Odd"), stored)

    assert by_name(app_at(own_server.url, {"New": 1}))["Odd"].shards is None


def test_the_guard_finds_the_queues_of_all_nodes(cluster: Cluster, queue_name: str) -> None:
    """In a cluster the queues lie on all nodes, and each is found."""
    names = {f"{queue_name}-{number}": 3 for number in range(9)}
    push(app_at(cluster.url, names), 4)

    found = by_name(app_at(cluster.url, {queue_name: 1}))

    assert {name: Held(waiting=4) for name in names} == {name: total(found[name]) for name in names}


def test_a_user_who_may_not_search_is_told_so(own_server: Server) -> None:
    """Where the ACL forbids SCAN the guard says so, and does not take the server for empty."""
    url = own_server.add_user("deployer", "~lowkiq:*", "&lowkiq:*", "+@all", "-scan")

    with pytest.raises(BackendDenied, match=r"(?i)scan"):
        queues_in_redis(app_at(url, {"New": 1}))


def test_a_user_of_the_keys_alone_may_look(own_server: Server) -> None:
    """The rights that a drain has are enough."""
    push(app_at(own_server.url, {"Old": 2}), 3)
    url = own_server.add_user("deployer", "~lowkiq:*", "&lowkiq:*", "+@all")

    assert Held(waiting=3) == total(by_name(app_at(url, {"New": 1}))["Old"])


def test_a_queue_that_was_resharded_is_served_by_code_with_its_old_count(own_server: Server) -> None:
    """No deploy is refused for a count that the queue had, or gets; schedules are for as many shards as it may have."""
    app = app_at(own_server.url, {"Orders": 4})
    push(app, 20)
    app.operate(app.workers[0]).reshard(to=6)
    old, new, other = (app_at(own_server.url, {"Orders": count}) for count in (4, 6, 5))

    assert 6 == len(by_name(app)["Orders"].shards or ())
    assert [[], []] == [find_stranded(declarations_of(each), queues_in_redis(each)) for each in (old, new)]
    assert ["Orders"] == [one.queue_name for one in find_stranded(declarations_of(other), queues_in_redis(other))]
    assert [{"Orders": 6}, {"Orders": 6}, {}] == [shards_counts(each) for each in (old, new, other)]
