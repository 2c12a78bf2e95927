"""Django's tasks, with jobs as their backend."""

from datetime import timedelta
from functools import partial
from itertools import count
from types import ModuleType
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone

from tests.kit.handlers import Broken

ORDERS = count(1)

pytestmark = pytest.mark.xdist_group("django")


@pytest.fixture
def tasks(site: ModuleType) -> ModuleType:
    """The tasks of the shop, when what others have left is done."""
    from tests.contrib.site.shop import tasks as of_shop  # noqa: PLC0415 - once Django is set up

    site.app.drain(60)
    of_shop.noted.clear()
    return of_shop


@pytest.fixture
def order() -> int:
    """One that no other test has."""
    return next(ORDERS)


def run(site: ModuleType, tasks: ModuleType) -> list[tuple[Any, ...]]:
    """What tasks have noted when nothing is due any more."""
    site.app.drain(60)
    noted: list[tuple[Any, ...]] = [*tasks.noted]
    tasks.noted.clear()
    return noted


def test_tasks_with_one_key_run_in_order(site: ModuleType, tasks: ModuleType, order: int) -> None:
    """Different tasks that name an argument alike are one line for each of its values, however it was given."""
    tasks.sync_order.enqueue(order, "a")
    tasks.cancel_order.enqueue("b", order)
    tasks.sync_order.enqueue(order_id=order)

    assert [("sync", order, "a"), ("cancel", order, "b"), ("sync", order, "new")] == run(site, tasks)


def test_a_task_that_fails_holds_what_comes_behind_it(site: ModuleType, tasks: ModuleType, order: int) -> None:
    """Those before it have run and do not run again; those of other values go on."""
    other = next(ORDERS)
    for status in ("a", "bad", "c"):
        tasks.sync_order.enqueue(order, status)
    tasks.sync_order.enqueue(other, "other")

    assert {("sync", order, "a"), ("sync", order, "bad"), ("sync", other, "other")} == {*run(site, tasks)}


def test_each_enqueueing_is_a_run(site: ModuleType, tasks: ModuleType, order: int) -> None:
    """Equal ones do not merge, with a key or without."""
    for _ in range(2):
        tasks.sync_order.enqueue(order, "a")
        tasks.fetch.enqueue("x")

    assert [("fetch", "x")] * 2 + [("sync", order, "a")] * 2 == sorted(run(site, tasks))


def test_the_context_counts_attempts(site: ModuleType, tasks: ModuleType) -> None:
    """The function is told which attempt this is, in the queue that it names."""
    tasks.mail.enqueue("olga")

    assert [("mail", "olga", 1)] == run(site, tasks)


def test_a_task_may_wait(site: ModuleType, tasks: ModuleType, order: int) -> None:
    """`run_after` is a time; what lies ahead is not performed."""
    other = next(ORDERS)
    tasks.sync_order.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(order)
    tasks.sync_order.using(run_after=timezone.now() - timedelta(hours=1)).enqueue(other)

    assert [("sync", other, "new")] == run(site, tasks)


def test_a_task_that_waits_holds_what_comes_behind_it(site: ModuleType, tasks: ModuleType, order: int) -> None:
    """Tasks of one key keep their order: none runs before its time because another one of the key is due."""
    tasks.sync_order.enqueue(order, "a")
    tasks.sync_order.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(order, "later")
    tasks.sync_order.enqueue(order, "c")

    assert [("sync", order, "a")] == run(site, tasks)


def test_a_task_that_is_enqueued_on_commit_is_rolled_back_with_it(
    site: ModuleType, tasks: ModuleType, order: int
) -> None:
    """As with any backend: the call waits for the commit."""

    @transaction.atomic
    def change() -> None:
        transaction.on_commit(partial(tasks.sync_order.enqueue, order))
        raise Broken

    with pytest.raises(Broken):
        change()

    assert [] == run(site, tasks)


def test_what_the_backend_cannot_do_is_refused(tasks: ModuleType, order: int) -> None:
    """Priorities, results, other queues, arguments that JSON cannot hold: Django says so at once."""
    from lowkiq_lambda.contrib.django.task_interface import InvalidTask  # noqa: PLC0415 - once Django is set up

    with pytest.raises(InvalidTask, match="priority"):
        tasks.sync_order.using(priority=5)
    with pytest.raises(InvalidTask, match=r"[Qq]ueue"):
        tasks.sync_order.using(queue_name="no-such-queue")
    with pytest.raises(InvalidTask, match="has no argument 'no_such_argument'"):
        tasks.misnamed.enqueue(order)
    with pytest.raises(TypeError):
        tasks.sync_order.enqueue(object())
    with pytest.raises(NotImplementedError):
        tasks.sync_order.get_result(tasks.sync_order.enqueue(order).id)


def test_signals_tell_how_a_task_goes(site: ModuleType, tasks: ModuleType) -> None:
    """Enqueued, started at each attempt, finished once: when it is done, or has failed for the last time."""
    from lowkiq_lambda.contrib.django import task_interface as interface  # noqa: PLC0415 - once Django is set up

    told: list[tuple[str, str]] = []

    def tell(name: str, task_result: Any, **_others: object) -> None:
        told.append((name, str(task_result.status)))

    for name in ("task_enqueued", "task_started", "task_finished"):
        getattr(interface, name).connect(partial(tell, name), weak=False, dispatch_uid=name)
    tasks.fetch.enqueue("x")
    run(site, tasks)
    tasks.mail.enqueue("nobody")
    run(site, tasks)
    site.app.operate(site.app.core.queues.worker_named("tasks-default-mail")).waiting.run_now(everything=True)
    run(site, tasks)
    for name in ("task_enqueued", "task_started", "task_finished"):
        getattr(interface, name).disconnect(dispatch_uid=name)

    again = [("task_enqueued", "READY"), ("task_started", "RUNNING")]
    assert [*again, ("task_finished", "SUCCESSFUL"), *again, again[1], ("task_finished", "FAILED")] == told


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"OPTIONS": {"key": {}}},
            r"TASKS\['x'\]\['OPTIONS'\] has no 'key': it has keys, max_retry_count, shards_count",
        ),
        ({"QUEUES": []}, r"TASKS\['x'\]\['QUEUES'\] must name the queues"),
    ],
)
def test_options_that_cannot_work_are_refused(site: ModuleType, params: dict[str, Any], sentence: str) -> None:
    """When Django is set up, and not when the first task is enqueued."""
    from lowkiq_lambda.contrib.django.tasks import LowkiqBackend  # noqa: PLC0415 - once Django is set up

    assert site.app
    with pytest.raises(ImproperlyConfigured, match=sentence):
        LowkiqBackend("x", params)
