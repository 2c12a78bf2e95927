"""A-26, A-31, A-33, A-38: an item has its params and times, and the whole course with times."""

import pytest

from lowkiq_lambda import Batch, Later, Lowkiq, Rejected, Worker
from lowkiq_lambda.store.shard.keys import TRACKING
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import Item, Message
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of


def item_of(task: Task) -> Item:
    """The only one."""
    (item,) = task.items().items
    return item


def kinds(item: Item) -> list[str]:
    """Of its messages."""
    return [message.kind for message in item.messages]


def test_a31_each_status_is_a_message_with_its_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A-31, A-33: pushed, begun, failed and tried again, done; with the texts of its error and its notes."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    at = clock.time()
    with app.task("export") as task:
        task.push_many(worker, jobs_of("a"))
    clock.advance(1.5)
    app.drain()
    clock.advance(60.0)
    notes.then = lambda batch: batch.note("a", "offered")
    app.drain()

    item = item_of(task)

    assert (
        Message(at, "", "enqueued"),
        Message(at + 1.5, "", "working"),
        Message(at + 1.5, "broken", "retried"),
        Message(at + 61.5, "", "working"),
        Message(at + 61.5, "offered", "note"),
        Message(at + 61.5, "", "done"),
    ) == item.messages
    assert (at, at + 1.5, at + 61.5, 60.0) == (item.enqueued_at, item.began_at, item.ended_at, item.took)
    assert "offered" == item.text


@pytest.mark.parametrize(
    ("error", "most", "expected"),
    [
        (Rejected("no"), 3, ("failed", "no")),
        (OSError("no"), 0, ("dead", "no")),
        (Later(5), 3, ("later", "goes on later")),
    ],
)
def test_the_kind_tells_how_a_run_ended(
    app: Lowkiq, queue_name: str, error: Exception, most: int, expected: tuple[str, str]
) -> None:
    """A business failure, the last of an error, and what goes on later."""
    worker = declare(app, queue_name, Notes(raising(error)), max_retry_count=most)
    with app.task("export") as task:
        task.push_many(worker, jobs_of("a"))
    app.drain()

    item = item_of(task)

    assert expected == (item.messages[-1].kind, item.messages[-1].text.split(": ")[-1].splitlines()[0])
    assert (expected[0] == "later") == (item.ended_at is None)


def test_what_operators_do_is_a_message(app: Lowkiq, queue_name: str) -> None:
    """A death, its requeue, a payload that was edited, a deletion and its undoing."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0)
    operate = app.operate(worker)
    task = app.task("export", keep_params=True)
    task.push(worker, "a", {"x": 1})
    app.drain()

    operate.morgue.requeue(["a"])
    operate.edit("a", operate.payloads("a")[0].arrival, {"x": 2}, reason="a test")
    deleted = operate.waiting.delete(["a"])
    cancelled = item_of(task)
    operate.undo(deleted.action_id)

    item = item_of(task)
    assert ("cancelled", "cancelled") == (cancelled.status, kinds(cancelled)[-1])
    assert ["enqueued", "working", "dead", "requeued", "note", "cancelled", "enqueued"] == kinds(item)
    assert ["edited", "", "put back"] == [message.text for message in item.messages[-3:]]
    assert ('{"x":1}', None) == (item.params, item.ended_at)


def test_of_many_messages_the_first_ten_and_the_last_forty_stay(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A-38: and it is told how many did not. Of the notes of one run the last forty count."""

    def handler(batch: Batch) -> None:
        for number in range(60):
            batch.note("a", str(number))
        raise Broken("broken")

    worker = declare(app, queue_name, handler)
    task = app.task("export")
    task.push(worker, "a")
    for _ in range(2):
        app.drain()
        clock.advance(60.0)

    item = item_of(task)

    # Pushed; and twice begun, 40 notes, failed.
    texts = [message.text for message in item.messages]
    assert (50, 1 + 2 * 42 - 50) == (len(texts), item.messages_left_out)
    assert ["", "", *map(str, range(20, 28))] == texts[:10]
    assert [*map(str, range(21, 60)), "broken"] == [text.splitlines()[0] for text in texts[10:]]


def test_what_goes_on_later_many_times_keeps_its_first_failure(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A run that ends as the one before is told in its place, with its own times; each failure is told."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    task = app.task("export")
    task.push(worker, "a")
    for run in range(62):
        app.drain()
        clock.advance(60.0)
        notes.then = raising(Later(60)) if run < 60 else raising()

    item = item_of(task)

    ends = [("retried", 62), ("later", 2), ("retried", 1)]
    runs = [message for kind, minutes in ends for message in (("working", minutes), (kind, minutes))]
    ago = [(one.kind, round((clock.time() - (one.at or 0.0)) / 60)) for one in item.messages]
    assert [("enqueued", 62), *runs] == ago
    assert 0 == item.messages_left_out


def test_a_note_of_the_same_text_is_told_with_its_last_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Another text between two stays between them."""

    def handler(batch: Batch) -> None:
        for text in ("one", "two", "one"):
            for _ in range(3):
                clock.advance(1.0)
                batch.note("a", text)

    worker = declare(app, queue_name, handler)
    task = app.task("export")
    task.push(worker, "a")
    app.drain()

    assert ["one", "two", "one"] == [one.text for one in item_of(task).messages if one.kind == "note"]


@pytest.mark.parametrize("size", [10, 1_024, 1_025, 5_000])
def test_a26_params_are_the_payload_up_to_a_kibibyte(app: Lowkiq, queue_name: str, size: int) -> None:
    """Of a longer one the first KiB, cut between letters, and its length; without the option nothing."""
    worker = declare(app, queue_name, Notes())
    task, other = app.task("export", keep_params=True), app.task("other")
    payload = "ü" * ((size - 2) // 2) + "x" * (size % 2)
    for one in (task, other):
        one.push(worker, "a", payload, item="row")

    item = item_of(task)

    text = f'"{payload}"'
    assert (text.encode()[:1_024].decode(errors="ignore"), size) == (item.params, item.params_size)
    assert ("row", None, None) == (item.label, item_of(other).params, item_of(other).params_size)


def test_an_item_that_ended_as_it_was_pushed_never_ran(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It merged into the job that has its key."""
    worker = declare(app, queue_name, Notes())
    worker.push("a", 1, key="evt")
    task = app.task("export")
    task.push(worker, "a", 1, key="evt")

    item = item_of(task)

    assert [Message(clock.time(), "", "merged")] == [*item.messages]
    assert (None, clock.time(), None) == (item.began_at, item.ended_at, item.took)


def test_a_row_of_the_first_form_is_read_and_goes_on(app: Lowkiq, server: Server, queue_name: str) -> None:
    """A row that a version without times wrote has its texts; what comes later is added as that version did."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    task = app.task("export")
    task.push(worker, "a", item="row")
    (shard,) = app.core.queues.agreed(worker).shards
    rows = shard.using((TRACKING,)).key("rows")
    ((field, _),) = server.admin.hgetall(rows).items()
    # An open row of the id "a" with one attempt, that has failed and whose process ended.
    old = b"\x85\xa1s\xa1e\xa1i\xa1a\xa1k\xa3row\xa1n\x01\xa1m\x92\xa6broken\x03"
    server.admin.hset(rows, field, old)

    before = item_of(task)
    app.drain()
    after = item_of(task)

    texts = ["broken", "its process ended"]
    assert [Message(None, text, "note") for text in texts] == [*before.messages]
    assert [*texts, "broken"] == [message.text for message in after.messages]
    assert ("row", 2, None, None) == (after.label, after.attempts, after.enqueued_at, after.ended_at)


def test_errors_come_with_the_counts_in_one_round_trip(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A-36: the items that failed last, newest first, as many as were asked for."""

    def handler(batch: Batch) -> None:
        for job_id in batch:
            batch.fail(job_id, Rejected(f"no {job_id}") if job_id < "d" else OSError(f"no {job_id}"))

    worker = declare(app, queue_name, handler, max_retry_count=0, shards_count=3)
    task = app.task("export")
    for letter in "abcdef":
        task.push(worker, letter, item=f"row {letter}")
        app.drain()
        clock.advance(1.0)
    calls: list[str] = []
    reader = type(app.operate(worker).reader)
    ask = reader.ask_each

    def note(self: object, name: str, *args: object) -> list[Reply]:
        calls.append(name)
        replies: list[Reply] = ask(self, name, *args)  # type: ignore[arg-type]  # as it was called
        return replies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "ask_each", note)
        progress = task.progress(errors=4)

    assert ["task_counts"] == calls
    assert [
        (6, "row f", "f", "dead"),
        (5, "row e", "e", "dead"),
        (4, "row d", "d", "dead"),
        (3, "row c", "c", "failed"),
    ] == [(error.number, error.label, error.id, error.status) for error in progress.errors]
    assert ["no c"] == [error.text for error in progress.errors[3:]]
    assert (queue_name, clock.time() - 1.0) == (progress.errors[0].queue_name, progress.errors[0].at)
    assert () == task.progress().errors
    for wrong in (-1, 101, True):
        with pytest.raises(ValueError, match="errors must be from 0 to 100"):
            task.progress(errors=wrong)


def test_a_run_in_flight_has_begun_and_not_ended(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its times while its handler has it."""
    seen: list[Item] = []
    task = app.task("export")
    worker: type[Worker] = declare(app, queue_name, Notes(lambda _batch: seen.append(item_of(task))))
    task.push(worker, "a")
    app.drain()

    assert [("running", clock.time(), None, ["enqueued", "working"])] == [
        (item.status, item.began_at, item.ended_at, kinds(item)) for item in seen
    ]
