"""Tasks for a customer's own front end: open to nobody but those whom the app lets in."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import pytest
from mangum import Mangum
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp

from lowkiq_lambda import Batch, ConfigError, Lowkiq, Rejected
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.dashboard.tasks_api import tasks_api
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.tasks import Tasks
from tests.kit.web import Browser
from tests.kit.workers import declare

UNKNOWN = "A" * 16
Open = Callable[..., Browser]


@pytest.fixture
def task(app: Lowkiq, worker: Any) -> Task:
    """A task with one item, which was done."""
    task = app.task("export")
    with task:
        task.push_many(worker, [{"id": "1", "item": "row 1, of Eva"}])
    app.drain()
    return task


@pytest.fixture
def other(app: Lowkiq) -> Task:
    """A task of somebody else."""
    return app.task("other")


@pytest.fixture
def customer(app: Lowkiq, task: Task) -> Browser:
    """The front end of a customer who may see one task, by a header that names him."""

    def authorize(request: Request, task_id: str | None) -> bool:
        return request.headers.get("x-customer") == "eva" and task_id == task.id

    return Browser(tasks_api(app, authorize=authorize), headers={"x-customer": "eva"})


def test_nobody_comes_in_without_authorize(app: Lowkiq) -> None:
    """P10: an API that would show everybody all tasks is not made."""
    with pytest.raises(ConfigError, match="authorize"):
        tasks_api(app)
    with pytest.raises(ConfigError, match="authorize"):
        tasks_api(app, authorize=cast("Any", "everybody"))
    with pytest.raises(ConfigError, match="authorize is called with a request and the id of a task"):
        tasks_api(app, authorize=cast("Any", lambda request: request is not None))


def test_a36_a_front_end_polls_its_task(customer: Browser, task: Task) -> None:
    """A-36: counts, items, a version, when to ask again, and 304 where nothing has changed; all of it JSON."""
    told = customer.get(f"/tasks/{task.id}")
    items = customer.get(f"/tasks/{task.id}/items?status=done").json

    assert (200, "application/json") == (told.status, told.headers["content-type"])
    assert ("completed", 1, None) == (told.json["state"], told.json["counts"]["done"], told.json["next_poll"])
    assert [("row 1, of Eva", "1")] == [(item["label"], item["id"]) for item in items["items"]]
    assert f'W/"{told.json["version"]}"' == told.headers["etag"]
    assert "private, no-cache" == told.headers["cache-control"]
    same = customer.get(f"/tasks/{task.id}", if_none_match=told.headers["etag"])
    assert (304, b"") == (same.status, same.body)


def test_what_one_may_not_see_looks_as_if_it_were_not_there(customer: Browser, task: Task, other: Task) -> None:
    """Somebody else's task, the list, and a task that never was get the same answer."""
    refused = [customer.get(path) for path in (f"/tasks/{other.id}", f"/tasks/{other.id}/items", "/tasks")]
    stranger = customer.get(f"/tasks/{task.id}", x_customer="bob")
    unknown = customer.get(f"/tasks/{UNKNOWN}")

    assert {(404, unknown.text)} == {(answer.status, answer.text) for answer in (*refused, stranger, unknown)}
    assert "unknown_task" == unknown.json["code"]


def test_a_task_that_was_forgotten_is_not_told_from_one_of_others(app: Lowkiq, customer: Browser) -> None:
    """Also where `authorize` would let its owner in."""
    generous = Browser(tasks_api(app, authorize=lambda _request, _task_id: True))
    assert customer.get(f"/tasks/{UNKNOWN}").text == generous.get(f"/tasks/{UNKNOWN}").text
    assert customer.get(f"/tasks/{UNKNOWN}/items").text == generous.get(f"/tasks/{UNKNOWN}/items").text


def test_a_coroutine_may_decide(app: Lowkiq, task: Task, other: Task) -> None:
    """It is awaited: a coroutine object itself, which is true, lets nobody in."""

    async def authorize(_request: Request, task_id: str | None) -> bool:
        await asyncio.sleep(0)
        return task_id in {task.id, None}

    front = Browser(tasks_api(app, authorize=authorize))

    assert [200, 404, 200] == [front.get(f"/tasks{path}").status for path in (f"/{task.id}", f"/{other.id}", "")]


@pytest.mark.parametrize("answer", [1, "yes", None, object()])
def test_what_is_not_true_lets_nobody_in(app: Lowkiq, task: Task, answer: object) -> None:
    """P10: a mistake in `authorize` opens nothing: what is no bool is an error, and is logged."""
    front = Browser(tasks_api(app, authorize=lambda _request, _task_id: cast("bool", answer)))
    refused = front.get(f"/tasks/{task.id}")
    assert (500, "internal_error") == (refused.status, refused.json["code"])


def test_an_authorize_that_raises_lets_nobody_in(app: Lowkiq, task: Task, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the error, the answer does not; an HTTPException is the answer that it names."""

    def broken(_request: Request, _task_id: str | None) -> bool:
        raise KeyError("secret of the database")

    def strict(_request: Request, _task_id: str | None) -> bool:
        raise HTTPException(401, "Sign in first.", {"www-authenticate": "Bearer"})

    failed = Browser(tasks_api(app, authorize=broken)).get(f"/tasks/{task.id}")
    unknown = Browser(tasks_api(app, authorize=strict)).get(f"/tasks/{task.id}")

    assert (500, False) == (failed.status, "secret" in failed.text)
    assert "secret of the database" in caplog.text
    assert (401, "Sign in first.") == (unknown.status, unknown.json["detail"])
    assert "Bearer" == unknown.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/tasks/no-id", 400),
        ("GET", "/tasks/{id}/items?limit=no", 400),
        ("GET", "/tasks/{id}/items?after=no", 400),
        ("GET", "/tasks/{id}/", 404),
        ("GET", "/", 404),
        ("POST", "/tasks/{id}/cancel", 404),
        ("POST", "/tasks/{id}", 405),
        ("DELETE", "/tasks/{id}", 405),
    ],
)
def test_nothing_else_is_there(customer: Browser, task: Task, method: str, path: str, status: int) -> None:
    """It only reads; a mistake gets problem JSON, as everywhere."""
    answer = customer.ask(method, path.format(id=task.id))
    assert (status, "application/problem+json") == (answer.status, answer.headers["content-type"])
    assert "completed" == task.progress().state


def test_an_outage_tells_customers_nothing_of_the_server(
    customer: Browser, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are asked to come back; what Redis said is in the log."""

    def refuse(*_args: object) -> None:
        raise BackendError("redis at 10.0.0.7 refused the password")

    monkeypatch.setattr(Tasks, "get", refuse)
    answer = customer.get(f"/tasks/{task.id}")
    assert (503, "unavailable", False) == (answer.status, answer.json["code"], "10.0.0.7" in answer.text)


def test_texts_of_items_can_be_masked(app: Lowkiq, task: Task) -> None:
    """By queue, id and text; where the mask fails, no text of the item is shown."""

    def mask(queue: str, job_id: str, text: object) -> object:
        return f"{queue} {job_id} {str(text).replace('Eva', '***')}"

    def broken(_queue: str, _id: str, _text: object) -> object:
        raise ValueError

    def label(mask: Any) -> str | None:
        front = Browser(tasks_api(app, authorize=lambda _request, _id: True, mask=mask))
        (item,) = front.get(f"/tasks/{task.id}/items").json["items"]
        return str(item["label"])

    (worker,) = app.workers
    assert f"{worker.queue_name} 1 row 1, of ***" == label(mask)
    assert "None" == label(broken)


@pytest.fixture
def failed(app: Lowkiq) -> Task:
    """A task with a done item and a failed one, which keep their params."""

    def perform(batch: Batch) -> None:
        if "bad" in batch:
            batch.fail("bad", Rejected("Eva is not qualified"))

    worker = declare(app, f"{app.workers[0].queue_name}-failing" if app.workers else "failing", perform)
    with app.task("export", keep_params=True) as made:
        made.push_many(worker, [{"id": "good", "payload": {"name": "Eva"}}, {"id": "bad", "item": "row 2"}])
    app.drain()
    return made


def everybody(app: Lowkiq, **options: Any) -> Browser:
    """The front end of an API that lets everybody in."""
    return Browser(tasks_api(app, authorize=lambda _request, _id: True, **options))


def test_a31_an_app_has_words_and_texts_of_its_own(app: Lowkiq, failed: Task) -> None:
    """A-31: in counts, items, errors and the question for a status; the text of a status stands in its message."""
    front = everybody(
        app, words={"done": "finish", "failed": "error", "running": "working"}, texts={"done": "已经完成"}
    )
    told = front.get(f"/tasks/{failed.id}?errors=5").json
    (done,) = front.get(f"/tasks/{failed.id}/items?status=finish").json["items"]
    unknown = front.get(f"/tasks/{failed.id}/items?status=done")

    assert (1, 1, 0) == (told["counts"]["finish"], told["counts"]["error"], told["counts"]["working"])
    assert ["error"] == [error["status"] for error in told["errors"]]
    assert ("finish", ["已经完成"]) == (done["status"], done["messages"])
    assert ["", "", "已经完成"] == [line["text"] for line in done["course"]]
    assert (400, True) == (unknown.status, "finish" in unknown.json["detail"])
    assert {"error", "finish"} == {one["status"] for one in front.get(f"/tasks/{failed.id}/items").json["items"]}


@pytest.mark.parametrize(
    ("setting", "by_status"), [("words", {"finished": "finish"}), ("texts", {"": "x"}), ("words", {"done": "failed"})]
)
def test_words_for_what_is_no_status_are_refused(app: Lowkiq, setting: str, by_status: dict[str, str]) -> None:
    """And two statuses with one word."""
    with pytest.raises(ConfigError, match="status"):
        everybody(app, **{setting: by_status})


def test_a36_errors_come_in_the_same_answer(app: Lowkiq, failed: Task) -> None:
    """A-36: as many as are asked for, none without; masked as the texts of items are."""
    front, masked = everybody(app), everybody(app, mask=lambda _queue, _id, text: str(text).replace("Eva", "***"))
    error = front.get(f"/tasks/{failed.id}?errors=1").json["errors"][0]

    assert (2, "row 2", "bad", "failed") == tuple(error[name] for name in ("number", "label", "id", "status"))
    assert ("Eva is not qualified", failed.items().items[0].ended_at) == (error["text"], error["at"])
    assert "*** is not qualified" == masked.get(f"/tasks/{failed.id}?errors=1").json["errors"][0]["text"]
    assert [] == front.get(f"/tasks/{failed.id}").json["errors"]
    assert 400 == front.get(f"/tasks/{failed.id}?errors=101").status


def test_a26_items_have_params_times_and_their_course(app: Lowkiq, failed: Task) -> None:
    """A-26, A-38: and `messages` stays what it was, the texts alone."""
    bad, good = everybody(app).get(f"/tasks/{failed.id}/items").json["items"]

    assert ('{"name":"Eva"}', 14, "null") == (good["params"], good["params_size"], bad["params"])
    assert ["enqueued", "working", "failed"] == [line["kind"] for line in bad["course"]]
    assert (["Eva is not qualified"], []) == (bad["messages"], good["messages"])
    assert (0.0, 0) == (good["took"], good["left_out"])
    masked = everybody(app, mask=lambda _queue, _id, text: str(text).replace("Eva", "***"))
    assert '{"name":"***"}' == masked.get(f"/tasks/{failed.id}/items?status=done").json["items"][0]["params"]


def by_lambda(api: ASGIApp, event: dict[str, Any]) -> Any:
    """What Mangum answers, on an event loop as a function of Lambda has one."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        try:
            return Mangum(cast("Any", api), lifespan="off")(cast("Any", event), cast("Any", None))
        finally:
            asyncio.set_event_loop(None)


def test_it_can_be_mounted_and_served_by_lambda(app: Lowkiq, task: Task) -> None:
    """Below any path of an ASGI app, and as a function behind API Gateway."""
    api = tasks_api(app, authorize=lambda request, _id: request.headers.get("x-customer") == "eva")
    mounted = Browser(Starlette(routes=[Mount("/shop/api", api)]), headers={"x-customer": "eva"})
    event = {
        "version": "2.0",
        "rawPath": f"/tasks/{task.id}",
        "rawQueryString": "",
        "headers": {"x-customer": "eva", "host": "shop.example"},
        "requestContext": {"http": {"method": "GET", "path": f"/tasks/{task.id}", "sourceIp": "10.0.0.1"}},
        "isBase64Encoded": False,
    }

    assert 200 == mounted.get(f"/shop/api/tasks/{task.id}/items").status
    assert 404 == mounted.get(f"/shop/api/tasks/{task.id}", x_customer="bob").status
    assert 200 == by_lambda(api, event)["statusCode"]
