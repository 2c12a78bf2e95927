"""Keys of jobs: what was pushed once is not pushed again while its key is remembered (A-40, P2, P4)."""

from datetime import timedelta
from typing import Any

import pytest

from lowkiq_lambda import Config, JobError, Lowkiq, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.store.shard.chunks import CHUNK_JOBS
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock, forget_keys
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, raising
from tests.kit.looks import left_behind
from tests.kit.servers import Server
from tests.kit.servers.monitor import Monitor
from tests.kit.workers import declare


def shard_of(worker: type[Worker]) -> ShardRef:
    """The first shard of its queue, with the key of receipts."""
    return ShardRef(worker.queue_name, count_of(worker), 0, features=("receipts",))


def test_a_job_whose_key_was_pushed_changes_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The second push says `repeated`, with the time of the id, and adds no payload."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    later = clock.time() + 60

    (first,) = worker.push_many([{"id": 1, "payload": "a", "key": "evt-1", "due_at": later}])
    (second,) = worker.push_many([{"id": 1, "payload": "b", "key": "evt-1"}])
    clock.advance(61)
    app.drain()

    assert (False, True) == (first.repeated, second.repeated)
    assert (False, later) == (second.merged, second.due_at)
    assert [{"1": ["a"]}] == notes.batches


def test_a_key_counts_once_also_after_its_job_has_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Neither done, nor in the morgue, nor deleted: the key is what was pushed, not what waits."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": 1, "key": "evt-1"}])
    app.drain()

    (again,) = worker.push_many([{"id": 1, "key": "evt-1"}])
    app.drain()

    assert (True, clock.time()) == (again.repeated, again.due_at)
    assert [{"1": [""]}] == notes.batches


def test_a_key_belongs_to_its_id(app: Lowkiq, queue_name: str) -> None:
    """Another id with the same key is another job, also where id and key together give the same text."""
    worker = declare(app, queue_name, Notes())

    pushed = worker.push_many([{"id": "a", "key": "bc"}, {"id": "ab", "key": "c"}, {"id": "a", "key": "b"}])

    assert [False, False, False] == [job.repeated for job in pushed]


def test_a_key_that_stands_twice_in_a_push_counts_once(app: Lowkiq, queue_name: str) -> None:
    """The first of them is pushed; jobs without a key beside them are, too."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge="never")

    pushed = worker.push_many(
        [{"id": 1, "payload": n, "key": "k"} for n in range(2)] + [{"id": 1, "payload": 2}, {"id": 1, "payload": 3}]
    )
    app.drain()

    assert [False, True, False, False] == [job.repeated for job in pushed]
    assert [{"1": [0, 2, 3]}] == notes.batches


def test_a_key_is_forgotten_after_its_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """By default after a day; `key_ttl` says otherwise, in seconds or as a timedelta."""
    worker = declare(app, queue_name, Notes())
    jobs: list[dict[str, Any]] = [
        {"id": 1, "key": "day"},
        {"id": 1, "key": "minute", "key_ttl": 60},
        {"id": 1, "key": "hour", "key_ttl": timedelta(hours=1)},
    ]
    worker.push_many(jobs)

    clock.advance(61)
    after_a_minute = [job.repeated for job in worker.push_many(jobs)]
    clock.advance(86_400 - 60)
    after_a_day = [job.repeated for job in worker.push_many(jobs)]

    assert ([True, False, True], [False, False, False]) == (after_a_minute, after_a_day)


def test_what_is_over_is_removed_by_later_pushes(
    app: Lowkiq, clock: ManualClock, server: Server, queue_name: str
) -> None:
    """Each push with a key removes as many as it adds, and ten more; one without a key looks at none."""
    worker = declare(app, queue_name, Notes(), shards_count=1)
    worker.push_many([{"id": n, "key": "old", "key_ttl": 1} for n in range(30)])
    key = shard_of(worker).key("receipts")
    clock.advance(2)

    counts = []
    for n in range(4):
        worker.push_many([{"id": n, "key": "new"}])
        counts.append(server.admin.zcard(key))
    worker.push_many([{"id": 99}])

    assert [20, 10, 3, 4] == counts
    assert 4 == server.admin.zcard(key)


def test_a_shard_remembers_no_more_than_its_share(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Beyond 100,000 the key that would end next is forgotten early, and that is counted."""
    worker = declare(app, queue_name, Notes(), shards_count=1)
    shard = shard_of(worker)
    worker.push_many([{"id": 0, "key": "short", "key_ttl": 100}])
    pipeline = server.admin.pipeline()
    for start in range(0, 100_000, 10_000):
        pipeline.zadd(shard.key("receipts"), {f"{n:012}": 4e9 for n in range(start, start + 10_000)})
    pipeline.execute()

    worker.push_many([{"id": 1, "key": "k"}])
    (again,) = worker.push_many([{"id": 0, "key": "short"}])

    assert not again.repeated
    assert 100_000 == server.admin.zcard(shard.key("receipts"))
    assert b"3" == server.admin.hget(shard.key("meta"), "receipts_trimmed")


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"id": 1, "key": 5}, "key: must be a str, not int"),
        ({"id": 1, "key": ""}, "key: has 0 bytes: give 1 to 200"),
        ({"id": 1, "key": "é" * 101}, "key: has 202 bytes: give 1 to 200"),
        ({"id": 1, "key": "\ud800"}, "key: holds a lone surrogate"),
        ({"id": 1, "key_ttl": 5}, "key_ttl: is for how long a key is remembered: give a key too"),
        ({"id": 1, "key": "k", "key_ttl": 0}, "key_ttl: must be seconds above 0"),
        ({"id": 1, "key": "k", "key_ttl": True}, "key_ttl: must be seconds above 0"),
        ({"id": 1, "key": "k", "key_ttl": float("nan")}, "key_ttl: must be seconds above 0"),
        ({"id": 1, "key": "k", "key_ttl": timedelta(days=366)}, "key_ttl: must be seconds above 0, at most 365 days"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused(app: Lowkiq, queue_name: str, job: dict[str, Any], message: str) -> None:
    """The error names the field, and nothing is written."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=message):
        worker.push_many([{"id": 0}, job])

    assert {} == left_behind(app, worker)


def test_keys_hold_over_the_chunks_of_a_large_push(app: Lowkiq, queue_name: str) -> None:
    """A push of more jobs than one call takes, made again in the same order, changes nothing."""
    worker = declare(app, queue_name, Notes(), shards_count=1)
    jobs = [{"id": n % 50, "payload": n, "key": f"k{n}"} for n in range(CHUNK_JOBS + 10)]

    first = worker.push_many(jobs)
    again = worker.push_many(jobs)

    assert ({False}, {True}) == ({job.repeated for job in first}, {job.repeated for job in again})


def test_a_queue_that_is_declared_anew_forgets_its_keys(server: Server, clock: ManualClock, queue_name: str) -> None:
    """The keys lie in the old shards, which are closed: nothing of them stays behind but the meta."""
    before, after = (Lowkiq(Config(redis_url=server.url), clock=clock) for _ in range(2))
    old = declare(before, queue_name, Notes(), shards_count=1)
    old.push_many([{"id": 1, "key": "k"}])
    before.drain()
    new = declare(after, queue_name, Notes(), shards_count=2)

    after.operate(new).redeclare()

    assert not server.admin.exists(shard_of(old).key("receipts"))
    assert not new.push_many([{"id": 1, "key": "k"}])[0].repeated


def test_u6_a_key_is_forgotten_by_name(app: Lowkiq, queue_name: str) -> None:
    """U-6: its id's own alone; what waits stays, and the next push counts again."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    jobs = [{"id": job_id, "payload": "v", "key": "evt"} for job_id in (1, 2, 3)]
    worker.push_many(jobs)

    forgotten = app.operate(worker).forget_keys([(1, "evt"), (2, "evt"), (2, "other"), ("never", "evt")])

    assert (2, [False, False, True]) == (forgotten, [one.repeated for one in worker.push_many(jobs)])
    assert 3 == app.operate.metrics()[queue_name].length


def test_u7_tests_forget_all_keys(app: Lowkiq, make_app: MakeApp, queue_name: str) -> None:
    """U-7: those of the apps that are named, or of all apps of the process."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    jobs = [{"id": job_id, "key": "evt"} for job_id in range(4)]
    worker.push_many(jobs)

    named = (forget_keys(make_app()), forget_keys(app))

    assert (0, 4) == named
    assert not any(one.repeated for one in worker.push_many(jobs))


def test_u8_a_deleted_job_stays_pushed(app: Lowkiq, queue_name: str) -> None:
    """U-8: a key tells that the job was pushed, so deleting what waits forgets none; a merge needs nothing released."""
    worker = declare(app, queue_name, Notes())
    worker.push_many([{"id": 1, "payload": "v", "key": "evt"}])
    app.operate(worker).waiting.delete([1])

    (again,) = worker.push_many([{"id": 1, "payload": "v", "key": "evt"}])
    (without,) = worker.push_many([{"id": 1, "payload": "v"}])

    assert [(True, False), (False, False)] == [(one.repeated, one.merged) for one in (again, without)]


def test_u6_all_keys_of_ids_are_forgotten(app: Lowkiq, queue_name: str) -> None:
    """U-6: in any shard, those of other ids stay, however many there are."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many([{"id": id_, "key": f"k{n}"} for id_ in range(12) for n in range(300)])

    forgotten = app.operate(worker).forget_keys([(3, "k1"), (3, "never")], ids=[1, 2, "never"])

    again = worker.push_many([{"id": id_, "key": f"k{n}"} for id_ in range(4) for n in range(2)])
    assert 601 == forgotten
    assert [True, True, False, False, False, False, True, False] == [one.repeated for one in again]


def test_the_keys_of_many_ids_are_forgotten_in_several_calls(own_server: Server, queue_name: str) -> None:
    """Managed Valkey refuses a call with more than 3,999 arguments."""
    app = Lowkiq(Config(redis_url=own_server.url))
    worker = declare(app, queue_name, Notes(), shards_count=1)
    worker.push_many([{"id": id_, "key": "k"} for id_ in range(4_500)])

    with Monitor(own_server) as monitor:
        forgotten = app.operate(worker).forget_keys(ids=range(4_500))
        longest = max(asked.size for asked in monitor.heard() if not asked.by_script)

    assert 4_500 == forgotten
    assert longest < 3_999


def test_u6_all_keys_of_a_queue_are_forgotten(app: Lowkiq, queue_name: str) -> None:
    """U-6: in all shards."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many([{"id": id_, "key": "k"} for id_ in range(12)])

    assert [12, 0] == [app.operate(worker).forget_all_keys() for _ in range(2)]


@pytest.mark.parametrize("act", ["delete", "delete_dead", "cancel"])
@pytest.mark.parametrize("forgets", [False, True])
def test_u8_a_deleted_job_may_be_pushed_again(app: Lowkiq, queue_name: str, act: str, *, forgets: bool) -> None:
    """U-8: a deletion and a cancel forget the keys of their ids if they are asked to, and only then."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0)
    worker.push_many([{"id": id_, "key": "k"} for id_ in (1, 2)])
    desk = app.operate(worker)
    if act == "delete_dead":
        app.drain()
        assert 1 == desk.morgue.delete([1], forget_keys=forgets)
    elif act == "delete":
        assert 1 == desk.waiting.delete([1], forget_keys=forgets)
    else:
        assert ["1"] == desk.cancel(iter([1]), forget_keys=forgets).at_once

    assert [not forgets, True] == [worker.push(id_, key="k").repeated for id_ in (1, 2)]


def test_keys_are_forgotten_with_ids_alone(app: Lowkiq, queue_name: str) -> None:
    """A filter does not say whose keys: it is refused, and nothing is deleted."""
    worker = declare(app, queue_name, Notes())
    worker.push(1, key="k")

    with pytest.raises(ValueError, match="forget_keys needs ids"):
        app.operate(worker).waiting.delete(everything=True, forget_keys=True)
    assert 1 == app.operate(worker).waiting.count()
