"""What is told of queues: declared otherwise, not looked after, not readable."""

import re
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, Config, Lowkiq, MorgueLimits, Rate, Worker
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import ProcessKind, ProcessState
from tests.doctor.conftest import Set
from tests.doctor.looks import found, marks, not_ok
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes, raising
from tests.kit.moving import HandMade
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of, shard_of


def test_what_the_code_declares_otherwise_is_told(own: Server, app: Lowkiq, clock: ManualClock) -> None:
    """A queue with another count of shards takes no push; one that nobody has used is made by the first."""
    declare(app, "orders", Notes(), shards_count=3).push_many(jobs_of("a"))
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as other:
        declare(other, "orders", Notes(), shards_count=4)
        declare(other, "new", Notes())
        checked = check_up(other.operate)

    broken, fresh = marks(checked, "declarations")
    assert "broken" == broken[0]
    assert "orders: Queue 'orders' is declared with shards_count=4, but it was made with shards_count=3" in broken[1]
    assert ("ok", "new: the server does not know it yet: the first push or drain makes it") == fresh
    assert {1, 2, 3, 4} <= set(not_ok(checked))


def test_another_type_of_payloads_is_told(own: Server, app: Lowkiq, clock: ManualClock) -> None:
    """Old payloads may wait, and old code may run; which changes are compatible, a page says."""
    declare(app, "orders", Notes(), payload=int).push("a", 17)
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as other:
        declare(other, "orders", Notes(), payload=str)

        ((mark, says),) = found(other, "payload types")

    assert "warning" == mark
    assert re.fullmatch(
        "orders: the code declares payloads as str [0-9a-f]{12}, and other code declared them last as int [0-9a-f]{12}",
        says,
    )
    assert [] == found(app, "payload types")


def test_a_resharded_queue_has_another_count_than_the_code(own: Server, app: Lowkiq, clock: ManualClock) -> None:
    """That count holds, and the code may say so when it suits."""
    worker = declare(app, "orders", Notes(), shards_count=2)
    app.core.queues.agreed(worker)
    app.operate(worker).reshard(to=4)
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as other:
        declare(other, "orders", Notes(), shards_count=2)

        says = "orders: the code declares shards_count=2, and it was resharded to 4: 4 holds"
        assert [("warning", says)] == found(other, "declarations")


def test_limits_that_were_set_at_run_time_are_told(app: Lowkiq) -> None:
    """They count in place of those of the code, which does not tell."""
    worker = declare(app, "orders", Notes(), rate=Rate(10, per=1))
    app.operate(worker).limits.set(max_running=1)

    ((mark, says),) = found(app, "limits")
    assert ("warning", True) == (mark, "max_running=1, rate=" in says)


def test_queues_that_the_code_does_not_declare_are_told(own: Server, app: Lowkiq, clock: ManualClock) -> None:
    """Another app's are looked after; of one that a deploy has left behind nobody takes what is due."""
    declare(app, "left", Notes()).push_many(jobs_of("abc"))
    told = []
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as other:
        for seconds in (0.0, 600.0):
            clock.advance(seconds)
            told += found(other, "other queues")

    held = "3 waiting ids, 0 in flight and 0 in the morgue, of which the oldest has been due for 10 minutes"
    assert [
        ("ok", "1 queue not of this app, and looked after: left"),
        ("warning", f"left: the code does not declare it, and it holds {held}"),
    ] == told


def test_a_queue_of_another_library_is_told_and_left_alone(own: Server, app: Lowkiq) -> None:
    """What lies in it cannot be told; where the code declares it, its pushes are refused."""
    declare(app, "orders", Notes())
    for name in ("orders", "others"):
        own.admin.set(declaration_key(name), b'{"layout": 9}')
    checked = check_up(app.operate)

    assert ["broken"] == [mark for mark, _ in marks(checked, "declarations")]
    ((mark, says),) = marks(checked, "other queues")
    assert ("warning", True) == (
        mark,
        says.startswith("others: the code does not declare it, and it holds what cannot"),
    )


def test_a_shard_for_newer_libraries_is_told(own: Server, app: Lowkiq) -> None:
    """A library that is too old may not write, and people learn so before the first push."""
    worker = declare(app, "orders", Notes())
    own.admin.hset(shard_of(app, worker, "a").key("meta"), "least_version", CONTRACT_VERSION + 1)

    ((mark, says),) = found(app, "least version")
    assert ("broken", True) == (mark, f"only contract version {CONTRACT_VERSION + 1} or newer may write it" in says)


def test_due_work_that_nobody_takes_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """A daemon looks each second, so twice that is late; a schedule looks each minute, so twice that is broken."""
    declare(app, "orders", Notes()).push_many(jobs_of("a"))
    told = []
    for seconds in (1.5, 1.0, 120.0):
        clock.advance(seconds)
        told += found(app, "due work")

    late = "orders: due for up to {}, and not taken: 1 shard of 1 (0); {}"
    assert [
        ("ok", "all that is due is looked after"),
        ("warning", late.format("2 s", "no daemon lives, and a schedule on Lambda comes once a minute")),
        ("broken", late.format("2 minutes", "no process drains on this server")),
    ] == told


@pytest.mark.parametrize(
    ("seconds", "process", "expected"),
    [
        (130.0, ("daemon", 5, "running"), ("broken", "could take it")),
        (30.0, ("daemon", 5, "running"), ("warning", "could take it")),
        (130.0, ("daemon", 0, "running"), ("warning", "are busy")),
        (130.0, ("daemon", 5, "quiet"), ("broken", "nobody takes new work")),
        (130.0, ("lambda", 5, "running"), ("broken", "none is a daemon")),
    ],
)
def test_who_could_have_taken_it_is_told(
    app: Lowkiq,
    clock: ManualClock,
    seconds: float,
    process: tuple[ProcessKind, int, ProcessState],
    expected: tuple[str, str],
) -> None:
    """A daemon that is free, busy or quiet, or an invocation, of which the next comes by a schedule."""
    declare(app, "orders", Notes()).push_many(jobs_of("a"))
    kind, threads, state = process
    heartbeat = Heartbeat(app.core.drains.drainer, kind, threads, print, lambda: state)
    clock.advance(seconds)
    heartbeat.sender.send(heartbeat.told())

    ((mark, says),) = found(app, "due work")
    assert (expected[0], True) == (mark, expected[1] in says)
    assert heartbeat.id in says


def test_what_limits_keep_back_is_no_due_work_and_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """A rate that is used up, and a tenant that is paused, say why; a limit that keeps nothing back excuses nothing."""
    limited = declare(app, "limited", Notes(), rate=Rate(1, per=3_600))
    limited.push_many(jobs_of("ab"))
    tenants = declare(app, "tenants", Notes(), tenants="spread")
    app.operate(tenants).pause(tenant="acme")
    app.drain()
    tenants.push_many([{"id": "acme:1"}])
    clock.advance(600.0)
    kept_back = found(app, "due work"), found(app, "limits"), found(app, "paused tenants")
    declare(app, "late", Notes(), max_running=1).push_many(jobs_of("a"))
    clock.advance(600.0)

    due, limits, paused = kept_back
    assert [("ok", "all that is due is looked after")] == due
    assert [("warning", True)] == [(mark, "10 minutes, as the queue keeps its" in says) for mark, says in limits]
    assert [("warning", True)] == [(mark, "a tenant is paused, and its oldest due id" in says) for mark, says in paused]
    ((mark, says),) = found(app, "due work")
    assert ("broken", True) == (mark, says.startswith("late: due for up to 10 minutes"))


def test_the_advice_knows_where_a_rate_stands(app: Lowkiq, clock: ManualClock) -> None:
    """The page of the limits changes those of a queue; the rate of its tenants is in the code alone."""
    by_queue: dict[str, dict[str, Any]] = {
        "queue": {"rate": Rate(1, per=3_600)},
        "tenants": {"tenants": "home", "tenant_rate": Rate(1, per=3_600)},
    }
    for name, limits in by_queue.items():
        declare(app, name, Notes(), **limits).push_many([{"id": "acme:1"}, {"id": "acme:2"}])
    app.drain()
    clock.advance(600.0)

    told = {finding.about: finding.advice for finding in check_up(app.operate).findings if finding.check == "limits"}
    assert {"queue": False, "tenants": True} == {name: "(tenant_rate)" in advice for name, advice in told.items()}


def test_what_waits_for_people_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """Paused shards, blocked ids and a morgue that is nearly full; a pause is no due work."""
    app.core.configure(morgue=MorgueLimits(entries=2))
    declare(app, "dead", Notes(raising()), max_retry_count=0).push_many(jobs_of("ab"))
    declare(app, "blocked", Notes(raising()), max_retry_count=0, dead_head="block").push_many(jobs_of("c"))
    paused = declare(app, "paused", Notes())
    app.drain()
    paused.push_many(jobs_of("d"))
    app.operate(paused).pause()
    clock.advance(600.0)
    checked = check_up(app.operate)

    assert [("warning", "paused: 1 of 1 shard paused, and the oldest due id has waited 10 minutes")] == marks(
        checked, "paused"
    )
    assert [("warning", "blocked: 1 id blocked, since the oldest payload failed for the last time")] == marks(
        checked, "blocked ids"
    )
    ((mark, says),) = marks(checked, "morgue")
    assert ("warning", True) == (mark, says.startswith("dead: the morgue of shard 0 is nearly full"))
    assert [("ok", "all that is due is looked after")] == marks(checked, "due work")


def test_what_is_held_up_past_its_expiry_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """Ids that are due and whose oldest payload is over, however their payloads lie; later ones do not count."""
    worker = declare(app, "codes", Notes(), expires_in=60)
    worker.push_many(jobs_of("abc"))
    worker.push_many({"id": "d", "payload": n} for n in range(20))
    worker.push_many([{"id": "e", "expires_in": 9_000}, {"id": "f", "delay": 9_000}])
    app.operate(worker).pause()
    clock.advance(100.0)

    sentence = "codes: 4 ids due, and the oldest payload of each has expired while it waited"
    assert [("warning", sentence)] == marks(check_up(app.operate), "expired")


def test_a_damaged_shard_is_told_and_left_as_it_is(own: Server, app: Lowkiq) -> None:
    """Whoever drains it next sets aside what is damaged; the doctor may not."""
    worker = declare(app, "orders", Notes())
    worker.push_many(jobs_of("a"))
    own.admin.zadd(shard_of(app, worker, "a").key("due"), {"odd": float("-inf")})
    before = own.admin.zscore(shard_of(app, worker, "a").key("due"), "odd")
    checked = check_up(app.operate)

    ((mark, says),) = marks(checked, "damage")
    assert ("broken", True) == (mark, says.startswith("orders: shard 0 cannot be read: "))
    assert before == own.admin.zscore(shard_of(app, worker, "a").key("due"), "odd")
    app.drain()
    assert [("warning", "orders: 1 record set aside as unreadable")] == found(app, "damage")


def test_an_end_that_a_hand_wrote_where_nobody_has_held_the_shard_is_told(own: Server, app: Lowkiq) -> None:
    """It would keep everybody from the shard for years."""
    worker = declare(app, "orders", Notes())
    worker.push_many(jobs_of("a"))
    own.admin.hset(shard_of(app, worker, "a").key("meta"), "until", 1e10)

    assert [("broken", "orders: shard 0 cannot be read: ")] == [
        (mark, says[:32]) for mark, says in found(app, "damage")
    ]


def test_keys_that_the_user_may_not_read_hide_nothing_else(own: Server, app: Lowkiq) -> None:
    """Processes and limits lie beside the shards: they are not known, and all that can be read is told."""
    declare(app, "orders", Notes()).push_many(jobs_of("a"))
    url = own.add_user("narrow", "~lowkiq:{orders:*", "~lowkiq:{orders}:declaration", "+@all")
    with closing_app(Lowkiq(Config(redis_url=url))) as narrow:
        declare(narrow, "orders", Notes())
        checked = check_up(narrow.operate)

    unknown = {finding.check for finding in checked.findings if finding.mark == "unknown"}
    assert {"processes", "limits"} == unknown
    assert [] == [says for _, says in marks(checked, "declarations") if "Queue" in says]
    assert 1 == len(checked.memory)


def test_a_queue_that_is_being_declared_anew_is_told(own: Server, app: Lowkiq) -> None:
    """Its pushes are refused until that has come to its end, which somebody may have to do."""
    app.core.queues.agreed(declare(app, "orders", Notes()))
    stored: Any = own.admin.get(declaration_key("orders"))
    own.admin.set(declaration_key("orders"), stored.replace(b'"changing":false', b'"changing":true'))

    says = "orders: it is being declared anew: its pushes are refused meanwhile"
    assert [("warning", says)] == found(app, "declarations")


def test_nothing_is_written(own: Server, app: Lowkiq, clock: ManualClock, settings: Set) -> None:
    """Not even where queues are new, jobs wait, entries are declared, a move stands still and a process is gone."""
    declare(app, "unused", Notes())
    worker = declare(app, "orders", Notes(), shards_count=2)
    worker.push_many(jobs_of("abc"))
    app.every(600, worker, id="x")
    app.schedules.tick()
    HandMade(own, app, "orders").begin(4)
    heartbeat = Heartbeat(app.core.drains.drainer, "daemon", 5, print)
    heartbeat.sender.send(heartbeat.told())
    clock.advance(3_600.0)
    settings(appendfsync="no")
    before = own.admin.info("persistence")["rdb_changes_since_last_save"], sorted(own.admin.keys())
    checked = check_up(app.operate)

    assert (own.admin.info("persistence")["rdb_changes_since_last_save"], sorted(own.admin.keys())) == before
    checks = {finding.check for finding in checked.findings if finding.mark != "ok"}
    assert {"durability", "due work", "moves", "schedules", "gone"} <= checks


def test_a_perform_job_that_returns_a_list_is_told(app: Lowkiq) -> None:
    """J-5: a yield may be missing. Lists of functions within it, and jobs that yield, are nobody's business."""

    def listing(_self: Worker, job: BatchJob) -> Any:
        if job.payloads:
            return [job.id]
        return None

    def plain(_self: Worker, job: BatchJob) -> Any:
        def inner() -> list[str]:
            return [job.id]

        inner()

    def yielding(_self: Worker, job: BatchJob) -> Any:
        yield job.id
        return [job.id]

    for name, perform_job in (("listing", listing), ("plain", plain), ("yielding", yielding), ("built in", print)):
        declare(app, name, Notes(), perform_job=perform_job)

    ((mark, says),) = found(app, "results")
    assert ("warning", "listing: its perform_job returns a list") == (mark, says.partition(": a job")[0])
