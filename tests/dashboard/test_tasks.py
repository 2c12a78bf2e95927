"""Tasks on the dashboard and in its API."""

import logging
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import BatchJob, Lowkiq, NoSuchTask, Rejected, Worker
from lowkiq_lambda.dashboard import Auth, Token, dashboard, orders
from lowkiq_lambda.dashboard.pages import tasks as page_of_tasks
from lowkiq_lambda.store.shard.keys import TasksRef
from lowkiq_lambda.tasks.record import new_id
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import Progress
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

ACTIVITY = "lowkiq_lambda.activity"
SECRET = "o" * 20
UNKNOWN = "A" * 16


def perform(_worker: Worker, job: BatchJob) -> None:
    """Enrol a product: `bad` ones cannot be, `dead` ones fail."""
    job.note("fetched the product")
    if "bad" in job.id:
        raise Rejected("the <seller> is not qualified")
    if "dead" in job.id:
        raise ValueError("no such shop")


@pytest.fixture
def enrol(app: Lowkiq, queue_name: str) -> type[Worker]:
    """A worker that enrols products, and tries once."""
    return declare(app, queue_name, Notes(), perform_job=perform, max_retry_count=0)


@pytest.fixture
def task(app: Lowkiq, enrol: type[Worker]) -> Task:
    """A closed task: two items are done, one failed, one dead, and two wait for an hour."""
    task = app.task("enrol products")
    with task:
        labels = {"1": "row 1", "2": "row 2", "3bad": "row 3", "4dead": "row 4"}
        task.push_many(enrol, [{"id": job_id, "item": label} for job_id, label in labels.items()])
        task.push_many(enrol, [{"id": job_id, "delay": 3_600} for job_id in ("5", "6")])
    app.drain()
    return task


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Browser:
    """A program with an operator's token."""
    auth = Auth(tokens=[Token("robot", SECRET, "operator")])
    return Browser(dashboard(app, auth=auth, clock=clock), headers={"authorization": f"Bearer {SECRET}"})


def items(browser: Browser, task: Task, **query: object) -> Answer:
    """A page of its items."""
    return browser.get(f"/api/v1/tasks/{task.id}/items?{urlencode(query)}")


def test_a36_a_program_polls_a_task_by_its_id(task: Task, robot: Browser) -> None:
    """A-36, A-39: it gets the counts of all statuses, whether the task is complete, and when to ask again."""
    told = robot.get(f"/api/v1/tasks/{task.id}").json

    assert (task.id, "enrol products", "closed") == (told["id"], told["name"], told["state"])
    counts = {status: count for status, count in told["counts"].items() if count}
    assert {"enqueued": 2, "done": 2, "failed": 1, "dead": 1} == counts
    assert (6, 4, None) == (told["total"], told["ended"], told["completed_at"])
    assert told["next_poll"] >= 1.0


def test_an_answer_that_did_not_change_is_not_sent_again(app: Lowkiq, task: Task, robot: Browser) -> None:
    """The ETag is the version; whoever sends it gets 304 without a body until something changes."""
    etags = {}
    for path in ("", f"/{task.id}", f"/{task.id}/items"):
        first = robot.get(f"/api/v1/tasks{path}")
        etag = etags[path] = first.headers["etag"]
        assert f'W/"{first.json["version"]}"' == etag
        same = robot.get(f"/api/v1/tasks{path}", if_none_match=f'"other", {etag}')
        assert (304, b"", etag) == (same.status, same.body, same.headers["etag"])

    app.tasks.get(task.id).cancel()

    for path, etag in etags.items():
        assert 200 == robot.get(f"/api/v1/tasks{path}", if_none_match=etag).status


def test_a38_items_have_their_messages_and_those_that_failed_come_first(task: Task, robot: Browser) -> None:
    """A-23, A-38: label, job, attempts and all messages of each item, page by page, or those of one status."""
    first = items(robot, task, limit=3).json
    rest = items(robot, task, limit=3, after=first["next"]).json

    statuses = ["failed", "dead", "enqueued", "enqueued", "done", "done"]
    assert statuses == [item["status"] for item in first["items"] + rest["items"]]
    assert rest["next"] is None
    failed = first["items"][0]
    assert ("row 3", "3bad", 3) == (failed["label"], failed["id"], failed["number"])
    assert ["fetched the product", "the <seller> is not qualified"] == failed["messages"]
    assert ["1", "2"] == [item["id"] for item in items(robot, task, status="done").json["items"]]


def test_a_page_of_items_stays_small(task: Task, robot: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """API Gateway refuses an answer above its limit: a page of large items ends sooner, and the next one goes on."""
    monkeypatch.setattr("lowkiq_lambda.operate.presentation.pages.LARGEST_PAGE", 500)
    pages = [items(robot, task).json]
    while following := pages[-1]["next"]:
        pages.append(items(robot, task, after=following).json)

    assert len(pages) > 2
    assert [1, 2, 3, 4, 5, 6] == sorted(item["number"] for page in pages for item in page["items"])


def test_the_list_has_those_that_go_on_first(app: Lowkiq, task: Task, clock: ManualClock, robot: Browser) -> None:
    """Each with its state and the number of its items; the next page goes on after the one before."""
    with app.task("empty") as ended:
        pass
    clock.advance(1.0)
    opened = app.task("another")

    # Other tests on the server have tasks, too.
    pages = [robot.get("/api/v1/tasks?limit=2").json]
    while following := pages[-1]["next"]:
        pages.append(robot.get(f"/api/v1/tasks?{urlencode({'limit': 2, 'after': following})}").json)
    assert {2} == {len(page["tasks"]) for page in pages[:-1]}
    ours = {ended.id, task.id, opened.id}
    listed = [one for page in pages for one in page["tasks"] if one["id"] in ours]

    assert [opened.id, task.id, ended.id] == [one["id"] for one in listed]
    assert ["open", "closed", "completed"] == [one["state"] for one in listed]
    assert (6, "enrol products") == (listed[1]["pushed"], listed[1]["name"])


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (f"tasks/{UNKNOWN}", 404, "unknown_task"),
        (f"tasks/{UNKNOWN}/items", 404, "unknown_task"),
        ("tasks/no-id", 400, "bad_parameter"),
        ("tasks/{id}?id=other", 400, "bad_parameter"),
        ("tasks/{id}/items?status=well", 400, "bad_parameter"),
        ("tasks/{id}/items?limit=0", 400, "bad_parameter"),
        ("tasks/{id}/items?after=done", 400, "bad_cursor"),
        ("tasks?after=here", 400, "bad_cursor"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    task: Task, robot: Browser, path: str, status: int, code: str
) -> None:
    """By a code for programs, and a sentence for people."""
    answer = robot.get(f"/api/v1/{path.format(id=task.id)}")
    assert (status, code) == (answer.status, answer.json["code"])


def test_a_program_cancels_a_task(app: Lowkiq, task: Task, robot: Browser, caplog: pytest.LogCaptureFixture) -> None:
    """What waits is gone, the activity log has who did it, and a repeat changes nothing."""
    caplog.set_level(logging.INFO, logger=ACTIVITY)

    told = robot.ask("POST", f"/api/v1/tasks/{task.id}/cancel").json

    assert ("cancelled", 2, 6) == (told["state"], told["counts"]["cancelled"], told["ended"])
    assert caplog.records[-1].getMessage().startswith(f"'robot': cancel, task {task.id} 'enrol products': 2 changed, ")
    assert 0 == app.operate.stats()["total"]["length"]
    assert "cancelled" == robot.ask("POST", f"/api/v1/tasks/{task.id}/cancel").json["state"]
    assert 404 == robot.ask("POST", f"/api/v1/tasks/{UNKNOWN}/cancel").status


def test_strangers_and_readers_cancel_nothing(task: Task, make_browser: MakeBrowser) -> None:
    """P10: nobody reads a task without signing in, and a reader, or another site's page, cancels none."""
    stranger, reader, operator = make_browser(None), make_browser(READER), make_browser()
    for path in ("tasks", f"tasks/{task.id}", f"tasks/{task.id}/items"):
        assert 401 == stranger.get(f"/api/v1/{path}").status
        assert 200 == reader.get(f"/api/v1/{path}").status
    for path in ("/tasks", f"/task?id={task.id}"):
        assert "sign-in" in stranger.get(path).location
    cancel = f"/api/v1/tasks/{task.id}/cancel"
    assert [401, 403, 403] == [browser.post(cancel).status for browser in (stranger, reader, operator)]
    assert 403 == reader.get(f"/actions/task?id={task.id}").status
    assert 403 == operator.post("/actions/task", {"id": task.id}).status
    assert "Cancel the task…" not in reader.get(f"/task?id={task.id}").text
    assert 0 == task.progress().counts["cancelled"]


def test_the_page_shows_how_far_a_task_has_come(task: Task, queue_name: str, browser: Browser) -> None:
    """A-23: counts, a bar, and the items with a link to their jobs; what handlers say is a text, and no HTML."""
    page = browser.get(f"/task?id={task.id}")

    assert "4 of 6 items have ended." in page.words
    assert "Items by status: 1 failed, 1 dead, 2 done, 2 enqueued" in page.text
    assert page.text.index("3bad") < page.text.index("4dead") < page.text.index('id="item-5"')
    assert "the &lt;seller&gt; is not qualified" in page.text
    assert f'href="./job?queue={queue_name}&amp;id=3bad&amp;task={task.id}&amp;item=failed-3"' in page.text
    assert "row 3" in page.words
    part = browser.part(f"/task?id={task.id}&status=done")
    assert ("row 1" in part.words, "row 3" in part.words, "<html" in part.text) == (True, False, False)
    assert "No item is lost" in browser.get(f"/task?id={task.id}&status=lost").words
    # Items of all statuses are not those of one that there is not.
    refused = browser.get(f"/task?id={task.id}&status=broken")
    assert (400, True) == (refused.status, "“broken” is not a status: it is one of failed, " in refused.words)


def test_the_page_of_a_job_leads_back_to_its_task(task: Task, queue_name: str, browser: Browser) -> None:
    """A-38: the job of an item that failed for good is gone, but its page says what became of the item, and why."""

    def shown(item: str, job_id: str = "3bad", task_id: str = task.id) -> str:
        query = {"queue": queue_name, "id": job_id, "task": task_id, "item": item}
        return browser.get(f"/job?{urlencode(query)}").text.replace("<wbr>", "")

    page = shown("failed-3")
    assert f'<a href="./task?id={task.id}">enrol products</a>: <span' in page
    assert "the &lt;seller&gt; is not qualified" in page
    for item in ("done-3", "failed-4", "failed", "well-3", "failed-x", ""):
        assert f'An item of the task <a href="./task?id={task.id}">' in shown(item)
    assert "An item of the task" in shown("failed-3", job_id="1")
    assert "the task" not in shown("failed-3", task_id=new_id())


def test_the_list_of_tasks_tells_how_far_each_has_come(app: Lowkiq, task: Task, browser: Browser) -> None:
    """A-36: items that have ended, of all; a closed task with open items does not read as over."""
    page = browser.get(f"/tasks?find={task.id}")
    assert "closed, not over 4 of 6" in page.words
    app.tasks.get(task.id).cancel()
    assert "cancelled 6 of 6" in browser.get(f"/tasks?find={task.id}").words

    with app.task("one more") as another:
        pass
    page = browser.get(f"/tasks?{urlencode({'find': 'ONE More'})}")
    assert (True, False) == (another.id in page.text, task.id in page.text)
    assert "No task has such a name" in browser.get("/tasks?find=no-such-task").words


def test_the_list_of_tasks_shows_what_failed(app: Lowkiq, enrol: type[Worker], browser: Browser) -> None:
    """P9: a task that is over with failed items does not read as if all were well."""
    with app.task("rejected") as task:
        task.push_many(enrol, [{"id": "1"}, {"id": "2bad"}, {"id": "3bad"}])
    app.drain()

    page = browser.get(f"/tasks?find={task.id}")

    assert "3 of 3 2 failed" in page.words
    assert f'href="./task?id={task.id}&amp;status=failed"' in page.text


def test_the_page_has_pages_of_items(task: Task, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one goes on after the last item, with the same status."""
    monkeypatch.setattr(page_of_tasks, "PAGE", 1)
    first = browser.get(f"/task?id={task.id}&status=done")
    assert ("row 1" in first.words, "First page" in first.words) == (True, False)

    second = browser.get(f"/task?{urlencode({'id': task.id, 'status': 'done', 'after': 'done-1'})}")

    assert f'href="./task?id={task.id}&amp;status=done&amp;after=done-1"' in first.text
    assert ("row 2" in second.words, "First page" in second.words, "Next page" in second.words) == (True, True, False)
    assert 400 == browser.get(f"/task?id={task.id}&after=nowhere").status


def test_an_operator_is_asked_before_a_task_is_cancelled(
    task: Task, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """The question changes nothing; the answer cancels it once, and leads back to it."""
    caplog.set_level(logging.INFO, logger=ACTIVITY)
    assert "with 2 waiting and 0 running items" in browser.get(f"/actions/task?id={task.id}").words
    assert 0 == task.progress().counts["cancelled"]

    answer = browser.send("/actions/task", {"id": task.id})

    assert (303, f"/task?id={task.id}") == (answer.status, answer.location.removeprefix("http://127.0.0.1:8000"))
    assert "cancel, task" in caplog.records[-1].getMessage()
    shown = browser.follow(answer)
    assert ("6 of 6 items have ended." in shown.words, "Cancel the task…" in shown.words) == (True, False)
    assert "Nothing to do: the task is cancelled." in browser.get(f"/actions/task?id={task.id}").words


@pytest.mark.parametrize("is_asked", [False, True])
def test_running_jobs_are_stopped_if_somebody_asks_for_it(
    app: Lowkiq, queue_name: str, browser: Browser, robot: Browser, *, is_asked: bool
) -> None:
    """By a program and on the page, which asks about a cancelled task, too, while any of it runs."""
    answers: list[Answer] = []

    def handle(_worker: Worker, job: BatchJob) -> None:
        if job.id == "a":
            answers.append(robot.ask("POST", f"/api/v1/tasks/{enrolment.id}/cancel{'?running=true' * is_asked}"))
            answers.append(browser.get(f"/actions/task?id={enrolment.id}"))
            if is_asked:
                browser.send("/actions/task", {"id": enrolment.id, "running": "1"})
        raise ValueError("broken")

    worker = declare(app, queue_name, Notes(), perform_job=handle, batch_size=1)
    enrolment = app.task("enrol products")
    enrolment.push_many(worker, [{"id": "a"}])
    app.drain()

    assert ({"cancelled": 1} if is_asked else {"enqueued": 1}) == {
        status: count for status, count in enrolment.progress().counts.items() if count
    }
    assert "Stop running jobs too" in answers[1].words
    assert "Nothing to do: the task is cancelled." in browser.get(f"/actions/task?id={enrolment.id}").words


def test_a_large_task_is_cancelled_in_the_background(
    app: Lowkiq, task: Task, robot: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is bounded, as API Gateway waits for none: what waits then is deleted by the next tick."""
    monkeypatch.setattr(orders, "SECONDS", 0.0)
    told = robot.ask("POST", f"/api/v1/tasks/{task.id}/cancel").json

    app.tasks.upkeep(lambda: 10.0)

    assert ("cancelled", 2, 0) == (told["state"], told["counts"]["enqueued"], told["counts"]["cancelled"])
    assert 2 == task.progress().counts["cancelled"]


def test_the_list_of_tasks_leads_to_each(task: Task, browser: Browser) -> None:
    """From the overview; and the address that programs know leads to the page, too."""
    assert 'href="./tasks"' in browser.get("/").text
    listed = browser.get(f"/tasks?find={task.id}")
    assert f'href="./task?id={task.id}"' in listed.text
    assert "closed" in listed.words
    assert f"/task?id={task.id}" in browser.get(f"/tasks/{task.id}").location
    assert 400 == browser.get("/tasks?after=here").status


def test_a_task_that_is_not_there_is_not_found(browser: Browser) -> None:
    """As an id that is none."""
    for task_id in (new_id(), "no id", ""):
        assert 404 == browser.get(f"/task?{urlencode({'id': task_id})}").status
        assert 404 == browser.get(f"/actions/task?{urlencode({'id': task_id})}").status
        assert 404 == browser.send("/actions/task", {"id": task_id}).status


def test_a_task_that_is_forgotten_while_the_list_is_made_spoils_no_page(
    app: Lowkiq, task: Task, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the counts its time may be over: its row says what the list knew."""
    progress = Task.progress

    def progress_of_none(self: Task) -> Progress:
        if self.id == task.id:
            records, *orders = TasksRef().keys
            app.core.backend.client.hdel(records, task.id)
            for order in orders:
                app.core.backend.client.zrem(order, task.id)
        return progress(self)

    monkeypatch.setattr(Task, "progress", progress_of_none)
    answer = browser.get(f"/tasks?find={task.id}")

    with pytest.raises(NoSuchTask):
        app.tasks.get(task.id).progress()
    assert 200 == answer.status
    assert task.id in answer.words


def test_the_page_of_a_task_has_its_pace_and_why_items_failed(
    app: Lowkiq, task: Task, enrol: type[Worker], clock: ManualClock, browser: Browser
) -> None:
    """The time that the others take, by the items that have ended; messages that are alike are one."""
    clock.advance(120.0)
    with app.task("more") as other:
        other.push_many(enrol, [{"id": f"bad {number}"} for number in range(3)])
    app.drain()

    words = browser.get(f"/task?id={task.id}").words

    assert "Since it was made 2 a minute have ended: at that the others take 1m" in words
    assert "Why items failed of the first 100" in words
    assert "the < seller> is not qualified 1 item" in words
    assert "Error: no such shop 1 item" in words
    assert "the < seller> is not qualified 3 items" in browser.get(f"/task?id={other.id}").words
    assert "Since it was made" not in browser.get(f"/task?id={other.id}").words
    assert "Why items failed" not in browser.get(f"/task?id={task.id}&status=done").words


def test_a_task_page_has_the_course_of_items_and_the_tasks_around_it(
    app: Lowkiq, enrol: type[Worker], browser: Browser
) -> None:
    """A-26, A-38: params and each message with its kind and time; links up and down, and when it failed first."""
    parent = app.task("parent", on_failure=(enrol, None), keep_params=True)
    with parent.task("child") as child:
        child.push_many(enrol, [{"id": "3bad", "payload": {"name": "<Eva>"}}])
    app.drain()

    below, above = browser.get(f"/task?id={child.id}"), browser.get(f"/task?id={parent.id}")

    assert "enqueued" in below.words
    assert "the < seller> is not qualified" in below.words
    assert "Eva" in below.words
    assert "Failed first" in below.words
    assert "Failed first" in above.words
    assert f"task?id={parent.id}" in below.text
    assert f"task?id={child.id}" in above.text
    assert "Tasks below it" in above.words


def test_a_task_page_names_the_open_tasks_below_it_and_a_cancel_counts_their_items(
    app: Lowkiq, enrol: type[Worker], browser: Browser, caplog: pytest.LogCaptureFixture, clock: ManualClock
) -> None:
    """Until all of them have ended, the task has not; its own times stay apart from that of its cancel."""
    with app.task("parent") as parent, parent.task("child") as child:
        parent.push_many(enrol, [{"id": "1"}])
        child.push_many(enrol, [{"id": job_id, "delay": 3_600} for job_id in ("2", "3")])
    app.drain()
    caplog.set_level(logging.INFO, ACTIVITY)

    before, asked = browser.get(f"/task?id={parent.id}").words, browser.get(f"/actions/task?id={parent.id}").words
    clock.advance(100.0)
    browser.send("/actions/task", {"id": parent.id})
    after = browser.get(f"/task?id={parent.id}").words

    below = f"1 task below it is open: {child.id}."
    assert f"1 of 1 item has ended. {below}" in before
    assert f"with 2 waiting and 0 running items, those of tasks below it among them. {below}" in asked
    assert "'parent': 2 changed, " in caplog.records[-1].getMessage()
    assert (True, False) == ("Closed" in after, below in after)
    assert "Cancelled" in after
