"""A model of callbacks: a parent whose running item may make a task below it, and up to two looks at either of them.

Every order of steps is gone through, and a look may die between any two of them. The steps of a look are those of
`tasks/completion.py`: the record, the counts, the pushes, and each change of a record, one by one. The waves over
several shards are model.py's: here a count is one step. In each world the duty must be able to end what is left.
"""

from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Guard: TypeAlias = Literal[
    "version",
    "receipt",
    "one count",
    "children",
    "children succeed",
    "parent first",
    "failure up first",
    "goes on looking",
]
"""What keeps looks from a wrong answer, or a task from being stuck: each can be left out."""
Status: TypeAlias = Literal["none", "running", "done", "dead"]
Child: TypeAlias = Literal["none", "open", "completed", "succeeded"]
PARENT: Final = 0
CHILD: Final = 1
LOOKS: Final = 2


class Record(NamedTuple):
    """That of a closed task with all callbacks. `child`: the state of the one below it."""

    completing: bool = False
    completed: bool = False
    failed: bool = False
    succeeded: bool = False
    child: Child = "none"


class CallbackLook(NamedTuple):
    """A look at a task: its next step, the record as it was read, and whether its count is the first wave already.

    `is_current`: whether the record is still the one that is there.
    """

    task: int
    step: str = "read"
    record: Record = Record()
    is_current: bool = True
    has_counted: bool = False


class CallbackWorld(NamedTuple):
    """All that matters at one moment. `pushes`: (task, callback); `ever_dead`: whose item has been dead."""

    records: tuple[Record, Record] = (Record(), Record())
    items: tuple[Status, Status] = ("running", "none")
    put_back: int = 0
    pushes: tuple[tuple[int, str], ...] = ()
    ever_dead: tuple[bool, bool] = (False, False)
    looks: tuple[CallbackLook, ...] = ()


class CallbackModel:
    """The steps, but for one guard, of tasks with `on_success` or without, whose dead items are put back so often."""

    def __init__(self, without: Guard | None = None, *, has_success: bool = True, put_back: int = 1) -> None:
        self._without = without
        self._put_back = put_back
        self._has_success = has_success

    def violation(self) -> tuple[str, CallbackWorld] | None:
        """What is wrong in a world that can come about, and that; None where nothing ever is."""
        seen, todo = {CallbackWorld()}, deque([CallbackWorld()])
        ends: set[CallbackWorld] = set()
        while todo:
            for world in self._next(todo.popleft()):
                if world not in seen:
                    seen.add(world)
                    if wrong := _wrong(world._replace(looks=())):
                        return wrong, world
                    todo.append(world)
                    # However far its looks have come, they may all die now.
                    end = world._replace(looks=())
                    if "running" not in end.items and end not in ends and (stuck := self._stuck(end)):
                        return stuck, end
                    ends.add(end)
        return None

    def _stuck(self, world: CallbackWorld) -> str:
        """What the duty does not do, if nothing else happens any more."""
        tasks = [PARENT] if world.items[CHILD] == "none" else [CHILD, PARENT]
        for _ in range(4):
            for task in tasks:
                world = self._looked_alone(world, task)
        if wrong := _wrong(world):
            return wrong
        all_good = all(world.items[task] == "done" for task in tasks)
        for task in tasks:
            if (task, "complete") not in world.pushes or not world.records[task].completed:
                return "a task is never complete"
        good = {task for task in tasks if world.items[task] == "done" and (task == CHILD or all_good)}
        if self._has_success and good != {task for task, end in world.pushes if end == "success"}:
            return "a success is never told"
        dead = {task for task in tasks if "dead" in (world.items if task == PARENT else world.items[CHILD:])}
        if not dead <= {task for task, end in world.pushes if end == "failure"}:
            return "a failure is never told"
        return ""

    def _looked_alone(self, world: CallbackWorld, task: int) -> CallbackWorld:
        record = world.records[task]
        if record.completed and (record.succeeded or not self._has_success or self._without == "goes on looking"):
            return world
        world = world._replace(looks=(CallbackLook(task),))
        while world.looks:
            (world,) = self._of_look(world, 0)
        return world

    def _next(self, world: CallbackWorld) -> Iterator[CallbackWorld]:
        yield from self._of_items(world)
        for at in range(len(world.looks)):
            yield from self._of_look(world, at)
            yield self._with_looks(world, world.looks[:at] + world.looks[at + 1 :])
        if len(world.looks) < LOOKS:
            for task in (PARENT, CHILD):
                if world.items[task] != "none":
                    yield self._with_looks(world, (*world.looks, CallbackLook(task)))

    @staticmethod
    def _with_looks(world: CallbackWorld, looks: tuple[CallbackLook, ...]) -> CallbackWorld:
        # In one order: which of them is which does not matter.
        return world._replace(looks=tuple(sorted(looks)))

    def _of_items(self, world: CallbackWorld) -> Iterator[CallbackWorld]:
        for task, status in enumerate(world.items):
            if status == "running":
                yield self._became(world, task, "done")
                dead = list(world.ever_dead)
                dead[task] = True
                yield self._became(world, task, "dead")._replace(ever_dead=(dead[0], dead[1]))
            if status == "dead" and world.put_back < self._put_back:
                yield self._became(world, task, "running")._replace(put_back=world.put_back + 1)
        parent = world.records[PARENT]
        # A task takes items from its own running ones, until it is completing.
        if world.items == ("running", "none") and not parent.completing:
            yield self._became(self._changed(world, PARENT, child="open"), CHILD, "running")

    @staticmethod
    def _became(world: CallbackWorld, task: int, status: Status) -> CallbackWorld:
        items = list(world.items)
        items[task] = status
        return world._replace(items=(items[0], items[1]))

    def _of_look(self, world: CallbackWorld, at: int) -> Iterator[CallbackWorld]:
        look = world.looks[at]
        changed, after = getattr(self, f"_{look.step.replace(' ', '_')}")(world, look)
        others = changed.looks[:at] + changed.looks[at + 1 :]
        yield self._with_looks(changed, others if after is None else (*others, after))

    # Each step returns the world, and the look as it goes on, or None.

    def _read(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return world, look._replace(step="failure", record=world.records[look.task], is_current=True)

    def _failure(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        if look.record.failed:
            return world, look._replace(step="decide")
        status = world.items[look.task]
        if status == "dead":
            goes_up = look.task == CHILD and self._without != "failure up first"
            return world, look._replace(step="up" if goes_up else "push failure")
        if status == "running" and not look.record.completed and self._without != "one count":
            return world, None
        return world, look._replace(step="decide", has_counted=self._without != "one count")

    def _up(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        after = "push failure" if self._without != "failure up first" else "read"
        return world, look._replace(step=after if world.records[PARENT].failed else "push up")

    def _push_up(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return self._pushed(world, PARENT, "failure"), look._replace(step="mark up")

    def _mark_up(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        after = "push failure" if self._without != "failure up first" else "read"
        return self._changed(world, PARENT, failed=True), look._replace(step=after)

    def _push_failure(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return self._pushed(world, look.task, "failure"), look._replace(step="mark failure")

    def _mark_failure(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        world = self._changed(world, look.task, failed=True)
        goes_up = look.task == CHILD and self._without == "failure up first"
        return world, CallbackLook(look.task, "up" if goes_up else "decide", world.records[look.task])

    def _decide(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        if look.record.completed:
            return world, None if look.record.succeeded or not self._has_success else look._replace(step="succeed")
        if look.record.completing:
            # After its time another one pushes the callback again.
            return self._swapped(world, look, "push complete", completing=True)
        return world, look._replace(step="second" if look.has_counted else "first")

    def _first(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return world, None if world.items[look.task] == "running" else look._replace(step="second")

    def _second(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        waits = look.record.child == "open" and self._without != "children"
        return world, None if waits or world.items[look.task] == "running" else look._replace(step="complete")

    def _complete(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return self._swapped(world, look, "push complete", completing=True)

    def _push_complete(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        tells = look.task == CHILD and self._without != "parent first"
        return self._pushed(world, look.task, "complete"), look._replace(step="tell" if tells else "end")

    def _tell(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        if world.records[PARENT].child == "open":
            world = self._changed(world, PARENT, child="completed")
        return world, look._replace(step="end" if self._without != "parent first" else "succeed")

    def _end(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        tells = look.task == CHILD and self._without == "parent first"
        return self._swapped(world, look, "tell" if tells else "succeed", completed=True)

    def _succeed(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        is_good = look.record.child in {"none", "succeeded"} or self._without == "children succeed"
        is_good = is_good and self._has_success and world.items[look.task] == "done"
        return world, look._replace(step="push success") if is_good else None

    def _push_success(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        after = "tell success" if look.task == CHILD else "mark success"
        return self._pushed(world, look.task, "success"), look._replace(step=after)

    def _tell_success(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return self._changed(world, PARENT, child="succeeded"), look._replace(step="mark success")

    def _mark_success(self, world: CallbackWorld, look: CallbackLook) -> tuple[CallbackWorld, CallbackLook | None]:
        return self._changed(world, look.task, succeeded=True), None

    def _pushed(self, world: CallbackWorld, task: int, callback: str) -> CallbackWorld:
        if (task, callback) in world.pushes and self._without != "receipt":
            return world
        return world._replace(pushes=tuple(sorted((*world.pushes, (task, callback)))))

    @staticmethod
    def _changed(world: CallbackWorld, task: int, **fields: Any) -> CallbackWorld:
        records = list(world.records)
        records[task] = records[task]._replace(**fields)
        looks = [look._replace(is_current=False) if look.task == task else look for look in world.looks]
        return world._replace(records=(records[0], records[1]), looks=tuple(looks))

    def _swapped(
        self, world: CallbackWorld, look: CallbackLook, after: str, **fields: Any
    ) -> tuple[CallbackWorld, CallbackLook | None]:
        """The record is replaced if it is still the one that was read."""
        if not look.is_current and self._without != "version":
            return world, None
        changed = self._changed(world, look.task, **fields)
        return changed, look._replace(step=after, record=changed.records[look.task], is_current=True)


@cache
def _wrong(world: CallbackWorld) -> str:
    pushes, records, items = world.pushes, world.records, world.items
    dead = (any(world.ever_dead), world.ever_dead[CHILD])
    child_is_there = items[CHILD] != "none"
    rules = {
        "a callback is pushed twice": len(set(pushes)) == len(pushes),
        "a failure is told that never was": all(dead[task] for task, end in pushes if end == "failure"),
        "a success is told that is none": all(items[task] == "done" for task, end in pushes if end == "success"),
        "a parent is complete before its child": (PARENT, "complete") not in pushes
        or not child_is_there
        or (CHILD, "complete") in pushes,
        "a parent succeeds without its child": (PARENT, "success") not in pushes
        or not child_is_there
        or items[CHILD] == "done",
        "a task is complete without its callback": all(
            (task, "complete") in pushes for task, record in enumerate(records) if record.completed
        ),
    }
    return next((words for words, holds in rules.items() if not holds), "")
