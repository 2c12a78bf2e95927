"""Entries on other servers than the usual one: with few rights, and in a cluster."""

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.firing import MINUTE, at_noon, fired, outcomes
from tests.kit.handlers import Notes, failing
from tests.kit.servers import Cluster, Server
from tests.kit.workers import declare


def test_x11_scripts_of_entries_touch_only_keys_of_their_shard(
    own_server: Server, clock: ManualClock, queue_name: str
) -> None:
    """X-11: all of them run as a user who may touch nothing else, on an id that is new, waits, failed and is busy."""
    plain = Lowkiq(Config(redis_url=own_server.url), clock=clock)
    with closing_app(plain):
        shards = with_timetable(plain.core.queues.agreed(declare(plain, queue_name, Notes())).shards)
    keys = [declaration_key(queue_name), *shards[0].keys]
    url = own_server.add_user("shard", "+@all", "&*", *(f"~{key}" for key in keys))
    at_noon(clock)
    with closing_app(Lowkiq(Config(redis_url=url), clock=clock)) as app:
        worker = declare(app, queue_name, failing("poll"), shards_count=1)
        app.every(MINUTE, worker, id="poll")
        app.every(MINUTE, worker, id="poll", name="careful", overlap="skip")
        app.schedules.put("made", worker, every=MINUTE, id="made", payload="new")
        app.schedules.tick()
        for _ in range(3):
            clock.advance(60.0)
            assert 3 == len(fired(app.schedules.tick()))
            app.core.drains.drainer.shards()
            app.operate(worker).repair()
        app.schedules.run("made", worker=worker)
        app.schedules.disable_all(worker)
        app.schedules.enable_all(worker)
        app.schedules.remove(worker, "made")
        assert ["careful", "poll"] == [view.name for view in app.schedules.all()]


def test_entries_fire_in_a_cluster(cluster: Cluster, clock: ManualClock, queue_name: str) -> None:
    """Each lies on the node of its id; all nodes are asked together."""
    at_noon(clock)
    with closing_app(Lowkiq(Config(redis_url=cluster.url), clock=clock)) as app:
        worker = declare(app, queue_name, Notes(), shards_count=12)
        for number in range(24):
            app.every(MINUTE, worker, id=number, missed="all")
        app.schedules.put("made", worker, every=MINUTE, id="made")
        app.schedules.tick()
        clock.advance(120.0)
        seen = fired(app.schedules.tick())
        assert 2 * 24 + 1 == len(seen)
        assert [(60.0, "pushed"), (120.0, "merged")] == outcomes(app, worker, "7")
        assert 25 == app.drain()["done"]
