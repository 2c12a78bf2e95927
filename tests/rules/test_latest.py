"""merge = "latest": of an id one payload waits, the newest, and no older one runs after it (B-14, P3, L-27, L-28)."""

from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, DeclarationError, JobError, Lowkiq, Pushed, Rejected, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import counters, left_behind, look
from tests.kit.servers import Server
from tests.kit.tracking import TaskOfTests
from tests.kit.workers import declare, jobs_of, shard_of

DAY = 86_400


def latest(app: Lowkiq, queue_name: str, notes: Notes, **fields: Any) -> type[Worker]:
    """A worker with that merge."""
    return declare(app, queue_name, notes, **{"merge": "latest", **fields})


def versions(worker: type[Worker], *scores: float, job_id: str = "a") -> list[Pushed]:
    """A push of these versions of an id, in one call."""
    return worker.push_many([{"id": job_id, "payload": f"v{score}", "score": score} for score in scores])


def ran(notes: Notes) -> list[list[object]]:
    """The payloads of each batch."""
    return [payloads for batch in notes.batches for payloads in batch.values()]


def superseded(app: Lowkiq, worker: type[Worker]) -> int:
    """How many payloads the shard has counted."""
    return counters(app, worker).get("superseded", 0)


@pytest.mark.parametrize("scores", [(1, 3, 2), (3, 1, 2), (2, 3, 1), (1, 2, 3)])
@pytest.mark.parametrize("pushes", [1, 3])
def test_one_payload_waits_the_one_with_the_largest_score(
    app: Lowkiq, queue_name: str, scores: tuple[int, ...], pushes: int
) -> None:
    """However they come: each push says whether its payload is the one that waits, and two are counted."""
    notes = Notes()
    worker = latest(app, queue_name, notes)
    pushed = versions(worker, *scores) if pushes == 1 else [one for score in scores for one in versions(worker, score)]
    waiting = look(app, worker, "a")
    app.drain()

    newest = [score == max(scores[: at + 1]) for at, score in enumerate(scores)]
    assert newest == [not one.superseded for one in pushed]
    assert ([("v3", 3.0)], [["v3"]]) == (waiting and waiting.payloads, ran(notes))
    assert (2, {}) == (superseded(app, worker), left_behind(app, worker))


def test_an_older_version_never_runs_after_a_newer_one(app: Lowkiq, queue_name: str) -> None:
    """P3: what comes after the newer one is done is not stored; an equal score is accepted, and so is a newer one."""
    notes = Notes()
    worker = latest(app, queue_name, notes)
    versions(worker, 7)
    app.drain()

    (older,), (equal,) = versions(worker, 6), versions(worker, 7)
    app.drain()
    (newer,) = versions(worker, 8)
    app.drain()

    assert [(True, False), (False, False), (False, False)] == [
        (one.superseded, one.merged) for one in (older, equal, newer)
    ]
    assert ([["v7"], ["v7"], ["v8"]], 1) == (ran(notes), superseded(app, worker))


@pytest.mark.parametrize(("score", "runs"), [(6, []), (7, [["v7"]]), (8, [["v8"]])])
def test_b14_a_push_while_its_id_runs_runs_after_unless_it_is_older(
    app: Lowkiq, queue_name: str, score: int, runs: list[list[object]]
) -> None:
    """B-14: it is stored, as the running one may fail, and goes once that is done."""
    notes = Notes()
    worker = latest(app, queue_name, notes)
    pushed: list[Pushed] = []

    def meanwhile(_batch: Batch) -> None:
        if len(notes.batches) == 1:
            pushed.extend(versions(worker, score))

    notes.then = meanwhile
    versions(worker, 7)
    app.drain()

    assert [["v7"], *runs] == ran(notes)
    assert ([False], {}) == ([one.superseded for one in pushed], left_behind(app, worker))


@pytest.mark.parametrize(("score", "waits"), [(6, "v7"), (8, "v8")])
def test_l28_what_fails_meets_what_was_pushed_meanwhile(
    app: Lowkiq, clock: ManualClock, queue_name: str, score: int, waits: str
) -> None:
    """L-28, P7: the newer one stays; it waits for the time of the retry, and has failed only if it has itself."""
    notes = Notes()
    worker = latest(app, queue_name, notes)

    def fail(batch: Batch) -> None:
        versions(worker, score)
        batch.fail("a", "broken")

    notes.then = fail
    versions(worker, 7)
    app.drain()

    assert ([(waits, float(waits[1:]))], clock.time() + 10, 0.0 if waits == "v7" else -1.0, "broken") == look(
        app, worker, "a"
    )
    notes.then = None
    clock.advance(10)
    app.drain()
    assert [["v7"], [waits]] == ran(notes)
    assert {} == left_behind(app, worker)


def test_a_push_replaces_one_that_waits_for_its_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-27, P7: at the time of the retry, and with all retries of its own."""
    notes = Notes(failing("a"))
    worker = latest(app, queue_name, notes)
    versions(worker, 1)
    app.drain()
    (pushed,) = versions(worker, 2)

    assert ([("v2", 2.0)], clock.time() + 10, -1.0, "a is broken") == look(app, worker, "a")
    assert (True, clock.time() + 10) == (pushed.merged, pushed.due_at)


def test_a_version_that_died_leaves_no_mark(app: Lowkiq, queue_name: str) -> None:
    """P2: it was not done, so an older one may come; and a business failure ends its version as done."""
    notes = Notes(failing("a"))
    worker = latest(app, queue_name, notes, max_retry_count=0)
    versions(worker, 7)
    app.drain()
    notes.then = lambda batch: batch.fail("a", Rejected("not qualified"))
    (after_death,) = versions(worker, 5)
    app.drain()
    (after_refusal,) = versions(worker, 4)

    assert [False, True] == [after_death.superseded, after_refusal.superseded]


@pytest.mark.parametrize(("newer", "left"), [("waits", ["v7"]), ("done", ["v7"]), (None, [])])
def test_a_requeue_revives_no_older_version(app: Lowkiq, queue_name: str, newer: str | None, left: list[str]) -> None:
    """E-78: what lies in the morgue stays there while a newer one waits, or was done."""
    notes = Notes(failing("a"))
    worker = latest(app, queue_name, notes, max_retry_count=0)
    versions(worker, 7)
    app.drain()
    notes.then = None
    if newer:
        versions(worker, 8)
    if newer == "done":
        app.drain()

    changed = app.operate(worker).morgue.requeue(["a"])
    in_morgue = [payload for job in app.operate(worker).morgue.fetch(["a"]) for payload, _ in job.payloads]
    app.drain()

    assert (len(left) == 0, left) == (changed == 1, in_morgue)
    assert [["v7"], ["v8" if newer else "v7"]] == ran(notes)


def test_of_what_lies_in_the_morgue_the_newest_comes_back(app: Lowkiq, queue_name: str) -> None:
    """The others stay."""
    notes = Notes(failing("a"))
    worker = latest(app, queue_name, notes, max_retry_count=0)
    for score in (3, 1, 2):
        versions(worker, score)
        app.drain()
    notes.clear()
    notes.then = None

    app.operate(worker).morgue.requeue(["a"])
    app.drain()

    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert ([["v3"]], ["v1", "v2"]) == (ran(notes), [payload for payload, _ in job.payloads])


def test_marks_turn_once_a_day(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A mark is kept for a day at least, and two at most; each time that its id is done it begins anew."""
    notes = Notes()
    worker = latest(app, queue_name, notes)

    def done(score: int, job_id: str) -> bool:
        (pushed,) = versions(worker, score, job_id=job_id)
        app.drain()
        return pushed.superseded

    done(7, "a")
    done(7, "b")
    clock.advance(DAY)
    done(8, "b")
    day = [done(6, "a"), done(6, "b")]
    clock.advance(DAY)
    done(9, "c")

    assert ([True, True], [False, True]) == (day, [done(6, "a"), done(6, "b")])


def test_forgotten_marks_accept_any_score_again(app: Lowkiq, queue_name: str) -> None:
    """After a wrong, huge score; of no other id, and of no queue without marks."""
    notes = Notes()
    worker, other = latest(app, queue_name, notes), declare(app, f"{queue_name}-other", notes)
    versions(worker, 10**12)
    versions(worker, 10**12, job_id="b")
    app.drain()

    assert 1 == app.operate(worker).forget_marks(["a", "never"])
    assert [False, True] == [versions(worker, 7, job_id=job_id)[0].superseded for job_id in "ab"]
    with pytest.raises(ValueError, match="has marks"):
        app.operate(other).forget_marks(["a"])


@pytest.mark.parametrize("job", [{"id": "a"}, {"id": "a", "payload": "x", "delay": 5}])
def test_each_push_needs_a_score(app: Lowkiq, queue_name: str, job: dict[str, Any]) -> None:
    """A version 17 must never meet a mark of 1.7e9, a time: refused before anything is written."""
    worker = latest(app, queue_name, Notes())

    with pytest.raises(JobError, match='score: is required with merge="latest"'):
        worker.push_many([{"id": "b", "score": 1}, job])

    assert look(app, worker, "b") is None


def test_times_are_no_versions(app: Lowkiq, queue_name: str) -> None:
    """Schedule entries and callbacks of tasks have no score that is a version: refused where they are declared."""
    worker = latest(app, queue_name, Notes())

    with pytest.raises(DeclarationError, match="A schedule entry: Noting has merge"):
        app.every(60, worker, id="a")
    with pytest.raises(DeclarationError, match="A schedule entry: Noting has merge"):
        app.schedules.put("each minute", worker, id="a", every=60)
    with pytest.raises(DeclarationError, match="on_complete: Noting has merge"):
        app.task("import", on_complete=(worker, {}))
    with pytest.raises(DeclarationError, match="block"):
        latest(app, f"{queue_name}-hold", Notes(), dead_head="block")


def test_entries_from_before_fire_no_more(app: Lowkiq, make_app: Any, clock: ManualClock, queue_name: str) -> None:
    """An entry that was made at run time, when the queue had another merge, is a problem that the tick tells."""
    earlier: Lowkiq = make_app()
    before = declare(earlier, queue_name, Notes())
    earlier.schedules.put("each minute", before, id="a", every=60)
    worker = latest(app, queue_name, Notes())
    app.operate(worker).redeclare()
    clock.advance(120)

    ticked = app.schedules.tick()

    assert look(app, worker, "a") is None
    (problem,) = ticked.problems
    assert "takes no schedule entries" in problem


@pytest.mark.parametrize(("score", "cursors"), [(1, [None, 2]), (3, [None, None])])
def test_a_started_job_gives_way_to_a_newer_version(
    app: Lowkiq, clock: ManualClock, queue_name: str, score: int, cursors: list[int | None]
) -> None:
    """J-4: its cursor is true of its own payload, so it goes with that; an older push changes nothing."""
    failures = [2]

    def before(_job: BatchJob, item: int) -> None:
        if item in failures:
            failures.remove(item)
            raise Broken

    items = Items(4, before)
    worker = declare_items(app, queue_name, items, merge="latest")
    versions(worker, 2)
    app.drain()
    versions(worker, score)
    clock.advance(1_000)
    app.drain()

    assert cursors == items.cursors
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize(("score", "cursors"), [(1, [None, 2]), (3, [None, None])])
def test_a_started_job_that_comes_back_meets_what_was_pushed_meanwhile(
    app: Lowkiq, clock: ManualClock, queue_name: str, score: int, cursors: list[int | None]
) -> None:
    """J-4: as above, where the push came while it ran."""
    failures = [2]

    def before(_job: BatchJob, item: int) -> None:
        if item in failures:
            failures.remove(item)
            versions(worker, score)
            raise Broken

    items = Items(4, before)
    worker = declare_items(app, queue_name, items, merge="latest")
    versions(worker, 2)
    app.drain()
    clock.advance(1_000)
    app.drain()

    assert (cursors, [max(2, score)]) == (items.cursors, [int(str(items.runs[-1].payloads[0])[1:])])
    assert {} == left_behind(app, worker)


def test_items_of_superseded_payloads_have_ended(app: Lowkiq, server: Server, queue_name: str) -> None:
    """A-31: replaced while it waited, not stored beside a newer one, or below the mark: superseded each time."""
    worker = latest(app, queue_name, Notes())
    task = TaskOfTests(worker, server.admin)

    def push(label: str, score: float) -> None:
        worker.push_many([{"id": "a", "payload": label, "score": score, "item": task.ref(label)}])

    push("replaced", 1)
    push("newest", 3)
    push("older", 2)
    waiting = task.statuses
    app.drain()
    push("late", 2)

    assert {"replaced": "s", "newest": "e", "older": "s"} == waiting
    assert {**waiting, "newest": "d", "late": "s"} == task.statuses


def test_after_a_crash_the_newest_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2: what a dead holder left meets what was pushed since, and the newer one stays."""
    mortal, notes = Mortal(app), Notes()
    worker = latest(app, queue_name, notes)
    notes.then = mortal.die
    versions(worker, 7)
    mortal.drain()
    versions(worker, 8)
    outlive(app, clock, worker)
    notes.then = None
    app.drain()
    (late,) = versions(worker, 7)

    assert ([["v7"], ["v8"]], True) == (ran(notes), late.superseded)
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("fields", [{"tenants": "home"}, {"batch_size": 3, "concurrency": 2}])
def test_it_holds_for_tenants_and_side_by_side(app: Lowkiq, queue_name: str, fields: dict[str, Any]) -> None:
    """Each id has its own mark."""
    notes = Notes()
    worker = latest(app, queue_name, notes, **fields)
    ids = [f"t{n % 2}:{n}" for n in range(6)]
    for score in (2, 1, 3):
        worker.push_many(jobs_of(ids, payload=score, score=score))
    app.drain()
    late = worker.push_many(jobs_of(ids, payload=2, score=2))
    app.drain()

    assert {job_id: [3] for job_id in ids} == {
        job_id: given for batch in notes.batches for job_id, given in batch.items()
    }
    assert ([True] * 6, {}) == ([one.superseded for one in late], left_behind(app, worker))


def test_a_key_of_a_superseded_push_is_remembered(app: Lowkiq, queue_name: str) -> None:
    """It was applied, and lost against a newer one: a repeat says so."""
    worker = latest(app, queue_name, Notes())
    job = {"id": "a", "payload": "old", "score": 1, "key": "evt-1"}
    versions(worker, 2)

    (first,), (second,) = worker.push_many([job]), worker.push_many([job])

    assert [(True, False), (False, True)] == [(one.superseded, one.repeated) for one in (first, second)]


def test_repair_sets_damaged_marks_aside(app: Lowkiq, queue_name: str) -> None:
    """Sound ones are left alone; without its mark an id accepts any score."""
    worker = latest(app, queue_name, Notes())
    versions(worker, 7)
    versions(worker, 7, job_id="b")
    app.drain()
    sound = app.operate(worker).repair()
    app.core.backend.client.hset(shard_of(app, worker, "a").key("marks_even"), "a", "seven")

    found = app.operate(worker).repair()

    assert (0, 1) == (sound, found)
    assert [False, True] == [versions(worker, 6, job_id=job_id)[0].superseded for job_id in "ab"]


def test_payloads_that_a_repair_put_into_the_box_are_one(app: Lowkiq, server: Server, queue_name: str) -> None:
    """A claim takes the last of them, and supersedes the others."""
    notes = Notes()
    worker = latest(app, queue_name, notes)
    shard, client = shard_of(app, worker, "a"), server.admin
    versions(worker, 2)
    record = client.hget(shard.key("jobs"), "a")
    assert isinstance(record, bytes)
    versions(worker, 3)
    client.zadd(shard.key("box"), {(1).to_bytes(4) + b"a" + record[1:]: 0})
    app.operate(worker).repair()
    before = superseded(app, worker)
    app.drain()

    assert ([["v3"]], before + 1) == (ran(notes), superseded(app, worker))
    assert {} == left_behind(app, worker)


def test_a_queue_changes_its_merge_only_while_it_is_empty(make_app: Any, queue_name: str) -> None:
    """`redeclare` to it and back; the marks go with the shard."""
    apps: list[Lowkiq] = [make_app() for _ in range(3)]
    versions(latest(apps[0], queue_name, Notes()), 7)
    apps[0].drain()
    back = declare(apps[1], queue_name, Notes())
    apps[1].operate(back).redeclare()
    again = latest(apps[2], queue_name, Notes())
    apps[2].operate(again).redeclare()

    assert not versions(again, 1)[0].superseded
