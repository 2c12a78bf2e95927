"""Tracking: what becomes of an item by each script that moves its job (A-23 to A-40, P1, P2, D-10)."""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Batch, Later, Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, FailingHandler, Notes, failing, raising
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare

Track: TypeAlias = Callable[..., tuple[type[Worker], TaskOfTests]]
"""A worker of one shard for a handler, and a task for it."""


@pytest.fixture
def track(app: Lowkiq, server: Server, queue_name: str) -> Track:
    """Makes a worker of one shard and a task for it."""

    def make(handler: Callable[[Batch], object], **fields: Any) -> tuple[type[Worker], TaskOfTests]:
        worker = declare(app, queue_name, handler, **fields)
        return worker, TaskOfTests(worker, server.admin)

    return make


def test_a31_an_item_is_enqueued_then_running_then_done(app: Lowkiq, track: Track) -> None:
    """A-27, A-31: each status is seen while it lasts; once nothing is open the shard does nothing more for tasks."""
    seen = []
    worker, task = track(Notes(lambda _batch: seen.append(task.statuses)), batch_size=2)
    task.push_many((1, "a", "one"), (2, "b", "two"))

    before, was_in_use = task.statuses, task.is_in_use
    app.drain()

    assert ({"one": "e", "two": "e"}, True) == (before, was_in_use)
    assert [{"one": "r", "two": "r"}] == seen
    assert {"one": Item("d", "1", 1), "two": Item("d", "2", 1)} == task.items
    assert not task.is_in_use
    (untracked,) = worker.push_many([{"id": 3}])
    assert not untracked.repeated


def test_p2_a_tracked_push_is_applied_once_however_late_it_is_repeated(app: Lowkiq, track: Track) -> None:
    """P2: also after the job has run; the answer says `repeated`, and nothing is performed."""
    notes = Notes()
    _, task = track(notes)
    task.push_many((1, "a", "one"))
    waiting = task.push_again()
    app.drain()

    late = task.push_again()
    app.drain()

    assert [True, True] == [pushed.repeated for pushed in (*waiting, *late)]
    assert [{"1": ["a"]}] == notes.batches
    assert {"one": Item("d", "1", 1)} == task.items


def test_an_item_whose_key_was_pushed_before_goes_into_that_job(app: Lowkiq, track: Track) -> None:
    """The job is not performed again, and its item does not wait for anything: it ends as merged."""
    notes = Notes()
    worker, task = track(notes)
    worker.push_many([{"id": 1, "payload": "a", "key": "evt-1"}])

    pushed = task.push_many((1, "a", "one"), key="evt-1") + task.push_again()
    app.drain()

    assert [True, True] == [one.repeated for one in pushed]
    assert {"one": Item("m", "1")} == task.items
    assert [{"1": ["a"]}] == notes.batches


@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_a40_items_whose_payloads_merge_share_their_fate(
    app: Lowkiq, clock: ManualClock, track: Track, merge: str
) -> None:
    """A-40: whichever payload is kept, of those that wait, and of those that come back from a failure."""
    notes = Notes(failing("1"))
    _, task = track(notes, merge=merge)
    task.push_many((1, "a", "one"), (1, "a", "two"), (1, "b", "three"))
    notes.then = lambda batch: (task.push_many((1, "a", "four")), failing("1")(batch))
    app.drain()

    retried = task.items
    notes.then = None
    clock.advance(100)
    app.drain()

    new = Item("e", "1")
    failed = new._replace(attempts=1, messages=("1 is broken",))
    assert {"one": failed, "two": failed, "three": failed, "four": new} == retried
    done = {"one": 2, "two": 2, "three": 2, "four": 1}
    assert done == {label: item.attempts for label, item in task.items.items()}
    assert {"d"} == {*task.statuses.values()}


def test_a40_items_of_two_tasks_may_have_one_payload(app: Lowkiq, server: Server, track: Track) -> None:
    """A-40: each task is told of its own item, and an untracked push beside them of none."""
    worker, task = track(Notes())
    other = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"))
    worker.push_many([{"id": 1, "payload": "a"}])
    other.push_many((1, "a", "its one"))

    app.drain()

    assert ({"one": "d"}, {"its one": "d"}) == (task.statuses, other.statuses)


def test_a40_beyond_4096_items_of_one_payload_an_item_goes_into_the_first(app: Lowkiq, track: Track) -> None:
    """A-40: it ends as merged at once, and the others are performed."""
    _, task = track(Notes())
    task.push_many(*((1, "a", str(number)) for number in range(4_098)))

    before = task.statuses
    app.drain()

    rest = {"4096": "m", "4097": "m"}
    assert dict.fromkeys(map(str, range(4_096)), "e") | rest == before
    assert dict.fromkeys(map(str, range(4_096)), "d") | rest == task.statuses


def test_a33_a_retry_tells_its_error_and_counts_an_attempt(app: Lowkiq, clock: ManualClock, track: Track) -> None:
    """A-29, A-33, A-38: the messages of all attempts stay; the one that succeeds is an attempt, too."""
    notes = Notes(raising(Broken("no luck")))
    _, task = track(notes)
    task.push_many((1, "a", "one"))
    for words in ("no luck", "bad luck"):
        notes.then = raising(Broken(words))
        app.drain()
        clock.advance(100)

    notes.then = None
    app.drain()

    assert {"one": Item("d", "1", 3, ("no luck", "bad luck"))} == task.items


def test_a38_an_item_keeps_its_first_ten_messages_and_its_last_forty(
    app: Lowkiq, clock: ManualClock, track: Track
) -> None:
    """A-38: 200 characters of each, and of each run two lines: that it began, and its error."""
    notes = Notes()
    _, task = track(notes, max_retry_count=40)
    task.push_many((1, "a", "one"))
    for number in range(30):
        notes.then = raising(Broken(f"{number} " + "long" * 100))
        app.drain()
        clock.advance(100_000)

    messages = task.items["one"].messages

    # The first of the ten is that it was pushed.
    assert [*range(4), *range(10, 30)] == [int(message.split()[0]) for message in messages]
    assert {200} == {len(message) for message in messages}


def test_a32_each_interruption_is_noted(app: Lowkiq, track: Track) -> None:
    """A-32: what exits is enqueued again, and counts no attempt, however often in a row."""
    notes = Notes(lambda _batch: sys.exit(1))
    _, task = track(notes)
    task.push_many((1, "a", "one"))

    for _ in range(2):
        with pytest.raises(SystemExit):
            app.drain()

    assert {"one": Item("e", "1", 0, ("interrupted", "interrupted"))} == task.items


def test_a_failure_in_company_is_told_and_counts_nobody(app: Lowkiq, track: Track) -> None:
    """Ids of an error that names nobody run alone first; only that counts."""
    notes = Notes(lambda batch: raising()(batch) if len(batch) > 1 else None)
    _, task = track(notes, batch_size=2)
    task.push_many((1, "a", "one"), (2, "b", "two"))

    app.drain()

    assert {Item("d", id_, 1, ("failed in company",)) for id_ in "12"} == {*task.items.values()}


def test_what_is_put_off_says_so(app: Lowkiq, clock: ManualClock, track: Track) -> None:
    """A job that raises Later waits as enqueued, with a message, and has not failed."""
    notes = Notes(raising(Later(60)))
    _, task = track(notes)
    task.push_many((1, "a", "one"))
    app.drain()
    clock.advance(61)

    put_off = task.items
    notes.then = None
    app.drain()

    assert {"one": Item("e", "1", 0, ("goes on later",))} == put_off
    assert {"one": Item("d", "1", 1, ("goes on later",))} == task.items


def test_what_a_dead_process_left_waits_again(app: Lowkiq, clock: ManualClock, track: Track) -> None:
    """Its item says that its process ended; a push that came meanwhile joins it."""
    mortal, notes = Mortal(app), Notes()
    worker, task = track(notes)
    notes.then = mortal.die
    task.push_many((1, "a", "one"))
    mortal.drain()
    running = task.statuses
    task.push_many((1, "a", "two"))
    outlive(app, clock, worker)

    notes.then = None
    app.drain()

    assert {"one": "r"} == running
    assert {"one": Item("d", "1", 1, ("its process ended",)), "two": Item("d", "1", 1)} == task.items


def test_the_third_counted_crash_is_the_death_of_the_item(app: Lowkiq, clock: ManualClock, track: Track) -> None:
    """A payload whose process died three times goes to the morgue with its items, which say why."""
    mortal = Mortal(app)
    worker, task = track(Notes(mortal.die))
    task.push_many((1, "a", "one"))
    for _ in range(4):
        mortal.drain()
        outlive(app, clock, worker)

    app.drain()

    item = task.items["one"]
    assert ("x", 1) == (item.status, item.attempts)
    assert "its process ended" == item.messages[0]
    assert "died" in item.messages[-1]


def test_what_dies_is_dead_and_the_rest_starts_anew(app: Lowkiq, track: Track) -> None:
    """L-23: the oldest payload goes to the morgue with its items; those of the others are enqueued again."""
    handler = FailingHandler()
    handler.failing = {"1"}
    _, task = track(handler, max_retry_count=0)
    seen: list[dict[str, str]] = []
    handler.then = lambda _batch: seen.append(task.statuses)
    task.push_many((1, "a", "one"), (1, "b", "two"))

    app.drain()

    told = ("1 is broken",)
    assert [{"one": "r", "two": "r"}, {"one": "x", "two": "r"}] == seen
    assert {"one": Item("x", "1", 1, told), "two": Item("x", "1", 2, told * 2)} == task.items


def test_an_operator_kills_and_requeues(app: Lowkiq, server: Server, track: Track) -> None:
    """Kill makes items dead, the way back from the morgue enqueues them and counts that for their task."""
    handler = FailingHandler()
    worker, task = track(handler)
    handler.failing = {"1"}
    task.push_many((1, "a", "one"))
    app.drain()
    queue = app.operate(worker)

    queue.waiting.kill(everything=True)
    killed = task.statuses
    queue.morgue.requeue(["1"])

    assert {"one": "x"} == killed
    messages = ("1 is broken", "killed by an operator", "requeued")
    assert {"one": Item("e", "1", 1, messages)} == task.items
    (shard,) = app.core.queues.agreed(worker).shards
    assert b"1" == server.admin.hget(shard.using(("tracking",)).key("rows"), b"v" + task.id)


def test_what_is_deleted_is_cancelled(app: Lowkiq, track: Track) -> None:
    """Where it waits, and where it lies in the morgue; then nothing of the shard is tracked."""
    handler = FailingHandler()
    worker, task = track(handler, max_retry_count=0)
    handler.failing = {"1"}
    task.push_many((1, "a", "one"))
    app.drain()
    task.push_many((2, "b", "two"), (2, "c", "three"))
    before = task.statuses

    app.operate(worker).waiting.delete(["2"])
    app.operate(worker).morgue.delete(["1"])

    assert {"one": "x", "two": "e", "three": "e"} == before
    assert {"one": "c", "two": "c", "three": "c"} == task.statuses
    assert not task.is_in_use


def test_what_the_bounds_of_the_morgue_remove_stays_dead(
    make_app: Callable[..., Lowkiq], server: Server, queue_name: str
) -> None:
    """Its payload is gone, so nothing can put it back; its item tells how it ended."""
    app = make_app(morgue=MorgueLimits(entries=1))
    handler = FailingHandler()
    worker = declare(app, queue_name, handler, max_retry_count=0)
    task = TaskOfTests(worker, server.admin)
    handler.failing = {"1", "2"}
    task.push_many((1, "a", "one"), (2, "b", "two"))

    app.drain()
    app.operate(worker).morgue.delete(["1", "2"])

    assert ["c", "x"] == sorted(task.statuses.values())
    assert not task.is_in_use
