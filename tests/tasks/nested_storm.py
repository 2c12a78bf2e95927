"""Trees of tasks with callbacks, by processes that are killed at any call of a script.

By hand, with the number of kills: `python -m tests.tasks.nested_storm 1000`. A process without threads is forked, so a
test runs this in one of its own, too.
"""

import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, LowkiqError, Rejected, Worker
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import GOOD, Item
from tests.kit.apps import close_app
from tests.kit.servers import Server

LEASE_TTL: Final = 0.5
MOST_CALLS: Final = 40
"""At one of its first so many calls a process dies."""
AT_ONCE: Final = 2
ABANDONED: Final = 1.5
"""Seconds after which the process that makes a tree is surely dead."""
CLOCKS: Final = 0.1
"""Seconds by which the server's time may differ that two processes know; a lease is longer."""
LONGEST: Final = 60.0
"""Seconds that may pass behind the last kill until all tasks are complete."""
KINDS: Final = ("done", "done", "done", "failing", "reviving", "dying")
_pause = threading.Event()


class StormApp(NamedTuple):
    """The app of a process, and its workers."""

    app: Lowkiq
    worker: type[Worker]
    callback: type[Worker]


class StormOfTasks(NamedTuple):
    """What a storm came to: `wrong` are sentences, and there should be none."""

    kills: int
    tasks: int
    pushed: dict[str, int]
    wrong: list[str]


def storm_of(url: str, name: str, *, revives: bool) -> StormApp:
    """A process's own. `revives`: items of that kind are done, and no longer die."""
    app = Lowkiq(Config(redis_url=url, lease_ttl=LEASE_TTL, namespace=name))

    @app.worker
    class Items(Worker):
        """Its items end as their ids say."""

        queue_name = "items"
        shards_count = 3
        batch_size = 3
        max_retry_count = 0

        def perform(self, batch: Batch[Any]) -> None:
            for job_id in batch:
                if job_id.startswith("failing"):
                    batch.fail(job_id, Rejected("not qualified"))
                if job_id.startswith("dying") or (job_id.startswith("reviving") and not revives):
                    batch.fail(job_id, OSError("no connection"))

    @app.worker
    class Callbacks(Worker):
        """Paused, so that each push of a callback is there in the end; no two are united."""

        queue_name = "callbacks"
        shards_count = 2
        merge = "never"

        def perform(self, batch: Batch[Any]) -> None:
            raise NotImplementedError

    return StormApp(app, Items, Callbacks)


def storm(url: str, kills: int) -> StormOfTasks:
    """Let processes live and die, and look at what is left once a last one has ended all."""
    name, rng = f"nested-{uuid4().hex[:8]}", Random(kills)
    last = storm_of(url, name, revives=True)
    last.app.operate(last.callback).pause()
    with shortly():
        alive = deque[int]()
        for _ in range(kills):
            alive.append(_forked(partial(_live, url, name, rng.random())))
            if len(alive) == AT_ONCE:
                _wait(alive.popleft())
        for pid in alive:
            _wait(pid)
        _end_all(last)
    return _found(last, kills)


def _wait(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"process {pid} was not killed: {status}"


@contextmanager
def shortly() -> Iterator[None]:
    """In this process and those that it forks a callback is pushed again at once: thirty seconds are too long here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lowkiq_lambda.tasks.completion.COMPLETING", 0.5)
        yield


def _forked(live: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        live()
    finally:
        traceback.print_exc()
        os._exit(1)


def _live(url: str, name: str, seed: float) -> None:
    """Make trees, drain, look after tasks, put back what is dead; until the call comes at which it dies."""
    rng = Random(seed)
    logging.disable()
    own = storm_of(url, name, revives=rng.random() < 0.3)
    _die_at(own.app, rng.randrange(MOST_CALLS), answered=rng.random() < 0.5)
    acts: list[Callable[[], object]] = [
        lambda: _make_tree(own, rng),
        lambda: own.app.drain(0.3),
        lambda: own.app.tasks.upkeep(lambda: 5.0),
        lambda: own.app.operate(own.worker).morgue.requeue([job for job in _dead(own) if job.startswith("reviving")]),
        partial(_close_abandoned, own.app),
    ]
    while True:
        try:
            rng.choice(acts)()
        except LowkiqError:
            # Two processes may want the same.
            continue


def _die_at(app: Lowkiq, number: int, *, answered: bool) -> None:
    left, lock = [number], threading.Lock()

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, **options: Any) -> Any:
            with lock:
                left[0] -= 1
                dies = left[0] < 0
            if dies and not answered:
                os.kill(os.getpid(), signal.SIGKILL)
            reply = call(*args, **options)
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            return reply

        return make

    for backend in {id(one): one for one in (app.core.backend, app.core.drains.drainer.backend)}.values():
        for method in ("run", "call", "run_each"):
            setattr(backend, method, dying(getattr(backend, method)))


def _make_tree(own: StormApp, rng: Random) -> None:
    """A task with two below it, of which one has another; items by chance."""

    def made(make: Callable[..., Task]) -> Task:
        return make(
            "tree",
            (own.callback, "complete"),
            on_success=(own.callback, "success"),
            on_failure=(own.callback, "failure"),
        )

    top = made(own.app.task)
    left, right = made(top.task), top.task("right")
    low = made(left.task)
    for task in (low, left, top, right):
        kinds = KINDS if rng.random() < 0.5 else ("done", "reviving")
        jobs = [{"id": f"{rng.choice(kinds)}-{uuid4().hex[:6]}", "payload": n} for n in range(rng.randrange(4))]
        if jobs:
            task.push_many(own.worker, jobs)
        task.close()


def _dead(own: StormApp) -> list[str]:
    return [job.id for job in own.app.operate(own.worker).morgue.list(limit=1_000)]


def _tasks(app: Lowkiq) -> Iterator[Task]:
    after = None
    while True:
        page = app.tasks.list(after, 1_000)
        yield from (app.tasks.get(one.id) for one in page.tasks)
        after = page.next
        if after is None:
            return


def _close(task: Task, older_than: float = 0.0) -> None:
    """As its owner would who tries again; while that still pushes nobody else may."""
    progress, now = task.progress(), task._operations.records.now()
    if progress.state == "open" and now - progress.created_at >= older_than:
        task.close()


def _close_abandoned(app: Lowkiq) -> None:
    for task in _tasks(app):
        _close(task, older_than=ABANDONED)


def _end_all(last: StormApp) -> None:
    ends_at = time.monotonic() + LONGEST
    while time.monotonic() < ends_at:
        for task in _tasks(last.app):
            _close(task)
        last.app.drain(1)
        last.app.tasks.upkeep(lambda: 30.0)
        reviving = [job for job in _dead(last) if job.startswith("reviving")]
        if reviving:
            last.app.operate(last.worker).morgue.requeue(reviving)
        elif all(
            task.progress().next_poll is None and not task.progress().ended < task.progress().total
            for task in _tasks(last.app)
        ):
            # One more look at what may have succeeded meanwhile.
            last.app.tasks.upkeep(lambda: 30.0)
            return
        _pause.wait(0.2)


def _found(last: StormApp, kills: int) -> StormOfTasks:
    tasks = {task.id: task for task in _tasks(last.app)}
    progress = {task_id: task.progress() for task_id, task in tasks.items()}
    items = {task_id: task.items(limit=1_000).items for task_id, task in tasks.items()}
    waiting = last.app.operate(last.callback).waiting.fetch(tasks)
    pushed = Counter((job.id, entry.payload) for job in waiting for entry in job.payloads)
    wrong = [f"{task_id} {end}: {count} times" for (task_id, end), count in pushed.items() if count > 1]

    def subtree(task_id: str) -> Iterator[str]:
        yield task_id
        for child in progress[task_id].children:
            yield from subtree(child)

    for task_id, own in progress.items():
        below = [*subtree(task_id)]
        of_all: list[Item] = [item for one in below for item in items[one]]
        has_callbacks = last.app.tasks._operations.records.get(task_id).record.callback is not None
        is_good = all(item.status in GOOD for item in of_all)
        has_failed = any(item.status in {"failed", "dead", "lost"} for item in of_all)
        rules = {
            "is never complete": own.state == "completed",
            "has no on_complete": not has_callbacks or bool(pushed[task_id, "complete"]),
            "succeeded wrongly or never": not has_callbacks or bool(pushed[task_id, "success"]) == is_good,
            "has no on_failure": not has_callbacks or not has_failed or bool(pushed[task_id, "failure"]),
            "was complete too early": all(
                (item.ended_at or 0.0) <= (own.completed_at or 0.0) + CLOCKS
                for item in of_all
                if all(message.kind != "requeued" for message in item.messages)
            ),
            "has an open item": all(item.status not in {"enqueued", "running"} for item in of_all),
        }
        wrong += [f"{task_id} {words}" for words, holds in rules.items() if not holds]
    counted = Counter(end for _, end in pushed.elements())
    found = StormOfTasks(kills, len(tasks), {str(end): count for end, count in counted.items()}, wrong)
    close_app(last.app)
    return found


if __name__ == "__main__":
    own_kills, *own_url = sys.argv[1:]
    with ExitStack() as stack:
        url_of_server = own_url[0] if own_url else stack.enter_context(Server()).url
        sys.stdout.write(json.dumps(storm(url_of_server, int(own_kills))._asdict()) + "\n")
