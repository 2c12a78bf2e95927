"""Cancels, pauses, edits and undos of an id to which something happens between the look and the act."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.store.shard.keys import REQUESTS
from tests.kit.deaths import Mortal, outlive
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import ids_of, pairs
from tests.kit.started import Starter

REASON = "a test"


def die_at_work(desk: Desk) -> None:
    """What is due runs, and its process dies; its lease ends."""
    mortal = Mortal(desk.app)
    desk.handler.meanwhile = mortal.die
    assert mortal.drain() is None
    outlive(desk.app, desk.clock, desk.worker)


def recover(desk: Desk) -> None:
    """What a dead holder had waits again; nobody runs it yet, as the id is paused."""
    desk.queue.pause_jobs(["a"])
    desk.drain()
    desk.queue.resume_jobs(["a"])


def ran(desk: Desk) -> list[object]:
    """All payloads that were handed over, in order."""
    return [payload for batch in desk.handler.batches for payloads in batch.values() for payload in payloads]


def test_what_was_cancelled_in_a_pause_is_due_when_it_comes_back_behind_it(desk: Desk) -> None:
    """Not at the end that the pause would have had."""
    desk.push([{"id": "a", "payload": 1}])
    desk.queue.pause_jobs(["a"])
    answer = desk.queue.cancel(["a"])
    desk.queue.resume_jobs(["a"])
    desk.queue.undo(answer.action_id)
    desk.drain()
    assert [1] == ran(desk)


def test_a_suspect_that_comes_back_in_its_pause_does_not_run(desk: Desk) -> None:
    """Suspects go first, but not before their pause is over."""
    desk.push([{"id": "a", "payload": "a"}, {"id": "b", "payload": "b"}])
    die_at_work(desk)

    def act() -> None:
        answer = desk.queue.cancel(["b"])
        desk.queue.pause_jobs(["b"], 60)
        desk.queue.undo(answer.action_id)

    desk.handler.meanwhile = act
    desk.drain()
    assert ["a", "b", "a"] == ran(desk)
    desk.clock.advance(61.0)
    desk.drain()
    assert ["a", "b", "a", "b"] == ran(desk)


def test_a_suspect_that_is_paused_while_it_is_in_flight_does_not_run_again(desk: Desk) -> None:
    """Its holder gives it back as it was: a suspect, which goes first once its pause is over."""
    desk.push([{"id": "a", "payload": 1}])
    die_at_work(desk)
    holder = Starter(desk.app, desk.worker, "a", b"")
    assert ["a"] == desk.queue.pause_jobs(["a"]).in_flight
    holder.settle(("a", "returned"))
    desk.push([{"id": "b", "payload": 2}])
    desk.drain()
    assert [1, 2] == ran(desk)
    desk.queue.resume_jobs(["a"])
    desk.drain()
    assert [1, 2, 1] == ran(desk)


def test_an_edit_of_what_a_dead_holder_had_can_be_undone(desk: Desk) -> None:
    """It has not run since the edit."""
    desk.push([{"id": "a", "payload": 1}])
    die_at_work(desk)
    recover(desk)
    (seen,) = desk.queue.payloads("a")
    edited = desk.queue.edit("a", seen.arrival, 2, reason=REASON)
    undone = desk.queue.undo(edited.action_id)
    assert (1, {}) == (undone.restored, undone.skipped)
    assert 1 == desk.queue.undo(undone.action_id).restored
    assert [2] == [one.payload for one in desk.queue.payloads("a")]


def test_what_only_a_pause_has_moved_has_changed_and_did_not_run(desk: Desk) -> None:
    """An undo of its new time leaves the pause alone, and does not claim a run."""
    desk.push([{"id": "a", "delay": 600}])
    changed = desk.queue.waiting.run_now(["a"])
    desk.queue.pause_jobs(["a"])
    undone = desk.queue.undo(changed.action_id)
    assert (0, {"changed since": 1}) == (undone.restored, undone.skipped)
    assert [] == ran(desk)


def fail_once(desk: Desk) -> None:
    """The first payload of the id fails."""
    desk.handler.failing = {"a"}
    desk.drain()
    desk.handler.failing = set()


def die_and_recover(desk: Desk) -> None:
    """The process of its first payload dies."""
    die_at_work(desk)
    recover(desk)


def finish_the_first(desk: Desk) -> None:
    """Its first payload is done, and the other one waits."""
    desk.handler.meanwhile = lambda: desk.queue.pause_jobs(["a"])
    desk.drain()
    desk.queue.resume_jobs(["a"])


@pytest.mark.parametrize(("happens", "left"), [(fail_once, [1, 2]), (die_and_recover, [1, 2]), (finish_the_first, [2])])
def test_what_has_run_since_is_not_taken_though_some_of_it_waits(
    make_desk: MakeDesk, happens: Callable[[Desk], None], left: list[int]
) -> None:
    """Where one payload runs at a time, those behind it, with the mark of the action, stay where they are."""
    desk = make_desk({"payloads_at_once": 1, "retry_in": lambda _self, _count: 600.0})
    desk.push([{"id": "a", "payload": number} for number in (1, 2)])
    undone = desk.queue.undo(desk.queue.waiting.delete(["a"]).action_id)
    happens(desk)
    again = desk.queue.undo(undone.action_id)
    assert (0, {"ran meanwhile": 1}) == (again.restored, again.skipped)
    assert left == [one.payload for one in desk.queue.payloads("a")]


@pytest.mark.parametrize("kill", [False, True])
def test_a_cancel_leaves_what_came_after_its_look(desk: Desk, *, kill: bool) -> None:
    """A later payload of an id that waits stays, and so does that of one which runs, when the run ends."""
    desk.push([{"id": "a", "payload": 1}])
    desk.before("cancel", lambda: desk.push([{"id": "a", "payload": 2}]))
    assert ["a"] == desk.queue.cancel(["a"], kill=kill).at_once
    assert [2] == [one.payload for one in desk.queue.payloads("a") if one.place == "waiting"]

    desk.handler.failing = {"a"}
    desk.handler.meanwhile = lambda: desk.queue.cancel(["a"])
    desk.drain()
    assert [] == [one.payload for one in desk.queue.payloads("a") if one.place == "waiting"]


def test_a_cancel_spares_what_was_claimed_behind_its_look(desk: Desk) -> None:
    """Of a run that fails the older payloads go, and the others begin anew."""
    desk.push([{"id": "a", "payload": 1}])
    shards = [shard.using((REQUESTS,)) for shard in desk.queue.reader.shards]
    (look,) = desk.queue.runner.snapshots(shards)
    desk.push([{"id": "a", "payload": 2}])

    def cancel() -> None:
        queue = desk.queue
        queue.runner.snapshots = lambda shards=None: [look]  # type: ignore[method-assign]  # noqa: ARG005 - the look of before
        queue.cancel(["a"])
        desk.handler.meanwhile = desk.handler.failing.clear

    desk.handler.failing, desk.handler.meanwhile = {"a"}, cancel
    desk.drain()
    assert [1, 2, 2] == ran(desk)
    assert desk.is_empty()


def test_an_edit_after_the_look_of_a_cancel_is_spared(desk: Desk) -> None:
    """Who cancels by an older look wanted another payload to go."""
    desk.push([{"id": "a", "payload": 1}])
    (seen,) = desk.queue.payloads("a")
    desk.before("cancel", lambda: desk.queue.edit("a", seen.arrival, 2, reason=REASON))
    assert ["a"] == desk.queue.cancel(["a"]).gone
    (job,) = desk.queue.waiting.fetch(["a"])
    assert [2] == [payload for payload, _ in pairs(job)]


def test_a_kill_whose_payload_was_requeued_is_not_undone(desk: Desk) -> None:
    """Neither if the payload waits nor if it has run: it would come back a second time."""
    desk.fail([{"id": "a", "payload": 1}, {"id": "b", "payload": 1}])
    killed = desk.queue.waiting.kill(everything=True)
    desk.queue.morgue.requeue(["a"])
    desk.drain()
    desk.queue.morgue.requeue(["b"])
    undone = desk.queue.undo(killed.action_id)
    assert (0, {"not dead any more": 2}) == (undone.restored, undone.skipped)
    assert ["b"] == ids_of(desk.queue.waiting.list())


def test_an_undo_that_comes_too_late_takes_its_rows_and_restores_nothing(desk: Desk) -> None:
    """Ten minutes may end between the question and the act."""
    desk.push([{"id": "a"}])
    changed = desk.queue.waiting.delete(["a"])
    desk.clock.advance(599.0)
    desk.before("undo", lambda: desk.clock.advance(5.0))
    undone = desk.queue.undo(changed.action_id)
    assert (0, {"too late": 1}) == (undone.restored, undone.skipped)
    assert desk.is_empty()
