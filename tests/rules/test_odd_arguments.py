"""What cannot be is refused by name, before anything was changed; numbers and texts of any class are their values."""

from datetime import timedelta

import pytest

from lowkiq_lambda import DeclarationError, JobError, Lowkiq, Rate
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

HUGE = 10**400


class Number(int):
    """An int of another class."""


class Seconds(float):
    """A float of another class."""


class TextSubclass(str):
    """A str of another class."""

    __slots__ = ()


def test_a_span_that_is_none_is_named(app: Lowkiq, queue_name: str) -> None:
    """The error lists those that there are."""
    declare(app, queue_name, Notes())
    for span in ("10x", ["10m"], None):
        with pytest.raises(ValueError, match="span must be one of 10m"), app.operate.overview(span):  # type: ignore[arg-type]  # what cannot be
            pass


def test_a_pause_longer_than_time_has_no_end(app: Lowkiq, queue_name: str) -> None:
    """Also of a number that no float holds."""
    worker = declare(app, queue_name, Notes(), tenants="spread")
    queue = app.operate(worker)

    assert queue.pause() == queue.pause(HUGE) == queue.pause(HUGE, tenant="acme")


def test_a_tenant_that_is_no_text_is_named(app: Lowkiq, queue_name: str) -> None:
    """And nothing is paused."""
    worker = declare(app, queue_name, Notes(), tenants="spread")
    for tenant in (timedelta(1), 7):
        with pytest.raises(TypeError, match="tenant must be a text"):
            app.operate(worker).pause(tenant=tenant)  # type: ignore[arg-type]  # what cannot be


@pytest.mark.parametrize("seconds", ["x", -1, float("nan"), None, True])
def test_a_task_is_not_cancelled_by_a_call_that_is_refused(app: Lowkiq, queue_name: str, seconds: object) -> None:
    """The error names `seconds`; the task is open, and what waits is performed."""
    worker = declare(app, queue_name, Notes())
    task = app.task("import")
    task.push_many(worker, jobs_of(["a"]))

    with pytest.raises(ValueError, match="seconds must be a number from 0 on"):
        task.cancel(seconds)  # type: ignore[arg-type]  # what cannot be

    assert ("open", 1) == (task.progress().state, task.progress().counts["enqueued"])


def test_a_task_is_cancelled_within_any_time(app: Lowkiq, queue_name: str) -> None:
    """Also of a number that no float holds."""
    worker = declare(app, queue_name, Notes())
    task = app.task("import")
    task.push_many(worker, jobs_of(["a"]))

    task.cancel(HUGE)

    assert ("cancelled", 1) == (task.progress().state, task.progress().counts["cancelled"])


def test_a_drain_has_any_time(app: Lowkiq, queue_name: str) -> None:
    """Also of a number that no float holds, and of less than none, in which nothing begins."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of(["a"]))

    assert [{}, {}] == [app.drain(-HUGE), app.drain(0)]
    assert {"done": 1} == app.drain(HUGE)


@pytest.mark.parametrize("name", [7, None, b"orders", "", "\ud800"])
def test_what_no_queue_can_be_called_names_none(app: Lowkiq, name: object) -> None:
    """It is refused where it is given, not at the first push."""
    with pytest.raises(DeclarationError, match="The name of a queue"):
        app.remote(name)  # type: ignore[arg-type]  # what cannot be


def test_a_search_for_what_is_no_text_is_refused_by_name(app: Lowkiq, queue_name: str) -> None:
    """Prefix and text, in the queue and in the morgue; and an id that no shard can hold."""
    queue = app.operate(declare(app, queue_name, Notes()))
    for search in (queue.waiting.search, queue.morgue.search):
        for name in ("prefix", "text"):
            with pytest.raises(TypeError, match=f"{name} must be a text"):
                search(**{name: 1.5})  # type: ignore[arg-type]  # what cannot be
            with pytest.raises(ValueError, match=f"{name} holds a lone surrogate"):
                search(**{name: "\ud800"})  # type: ignore[arg-type]  # a text, for mypy perhaps a limit
    with pytest.raises(JobError, match="lone surrogate"):
        app.operate.find("\ud800")


def test_numbers_and_texts_of_any_class_are_their_values(app: Lowkiq, queue_name: str) -> None:
    """What is stored has the value alone."""
    worker = declare(app, queue_name, Notes())

    worker.push_many(jobs_of(["a"]))

    app.operate(worker).reshard(to=Number(2))
    app.operate(worker).limits.set(max_running=Number(2), rate=Rate(Number(2), per=Seconds(1)))

    assert 2 == len(app.operate.metrics()[queue_name].shards)
    assert 2 == app.operate(worker).limits.explain().max_running
    assert "import" == app.task(TextSubclass("import")).progress().name
