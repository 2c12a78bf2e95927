"""What an undo brings back has all that it had: items of tasks, headers, expiries, and cursors."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.keys import EXPIRY, HEADERS, ShardRef
from tests.kit.desk import Desk
from tests.kit.started import Starter
from tests.kit.tracking import TaskOfTests

Act: TypeAlias = Callable[[Desk], str]
"""Returns the id by which it can be undone."""
LASTING = 50_000.0


def edited(desk: Desk, *, keep_cursor: bool) -> str:
    """The first payload of the id is another one."""
    (first, *_) = desk.queue.payloads("a")
    return desk.queue.edit("a", first.arrival, {"new": 1}, reason="a test", keep_cursor=keep_cursor).action_id


ACTS: dict[str, Act] = {
    "delete": lambda desk: desk.queue.waiting.delete(["a"]).action_id,
    "kill": lambda desk: desk.queue.waiting.kill(["a"]).action_id,
    "kill what is later": lambda desk: desk.queue.waiting.kill(["a"], error="not wanted").action_id,
    "cancel": lambda desk: desk.queue.cancel(["a"]).action_id,
    "cancel and kill": lambda desk: desk.queue.cancel(["a"], kill=True).action_id,
    "edit": lambda desk: edited(desk, keep_cursor=False),
    "edit, with its cursor": lambda desk: edited(desk, keep_cursor=True),
}


class Whole(NamedTuple):
    """All that an id has, but for what its items were told, and when it was touched last."""

    waiting: Any
    others: dict[str, Any]
    statuses: dict[str, str]
    headers: Any
    expiries: Any


def whole(desk: Desk, task: TaskOfTests) -> Whole:
    """As it lies in the shard; AssertionError where items and payloads do not hold together."""
    state = desk.state()
    entries, due_at, count, since, _, handed = state["waiting"].get("a", ([], 0.0, -1.0, None, 0, []))
    ref: ShardRef = desk.app.core.queues.agreed(desk.worker).shards[0].using((HEADERS, EXPIRY))
    headers = desk.admin.hgetall(ref.key("headers_even")) | desk.admin.hgetall(ref.key("headers_odd"))
    expiries = desk.admin.hgetall(ref.key("expiries"))
    others = {name: state[name] for name in ("progress", "counts", "errors", "failures")}
    return Whole((entries, round(due_at, 3), count, since, handed), others, task.statuses, headers, expiries)


@pytest.fixture
def task(desk: Desk) -> TaskOfTests:
    """A task whose items are pushed to the desk's worker."""
    return TaskOfTests(desk.worker, desk.admin)


def fill(desk: Desk, task: TaskOfTests, count: int) -> None:
    """An id that has failed, with items, headers and expiries, and another one, which stays as it is."""
    jobs = [("a", number, f"item {number}") for number in range(count)]
    task.push_many(*jobs, ("b", 1, "other"), headers={"trace": "x"}, expires_in=LASTING)
    desk.handler.failing = {"a"}
    desk.drain()
    desk.handler.failing = set()
    assert ({"trace": "x"},) * count == tuple({"trace": "x"} for _ in whole(desk, task).headers)


def check_there_and_back(desk: Desk, task: TaskOfTests, act: Act) -> Whole:
    """An undo brings back the id as it was, the undo of that the other state, and so on. Returns the first state."""
    before = whole(desk, task)
    action_id = act(desk)
    after = whole(desk, task)
    assert before != after
    for expected in (before, after, before):
        undone = desk.queue.undo(action_id)
        assert (1, {}) == (undone.restored, undone.skipped)
        action_id = undone.action_id
        if expected is before:
            assert before == whole(desk, task)
        else:
            assert after.statuses == whole(desk, task).statuses
    return before


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("name", [name for name in ACTS if "cursor" not in name])
def test_items_headers_and_expiries_come_back(desk: Desk, task: TaskOfTests, name: str, count: int) -> None:
    """Of one payload, of few and of many; then they run with all of it, and the items end."""
    fill(desk, task, count)

    before = check_there_and_back(desk, task, ACTS[name])

    assert count == len(before.expiries) == len(before.statuses) - 1
    desk.clock.advance(100.0)
    desk.drain()
    assert {"d"} == {*task.statuses.values()}
    assert ({}, {}) == whole(desk, task)[-2:]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", ACTS)
def test_the_cursor_of_a_job_comes_back(desk: Desk, task: TaskOfTests, name: str, count: int) -> None:
    """With all payloads that it was handed, also where a later one waits behind them."""
    fill(desk, task, count)
    desk.clock.advance(100.0)
    Starter(desk.app, desk.worker, "a", JobProgress(b"7")).fail(desk.clock.time() + 60, 1.0)
    task.push_many(("a", "later", "later"), headers={"trace": "y"}, expires_in=LASTING)

    before = check_there_and_back(desk, task, ACTS[name])

    assert ["a"] == [*before.others["progress"]]
