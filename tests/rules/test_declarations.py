"""What a declaration may not say: each refusal is a sentence, before anything runs."""

import math
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, DeclarationError, Lowkiq, Worker
from tests.kit.workers import jobs_of


def perform(_self: Worker, _batch: Batch) -> None:
    """A handler with nothing to do."""


def perform_job(_self: Worker, _job: BatchJob) -> None:
    """A handler with nothing to do."""


async def coroutine(_self: Worker, _given: object) -> None:
    """A handler of another colour."""


async def async_generator(_self: Worker, _given: object) -> AsyncIterator[None]:
    """A handler of another colour that yields."""
    yield


def generator(_self: Worker, _given: object) -> Iterator[None]:
    """A handler that would never run."""
    yield


@wraps(generator)
def wrapped_generator(*args: Any) -> object:
    """A decorated one."""
    return generator(*args)


@wraps(coroutine)
def wrapped_coroutine(*args: Any) -> object:
    """One whose decorator is no coroutine function."""
    return coroutine(*args)


def worker_with(**body: Any) -> type[Worker]:
    """A class that is not declared yet."""
    return type("Odd", (Worker,), body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "Odd must define one of perform and perform_job; it defines neither"),
        ({"perform": perform, "perform_job": perform_job}, "Odd must define one of .*; it defines both"),
        (
            {"perform": wrapped_coroutine},
            "Odd.perform is a coroutine function within a plain one: write async def in its decorator",
        ),
        ({"perform": async_generator}, "Odd.perform is an async generator: only a plain perform_job may yield cursors"),
        ({"perform_job": async_generator}, "Odd.perform_job is an async generator"),
        ({"perform": perform, "push": perform}, "Odd.push hides what pushes its jobs: give it another name"),
        ({"perform": perform, "retry_in": coroutine}, "Odd.retry_in is a coroutine function, .*: write def"),
        ({"perform": perform, "retries_exhausted": coroutine}, "Odd.retries_exhausted is a coroutine function"),
        ({"perform": perform, "retry_in": 60}, "Odd.retry_in must be a function, not 60"),
        ({"perform": perform, "retries_exhausted": None}, "Odd.retries_exhausted must be a function, not None"),
        ({"perform": perform, "retry_in": generator}, "Odd.retry_in is a generator: its body would never run"),
        ({"perform": perform, "retries_exhausted": generator}, "Odd.retries_exhausted is a generator"),
        ({"perform": generator}, "Odd.perform is a generator: its body would never run"),
        ({"perform": wrapped_generator}, "Odd.perform is a generator"),
        ({"perform": staticmethod(generator)}, "Odd.perform is a generator"),
        ({"perform_job": generator, "batch_size": 2}, "Odd.batch_size must be 1: perform_job is a generator, and gets"),
        ({"perform_job": generator, "turn": -1}, r"Odd.turn must be a number from 0 to 86,400 seconds, not -1"),
        ({"perform_job": generator, "turn": "5"}, r"Odd.turn must be a number from 0 to 86,400 seconds, not '5'"),
        ({"perform_job": generator, "turn": math.nan}, r"Odd.turn must be a number from 0 to 86,400 seconds, not nan"),
        ({"perform_job": generator, "cursor_version": "2"}, r"Odd.cursor_version must be a whole number from 0 to"),
        ({"perform_job": generator, "upgrade_cursor": 5}, "Odd.upgrade_cursor must be a function, not 5"),
        ({"perform_job": generator, "upgrade_cursor": coroutine}, "Odd.upgrade_cursor is a coroutine function"),
        ({"perform_job": generator, "upgrade_cursor": lambda self: self}, "cannot be called as upgrade_cursor"),
        ({"perform": 5}, "it defines neither"),
        ({"perform": lambda batch: batch}, r"Odd.perform\(batch\) cannot be called as perform\(self, batch\)"),
        ({"perform": staticmethod(perform)}, r"Odd.perform\(_self, _batch\) cannot be called as perform\(batch\)"),
        ({"perform_job": lambda self: self}, r"cannot be called as perform_job\(self, job\)"),
        ({"perform": perform, "retry_in": lambda self: self}, r"cannot be called as retry_in\(self, retry_count\)"),
    ],
)
def test_handlers_that_cannot_work_are_refused(app: Lowkiq, body: dict[str, Any], why: str) -> None:
    """Exactly one of the two methods, as a plain function."""
    with pytest.raises(DeclarationError, match=why):
        app.worker(worker_with(**body))
    assert [] == app.workers


def needing(_self: Worker, db: object) -> None:
    """What makes a worker, and needs something."""
    del db


def content(_self: Worker, db: object = None) -> None:
    """What makes a worker, and may be given something."""
    del db


def test_a_worker_that_cannot_be_made_is_refused(app: Lowkiq) -> None:
    """One is made for each batch, without arguments: what would fail each job is told when it is declared."""
    for name in ("__init__", "__new__"):
        with pytest.raises(DeclarationError, match=r"Odd\(\) cannot be called: missing .*'db'.*without arguments"):
            app.worker(worker_with(**{"perform": perform, name: needing}))
    app.worker(worker_with(perform=perform, __init__=content))
    assert ["Odd"] == [worker.__name__ for worker in app.workers]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("shards_count", value) for value in (0, -1, 1.0, "5", None, True, math.inf, 10**9, 10**400)],
        *[("batch_size", value) for value in (0, -5, 1_001, 2.5, "1", None, True)],
        *[("max_retry_count", value) for value in (-1, 0.5, "3", None, False, math.nan)],
        *[("concurrency", value) for value in (0, -1, 1_001, 2.0, "4", None, True)],
        *[("payloads_at_once", value) for value in (-1, 0.5, "3", None, False, 10**16)],
    ],
)
def test_numbers_that_cannot_work_are_refused(app: Lowkiq, field: str, value: object) -> None:
    """E-72: a count is a whole number in its range; the sentence names field, range and value."""
    or_auto = ' or "auto"' if isinstance(value, str) and field in {"shards_count", "batch_size"} else ""
    sentence = rf"Odd\.{field} must be a whole number from [0-9,]+ to [0-9,]+{or_auto}, not"
    with pytest.raises(DeclarationError, match=sentence):
        app.worker(worker_with(perform=perform, **{field: value}))


@pytest.mark.parametrize(
    ("concurrency", "batch_size", "hint"),
    [
        (2, 501, "1,002: lower batch_size to 500, or concurrency to 1"),
        (1_000, 2, "2,000: lower batch_size to 1, or concurrency to 500"),
        (11, 91, "1,001: lower batch_size to 90, or concurrency to 10"),
    ],
)
def test_too_many_ids_at_once_are_refused(app: Lowkiq, concurrency: int, batch_size: int, hint: str) -> None:
    """What handlers may have at once in one shard is bounded; the sentence says what fits."""
    with pytest.raises(DeclarationError, match=rf"Odd\.concurrency \* batch_size must be at most 1,000, not {hint}\."):
        app.worker(worker_with(perform=perform, concurrency=concurrency, batch_size=batch_size))


@pytest.mark.parametrize("value", ["first", None, "MIN", 1])
def test_merges_that_are_none_are_refused(app: Lowkiq, value: object) -> None:
    """`merge` is one of three words."""
    with pytest.raises(DeclarationError, match=r"Odd\.merge must be one of min, max, never, latest, not"):
        app.worker(worker_with(perform=perform, merge=value))


def test_a_function_that_merges_is_refused_with_the_form_to_write(app: Lowkiq) -> None:
    """Payloads that wait are not decoded; a handler folds them as it gets them."""
    with pytest.raises(DeclarationError) as refused:
        app.worker(worker_with(perform=perform, merge=max))
    assert (
        "Odd.merge is a function, and none merges payloads that wait, as Redis does not decode them: declare merge = "
        '"never", and let the handler fold the payloads of an id, as functools.reduce(function, payloads).'
    ) == str(refused.value)


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_isolate_is_a_bool(app: Lowkiq, value: object) -> None:
    """`isolate` is True or False."""
    with pytest.raises(DeclarationError, match=r"Odd\.isolate must be True or False, not"):
        app.worker(worker_with(perform=perform, isolate=value))


@pytest.mark.parametrize(("value", "why"), [(5, "must be a text"), ("\ud800", "lone surrogate")])
def test_queue_names_that_cannot_work_are_refused(app: Lowkiq, value: object, why: str) -> None:
    """E-60: a queue's name is a text that can be stored."""
    with pytest.raises(DeclarationError, match=why):
        app.worker(worker_with(perform=perform, queue_name=value))


def test_two_workers_for_one_queue_are_refused(app: Lowkiq) -> None:
    """One queue has one worker, however the two got the name."""
    app.worker(worker_with(perform=perform, queue_name="q"))

    with pytest.raises(DeclarationError, match="'q': give one of them another queue_name"):
        app.worker(worker_with(perform=perform, queue_name="q"))
    with pytest.raises(DeclarationError, match="both declared for the queue 'q'"):
        app.worker(queue_name="q")(lambda _batch: None)


def test_a_class_is_bound_to_one_app(app: Lowkiq) -> None:
    """Neither twice nor to a second app; a subclass is a worker of its own."""
    worker = app.worker(worker_with(perform=perform))
    other = Lowkiq()

    with pytest.raises(DeclarationError, match="Odd is bound to this app already"):
        app.worker(worker)
    with pytest.raises(DeclarationError, match="Odd is bound to another app: declare a subclass"):
        other.worker(worker)
    subclass: type[Worker] = type("Child", (worker,), {})
    child = other.worker(subclass)

    assert ("Odd", "Child") == (worker.queue_name, child.queue_name)
    assert (app, other) == (worker.app, child.app)


@pytest.mark.parametrize("target", [5, "name", object])
def test_what_is_neither_worker_nor_function_is_refused(app: Lowkiq, target: object) -> None:
    """A class must be a Worker's subclass, and anything else must be callable."""
    with pytest.raises(DeclarationError, match=r"takes a class or a function|must be a subclass of"):
        app.worker(target)  # type: ignore[call-overload]  # that is the point


@pytest.mark.parametrize("function", [wrapped_coroutine, generator, async_generator])
def test_functions_are_checked_as_methods_are(app: Lowkiq, function: Callable[..., object]) -> None:
    """What is refused as a method is refused as a function."""
    with pytest.raises(DeclarationError, match=r"perform is an? (coroutine function within|generator|async generator)"):
        app.worker(function)


def test_what_was_refused_leaves_no_trace(app: Lowkiq) -> None:
    """A class whose declaration is refused hands no name down to the workers that are made of it."""
    with pytest.raises(DeclarationError):
        app.worker(Worker)

    assert "Odd" == app.worker(worker_with(perform=perform)).queue_name


def test_functions_with_options_of_no_worker_are_refused(app: Lowkiq) -> None:
    """An option is a field of a worker; a class has fields, so it takes no options."""
    with pytest.raises(DeclarationError, match="'batchsize' is not an option of a worker; there are shards_count"):
        app.worker(batchsize=5)(lambda _batch: None)  # type: ignore[call-overload]  # that is the point
    with pytest.raises(DeclarationError, match="takes a function; a class has them as fields"):
        app.worker(batch_size=5)(worker_with(perform=perform))


def test_a_worker_of_another_app_has_no_queue_here(app: Lowkiq) -> None:
    """Whatever is asked of it: the error says what is missing."""
    foreign = Lowkiq().worker(worker_with(perform=perform))

    for ask in (
        app.operate,
        app.operate.queries,
        app.core.queues.agreed,
        lambda worker: app.push_many(worker, jobs_of("a")),
    ):
        with pytest.raises(DeclarationError, match=r"Odd is not a worker of this app: declare it"):
            ask(foreign)


def test_an_unbound_worker_cannot_be_pushed_to() -> None:
    """A forgotten decorator is an error that says what to do."""
    with pytest.raises(DeclarationError, match=r"Odd is not bound to an app: decorate it with @app\.worker"):
        worker_with(perform=perform).push_many(jobs_of("a"))


def test_a_function_worker_stays_callable(app: Lowkiq, queue_name: str) -> None:
    """A declared function can be called as before, and be pushed to."""
    seen: list[object] = []

    @app.worker(shards_count=2, batch_size=3, queue_name=queue_name, retry_in=lambda count: count)
    def count_clicks(batch: Any) -> int:
        """Counts."""
        seen.append(dict(batch))
        return len(batch)

    assert (2, "Counts.", "count_clicks") == (
        count_clicks({"x": [1], "y": [2]}),
        count_clicks.__doc__,
        count_clicks.__name__,
    )
    (pushed,) = count_clicks.push_many([{"id": "home", "payload": {"n": 1}}])
    app.drain()

    assert "home" == pushed.id
    assert [{"x": [1], "y": [2]}, {"home": [{"n": 1}]}] == seen
    assert queue_name in repr(count_clicks)
    assert [count_clicks.worker] == app.workers


def test_a_function_names_its_queue(app: Lowkiq) -> None:
    """Without options the queue has the function's name."""

    @app.worker
    def send_mail(_batch: object) -> None:
        """Nothing."""

    assert ["send_mail"] == [worker.queue_name for worker in app.workers]


def test_a_callable_that_is_no_function_is_refused(app: Lowkiq) -> None:
    """What has no name of its own gives no queue one: the refusal says what it takes."""
    with pytest.raises(DeclarationError, match=r"@app\.worker takes a class or a function, not functools\.partial"):
        app.worker(partial(generator, Worker()))


@pytest.mark.parametrize(
    ("attribute", "value", "option"),
    [
        ("shard_count", 3, "shards_count"),
        ("batchsize", 10, "batch_size"),
        ("queue_nane", "Orders", "queue_name"),
        ("max_retries", 5, "max_retry_count"),
        ("autoretry_for", (OSError,), "max_retry_count"),
        ("retry_backoff", True, "retry_in"),
    ],
)
def test_an_attribute_that_is_nearly_an_option_is_refused(
    app: Lowkiq, attribute: str, value: object, option: str
) -> None:
    """It would have no effect: the sentence names the option that was meant, also where a parent class has it.

    So is what another library calls one.
    """
    parent = type("Parent", (Worker,), {attribute: value})
    child = type("Child", (parent,), {"perform": perform})

    with pytest.raises(DeclarationError, match=rf"Child\.{attribute} is not an option: did you mean {option}\?"):
        app.worker(child)


def test_attributes_of_ones_own_are_free(app: Lowkiq) -> None:
    """Another name, another type, or a private one is the worker's own business."""
    body = {"timeout": 5, "shards": 3, "queue_names": ["a"], "_batchsize": 3, "perform": perform}

    app.worker(type("Own", (Worker,), body))

    assert ["Own"] == [worker.queue_name for worker in app.workers]
