"""Another payload takes the place of one that waits or is dead."""

import pytest

from lowkiq_lambda import JobError
from lowkiq_lambda.operate.acts.editing import EditRefused
from lowkiq_lambda.operate.inspect.journal import read_journals
from tests.kit.desk import Desk, MakeDesk
from tests.kit.looks import pairs

REASON = "a test"


def numbers(desk: Desk, job_id: str = "a") -> list[int]:
    """The arrival numbers of an id's payloads."""
    return [one.arrival for one in desk.queue.payloads(job_id)]


@pytest.mark.parametrize("count", [1, 3, 20])
def test_place_score_time_and_count_stay(desk: Desk, count: int) -> None:
    """Of one payload, of few in a record, and of many; and an undo brings back the old one, and can be undone."""
    desk.fail([{"id": "a", "payload": n, "score": n} for n in range(count)])
    before = desk.state()
    arrival = numbers(desk)[0]

    edited = desk.queue.edit("a", arrival, {"new": [1]}, reason=REASON)

    (job,) = desk.queue.waiting.fetch(["a"])
    assert ("waiting", False) == (edited.place, edited.merged)
    assert [({"new": [1]}, 0.0), *((n, float(n)) for n in range(1, count))] == pairs(job)
    assert before["waiting"]["a"][1:3] == desk.state()["waiting"]["a"][1:3]
    assert 0.0 == job.retry_count
    assert arrival == numbers(desk)[0]

    undone = desk.queue.undo(edited.action_id)
    assert (1, {}) == (undone.restored, undone.skipped)
    assert before["waiting"]["a"][0] == desk.state()["waiting"]["a"][0]
    redone = desk.queue.undo(undone.action_id)
    assert (1, {}) == (redone.restored, redone.skipped)
    assert {"new": [1]} == desk.queue.payloads("a")[0].payload


def test_a_dead_payload_is_edited_and_comes_back_as_that(desk: Desk) -> None:
    """Its error and its time of death stay."""
    desk.kill([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    (before,) = desk.queue.morgue.fetch(["a"])
    edited = desk.queue.edit("a", numbers(desk)[0], "corrected", reason=REASON)
    (after,) = desk.queue.morgue.fetch(["a"])
    assert ("dead", False) == (edited.place, edited.merged)
    assert [("corrected", 1.0), (2, 2.0)] == pairs(after)
    assert (before.error, before.updated_at) == (after.error, after.updated_at)
    assert 1 == desk.queue.undo(edited.action_id).restored
    assert pairs(before) == pairs(desk.queue.morgue.fetch(["a"])[0])


@pytest.mark.parametrize(("merge", "score"), [("min", 1.0), ("max", 2.0)])
def test_an_equal_payload_makes_the_two_one(make_desk: MakeDesk, merge: str, score: float) -> None:
    """By the merge of the queue; that cannot be undone."""
    desk = make_desk({"merge": merge})
    desk.push([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    edited = desk.queue.edit("a", numbers(desk)[1], 1, reason=REASON)
    (job,) = desk.queue.waiting.fetch(["a"])
    assert (True, "") == (edited.merged, edited.action_id)
    assert [(1, score)] == pairs(job)


def test_what_runs_is_never_changed(desk: Desk) -> None:
    """A claim that came first wins; an edit that came first is what the claim gets."""
    desk.push([{"id": "a", "payload": 1}])
    (arrival,) = numbers(desk)
    refused: list[str] = []

    def edit() -> None:
        with pytest.raises(EditRefused, match="runs now") as error:
            desk.app.operate(desk.worker).edit("a", arrival, 2, reason=REASON)
        refused.append(str(error.value))

    desk.handler.meanwhile = edit
    desk.drain()
    assert 1 == len(refused)
    desk.push([{"id": "a", "payload": 1}])
    desk.queue.edit("a", numbers(desk)[0], 2, reason=REASON)
    desk.drain()
    assert [[1], [2]] == [payloads for batch in desk.handler.batches for payloads in batch.values()]


def test_what_has_changed_since_is_refused(desk: Desk) -> None:
    """By another edit, by a run, or by a deletion: look again."""
    desk.push([{"id": "a", "payload": 1}, {"id": "b", "payload": 1}])
    (first,) = desk.queue.payloads("a")
    desk.queue.edit("a", first.arrival, 2, reason=REASON)
    with pytest.raises(EditRefused, match="changed since you looked"):
        desk.queue.edit("a", first.arrival, 3, reason=REASON, digest=first.digest)
    with pytest.raises(EditRefused, match="look again"):
        desk.queue.edit("a", 4711, 3, reason=REASON)
    assert [2] == [one.payload for one in desk.queue.payloads("a")]


@pytest.mark.parametrize("payload", ["\ud800", {"x": float("nan")}, {1, 2}, ["x" * 2_000_000]])
def test_what_a_push_refuses_an_edit_refuses(make_desk: MakeDesk, payload: object) -> None:
    """Lone surrogates, what is no JSON, and what is too large."""
    desk = make_desk(max_payload_bytes=1_000_000)
    desk.push([{"id": "a", "payload": 1}])
    with pytest.raises(JobError, match="payload"):
        desk.queue.edit("a", numbers(desk)[0], payload, reason=REASON)
    assert [1] == [one.payload for one in desk.queue.payloads("a")]


def test_nul_and_markup_are_payloads_as_any(desk: Desk) -> None:
    """Scripts look into no payload."""
    desk.push([{"id": "a", "payload": 1}])
    text = "\0</script>\u2028"
    desk.queue.edit("a", numbers(desk)[0], text, reason=REASON)
    assert [text] == [one.payload for one in desk.queue.payloads("a")]


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201, None])
def test_a_reason_is_required(desk: Desk, reason: str) -> None:
    """Of 1 to 200 characters."""
    desk.push([{"id": "a", "payload": 1}])
    with pytest.raises(ValueError, match="reason"):
        desk.queue.edit("a", numbers(desk)[0], 2, reason=reason)


def test_the_journal_has_both_digests_and_the_beginning_of_the_old(desk: Desk) -> None:
    """And who it was; 1 KiB of the old payload at most."""
    desk.push([{"id": "a", "payload": "o" * 3_000}])
    (old,) = desk.queue.payloads("a")
    desk.queue.edit("a", old.arrival, 2, reason=REASON, by="olga")
    (new,) = desk.queue.payloads("a")
    (entries,) = read_journals(desk.queue.reader, desk.queue.reader.shards)
    (item,) = [item for entry in entries if entry.kind == "edited" for item in entry.items]
    details = item[-1]
    assert ["a", old.arrival] == [item[0], item[2]]
    assert (old.digest, new.digest, "olga", '"' + "o" * 1_023) == tuple(
        details[name] for name in ("old", "new", "by", "payload")
    )


def test_a_blocked_head_stays_blocked(make_desk: MakeDesk) -> None:
    """An edit corrects it, and unblocking tries the new one."""
    desk = make_desk({"dead_head": "block", "max_retry_count": 0})
    desk.push([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    desk.handler.failing = {"a"}
    desk.drain()
    desk.handler.failing = set()
    desk.queue.edit("a", numbers(desk)[0], "corrected", reason=REASON)
    assert 1 == len(desk.queue.waiting.blocked())
    assert 1 == desk.queue.unblock(["a"])
    desk.drain()
    assert "corrected" in [payload for batch in desk.handler.batches for each in batch.values() for payload in each]
    assert desk.is_empty()
