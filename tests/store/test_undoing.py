"""What an operator did to ids can be taken back for ten minutes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pytest

from lowkiq_lambda.operate.acts.bulk_progress import Changed
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of, pairs
from tests.kit.stored import State

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.undoing import Undone

Act: TypeAlias = Callable[[Desk], Changed]
KEPT = ("waiting", "errors", "failures", "trouble", "morgue")
ACTS: dict[str, Act] = {
    "delete": lambda desk: desk.queue.waiting.delete(everything=True),
    "delete failed": lambda desk: desk.queue.waiting.delete(filter={"least_count": "0"}),
    "kill": lambda desk: desk.queue.waiting.kill(everything=True),
    "kill delayed": lambda desk: desk.queue.waiting.kill(everything=True, error="not wanted"),
    "requeue": lambda desk: desk.queue.morgue.requeue(everything=True),
    "requeue slowly": lambda desk: desk.queue.morgue.requeue(everything=True, rate=2.0),
    "requeue last": lambda desk: desk.queue.morgue.requeue(["dead"], order="last"),
    "delete the dead": lambda desk: desk.queue.morgue.delete(everything=True),
    "run now": lambda desk: desk.queue.waiting.run_now(everything=True),
}


def state(desk: Desk) -> State:
    """The shard, but for when its ids were touched last, and the ticks between due times."""
    kept = {name: desk.state()[name] for name in KEPT}
    kept["waiting"] = {
        job_id: (entries, round(due_at, 3), count, since, started)
        for job_id, (entries, due_at, count, since, _, started) in kept["waiting"].items()
    }
    return kept


def fill(desk: Desk) -> None:
    """Ids in all states that one queue can have."""
    desk.kill([{"id": "dead", "payload": n, "score": n} for n in (2, 1)] + [{"id": "gone"}])
    desk.fail([{"id": "failed", "payload": n, "score": n} for n in (2, 1)])
    desk.push([{"id": "later", "delay": 900.0}, {"id": "due", "payload": 1}])
    desk.push([{"id": "many", "payload": n, "score": n, "delay": 50.0} for n in range(20)])


@pytest.mark.parametrize("act", ACTS)
def test_an_undo_brings_back_what_was_and_can_be_undone(desk: Desk, act: str) -> None:
    """The shard is as before an action that was undone, and as after it once the undo is undone, and so on."""
    fill(desk)
    before = state(desk)
    changed = ACTS[act](desk)
    after = state(desk)
    assert before != after
    assert 0 < changed == changed.undoable

    undone = desk.queue.undo(changed.action_id)
    assert ({}, changed) == (undone.skipped, undone.restored)
    assert before == state(desk)

    redone = desk.queue.undo(undone.action_id)
    assert ({}, changed) == (redone.skipped, redone.restored)
    again = state(desk)
    assert after["waiting"].keys() == again["waiting"].keys()
    assert after["morgue"].keys() == again["morgue"].keys()

    last = desk.queue.undo(redone.action_id)
    assert ({}, changed) == (last.skipped, last.restored)
    assert before == state(desk)


@pytest.mark.parametrize("how", ["retry", "skip"])
def test_an_unblocked_id_is_blocked_again(make_desk: MakeDesk, how: str) -> None:
    """Its head is as dead as before, whether it was to be tried or to be left out."""
    desk = make_desk({"dead_head": "block", "max_retry_count": 0})
    desk.push([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    desk.handler.failing = {"a"}
    desk.drain()
    desk.handler.failing = set()
    before = state(desk)
    assert ["a"] == ids_of(desk.queue.waiting.blocked())
    changed = desk.queue.unblock(["a"], "skip" if how == "skip" else "retry")
    assert [] == ids_of(desk.queue.waiting.blocked())

    undone = desk.queue.undo(changed.action_id)

    assert ({}, 1) == (undone.skipped, undone.restored)
    assert before == state(desk)
    assert ["a"] == ids_of(desk.queue.waiting.blocked())


def test_a_second_undo_finds_nothing(desk: Desk) -> None:
    """A replay of an undo changes nothing, and says so."""
    desk.push([{"id": "a"}])
    changed = desk.queue.waiting.delete(["a"])
    desk.queue.undo(changed.action_id)
    with pytest.raises(ValueError, match="undone already"):
        desk.queue.undo(changed.action_id)
    assert ["a"] == ids_of(desk.queue.waiting.list())


@pytest.mark.parametrize("action_id", ["", "xyz", "0123456789ABCDEF", 7, None])
def test_an_id_that_no_action_has_is_refused(desk: Desk, action_id: object) -> None:
    """Only 16 hex digits are the id of an action."""
    with pytest.raises(ValueError, match="16 hex digits"):
        desk.queue.undo(action_id)  # type: ignore[arg-type]  # that is the point


def test_an_undo_comes_too_late_after_ten_minutes(desk: Desk) -> None:
    """Ten minutes and a second later nothing comes back."""
    desk.push([{"id": "a"}])
    changed = desk.queue.waiting.delete(["a"])
    desk.clock.advance(601.0)
    with pytest.raises(ValueError, match="older than ten minutes"):
        desk.queue.undo(changed.action_id)
    assert desk.is_empty()


def test_two_operators_undo_at_once_and_one_wins(desk: Desk) -> None:
    """The rows of an action are taken once."""
    desk.push([{"id": "a"}])
    changed = desk.queue.waiting.delete(["a"])
    other: list[Undone] = []
    desk.before("undo", lambda: other.append(desk.app.operate(desk.worker).undo(changed.action_id)))
    undone = desk.queue.undo(changed.action_id)
    assert (0, {}) == (undone.restored, undone.skipped)
    assert [1] == [one.restored for one in other]
    desk.drain()
    assert [["a"]] == [[*batch] for batch in desk.handler.batches]


def test_a_kill_whose_payload_was_pushed_again_comes_back_as_one(desk: Desk) -> None:
    """Equal payloads become one at the smaller score, as at a push."""
    desk.fail([{"id": "a", "payload": "x", "score": 5.0}])
    changed = desk.queue.waiting.kill(["a"])
    desk.push([{"id": "a", "payload": "x", "score": 3.0}, {"id": "a", "payload": "y", "score": 9.0}])
    undone = desk.queue.undo(changed.action_id)
    (job,) = desk.queue.waiting.fetch(["a"])
    assert (1, {}) == (undone.restored, undone.skipped)
    assert [("x", 3.0), ("y", 9.0)] == pairs(job)
    assert [] == ids_of(desk.queue.morgue.list())


def test_what_was_requeued_and_ran_is_skipped(desk: Desk) -> None:
    """A requeued id that has run stays done, and one that failed again waits for its retry."""
    desk.kill([{"id": "a"}, {"id": "b"}, {"id": "c"}])
    changed = desk.queue.morgue.requeue(everything=True)
    desk.handler.failing = {"b"}
    desk.drain()
    desk.handler.failing = set()
    desk.kill([{"id": "d"}])
    undone = desk.queue.undo(changed.action_id)
    assert (0, {"ran meanwhile": 3}) == (undone.restored, undone.skipped)
    assert ["b", "d"] == ids_of(desk.queue.morgue.list("id"))
    with pytest.raises(ValueError, match="undone already"):
        desk.queue.undo(changed.action_id)


def test_what_joined_a_push_stays_where_it_is(desk: Desk) -> None:
    """A requeued payload that an equal push has joined is one with it, and must not die by an undo."""
    desk.kill([{"id": "a", "payload": 1, "score": 1.0}, {"id": "b", "payload": 1, "score": 1.0}])
    changed = desk.queue.morgue.requeue(everything=True)
    desk.push([{"id": "a", "payload": 1, "score": 7.0}])
    undone = desk.queue.undo(changed.action_id)
    assert (1, {"changed since": 1}) == (undone.restored, undone.skipped)
    assert (["a"], ["b"]) == (ids_of(desk.queue.waiting.list()), ids_of(desk.queue.morgue.list()))


def test_deleted_payloads_merge_behind_what_is_in_flight(desk: Desk) -> None:
    """An id that is in flight at the undo gets its payloads after this run, as by a push."""
    desk.push([{"id": "a", "payload": 1}])
    changed = desk.queue.waiting.delete(["a"])
    desk.push([{"id": "a", "payload": 2}])
    undone: list[Undone] = []
    desk.handler.meanwhile = lambda: undone.append(desk.app.operate(desk.worker).undo(changed.action_id))
    desk.drain()
    assert [(1, {})] == [(one.restored, one.skipped) for one in undone]
    assert [["a"], ["a"]] == [[*batch] for batch in desk.handler.batches]
    assert desk.is_empty()


def test_deleted_dead_jobs_come_back_within_the_bounds_of_the_morgue(make_desk: MakeDesk) -> None:
    """Its oldest give way, and are counted."""
    desk = make_desk(morgue={"entries": 2})
    desk.kill([{"id": "a"}, {"id": "b"}])
    changed = desk.queue.morgue.delete(everything=True)
    desk.clock.advance(5.0)
    desk.kill([{"id": "c"}])
    undone = desk.queue.undo(changed.action_id)
    assert 2 == undone.restored
    assert 2 == len(ids_of(desk.queue.morgue.list()))
    assert 1 == desk.state()["counters"]["trimmed"]


def test_a_full_server_still_deletes_and_says_that_nothing_can_be_undone(desk: Desk) -> None:
    """An action must not fail as memory is full: its rows are dropped."""
    desk.push([{"id": "a"}])
    desk.queue.waiting.count()
    desk.admin.config_set("maxmemory", 1)
    try:
        changed = desk.queue.waiting.delete(["a"])
    finally:
        desk.admin.config_set("maxmemory", 0)
    assert (1, 0, "") == (changed, changed.undoable, changed.action_id)
    assert [] == desk.queue.undoable()
    assert desk.is_empty()


def test_the_newest_rows_stay_within_four_megabytes(desk: Desk) -> None:
    """Of many large payloads the last can be undone, and the action says how many."""
    desk.push([{"id": n, "payload": f"{n}" + "x" * 500_000} for n in range(12)])
    changed = desk.queue.waiting.delete(everything=True)
    assert (12, 8) == (changed, changed.undoable)
    (action,) = desk.queue.undoable()
    assert (changed.action_id, "delete", 8, 12) == (action.id, action.act, action.ids, action.changed)
    assert 8 == desk.queue.undo(changed.action_id).restored


def test_many_payloads_of_an_id_come_back_in_steps(desk: Desk) -> None:
    """An id with more payloads than a call takes is one id, and comes back with all of them."""
    desk.push([{"id": "a", "payload": n, "score": n, "delay": 60.0} for n in range(2_500)])
    before = state(desk)
    changed = desk.queue.waiting.delete(["a"])
    undone = desk.queue.undo(changed.action_id)
    assert (1, 1, 1) == (changed, changed.undoable, undone.restored)
    assert before == state(desk)
    redone = desk.queue.undo(undone.action_id)
    assert (1, {}) == (redone.restored, redone.skipped)
    assert desk.is_empty()
