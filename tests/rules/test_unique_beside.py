"""Uniqueness beside what else a push may have or meet: a lost answer, a task, a buffer, a debounce, a move, a race."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from lowkiq_lambda import Conflict, Debounce, DeclarationError, Job, JobError, Lowkiq, PushInterrupted, Unique
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind, look
from tests.kit.moving import HandMade
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare

LATER = 60.0
PUSHES = 500


def unless_busy(*ids: object, **fields: Any) -> list[dict[str, Any]]:
    """A job for each id."""
    return [{"id": id_, "payload": n, "unless": "busy", **fields} for n, id_ in enumerate(ids)]


@pytest.mark.parametrize("unless", ["busy", "waiting"])
def test_a_chunk_whose_answer_was_lost_gets_the_same_answer(
    make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, unless: str
) -> None:
    """Its own jobs are no conflict with themselves: a repeat under the token of the push is told what the first was."""
    worker = declare(make_app(redis_url=fault_proxy.url), queue_name, Notes())
    worker.push("b", "old")
    fault_proxy.drop_reply_after(b"EVALSHA")

    pushed = worker.push_many(unless_busy("a", "b", "c", unless=unless))

    assert ["", "waiting", ""] == [one.dropped for one in pushed]


def test_a_dropped_item_of_a_task_ends_at_once(app: Lowkiq, server: Server, queue_name: str) -> None:
    """It is merged: what waits does its work. That of a payload that is replaced is superseded."""
    worker = declare(app, queue_name, Notes())
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "first"))
    task.push_many((1, "b", "second"), unless="waiting")
    dropped = task.statuses
    task.push_many((1, "c", "third"), on_conflict="replace")
    app.drain()

    assert {"first": "e", "second": "m"} == dropped
    assert {"first": Item("s", "1"), "second": Item("m", "1"), "third": Item("d", "1", 1)} == task.items
    assert not task.is_in_use


def test_a_task_whose_only_item_is_dropped_is_complete(app: Lowkiq, queue_name: str) -> None:
    """Nothing more will happen to it."""
    worker = declare(app, queue_name, Notes())
    worker.push(1, "old", delay=LATER)

    with app.task("some") as task:
        task.push(worker, 1, "new", unless="waiting")

    assert (1, 1) == (task.progress().total, task.progress().counts["merged"])


def test_a_task_may_raise(app: Lowkiq, queue_name: str) -> None:
    """After the call: its other items are written."""
    worker = declare(app, queue_name, Notes())
    worker.push(1, "old")

    with app.task("some") as task, pytest.raises(Conflict) as caught:
        task.push_many(worker, [{"id": id_, "unless": "waiting", "on_conflict": "raise"} for id_ in (1, 2)])

    assert ([0], [1]) == (caught.value.positions, caught.value.written)
    progress = task.progress()
    assert (2, 1, 1) == (progress.total, progress.counts["merged"], progress.counts["enqueued"])


def test_a_push_that_breaks_off_calls_for_what_was_dropped(
    make_server: MakeServer, make_app: MakeApp, queue_name: str
) -> None:
    """Its call is not made again for those jobs, so nobody else would hear of them."""
    calls: list[object] = []
    app = make_app(redis_url=make_server(maxmemory="12mb").url)
    worker = declare(app, queue_name, Notes())
    worker.push("a", "old")
    dropped = {"id": "a", "unless": "busy", "on_conflict": lambda job, _pushed: calls.append(job["id"])}

    with pytest.raises(PushInterrupted) as caught:
        worker.push_many([dropped, *({"id": n, "payload": "x" * 10_000} for n in range(2_000))])

    assert (["a"], 0) == (calls, caught.value.written[0])


def test_a_dropped_push_does_not_put_a_debounced_id_off(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """One that replaces does not, either: the payload stays at the id's time."""
    worker = declare(app, queue_name, Notes(), debounce=Debounce(10.0))
    first = worker.push(1, "a")
    clock.advance(5)

    dropped = worker.push(1, "b", unless="waiting")
    replaced = worker.push(1, "c", on_conflict="replace")

    assert [first.due_at] * 2 == [dropped.due_at, replaced.due_at]
    assert [replaced.due_at] == [job.due_at for job in app.operate(worker).waiting.fetch([1])]


def test_a_buffered_push_asks_when_it_is_written(
    make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored if its id has no work then; its function is called then, and nothing is raised."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "producer")
    calls: list[str] = []
    app = make_app(redis_url=fault_proxy.url, when_unavailable="buffer")
    worker = declare(app, queue_name, Notes())
    worker.push(1, "old")
    fault_proxy.refuse()
    fault_proxy.cut()
    jobs = unless_busy(1, 2, on_conflict=lambda _job, pushed: calls.append(pushed.dropped))
    kept = worker.push_many([*jobs, {"id": 1, "payload": "last", "unless": "busy", "on_conflict": "raise"}])
    before = [*calls]
    fault_proxy.heal()

    assert 0 == app.flush(10.0)
    assert ([True] * 3, [], ["waiting"]) == ([one.buffered for one in kept], before, calls)
    waiting = [look(app, worker, id_) for id_ in ("1", "2")]
    assert [["old"], [1]] == [[payload for payload, _ in job.payloads] for job in waiting if job]


def test_a_remote_queue_takes_the_fields(app: Lowkiq, make_app: MakeApp, queue_name: str) -> None:
    """A program that has not the worker says what it wants in its pushes."""
    worker = declare(app, queue_name, Notes())
    worker.push(1, "old")
    remote = make_app().remote(queue_name)

    assert "waiting" == remote.push(1, "new", unless="busy").dropped
    assert [""] == [one.dropped for one in remote.push_many([Job(1, "newer", on_conflict="replace")])]


def test_a_worker_says_it_for_all_its_pushes(app: Lowkiq, queue_name: str) -> None:
    """A push may say otherwise; what it does not say is as the worker has it."""
    worker = declare(app, queue_name, Notes(), unique=Unique("busy", on_conflict="replace"))
    worker.push(1, "old")

    replaced, dropped = worker.push(1, "new"), worker.push(1, "newer", on_conflict="drop")

    assert ([True, False], ["", "waiting"]) == (
        [one.merged for one in (replaced, dropped)],
        [replaced.dropped, dropped.dropped],
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"unless": "running"}, 'unless: must be "waiting" or "busy", not \'running\''),
        ({"unless": "busy", "on_conflict": "log"}, "on_conflict: must be"),
        ({"on_conflict": 7}, "on_conflict: must be"),
        ({"unless": ["busy"]}, "unless: must be"),
    ],
)
def test_a_push_says_something_else(app: Lowkiq, queue_name: str, fields: dict[str, Any], text: str) -> None:
    """It is refused, with the choices, and nothing is written."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=text):
        worker.push_many([{"id": 1}, {"id": 2, **fields}])
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"unique": "busy"}, "must be a Unique"),
        ({"unique": Unique("busy", on_conflict="replace"), "merge": "latest"}, "the score decides"),
    ],
)
def test_u3_a_declaration_says_something_else(app: Lowkiq, queue_name: str, fields: dict[str, Any], text: str) -> None:
    """U-3: it is refused at once."""
    with pytest.raises(DeclarationError, match=text):
        declare(app, queue_name, Notes(), **fields)
    with pytest.raises(DeclarationError, match="on_conflict of a Unique must be"):
        Unique("busy", on_conflict="log")  # type: ignore[arg-type]  # that is the mistake


def test_with_merge_latest_a_push_may_be_dropped_and_replaces_nothing(app: Lowkiq, queue_name: str) -> None:
    """There the score decides which payload stays."""
    worker = declare(app, queue_name, Notes(), merge="latest")
    worker.push(1, "a", score=1)

    assert "waiting" == worker.push(1, "b", score=2, unless="waiting").dropped
    with pytest.raises(JobError, match="makes no sense"):
        worker.push(1, "b", score=3, on_conflict="replace")


def test_a_receiving_shard_says_that_it_moves(app: Lowkiq, server: Server, queue_name: str, make_app: MakeApp) -> None:
    """It does not know yet whether the id has work: the push waits for the end of the step, as one with a key does."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=1)
    worker.push(1, "old")
    app.drain()
    moving = HandMade(server, app, queue_name)
    moving.begin(2)
    moving.close(0)
    other = declare(make_app(), queue_name, Notes(), shards_count=1)

    with pytest.raises((BackendUnavailable, PushInterrupted)):
        other.push(1, "new", unless="busy")
    moving.open(0)
    moving.end()
    assert "" == other.push(1, "new", unless="busy").dropped


def test_a_waiting_id_is_a_conflict_after_a_move(app: Lowkiq, queue_name: str) -> None:
    """The shard that has it now answers, to a client that knows only the old ones, too."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    ids = [str(number) for number in range(10)]
    worker.push_many([{"id": id_, "payload": "old", "delay": timedelta(minutes=1)} for id_ in ids])

    app.operate(worker).reshard(to=3)

    assert ["waiting"] * 10 == [one.dropped for one in worker.push_many(unless_busy(*ids))]


class Done:
    """An observer that counts the ids whose settling Redis has acknowledged."""

    def __init__(self) -> None:
        self.ids = 0

    def settled(self, event: SettledEvent) -> None:
        """Count."""
        self.ids += event.counts.get("done", 0)


def test_a_push_that_comes_after_the_settling_is_stored(make_app: MakeApp, queue_name: str) -> None:
    """Never lost and dropped: one thread pushes, one drains, and what is stored runs.

    A push that begins once all that was stored is settled is never dropped.
    """
    app, producer, notes, done = make_app(), make_app(), Notes(), Done()
    app.observers.append(done)
    worker = declare(app, queue_name, notes)
    pusher = declare(producer, queue_name, Notes())
    is_over = threading.Event()

    def drain() -> None:
        while not is_over.is_set():
            app.drain()

    thread = threading.Thread(target=drain)
    thread.start()
    stored: list[int] = []
    dropped: list[tuple[int, int]] = []
    for number in range(PUSHES):
        before = done.ids
        if pusher.push(1, number, unless="busy").dropped:
            dropped.append((before, len(stored)))
        else:
            stored.append(number)
    is_over.set()
    thread.join()
    app.drain()

    assert [[number] for number in stored] == [batch["1"] for batch in notes.batches]
    assert 0 < len(stored) < PUSHES
    assert all(done_before < stored_before for done_before, stored_before in dropped)
    assert {} == left_behind(app, worker)
