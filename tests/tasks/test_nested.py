"""Tasks within tasks, and iterables that become items."""

from collections.abc import Callable, Iterator

import pytest

from lowkiq_lambda import Batch, Conflict, Lowkiq, Rejected, SplitInterrupted, TaskClosed, Unique, Worker
from lowkiq_lambda.base.errors import BackendUnavailable, PushInterrupted
from lowkiq_lambda.tasks.task import Split, Task
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler, Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.tasks.dying import Calls, watched
from tests.tasks.watching import counts

DAY = 86_400.0


@pytest.fixture
def made(app: Lowkiq, callback: type[Worker]) -> Callable[..., Task]:
    """Makes a task, below another one if there is one, whose callbacks have its name."""

    def make(name: str, parent: Task | None = None) -> Task:
        new = parent.task if parent else app.task
        return new(
            name,
            (callback, f"{name} complete"),
            on_success=(callback, f"{name} success"),
            on_failure=(callback, f"{name} failure"),
        )

    return make


def payloads(told: Notes) -> list[str]:
    """Of the callbacks, sorted: those of two tasks have no order."""
    return sorted(payload for batch in told.batches for own in batch.values() for payload in own)


def upkeep(app: Lowkiq) -> None:
    """A run of the duty."""
    app.tasks.upkeep(lambda: 10.0)


def test_a_parent_is_complete_once_all_tasks_below_it_are(
    app: Lowkiq, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """Its own items and those of three levels; each task has its callbacks once."""
    worker = declare(app, queue_name, Notes())
    parent = made("parent")
    child = made("child", parent)
    grandchild = made("grandchild", child)
    for task in (parent, child):
        task.push_many(worker, jobs_of(task.id))
        task.close()
    app.drain()
    before = payloads(told), parent.progress().state, child.progress().state
    grandchild.push_many(worker, jobs_of("z"))
    grandchild.close()
    app.drain()
    app.drain()

    names = ("parent", "child", "grandchild")
    assert ([], "closed", "closed") == before
    assert sorted(f"{name} {end}" for name in names for end in ("complete", "success")) == payloads(told)
    assert {child.id: "succeeded"} == parent.progress().children
    assert (parent.id, {grandchild.id: "succeeded"}) == (child.progress().parent, child.progress().children)


def test_a_failure_goes_up_once_to_each_ancestor(
    app: Lowkiq, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """Two children fail: the tasks above are told of the first; nothing above succeeds."""
    worker = declare(app, queue_name, Notes(raising(Rejected("no"))))
    top = made("top")
    middle = made("middle", top)
    low, other = made("low", middle), made("other", middle)
    for task in (low, other, middle, top):
        if task in {low, other}:
            task.push_many(worker, jobs_of(task.id))
        task.close()
        app.drain()
    app.drain()

    failed = [f"{name} {end}" for name in ("top", "middle", "low", "other") for end in ("complete", "failure")]
    assert sorted(failed) == payloads(told)
    assert all(task.progress().failed_at is not None for task in (top, middle, low, other))


def test_parents_succeed_when_what_was_dead_below_is_done(
    app: Lowkiq, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """The success goes up as the failure did, though all were complete."""
    handler = FailingHandler()
    handler.failing = {"a"}
    worker = declare(app, queue_name, handler, max_retry_count=0)
    top = made("top")
    child = made("child", top)
    child.push_many(worker, jobs_of("a"))
    child.close()
    top.close()
    app.drain()
    app.drain()
    states = [task.progress().state for task in (top, child)]
    handler.failing = set()
    app.operate(worker).morgue.requeue(everything=True)
    app.drain()
    app.drain()

    ends = [f"{name} {end}" for name in ("top", "child") for end in ("complete", "failure", "success")]
    assert ["completed"] * 2 == states
    assert sorted(ends) == payloads(told)


def test_a_task_without_callbacks_of_its_own_tells_those_above(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """It only carries on what its items came to."""
    good, bad = declare(app, queue_name, Notes()), declare(app, f"{queue_name}-2", Notes(raising(Rejected("no"))))
    for worker in (good, bad):
        top = app.task("top", on_success=(callback, "success"), on_failure=(callback, "failure"))
        with top, top.task("middle") as middle, middle.task("low") as low:
            low.push_many(worker, jobs_of("a"))
        app.drain()
        app.drain()

    assert ["failure", "success"] == payloads(told)


def test_a_failure_whose_callback_above_is_of_another_app_is_told_by_that(
    make_app: MakeApp, queue_name: str, told: Notes
) -> None:
    """Whoever sees the failure notes it only once all above know."""
    owner, other = make_app(), make_app()
    callback = declare(owner, f"{queue_name}-callback", told)
    declare(owner, queue_name, Notes())
    worker = declare(other, queue_name, Notes(raising(Rejected("no"))))
    parent = owner.task("parent", on_failure=(callback, "failure"))
    child = parent.task("child")
    other.tasks.get(child.id).push_many(worker, jobs_of("a"))
    other.drain()
    upkeep(other)
    before = child._operations.records.get(child.id).record.failed_at
    upkeep(owner)
    owner.drain()

    assert (None, ["failure"]) == (before, payloads(told))
    assert child.progress().failed_at is not None


def test_a_running_item_may_make_tasks_below_its_closed_task(
    app: Lowkiq, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """Nobody else may; and the parent waits for it."""
    inner = declare(app, f"{queue_name}-2", Notes())

    def handler(batch: Batch) -> None:
        ((parent_id,),) = batch.values()
        with made("child", app.tasks.get(parent_id)) as child:
            child.push_many(inner, jobs_of("b"))

    worker = declare(app, queue_name, handler)
    with made("parent") as parent:
        parent.push(worker, "a", parent.id)
    with pytest.raises(TaskClosed, match="from its own running items"):
        parent.task("stranger")
    app.drain()
    app.drain()

    ends = [f"{name} {end}" for name in ("parent", "child") for end in ("complete", "success")]
    assert sorted(ends) == payloads(told)


def test_cancelling_a_parent_cancels_all_below(
    app: Lowkiq, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """Their waiting items are deleted, and nobody's callback is pushed."""
    worker = declare(app, queue_name, Notes())
    parent = made("parent")
    child = made("child", parent)
    grandchild = made("grandchild", child)
    for task in (parent, child, grandchild):
        task.push_many(worker, jobs_of(task.id))

    left = parent.cancel()
    app.drain()

    assert (0, []) == (left, payloads(told))
    assert [("cancelled", {"cancelled": 16})] * 3 == [
        (task.progress().state, counts(task)) for task in (parent, child, grandchild)
    ]
    assert {child.id: "cancelled"} == parent.progress().children


def test_the_duty_goes_on_with_a_cancel_that_had_no_time(
    app: Lowkiq, queue_name: str, made: Callable[..., Task]
) -> None:
    """Tasks below are cancelled within a minute."""
    worker = declare(app, queue_name, Notes())
    parent = made("parent")
    child = made("child", parent)
    child.push_many(worker, jobs_of("abc"))

    left = parent.cancel(0)
    upkeep(app)
    upkeep(app)

    assert 3 == left
    assert [("cancelled", None)] * 2 == [(one.state, one.next_poll) for one in (parent.progress(), child.progress())]
    assert {"cancelled": 3} == counts(child)


def test_a_task_has_a_thousand_below_it_and_eight_levels(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond these: TaskClosed, and the task goes on as it was."""
    monkeypatch.setattr("lowkiq_lambda.tasks.operations.MOST_CHILDREN", 3)
    wide = app.task("wide")
    for number in range(3):
        wide.task(f"child {number}")
    with pytest.raises(TaskClosed, match="has 3 tasks below it"):
        wide.task("one more")
    deep = [app.task("top")]
    for level in range(7):
        deep.append(deep[-1].task(f"level {level}"))
    with pytest.raises(TaskClosed, match="8 levels"):
        deep[-1].task("too deep")

    assert (3, {}) == (len(wide.progress().children), deep[-1].progress().children)


def test_a_task_below_is_kept_as_long_as_its_parent(app: Lowkiq, clock: ManualClock) -> None:
    """Of the two times the later one counts."""
    parent = app.task("parent", expires_in=20 * DAY)
    short, long = parent.task("short", expires_in=DAY), parent.task("long", expires_in=40 * DAY)
    for task in (short, long, parent):
        task.close()

    now = clock.time()
    assert [20, 40, 20] == [round((task.progress().expires_at - now) / DAY) for task in (short, long, parent)]


@pytest.mark.parametrize("answered", [False, True])
def test_a_process_that_dies_while_it_makes_a_task_below_keeps_nobody_waiting_for_ever(
    make_app: MakeApp, clock: ManualClock, queue_name: str, told: Notes, *, answered: bool
) -> None:
    """Between record and first push: an open task without a push is abandoned after a day; its parent goes on."""
    counted = Calls()

    def scenario(name: str, calls: Calls) -> list[str]:
        told.clear()
        dying, app = make_app(), make_app()
        for one in (dying, app):
            declare(one, f"{name}-callback", told)
            declare(one, name, Notes())
        callback, worker = dying.core.queues[f"{name}-callback"].worker, dying.core.queues[name].worker
        parent = dying.task("parent", (callback, "complete"), on_success=(callback, "success"))
        with watched(dying, calls):
            child = parent.task("child")
            child.push_many(worker, jobs_of("a"))
            child.close()
        survivor = app.tasks.get(parent.id)
        survivor.close()
        app.drain()
        for _ in range(32):
            upkeep(app)
            clock.advance(DAY)
            app.drain()
        return payloads(told)

    assert ["complete", "success"] == scenario(queue_name, counted)
    for number in range(len(counted.names)):
        ends = scenario(f"{queue_name}-{number}", Calls(number, answered=answered))
        assert "complete" == ends[0], f"call {number}: {counted.names[number]}"
        assert ends.count("complete") == 1


def test_a_task_below_that_its_parent_refuses_leaves_nothing(app: Lowkiq) -> None:
    """Its record was written before."""
    parent = app.task("parent")
    parent.close()
    with pytest.raises(TaskClosed):
        parent.task("child")

    assert ["parent"] == [one.name for one in app.tasks.list().tasks]


def test_a_parent_waits_for_a_task_below_longer_than_it_would_be_kept(
    app: Lowkiq, clock: ManualClock, queue_name: str, told: Notes, made: Callable[..., Task]
) -> None:
    """As long as that is pushed to."""
    worker = declare(app, queue_name, Notes())
    parent = made("parent")
    child = made("child", parent)
    parent.close()
    for number in range(3):
        clock.advance(20 * DAY)
        child.push(worker, str(number))
        app.drain()
        upkeep(app)
    child.close()
    app.drain()

    assert {"parent complete", "parent success"} <= {*payloads(told)}


def test_items_of_a_task_below_keep_params_as_its_parent_does(app: Lowkiq, queue_name: str) -> None:
    """Unless it says otherwise."""
    worker = declare(app, queue_name, Notes())
    parent = app.task("parent", keep_params=True)
    tasks = [parent.task("same"), parent.task("other", keep_params=False)]
    for task in tasks:
        task.push(worker, task.id, {"x": 1})

    assert ['{"x":1}', None] == [task.items().items[0].params for task in tasks]


def test_split_pushes_an_iterable_in_parts(app: Lowkiq, queue_name: str) -> None:
    """Ids, labels and payloads by number; 1,000 items at a time, read as they are pushed."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    pulled: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(2_003):
            pulled.append(number)
            yield number

    task = app.task("import")
    first = task.split(worker, rows(), id="whole", size=2)
    items = task.items(limit=1_000).items
    own = task.split(
        worker, "abc", id="own", payload=lambda rows, first: [first, *rows], label=lambda _, first: f"line {first}"
    )

    assert (Split(1_002, 2_003), Split(3, 3)) == (first, own)
    assert [("whole:0001", "rows 1-2"), ("whole:0002", "rows 3-4")] == [(one.id, one.label) for one in items[:2]]
    assert 2_003 == len(pulled)
    last = app.operate(worker).waiting.fetch(["whole:1002", "own:0003"])
    assert [{"rows": [2_002], "first": 2_003}, [3, "c"]] == [job.payloads[0].payload for job in last]
    assert "open" == task.progress().state
    assert Split(0, 0) == task.split(worker, [], id="none")


def test_a_split_that_broke_off_goes_on(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many rows are done, which the next call skips."""
    worker = declare(app, queue_name, Notes())
    task = app.task("import")
    push, pushed = Task.push_many, []

    def breaking(self: Task, *args: object) -> object:
        pushed.append(1)
        if len(pushed) == 2:
            raise BackendUnavailable("no connection")
        return push(self, *args)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(Task, "push_many", breaking)
    with pytest.raises(SplitInterrupted, match="2,000 rows are pushed: no connection") as interrupted:
        task.split(worker, range(3_000), id="rows", size=2)
    rest = task.split(worker, range(3_000), id="rows", size=2, skip=interrupted.value.rows_done)

    assert (2_000, Split(500, 1_000)) == (interrupted.value.rows_done, rest)
    assert 1_500 == task.progress().total
    assert 1_500 == app.operate(worker).waiting.count()
    for size, skip in ((0, 0), (2, 1), (1, -1)):
        with pytest.raises(ValueError, match=r"size|skip"):
            task.split(worker, [1], id="rows", size=size, skip=skip)


@pytest.mark.parametrize("taken", ["rows:0001", "rows:1002"])
def test_a_split_with_conflicts_counts_the_rows_that_it_has_written(app: Lowkiq, queue_name: str, taken: str) -> None:
    """Those of the push that raised, too: what goes on behind them pushes none twice."""
    worker = declare(app, queue_name, Notes(), unique=Unique(on_conflict="raise"))
    worker.push(taken)
    task = app.task("import")
    with pytest.raises(SplitInterrupted, match="rows are pushed") as interrupted:
        task.split(worker, range(1_003), id="rows")
    error = interrupted.value
    rest = task.split(worker, range(1_003), id="rows", skip=error.rows_done)

    assert isinstance(error.__cause__, Conflict)
    assert 1_003 == error.rows_done + rest.rows
    assert (1_003, 1) == (task.progress().total, task.progress().counts["merged"])
    assert 1_003 == app.operate(worker).waiting.count()


def test_a_split_whose_first_push_is_refused_raises_that(app: Lowkiq, queue_name: str) -> None:
    """Nothing was written, so there is nothing to skip."""
    worker = declare(app, queue_name, Notes())
    task = app.task("import")
    task.close()
    with pytest.raises(TaskClosed):
        task.split(worker, [1], id="rows")
    assert not issubclass(SplitInterrupted, PushInterrupted)
