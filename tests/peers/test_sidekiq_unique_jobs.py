"""sidekiq-unique-jobs 9.0.0.alpha1: its own cases, in terms of `unless`, `on_conflict` and `key`."""

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.looks import look
from tests.kit.unique import Case, WatchingPushes
from tests.kit.workers import declare


@pytest.fixture
def case(app: Lowkiq, clock: ManualClock, queue_name: str) -> Case:
    """An id of its own queue."""
    return Case(app, clock, queue_name)


def failed(case: Case) -> None:
    """The id has failed, and waits for its retry."""
    case.notes.then = failing("7")
    case.push("old", unless="busy")
    case.app.drain()
    case.notes.then = None


def test_until_executed_unlocks_after_executing(case: Case) -> None:
    """Peer: lock/until_executed_spec.rb, "unlocks after executing"."""
    during = case.while_running(lambda: case.push(unless="busy"))

    assert ["running", ""] == [during.dropped, case.push(unless="busy").dropped]


def test_until_executed_prevents_a_second_push_while_a_retry_waits(case: Case) -> None:
    """Peer: lock/until_executed_spec.rb, "prevents process_two from locking while job is in retry"."""
    failed(case)
    dropped = case.push(unless="busy").dropped
    case.clock.advance(60)
    case.app.drain()

    assert ["waiting", ""] == [dropped, case.push(unless="busy").dropped]


def test_until_executing_unlocks_before_executing(case: Case) -> None:
    """Peer: lock/until_executing_spec.rb, "unlocks before executing"."""
    assert "" == case.while_running(lambda: case.push(unless="waiting")).dropped


def test_until_executing_locks_again_if_the_job_fails(case: Case) -> None:
    """Peer: lock/until_executing_spec.rb, "locks the job again"."""
    failed(case)

    assert "waiting" == case.push(unless="waiting").dropped


def test_until_expired_keeps_the_lock_after_executing(case: Case) -> None:
    """Peer: lock/until_expired_spec.rb, "keeps lock after executing"."""
    case.push("old", key="k")
    case.app.drain()

    assert case.push("new", key="k").repeated


def test_while_executing_locks_no_push(case: Case) -> None:
    """Peer: lock/while_executing_spec.rb, "does not lock jobs"."""
    assert ["", ""] == [case.push(payload).dropped for payload in "ab"]


def test_replace_takes_the_place_of_a_job_that_is_enqueued(case: Case) -> None:
    """Peer: on_conflict/replace_spec.rb, "when job is enqueued, removes the job from the queue"."""
    case.push("old")
    pushed = case.push(on_conflict="replace")

    assert (True, ["new"]) == (pushed.merged, case.waiting)


def test_replace_takes_the_place_of_a_job_that_is_scheduled(case: Case) -> None:
    """It keeps the id's time. Peer: on_conflict/replace_spec.rb, "when job is scheduled, removes the job"."""
    first = case.push("old", delay=600)
    pushed = case.push(on_conflict="replace", delay=60)

    assert (first.due_at, ["new"]) == (pushed.due_at, case.waiting)


def test_replace_takes_the_place_of_a_job_that_is_retried(case: Case) -> None:
    """It keeps the retry's time and count. Peer: on_conflict/replace_spec.rb, "removes the job from the retry set"."""
    failed(case)
    before = look(case.app, case.worker, "7")
    case.push(on_conflict="replace")
    after = look(case.app, case.worker, "7")

    assert before
    assert after
    assert (["new"], before[1:]) == ([payload for payload, _ in after.payloads], after[1:])


def test_replace_runs_nothing_if_there_is_nothing_to_replace(case: Case) -> None:
    """Peer: on_conflict/replace_spec.rb, "when delete_job_by_digest returns nil"."""
    pushed = case.push(on_conflict="replace")

    assert (False, "", ["new"]) == (pushed.merged, pushed.dropped, case.waiting)


def test_one_key_is_forgotten(case: Case) -> None:
    """Peer: digests_spec.rb, "#delete_by_digest, deletes just the specific digest"."""
    for key in "ab":
        case.push(key=key)

    assert 1 == case.app.operate(case.worker).forget_keys([(7, "a")])
    assert [False, True] == [case.push(key=key).repeated for key in "ab"]


def test_all_keys_of_an_id_are_forgotten(case: Case) -> None:
    """Ours go by id, not by a pattern. Peer: digests_spec.rb, "#delete_by_pattern, deletes all matching digests"."""
    for key in "ab":
        case.push(key=key)
    case.worker.push(8, key="a")

    assert 2 == case.app.operate(case.worker).forget_keys(ids=[7])
    assert [False, False, True] == [
        case.push(key="a").repeated,
        case.push(key="b").repeated,
        case.worker.push(8, key="a").repeated,
    ]


def test_keys_are_deleted_in_a_batch(case: Case) -> None:
    """Peer: batch_delete_spec.rb, "deletes all digests and their LOCKED hashes"."""
    case.worker.push_many([{"id": id_, "key": "k"} for id_ in range(30)])

    assert [30, 0] == [case.app.operate(case.worker).forget_keys(ids=range(30)) for _ in range(2)]


def test_no_lock_is_left_of_a_process_that_died(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """We have no reaper. Peer: orphans/reaper_spec.rb, "removes orphaned locks not found in any Sidekiq set"."""
    case = Case(app, clock, queue_name)
    mortal = Mortal(app)
    case.notes.then = mortal.die
    case.push("old", unless="busy")
    mortal.drain()
    case.notes.then = None
    outlive(app, clock, case.worker)
    app.drain()

    assert (["old", "old"], "") == (case.ran, case.push(unless="busy").dropped)


@pytest.mark.parametrize("delay", [0, 3_600])
def test_a_job_in_the_queue_stays_locked(case: Case, delay: int) -> None:
    """For however long. Peer: orphans/reaper_spec.rb, "preserves locks for jobs in a queue/the scheduled set"."""
    case.push("old", delay=delay)
    case.clock.advance(3_000)

    assert "waiting" == case.push(unless="busy").dropped


def test_a_job_in_the_retry_set_stays_locked(case: Case) -> None:
    """Peer: orphans/reaper_spec.rb, "preserves locks for jobs in the retry set"."""
    failed(case)
    case.clock.advance(9)

    assert "waiting" == case.push(unless="busy").dropped


def test_a_full_queue_keeps_its_locks(app: Lowkiq, queue_name: str) -> None:
    """Peer: orphans/reaper_spec.rb, "preserves locks when queues are very full (fails closed)"."""
    worker = declare(app, queue_name, Notes())
    jobs = [{"id": id_, "unless": "busy"} for id_ in range(3_000)]
    worker.push_many(jobs)

    assert {"waiting"} == {one.dropped for one in worker.push_many(jobs)}


def test_a_dropped_push_reaches_no_handler(case: Case) -> None:
    """Peer: middleware/client/call_spec.rb, "when already locked, does not yield control"."""
    case.push("old")
    case.push(unless="waiting")
    case.app.drain()

    assert ["old"] == case.ran


def test_an_observer_hears_of_a_duplicate(case: Case) -> None:
    """Peer: reflections_spec.rb, "when reflecting on :duplicate"."""
    watching = WatchingPushes()
    case.app.observers.append(watching)
    during = case.while_running(lambda: case.push(unless="busy"))

    assert ("running", [(case.worker.queue_name, 7, "running")]) == (during.dropped, watching.conflicts)


def test_what_they_reschedule_waits_behind_the_run(case: Case) -> None:
    """Without `unless` nothing has to be rescheduled. Peer: on_conflict/reschedule_spec.rb, "schedules a job five…"."""
    case.while_running(case.push)
    case.app.drain()

    assert ["old", "new"] == case.ran
