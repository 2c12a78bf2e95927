"""The journal of a shard: what is in it, and what it costs (C-16, X-43)."""

from typing import Any

import pytest

from lowkiq_lambda import BackendFull, Batch, Config, Lowkiq, Rejected, Worker
from lowkiq_lambda.operate.inspect.journal import read_journals
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.journal import JournalEntry
from tests.kit.apps import closing_app
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of


def entries(app: Lowkiq, worker: type[Worker]) -> list[JournalEntry]:
    """What is in the journals of the worker's shards."""
    queue = app.operate(worker)
    return [entry for journal in read_journals(queue.reader, queue.reader.shards) for entry in journal]


def told(app: Lowkiq, worker: type[Worker]) -> list[tuple[str, Any]]:
    """Kind and items of each entry, the arrival number for each place."""
    return [(entry.kind, [_told(item) for item in entry.items]) for entry in entries(app, worker)]


def _told(item: Any) -> Any:
    if "level" in item:
        return item["level"]
    if isinstance(item, dict):
        return item["how"], item["ids"], item["crash_counted"], item["dead"]
    rest = item[1:]
    # Behind two places there may be numbers of another kind.
    return [item[0], *rest[1:4:2], *rest[4:]] if item else []


@pytest.fixture
def notes() -> Notes:
    """The test's handler."""
    return Notes()


def test_a_queue_without_trouble_writes_nothing(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """Pushes, claims and outcomes that need nobody's attention are no events."""
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("ab"))
    app.drain()

    assert [] == entries(app, worker)
    assert not app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("journal"))


def test_x43_a_dead_holder_is_told_with_what_it_left(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """X-43, C-16: since when it had the shard, which ids it left, and under which token and call."""
    mortal = Mortal(app)
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    began = clock.time()
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = None
    app.drain()

    (entry,) = entries(app, worker)
    (item,) = entry.items
    assert ("recovered", "0", 1) == (entry.kind, entry.call, entry.number)
    assert (2, ["a", "b"], "died", [], []) == (
        item["count"],
        sorted(item["ids"]),
        item["how"],
        item["crash_counted"],
        item["dead"],
    )
    assert began <= float(item["since"]) < entry.at


def test_what_operators_and_bounds_did_is_told(app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes) -> None:
    """Each payload that left its place by hand, or died, with its place."""
    notes.then = failing("a", "b")
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.push_many(jobs_of("ab"))
    app.drain()
    app.operate(worker).waiting.kill(["a"])
    clock.advance(100)
    app.drain()
    app.operate(worker).morgue.requeue(["a"])
    app.operate(worker).morgue.delete(["b"])
    app.operate(worker).waiting.delete(["a"])

    assert [
        ("killed", [["a", 1]]),
        ("dead", [["b", 2]]),
        ("requeued", [["a", 1]]),
        ("deleted", [["b", 2]]),
        ("deleted", [["a", 1]]),
    ] == told(app, worker)


def test_a_refusal_is_told(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """The job is gone, so nothing else tells of it."""

    def refuse(batch: Batch) -> None:
        batch.fail("a", Rejected("not qualified"))

    notes.then = refuse
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    app.drain()

    assert [("rejected", [["a"]])] == told(app, worker)


def test_all_is_told_until_its_time_ends(app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes) -> None:
    """Pushes with what they joined, claims, outcomes by name; then no more, and no key is passed that has no use."""
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("a"))
    app.operate(worker).journal("all", seconds=600)
    worker.push_many([{"id": "a"}, {"id": "b", "payload": 1}, {"id": "b", "payload": 2}])
    notes.then = failing("a")
    app.drain()
    clock.advance(601)
    notes.then = None
    worker.push_many(jobs_of("c"))
    app.drain()

    assert [
        ("level", ["all"]),
        ("pushed", [["a", 2], ["b", 3], ["b", 4]]),
        ("joined", [["a", 1, 2]]),
        ("claimed", [["a", 1, 1, 1, 0], ["b", 3, 4, 2, 0]]),
        ("retried", [["a"]]),
        ("done", [[]]),
        ("level", ["trouble"]),
    ] == told(app, worker)
    assert app.core.backend.client.hget(app.core.queues.agreed(worker).shards[0].key("meta"), "in_use") is None


def test_the_level_ends_by_hand_and_is_of_the_shards_that_were_named(
    app: Lowkiq, queue_name: str, notes: Notes
) -> None:
    """A level that nobody wants any more, or a shard that nobody asked about, writes nothing."""
    worker = declare(app, queue_name, notes, shards_count=2)
    app.operate(worker).journal("all", shards=[1])
    worker.push_many(jobs_of("abcdef"))
    app.operate(worker).journal("trouble")
    app.drain()

    assert [1] == [entry.shard for entry in entries(app, worker) if entry.kind != "level"]
    with pytest.raises(ValueError, match="at most 86400, not 100000"):
        app.operate(worker).journal("all", seconds=100_000)


def test_e41_a_full_server_still_gets_its_journal(own_server: Server, queue_name: str, notes: Notes) -> None:
    """E-41: outcomes are written behind a command that frees, and what was refused is in no journal."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        worker = declare(app, queue_name, notes, max_retry_count=0)
        app.operate(worker).journal("all")
        worker.push_many(jobs_of("ab"))
        own_server.admin.config_set("maxmemory-policy", "noeviction")
        own_server.admin.config_set("maxmemory", "1mb")
        with pytest.raises(BackendFull):
            worker.push_many(jobs_of("c"))
        notes.then = failing("a")
        app.drain()
        kinds = [entry.kind for entry in entries(app, worker)]
        own_server.admin.config_set("maxmemory", "0")

        assert ["level", "pushed", "claimed", "dead", "claimed", "done"] == kinds
        assert [] == app.operate(worker).verify().violations


def test_a_clock_that_goes_back_stops_no_journal(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """Entries are numbered, so that the order stays; a level that ends in a far future counts as ended."""
    worker = declare(app, queue_name, notes)
    shard = app.core.queues.agreed(worker).shards[0]
    app.operate(worker).journal("all")
    worker.push_many(jobs_of("a"))
    clock.advance(-3_600)
    worker.push_many(jobs_of("b"))
    app.core.backend.client.hset(shard.key("meta"), "journal_until", clock.time() + 500_000)
    worker.push_many(jobs_of("c"))
    worker.push_many(jobs_of("d"))

    assert [1, 2, 3, 4] == [entry.number for entry in entries(app, worker)]
    assert ["level", "pushed", "pushed", "level"] == [entry.kind for entry in entries(app, worker)]


def test_scripts_that_the_server_forgot_write_the_journal_once(
    own_server: Server, queue_name: str, notes: Notes
) -> None:
    """What is sent again with its text is one call, and one entry."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as mine:
        worker = declare(mine, queue_name, notes)
        mine.operate(worker).journal("all")
        worker.push_many(jobs_of("a"))
        own_server.admin.script_flush()
        worker.push_many(jobs_of("b"))
        own_server.admin.script_flush()
        mine.drain()

        assert [("pushed", [["a", 1]]), ("pushed", [["b", 2]])] == told(mine, worker)[1:3]
        assert [] == mine.operate(worker).verify().violations


def test_a_journal_without_its_numbers_begins_anew(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """A key of meta that somebody deleted must not stop what the journal tells of."""
    worker = declare(app, queue_name, notes)
    shard = app.core.queues.agreed(worker).shards[0]
    app.operate(worker).journal("all")
    worker.push_many(jobs_of("ab"))
    app.core.backend.client.hdel(shard.key("meta"), "journal_seq")
    app.drain()

    assert ["claimed", "done"] == [entry.kind for entry in entries(app, worker)][:2]
    assert 1 == entries(app, worker)[0].number


def test_a_journal_keeps_some_two_thousand_events(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """Most of them are dropped as new ones come, and the verdict begins behind the gap."""
    worker = declare(app, queue_name, notes)
    shard = app.core.queues.agreed(worker).shards[0]
    app.operate(worker).journal("all")
    worker.push_many([{"id": "a", "payload": number} for number in range(64 * 40)])
    app.core.backend.client.xtrim(shard.key("journal"), 10, approximate=False)
    app.drain()
    report = app.operate(worker).verify()

    assert [] == report.violations
    assert report.since is not None
