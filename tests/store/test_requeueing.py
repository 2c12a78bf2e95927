"""What is dead waits again: in an order, so many a second, and as a dry run."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.operate.acts.bulk_actions import prepare, steps
from lowkiq_lambda.operate.acts.requeue_terms import RequeueOrder
from lowkiq_lambda.operate.acts.requeueing import RequeuePreview, begin, begin_waiting, timed
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.journal import read_journals
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of, pairs
from tests.kit.tracking import TaskOfTests, check_items


def due_times(desk: Desk, ids: Iterable[str]) -> list[float]:
    """When the ids are due."""
    return [job.due_at for job in desk.queue.waiting.fetch(list(ids))]


def test_e78_ids_are_due_at_the_rate_over_all_shards(make_desk: MakeDesk) -> None:
    """E-78: the first is due now, and each next one a part of a second later, whatever shards they lie in."""
    desk = make_desk({"shards_count": 3})
    desk.kill([{"id": n} for n in range(30)])
    now = desk.clock.time()

    changed = desk.queue.morgue.requeue(filter={}, rate=4)

    waiting = desk.queue.waiting.list()
    assert 30 == changed
    assert [now + n / 4 for n in range(30)] == sorted(job.due_at for job in waiting)
    desk.clock.advance(2.0)
    desk.handler.batches.clear()
    desk.drain()
    assert 9 == sum(map(len, desk.handler.batches))
    assert 21 == desk.app.operate.stats()["total"]["length"]


def test_s15_one_id_is_due_at_once_and_the_filter_leaves_others_dead(desk: Desk) -> None:
    """S-15: only what is asked for comes back, as new and with its error; a rate delays no first id."""
    desk.kill([{"id": "a", "payload": n, "score": n} for n in (2, 1)] + [{"id": "b"}, {"id": "c"}])
    desk.clock.advance(5)

    changed = [
        desk.queue.morgue.requeue(["a"]),
        desk.queue.morgue.requeue(filter={"error": "B IS"}),
    ]

    (job,) = desk.queue.waiting.fetch(["a"])
    assert [1, 1] == changed
    assert ([(1, 1.0), (2, 2.0)], desk.clock.time(), -1.0, "a is broken") == (
        pairs(job),
        job.due_at,
        job.retry_count,
        job.error,
    )
    assert ["c"] == ids_of(desk.queue.morgue.list("id"))


@pytest.mark.parametrize(
    ("order", "waiting", "dead"),
    [
        ("score", [("dead", 1.0), ("runs", 2.0), ("waits", 3.0), ("late", 4.0)], []),
        ("unless_newer", [("runs", 2.0), ("waits", 3.0), ("late", 4.0)], [("dead", 1.0)]),
        ("last", [("runs", 2.0), ("waits", 3.0), ("dead", 0.0), ("late", 0.0)], []),
    ],
)
def test_e76_the_order_says_where_payloads_come(
    desk: Desk, order: RequeueOrder, waiting: list[tuple[str, float]], dead: list[tuple[str, float]]
) -> None:
    """E-76: an id that is in the morgue twice, in flight and waiting: nothing overtakes that the order does not say."""
    for payload, score in (("dead", 1), ("late", 4)):
        desk.kill([{"id": "a", "payload": payload, "score": score}])
    desk.push([{"id": "a", "payload": "runs", "score": 2}])
    previews: list[RequeuePreview] = []
    changed: list[int] = []

    def while_it_runs() -> None:
        desk.push([{"id": "a", "payload": "waits", "score": 3}])
        previews.extend(desk.queue.morgue.requeue(["a"], order=order, dry_run=True))
        changed.append(desk.queue.morgue.requeue(["a"], order=order))

    desk.handler.meanwhile, desk.handler.failing = while_it_runs, {"a"}
    desk.drain()

    (job,) = desk.queue.waiting.fetch(["a"])
    kept = [pair for one in desk.queue.morgue.fetch(["a"]) for pair in pairs(one)]
    (preview,) = previews
    now = desk.clock.time()
    shown = [(payload, score if order != "last" or score < 4 else 0.0) for payload, score in pairs(job)]
    assert waiting == shown
    assert dead == kept
    assert ([1], 2 - len(dead), len(dead), "") == (changed, preview.payloads, preview.stay, preview.skipped)
    assert all(score >= now for payload, score in pairs(job) if order == "last" and payload in ("dead", "late"))


@pytest.mark.parametrize("order", ["score", "last"])
def test_the_journal_tells_where_each_payload_went(desk: Desk, order: RequeueOrder) -> None:
    """`requeued` names the place of each payload, and its new one if the order gave it another."""
    desk.kill([{"id": "a", "payload": n, "score": n} for n in (1, 2)])

    desk.queue.morgue.requeue(["a"], order=order)

    shard = shard_of(desk)
    (told,) = [one for one in read_journals(desk.queue.reader, [shard])[0] if one.kind == "requeued"]
    places = [[entry.score, entry.arrival] for entry in desk.state()["waiting"]["a"][0]]
    assert places == [item[-2:] for item in told.items]
    assert [["a", 1.0, 1], ["a", 2.0, 2]] == [item[:3] for item in told.items]
    assert [5 if order == "last" else 3] * 2 == [len(item) for item in told.items]


def test_last_comes_behind_a_larger_score_too(desk: Desk) -> None:
    """E-76: behind all means behind a score that is larger than the time as well."""
    desk.kill([{"id": "a", "payload": "dead", "score": 1}])
    desk.push([{"id": "a", "payload": "far ahead", "score": 1e15}])

    desk.queue.morgue.requeue(["a"], order="last")

    assert ["far ahead", "dead"] == [payload for payload, _ in pairs(desk.queue.waiting.fetch(["a"])[0])]


def test_what_is_newer_keeps_an_id_dead_with_its_error(desk: Desk) -> None:
    """E-76: with `unless_newer` an id of which all is overtaken stays as it is, and a dry run says why."""
    desk.kill([{"id": "a", "payload": 1, "score": 1}, {"id": "b", "payload": 1, "score": 1}])
    desk.push([{"id": "a", "payload": 2, "score": 2, "delay": 60}, {"id": "b", "payload": 0, "score": 0, "delay": 60}])
    before = desk.state()

    shown = [*desk.queue.morgue.requeue(["a", "b", "c"], order="unless_newer", dry_run=True)]
    after = desk.state()
    changed = desk.queue.morgue.requeue(["a", "b", "c"], order="unless_newer")

    assert before == after
    assert {("a", 0, 1, "newer"), ("b", 1, 0, ""), ("c", 0, 0, "not in the morgue")} == {
        (one.id, one.payloads, one.stay, one.skipped) for one in shown
    }
    assert 1 == changed
    (kept,) = desk.queue.morgue.fetch(["a"])
    assert ([(1, 1.0)], "a is broken") == (pairs(kept), kept.error)
    assert [[(2, 2.0)], [(0, 0.0), (1, 1.0)]] == [pairs(job) for job in desk.queue.waiting.fetch(["a", "b"])]


def test_of_a_queue_that_keeps_the_latest_no_older_version_comes_back(make_desk: MakeDesk) -> None:
    """Its mark counts as a newer payload, in the dry run too; of several that are dead the newest comes back."""
    desk = make_desk({"shards_count": 1, "merge": "latest"})
    for score in (1, 2):
        desk.kill([{"id": "a", "payload": score, "score": score}, {"id": "b", "payload": score, "score": score}])
    desk.push([{"id": "a", "payload": 3, "score": 3}])
    desk.drain()

    shown = {
        one.id: (one.payloads, one.stay, one.skipped) for one in desk.queue.morgue.requeue(["a", "b"], dry_run=True)
    }
    changed = desk.queue.morgue.requeue(["a", "b"])

    assert ({"a": (0, 2, "newer"), "b": (1, 1, "")}, 1) == (shown, changed)
    assert [[(2, 2.0)]] == [pairs(job) for job in desk.queue.waiting.fetch(["a", "b"])]
    with pytest.raises(ValueError, match='which merge="latest" would take for their versions'):
        desk.queue.morgue.requeue(["a"], order="last")


def test_what_waits_is_not_put_off_and_what_it_meets_is_not_hurried_past_its_turn(desk: Desk) -> None:
    """L-27: an id that is due sooner keeps its time; one in retry comes in its turn, or as its retry does."""
    desk.kill([{"id": job_id, "payload": "dead"} for job_id in "abc"])
    desk.push([{"id": "b", "payload": "fresh"}, {"id": "c", "payload": "later", "delay": 500}])
    now = desk.clock.time()

    shown = [*desk.queue.morgue.requeue(list("abc"), rate=0.1, dry_run=True)]
    desk.queue.morgue.requeue(list("abc"), rate=0.1)

    assert [now, now, now + 20] == due_times(desk, "abc")
    assert [now, now, now + 20] == [one.due_at for one in shown]
    assert [0, 1, 2] == sorted(one.place for one in shown)


def test_e78_it_goes_on_at_its_rate_after_an_error(make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """E-78: a requeue that broke off says how to go on; then each id waits once, at the times of one requeue."""
    desk = make_desk({"shards_count": 1})
    desk.kill([{"id": n} for n in range(1_100)])
    start = desk.clock.time() + 100
    backend, calls = desk.app.core.backend, []
    run = backend.run

    def break_off(name: str, *args: Any, **options: Any) -> Any:
        calls.append(name)
        if calls.count("requeue") == 3:
            raise BackendError
        return run(name, *args, **options)

    monkeypatch.setattr(backend, "run", break_off)
    with pytest.raises(BackendError) as broken:
        desk.queue.morgue.requeue(filter={}, rate=10, start=start)
    monkeypatch.undo()
    note = broken.value.__notes__[0]
    done = desk.app.operate.stats()["total"]["length"]

    more = desk.queue.morgue.requeue(filter={}, rate=10, start=start + done / 10)

    assert f"{done:,} ids wait again; the same call with start={start + done / 10:.3f} does the rest" in note
    assert 0 < done < 1_100
    assert 1_100 - done == more
    times = sorted(waiting[1] for waiting in desk.state()["waiting"].values())
    assert [pytest.approx(start + n / 10, abs=1e-3) for n in range(1_100)] == times


def shard_of(desk: Desk) -> ShardRef:
    """The only shard."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    return shard


def test_e78_a_step_that_is_made_twice_puts_nothing_back_twice(desk: Desk) -> None:
    """E-78: two operators who go on from the same state wait for each id once, in its turn."""
    desk.kill([{"id": n} for n in range(600)])
    action = begin(desk.queue.runner, None, {}, {"rate": 10})
    first = [*steps(desk.queue.runner, action)]

    again = [*steps(desk.queue.runner, action)]

    assert (600, 0) == (first[-1].changed, again[-1].changed)
    assert 600 == desk.app.operate.stats()["total"]["length"]


def test_e78_what_is_not_due_yet_dies_again(desk: Desk) -> None:
    """E-78: a requeue is taken back by ids or by a filter, with an error that says so; what is due is left alone."""
    desk.kill([{"id": job_id, "payload": 1} for job_id in "abcd"])
    desk.queue.morgue.requeue(list("abcd"), rate=0.1)
    desk.push([{"id": "fresh"}])
    dead = [
        desk.queue.waiting.kill(["b", "a", "unknown"], error="wrong version"),
        desk.queue.waiting.kill(filter={"prefix": "c"}, error="too many"),
        desk.queue.waiting.kill(filter={"prefix": "zzz"}, error="none"),
    ]

    assert [1, 1, 0] == dead
    assert {"b": "wrong version", "c": "too many"} == {
        job.id: job.error for job in desk.queue.morgue.fetch(["a", "b", "c", "d"])
    }
    assert {"a", "d", "fresh"} == set(desk.state()["waiting"])
    assert {"b", "c"} == set(desk.state()["failures"]) - {"a", "d"}


def test_a_flood_is_spread_over_time(desk: Desk) -> None:
    """What is due waits again, in its order, so many a second from now on; what is due later, or blocked, stays."""
    desk.push([{"id": f"{number:03}", "due_at": desk.clock.time() - 1_000 + number} for number in range(620)])
    desk.push([{"id": "later", "delay": 60.0}])
    before = due_times(desk, ["later"])
    now = desk.clock.time()

    requeued = desk.queue.waiting.requeue(everything=True, rate=10)

    waiting = [job for job in desk.queue.waiting.list(limit=1_000) if job.id != "later"]
    assert 620 == requeued
    assert [f"{number:03}" for number in range(620)] == [job.id for job in waiting]
    assert [pytest.approx(now + (n + 1) / 10, abs=1e-3) for n in range(620)] == [job.due_at for job in waiting]
    assert before == due_times(desk, ["later"])
    assert (0, 0.0) == (desk.queue.waiting.requeue(everything=True, rate=10), desk.app.operate.stats()["total"]["lag"])


def test_a_spread_is_of_ids_or_of_a_filter_and_keeps_what_is_known_of_them(desk: Desk) -> None:
    """They keep their retry_count and error; what was pushed after the look, and what runs, is left alone."""
    desk.fail([{"id": "a1"}, {"id": "a2"}])
    desk.clock.advance(3_600.0)
    desk.push([{"id": "b"}])
    desk.before("requeue_waiting", lambda: desk.push([{"id": "a3"}]))

    requeued = [
        desk.queue.waiting.requeue(["a1", "unknown"], rate=0.01),
        desk.queue.waiting.requeue(filter={"prefix": "a"}, rate=0.01),
        desk.queue.waiting.requeue(filter={"error": "broken"}, rate=0.01),
    ]

    assert [1, 2, 0] == requeued
    job, other = desk.queue.waiting.fetch(["a1", "b"])
    assert (0.0, True, True) == (job.retry_count, bool(job.error), other.due_at <= desk.clock.time() < job.due_at)
    desk.clock.advance(10_000.0)
    desk.drain()
    assert desk.is_empty()


def test_a_spread_that_is_made_twice_moves_nothing_twice(desk: Desk) -> None:
    """Two who go on from one state, or a step that comes again, find nothing that is due."""
    desk.push([{"id": n} for n in range(30)])
    action = begin_waiting(desk.queue.runner, None, IdFilter(), 1.0)
    first = [*steps(desk.queue.runner, action)]
    ids = [str(number) for number in range(30)]
    times = due_times(desk, ids)

    again = [*steps(desk.queue.runner, action)]

    assert (30, 0, times) == (first[-1].changed, again[-1].changed, due_times(desk, ids))


def test_a_spread_keeps_tenants_and_suspects(make_desk: MakeDesk) -> None:
    """Ids wait in the lanes of their tenants still, each at its new time."""
    desk = make_desk({"shards_count": 2, "tenants": "spread"})
    desk.push([{"id": f"{tenant}:{number}"} for tenant in ("acme", "beta") for number in range(5)])

    assert 10 == desk.queue.waiting.requeue(everything=True, rate=1)
    desk.drain()
    assert [] == desk.handler.batches
    desk.clock.advance(11.0)
    desk.drain()
    assert 10 == sum(map(len, desk.handler.batches))


@pytest.mark.parametrize("rate", [0, -1, float("nan"), 1e-320, "fast"])
def test_a_spread_without_a_sound_rate_is_refused(desk: Desk, rate: Any) -> None:
    """And changes nothing."""
    desk.push([{"id": n} for n in range(3)])

    with pytest.raises(ValueError, match="These terms cannot work"):
        desk.queue.waiting.requeue(everything=True, rate=rate)
    assert 3 == desk.queue.waiting.count()


def test_items_of_tasks_live_again_with_what_is_requeued(make_desk: MakeDesk) -> None:
    """Items wait again where their payload does, also at another place, and stay dead where it stays dead."""
    desk = make_desk({"shards_count": 1})
    task = TaskOfTests(desk.worker, desk.admin)
    task.push_many(("a", 1, "a-1"), ("b", 1, "b-1"))
    desk.handler.failing = {"a", "b"}
    desk.drain()
    desk.handler.failing = set()
    desk.queue.waiting.kill(everything=True)
    desk.push([{"id": "b", "payload": 2, "delay": 60}])
    shard = shard_of(desk).using([TRACKING])

    changed = [
        desk.queue.morgue.requeue(["a"], order="last"),
        desk.queue.morgue.requeue(["b"], order="unless_newer"),
    ]
    statuses = {item.id: item.status for item in check_items(desk.admin, shard).values()}
    desk.drain()

    assert [1, 0] == changed
    assert {"a": "e", "b": "x"} == statuses
    assert {"a": "d", "b": "x"} == {item.id: item.status for item in check_items(desk.admin, shard).values()}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda desk: desk.queue.morgue.requeue(), "Give exactly one of ids, a filter, or "),
        (
            lambda desk: desk.queue.morgue.requeue(["a"], filter={}),
            "Give exactly one of ids, a filter, or ",
        ),
        (
            lambda desk: desk.queue.morgue.requeue(["a"], order="first"),
            "order must be one of 'score', ",
        ),
        (lambda desk: desk.queue.morgue.requeue(["a"], rate=0), "rate"),
        (lambda desk: desk.queue.morgue.requeue(filter={"errors": "x"}), "It has least, most, "),
        (lambda desk: desk.queue.waiting.kill(error="x"), "Give exactly one of ids, a filter, or "),
    ],
    ids=["neither", "both", "order", "rate", "filter", "kill"],
)
def test_what_cannot_work_is_refused(desk: Desk, call: Callable[[Desk], object], sentence: str) -> None:
    """Nothing is requeued by mistake: all of the morgue has to be asked for."""
    with pytest.raises(ValueError, match=sentence):
        call(desk)


@pytest.mark.parametrize(
    "given",
    [
        {"start": float("nan")},
        {"start": float("inf")},
        {"start": -1.0},
        {"start": 253_402_300_800.0},
        {"rate": 1e-320},
        {"rate": 1e-12},
    ],
    ids=repr,
)
def test_e78_times_beyond_all_times_are_refused_before_anything_changes(desk: Desk, given: Any) -> None:
    """E-78: so late only ids are whose heads are blocked; what is no number has no place among times."""
    desk.kill([{"id": "a"}, {"id": "b"}])

    with pytest.raises(ValueError, match="beyond the year 9999"):
        desk.queue.morgue.requeue(["a", "b"], **given)

    assert 2 == len(desk.queue.morgue.fetch(["a", "b"]))


def test_ids_are_a_list_and_options_are_known(desk: Desk) -> None:
    """A text is no list of its letters, and a slip in a name is not passed over."""
    anything: Any = desk.queue.morgue

    with pytest.raises(TypeError, match="a list"):
        anything.requeue("12")
    with pytest.raises(TypeError, match="ordr"):
        anything.requeue(["1"], ordr="last")


def test_a_start_in_the_past_keeps_the_order(desk: Desk) -> None:
    """All are due at once then, one after the other as they were."""
    desk.kill([{"id": job_id} for job_id in "ab"])
    start = desk.clock.time() - 10

    desk.queue.morgue.requeue(["a", "b"], rate=1, start=start)

    assert [start, start + 1] == sorted(due_times(desk, "ab"))


def test_retries_of_one_error_come_back_at_a_rate(make_desk: MakeDesk) -> None:
    """Over all shards so many are due in a second; a dry run tells the same, and an undo gives each its time again."""
    desk = make_desk({"shards_count": 3})
    desk.push([{"id": f"later-{n}", "delay": 7_200 + n} for n in range(30)])
    desk.push([{"id": "other", "delay": 7_200}])
    ids, filter_ = [f"later-{n}" for n in range(30)], {"prefix": "later-"}
    now, before = desk.clock.time(), due_times(desk, [*ids, "other"])

    planned = desk.queue.waiting.run_now(filter=filter_, rate=4, dry_run=True)
    unchanged = due_times(desk, [*ids, "other"])
    done = desk.queue.waiting.run_now(filter=filter_, rate=4)

    assert (30, now + 30 / 4, "", before) == (planned, planned.last_due, planned.action_id, unchanged)
    assert (30, now + 30 / 4, 30) == (done, done.last_due, done.undoable)
    assert [now + n / 4 for n in range(1, 31)] == sorted(due_times(desk, ids))
    assert [now + 7_200] == due_times(desk, ["other"])
    assert 30 == desk.queue.undo(done.action_id).restored
    assert before == due_times(desk, [*ids, "other"])


def test_a_paced_run_now_puts_nothing_off(desk: Desk) -> None:
    """An id that is due by its turn keeps its time, and leaves no row to undo; the same call again changes nothing."""
    desk.push([{"id": job_id, "delay": delay} for job_id, delay in (("a", 1), ("b", 2), ("c", 900), ("d", 901))])
    now = desk.clock.time()

    planned = desk.queue.waiting.run_now(["a", "c", "nobody"], rate=0.1, dry_run=True)
    done = desk.queue.waiting.run_now(everything=True, rate=1, start=now + 1.5)
    again = desk.queue.waiting.run_now(everything=True, rate=1, start=now + 1.5)

    assert (2, now + 20) == (planned, planned.last_due)
    assert [now + 1, now + 2, now + 3.5, now + 4.5] == due_times(desk, "abcd")
    assert (2, now + 4.5, 2) == (done, done.last_due, done.undoable)
    assert (0, None, "") == (again, again.last_due, again.action_id)


def test_a_paced_run_now_goes_on_at_its_rate_and_leaves_paused_ids(make_desk: MakeDesk) -> None:
    """Calls of one action share one row of times; an id that is paused takes no turn of it."""
    desk = make_desk({"shards_count": 1})
    desk.push([{"id": f"{n:04}", "delay": 7_200 + n} for n in range(1_100)])
    desk.queue.pause_jobs(["0003"])
    now = desk.clock.time()
    desk.before("run_now", lambda: desk.clock.advance(5), calls=2)

    done = desk.queue.waiting.run_now(everything=True, rate=8)

    ids = [f"{n:04}" for n in range(1_100) if n != 3]
    assert (1_099, 1) == (done, done.paused)
    assert [now + n / 8 for n in range(1, 1_100)] == due_times(desk, ids)


def test_a_paced_run_now_that_is_made_twice_moves_nothing_twice(desk: Desk) -> None:
    """Two who go on from one state, over more than one call, give each id one time."""
    desk.push([{"id": f"{n:04}", "delay": 7_200} for n in range(1_100)])
    runner = desk.queue.runner
    action = timed(runner, prepare(runner, "run_now"), {"rate": 8})
    first, ids = [*steps(runner, action)][-1], [f"{n:04}" for n in range(1_100)]
    times = due_times(desk, ids)

    again = [*steps(runner, action)][-1]

    assert (1_100, 0, 1_100) == (first.changed, again.changed, again.sooner)
    assert times == due_times(desk, ids)


def test_a_paced_run_now_again_moves_nothing_while_it_looks(desk: Desk) -> None:
    """Time goes on between its terms and its first step: a second run does not shift what the first has given."""
    desk.push([{"id": f"{n:02}", "delay": 7_200 + n} for n in range(20)])
    runner, ids = desk.queue.runner, [f"{n:02}" for n in range(20)]
    desk.queue.waiting.run_now(everything=True, rate=10, start=0.0)
    times, now = due_times(desk, ids), desk.clock.time()

    again = timed(runner, prepare(runner, "run_now"), {"rate": 10})
    desk.clock.advance(0.25)
    last = [*steps(runner, again)][-1]

    assert [pytest.approx(now + n / 10) for n in range(1, 21)] == times
    assert (0, 18, times) == (last.changed, last.sooner, due_times(desk, ids))


def test_a_start_of_run_now_needs_a_rate(desk: Desk) -> None:
    """And a rate is above 0."""
    with pytest.raises(ValueError, match="A start needs a rate"):
        desk.queue.waiting.run_now(everything=True, start=5.0)
    with pytest.raises(ValueError, match="These terms cannot work"):
        desk.queue.waiting.run_now(everything=True, rate=0)


def test_a_dry_run_of_run_now_counts_no_blocked_ids(make_desk: MakeDesk) -> None:
    """They wait for an operator, not for a time: neither the act nor what it tells before has them."""
    desk = make_desk({"dead_head": "block", "max_retry_count": 0})
    desk.fail([{"id": "blocked"}])
    desk.push([{"id": "later", "delay": 600}])
    waiting = desk.queue.waiting

    assert ["blocked"] == [job.id for job in waiting.blocked()]
    counts = [waiting.run_now(everything=True, rate=rate, dry_run=True) for rate in (None, 2)]
    assert ([1, 1], 1) == (counts, waiting.run_now(everything=True, rate=2))
