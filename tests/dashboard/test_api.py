"""The API: what programs are told, what they may do, and how they are refused."""

import base64
import json
import logging
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode, urljoin

import pytest
from redis.connection import AbstractConnection

from lowkiq_lambda import BackendUnavailable, Config, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from lowkiq_lambda.operate.inspect.job_list import JobListReader
from lowkiq_lambda.operate.presentation.jobs import LARGEST_PAYLOAD
from lowkiq_lambda.operate.presentation.pages import LARGEST_PAGE
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import OPERATOR as OPERATORS_PASSWORD
from tests.kit.apps import closing_app
from tests.kit.handlers import LATER, FailingHandler, failing
from tests.kit.looks import ids_of
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

OPERATOR, READER = "o" * 20, "r" * 20
AUTH = Auth(tokens=[Token("robot", OPERATOR, "operator"), Token("scraper", READER)])
HOSTILE = ["</script>", "a/b%2F", "\0", "💥" * 20, "[(", "%", "a&b=c", "  "]


class Robot(Browser):
    """A program with a token."""

    def read(self, path: str, **query: Any) -> Answer:
        """Ask the API."""
        return self.get(f"/api/v1/{path}?{urlencode(query)}")

    def act(self, path: str, **body: Any) -> Answer:
        """Have it do something."""
        return self.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Robot:
    """An operator's program."""
    return _robot(app, clock, OPERATOR)


def _robot(app: Lowkiq, clock: ManualClock, secret: str, **options: Any) -> Robot:
    served = dashboard(app, **{"auth": AUTH, "clock": clock, **options})
    return Robot(served, headers={"authorization": f"Bearer {secret}"})


def kill(app: Lowkiq, worker: Any, handler: FailingHandler, count: int) -> None:
    """So many ids end in the morgue."""
    handler.failing = {str(n) for n in range(count)}
    worker.push_many([{"id": n} for n in range(count)])
    app.drain()


@pytest.fixture
def mortal(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker whose failures are final, with three shards."""
    return declare(app, queue_name, handler, max_retry_count=0, shards_count=3, batch_size=100)


def test_stats_are_those_of_lowkiq(robot: Robot, app: Lowkiq, worker: Any, queue_name: str, clock: ManualClock) -> None:
    """`/api/v1/stats` has length, morgue length and lag, in total and by worker, and nothing else (L-46, LN-20)."""
    worker.push_many([{"id": 1}, {"id": 2}])
    clock.advance(5)

    numbers = {"length": 2, "morgue_length": 0, "lag": 5.0}
    answer = robot.read("stats")

    assert {"total": numbers, "by_worker": {queue_name: numbers}} == answer.json == app.operate.stats()
    assert "application/json" == answer.headers["content-type"]


def test_stats_without_workers_are_zeros(robot: Robot) -> None:
    """An app that declares nothing has nothing (LN-20)."""
    assert {"total": {"length": 0, "morgue_length": 0, "lag": 0.0}, "by_worker": {}} == robot.read("stats").json


def test_queues_and_shards_are_told_in_numbers(robot: Robot, mortal: Any, queue_name: str) -> None:
    """Each queue with the number of its shards, each shard with its index."""
    mortal.push_many([{"id": n} for n in range(20)])

    (queue,) = robot.read("queues").json["queues"]
    shards = robot.read("shards", queue=queue_name).json["shards"]

    assert (queue_name, 3, 20) == (queue["name"], queue["shards_count"], queue["length"])
    assert [0, 1, 2] == [shard["index"] for shard in shards]
    assert 20 == sum(shard["length"] for shard in shards)


def test_a_queue_that_was_made_otherwise_darkens_no_other(
    app: Lowkiq, clock: ManualClock, worker: Any, queue_name: str, server_url: str
) -> None:
    """What many queues are asked for is answered with 200, and says why one is not there; that one alone is a 409."""
    other = Lowkiq(Config(redis_url=server_url), clock=clock)
    wrong = f"{queue_name}-wrong"
    declare(app, wrong, FailingHandler(), merge="max").push_many([{"id": 1}])
    worker.push_many([{"id": 1}])
    sound = declare(other, queue_name, FailingHandler())
    other.every(60, sound, id="nightly", name="sync")
    declare(other, wrong, FailingHandler(), merge="min")
    robot = _robot(other, clock, OPERATOR)

    stats, queues, errors = robot.read("stats"), robot.read("queues"), robot.read("errors")
    schedules, processes, metrics = robot.read("schedules"), robot.read("processes"), robot.get("/metrics")
    alone = [robot.read(what, queue=wrong) for what in ("shards", "errors", "schedules")]
    other.core.backend.client.close()

    assert [200] * 6 == [answer.status for answer in (stats, queues, errors, schedules, processes, metrics)]
    assert [queue_name] == [*stats.json["by_worker"]] == [queue["name"] for queue in queues.json["queues"]]
    assert 1 == stats.json["total"]["length"]
    assert [[wrong]] * 3 == [[*answer.json["skipped"]] for answer in (stats, queues, errors)]
    assert "with merge='min', but it was made with merge='max'" in stats.json["skipped"][wrong]
    assert ["sync"] == [entry["name"] for entry in schedules.json]
    assert [(409, "queue_mismatch", stats.json["skipped"][wrong])] * 3 == [
        (answer.status, answer.json["code"], answer.json["detail"]) for answer in alone
    ]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("by", ["id", "due_at", "retry_count"])
def test_pages_go_on_from_their_cursor(robot: Robot, mortal: Any, queue_name: str, by: str, order: str) -> None:
    """Page by page each job comes once, in order, whatever is in its id; the cursor says nothing that is needed."""
    ids = HOSTILE + [f"job-{n}" for n in range(17)]
    mortal.push_many([{"id": job_id, "delay": 10 * (position // 3)} for position, job_id in enumerate(ids)])

    found, query = list[str](), dict[str, Any](queue=queue_name, order=order, limit=4)
    while True:
        answer = robot.read(f"waiting/range_by_{by}", **query)
        page = answer.json
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]

    whole = [job["id"] for job in robot.read(f"waiting/range_by_{by}", queue=queue_name, order=order).json["jobs"]]
    assert whole == found
    assert sorted(ids) == sorted(found)


@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_a_search_goes_on_from_its_cursor(robot: Robot, mortal: Any, handler: FailingHandler, limit: int) -> None:
    """By the beginning of ids and a text in errors, each job once, whatever is in its id; in the morgue as well."""
    ids = [f"a{one}" for one in HOSTILE] + [f"b{one}" for one in HOSTILE]
    query = {"queue": mortal.queue_name, "limit": limit}
    mortal.push_many([{"id": one} for one in ids])
    for path in ("waiting/search", "morgue/search"):
        assert sorted(ids[: len(HOSTILE)]) == sorted(_all_ids(robot, path, **query, prefix="a"))
        assert sorted(ids) == sorted(_all_ids(robot, path, **query))
        handler.failing = set(ids)
        mortal.app.drain()
    assert ["b%"] == _all_ids(robot, "morgue/search", **query, prefix="b", error="% IS BRO")


def test_a_page_of_a_search_ends_before_it_is_too_large(robot: Robot, worker: Any, queue_name: str) -> None:
    """It stays within what API Gateway takes, and goes on after the last job that it has."""
    worker.push_many([{"id": n, "payload": "x" * (LARGEST_PAYLOAD - 100)} for n in range(5)])
    first = robot.read("waiting/search", queue=queue_name)

    assert len(first.text) < LARGEST_PAGE * 1.1
    assert [str(n) for n in range(5)] == sorted(_all_ids(robot, "waiting/search", queue=queue_name))


def _all_ids(robot: Robot, path: str, **query: Any) -> list[str]:
    """The ids of all pages, by their cursors."""
    found = list[str]()
    while True:
        page = robot.read(path, **query).json
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]


def test_bounds_narrow_a_page(robot: Robot, worker: Any, queue_name: str, clock: ManualClock) -> None:
    """Bounds are as in Redis: a value, or with a parenthesis without it."""
    now = clock.time()
    worker.push_many([{"id": n, "due_at": now + n} for n in range(5)])

    page = robot.read("waiting/range_by_due_at", queue=queue_name, min=f"({now + 1}", max=now + 3).json

    assert ["2", "3"] == [job["id"] for job in page["jobs"]]


def test_a_page_ends_before_it_is_too_large(robot: Robot, worker: Any, queue_name: str) -> None:
    """An answer stays within what API Gateway takes, and goes on after the last job that it has."""
    text = "x" * (LARGEST_PAYLOAD - 100)
    worker.push_many([{"id": n, "payload": text} for n in range(5)])
    query, found = {"queue": queue_name}, list[str]()
    while True:
        answer = robot.read("waiting/range_by_due_at", **query)
        assert len(answer.text) < LARGEST_PAGE * 1.1
        found += [job["id"] for job in answer.json["jobs"]]
        if answer.json["next"] is None:
            break
        query["cursor"] = answer.json["next"]

    assert [str(n) for n in range(5)] == found


def test_a_large_payload_is_left_out(robot: Robot, worker: Any, queue_name: str) -> None:
    """Of what is too large the size is told (E-84)."""
    worker.push_many([{"id": "big", "payload": "x" * LARGEST_PAYLOAD}])

    (payload,) = robot.read("job", queue=queue_name, id="big").json["waiting"]["payloads"]

    assert {"score", "left_out"} == set(payload)
    assert payload["left_out"] > LARGEST_PAYLOAD


def test_what_no_codec_can_read_is_bytes(server_url: str, clock: ManualClock, queue_name: str) -> None:
    """Unreadable payloads come as they are, in base64; odd objects of a codec as their text (E-84)."""

    def dump(given: Any) -> bytes:
        return bytes(given)

    def load(data: bytes) -> object:
        return {"set", 1} if data == b"odd" else json.loads(data)

    app = Lowkiq(Config(redis_url=server_url, dump_payload=dump, load_payload=load), clock=clock)
    worker: Any = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": 1, "payload": b"\xff\0"}, {"id": 2, "payload": b"odd"}])

    first, second = _robot(app, clock, READER).read("waiting/range_by_id", queue=queue_name).json["jobs"]

    assert base64.b64encode(b"\xff\0").decode() == first["payloads"][0]["unreadable"]
    assert second["payloads"][0]["payload"]


def test_a_mask_hides_payloads(app: Lowkiq, clock: ManualClock, worker: Any, queue_name: str) -> None:
    """What the user's function returns is shown in place of the payload."""
    worker.push_many([{"id": 7, "payload": {"card": "4111"}}])
    robot = _robot(app, clock, READER, mask=lambda queue, job_id, payload: [queue, job_id, *payload])

    (payload,) = robot.read("job", queue=queue_name, id=7).json["waiting"]["payloads"]

    assert [queue_name, "7", "card"] == payload["payload"]


def test_nothing_is_shown_where_the_mask_fails(
    app: Lowkiq, clock: ManualClock, worker: Any, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither programs nor people see what was to be hidden; both are told, and the log says how, once for each."""

    def mask(_queue: str, _job_id: str, payload: Any) -> object:
        return payload["card"][-4:]

    worker.push_many([{"id": 1, "payload": {"card": "secret-4111"}}])
    worker.push_many([{"id": 2, "payload": f"secret-{n}", "score": n} for n in range(3)])
    robot = _robot(app, clock, READER, mask=mask)

    jobs = {one["id"]: one["payloads"] for one in robot.read("waiting/range_by_id", queue=queue_name).json["jobs"]}
    assert ["4111"] == [one["payload"] for one in jobs["1"]]
    assert [{"score": float(n), "mask_failed": True} for n in range(3)] == jobs["2"]
    assert 1 == len(caplog.records)

    for path in (f"waiting?queue={queue_name}", f"job?queue={queue_name}&id=2"):
        page = robot.get(f"/{path}")
        assert "(the mask failed)" in page.words
        assert "secret" not in page.text
    assert 3 == len(caplog.records)


def test_a_job_is_found_wherever_it_is(
    robot: Robot, app: Lowkiq, worker: Any, handler: FailingHandler, queue_name: str
) -> None:
    """One answer tells of a job in flight, and of what waits under the same id; one that is nowhere is a 404."""
    seen: list[Answer] = []

    def look() -> None:
        worker.push_many([{"id": "a", "payload": 2, "score": 2}])
        seen.append(robot.read("job", queue=queue_name, id="a"))
        seen.append(robot.read("processing", queue=queue_name))

    worker.push_many([{"id": "a", "payload": 1, "score": 1}])
    handler.meanwhile = look
    app.drain()
    job, flying = seen

    assert [1] == [one["payload"] for one in job.json["processing"]["payloads"]]
    assert [2] == [one["payload"] for one in job.json["waiting"]["payloads"]]
    assert "in flight" in job.json["why"]
    assert ["a"] == [one["id"] for one in flying.json["jobs"]]
    assert 404 == robot.read("job", queue=queue_name, id="a").status


def test_a_job_tells_how_it_has_failed(
    app: Lowkiq, clock: ManualClock, worker: Any, handler: FailingHandler, queue_name: str
) -> None:
    """E-76: the last failures, newest first, with what no JSON can hold written out."""
    handler.failing = {"a"}
    worker.push_many([{"id": "a"}])
    for words in ("once \udcff", "twice"):
        handler.words = words
        app.drain()
        clock.advance(LATER)

    failures = _robot(app, clock, READER).read("job", queue=queue_name, id="a").json["failures"]

    assert [("a twice", 1), ("a once \\udcff", 0)] == [(one["error"], one["retry_count"]) for one in failures]
    assert {int} == {type(one["retry_count"]) for one in failures}
    assert failures[1]["at"] < failures[0]["at"] < clock.time()


def test_chosen_jobs_are_requeued_and_deleted(
    robot: Robot, mortal: Any, handler: FailingHandler, caplog: pytest.LogCaptureFixture
) -> None:
    """Each action changes the ids that are named, says how many, and leaves a line about who it was."""
    app, queue_name = mortal.app, mortal.queue_name
    kill(app, mortal, handler, 6)
    caplog.clear()

    with caplog.at_level(logging.INFO, "lowkiq_lambda.activity"):
        requeued = robot.act("morgue/requeue", queue=queue_name, ids=["0", "1", "unknown"])
        dead = robot.act("morgue/delete", queue=queue_name, ids=["2"])
        waiting = robot.act("waiting/delete", queue=queue_name, ids=["1"])

    assert [2, 1, 1] == [one.json["changed"] for one in (requeued, dead, waiting)]
    assert {"length": 1, "morgue_length": 3} == {
        name: value for name, value in app.operate.stats()["by_worker"][queue_name].items() if name != "lag"
    }
    assert ["robot", "robot", "robot"] == [record.__dict__["who"] for record in caplog.records]
    assert "3 selected: '0', '1', 'unknown'" == caplog.records[0].__dict__["target"]


def test_a_whole_list_is_done_in_steps(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler, queue_name: str
) -> None:
    """Calls go on where the one before ended, until there is no `next`; a repeated call changes nothing twice."""
    kill(app, mortal, handler, 1_200)

    body: dict[str, Any] = {"queue": queue_name, "limit": 300, "reason": "a test"}
    steps: list[dict[str, Any]] = []
    while not steps or steps[-1]["next"]:
        steps.append(robot.act("morgue/requeue_all", **body).json)
        if "next" in body:
            robot.act("morgue/requeue_all", **body)
        body["next"] = steps[-1]["next"]

    assert len(steps) > 1
    assert [one["handled"] for one in steps] == sorted(one["handled"] for one in steps)
    assert {"length": 1_200, "morgue_length": 0} == {
        name: value for name, value in app.operate.stats()["by_worker"][queue_name].items() if name != "lag"
    }


@pytest.mark.parametrize(
    ("path", "left"),
    [("waiting/kill_all", (1, 4)), ("waiting/delete_all_failed", (1, 0)), ("waiting/run_now_all", (5, 0))],
)
def test_failed_jobs_are_killed_deleted_or_run_now(
    robot: Robot, worker: Any, handler: FailingHandler, path: str, left: tuple[int, int]
) -> None:
    """Those that have failed are meant, and those alone where an action is about failures (LN-26)."""
    handler.failing = {str(n) for n in range(4)}
    worker.push_many([{"id": n} for n in range(4)])
    worker.app.drain()
    worker.push_many([{"id": "fresh"}])

    answer = robot.act(path, queue=worker.queue_name)

    assert (4, None) == (answer.json["changed"], answer.json["next"])
    total = worker.app.operate.stats()["total"]
    assert left == (total["length"], total["morgue_length"])


@pytest.mark.parametrize(
    ("wanted", "changed"),
    [
        ({"prefix": "1"}, 2),
        ({"error": "0 IS BROKEN"}, 2),
        ({"prefix": "1", "error": "10 is"}, 1),
        ({"min_id": "[10", "max_id": "(2"}, 1),
        ({"min_updated_at": "-inf", "max_updated_at": "0"}, 0),
        ({"min_updated_at": "0"}, 4),
        ({}, 4),
    ],
)
def test_an_action_is_done_to_what_a_filter_finds(
    robot: Robot, mortal: Any, handler: FailingHandler, wanted: dict[str, str], changed: int
) -> None:
    """Of the morgue those of which all of it holds, and no other."""
    handler.failing = {"0", "1", "10", "2"}
    mortal.push_many([{"id": job_id} for job_id in handler.failing])
    mortal.app.drain()

    answer = robot.act("morgue/requeue_all", queue=mortal.queue_name, filter=wanted)

    assert (changed, None) == (answer.json["changed"], answer.json["next"])
    total = mortal.app.operate.stats()["total"]
    assert (changed, 4 - changed) == (total["length"], total["morgue_length"])


def test_more_than_a_hundred_ids_need_a_reason(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler, caplog: pytest.LogCaptureFixture
) -> None:
    """By ids, of a list, and of what a filter finds: a 400 names the field, and nothing has changed."""
    kill(app, mortal, handler, 101)
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")
    caplog.clear()
    many = [str(number) for number in range(101)]
    acts: list[tuple[str, dict[str, Any]]] = [
        ("morgue/requeue_all", {}),
        ("morgue/delete", {"ids": many}),
        ("jobs/cancel", {"ids": many}),
        ("jobs/pause", {"ids": many, "reason": " "}),
    ]
    refused = [robot.act(path, queue=mortal.queue_name, **body).json for path, body in acts]
    few = robot.act("morgue/requeue_all", queue=mortal.queue_name, filter={"prefix": "9"}).json
    done = robot.act("morgue/requeue", queue=mortal.queue_name, ids=many, reason="ticket 7").json

    detail = "`reason` is missing. An act on more than 100 ids needs a reason: this is on 101."
    assert {("reason_missing", 400, detail)} == {(one["code"], one["status"], one["detail"]) for one in refused}
    assert (11, 90) == (few["changed"], done["changed"])
    assert [] == app.operate(mortal).requests()
    assert [None, "ticket 7"] == [record.__dict__.get("reason") for record in caplog.records]


def test_a_program_is_told_how_many_ids_are_paused(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler
) -> None:
    """They did not change: of chosen ids, and of a list in several calls, the sum so far."""
    kill(app, mortal, handler, 20)
    app.operate(mortal).pause_jobs(range(5))

    chosen = robot.act("morgue/requeue", queue=mortal.queue_name, ids=["1", "5", "x"]).json
    steps = [robot.act("morgue/requeue_all", queue=mortal.queue_name, limit=1).json]
    while steps[-1]["next"]:
        steps.append(robot.act("morgue/requeue_all", queue=mortal.queue_name, limit=1, next=steps[-1]["next"]).json)

    assert [(1, 1), (14, 5)] == [(answer["changed"], answer["paused"]) for answer in (chosen, steps[-1])]


def _later(clock: ManualClock) -> str:
    return str(clock.time() + 1_000)


FOUND: Any = [
    ("waiting/delete_found", lambda _clock: {"prefix": "f"}, ["later"]),
    ("waiting/delete_found", lambda _clock: {"min_retry_count": "0"}, ["fresh", "later"]),
    ("waiting/delete_found", lambda _clock: {"max_retry_count": "(0"}, ["failed"]),
    ("waiting/delete_found", lambda clock: {"min_due_at": _later(clock)}, ["failed", "fresh"]),
    ("waiting/delete_all_failed", lambda _clock: {"prefix": "l"}, ["failed", "fresh", "later"]),
    ("waiting/kill_all", lambda _clock: {"prefix": "f"}, ["fresh", "later"]),
]


@pytest.mark.parametrize("case", FOUND)
def test_an_action_on_what_waits_by_a_filter(
    robot: Robot, worker: Any, handler: FailingHandler, clock: ManualClock, case: Any
) -> None:
    """By id, time and retry count; what an action is not meant for stays, though the filter finds it."""
    path, wanted, left = case
    handler.failing = {"failed"}
    worker.push_many([{"id": "failed"}])
    worker.app.drain()
    worker.push_many([{"id": "fresh"}, {"id": "later", "due_at": float(_later(clock))}])

    assert 200 == robot.act(path, queue=worker.queue_name, filter=wanted(clock)).status
    waiting = robot.read("waiting/range_by_id", queue=worker.queue_name).json["jobs"]
    assert left == [job["id"] for job in waiting]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"filter": {}},
        {"filter": {"prefix": ""}},
        {"filter": {"prefix": "x" * 1_001}},
        {"filter": {"min_id": "a"}},
        {"filter": {"min_retry_count": "many"}},
        {"filter": {"min_updated_at": "0"}},
        {"filter": None},
    ],
)
def test_a_filter_that_is_none_deletes_nothing(robot: Robot, worker: Any, body: dict[str, Any]) -> None:
    """What says nothing does not mean everything."""
    worker.push_many([{"id": 1}])

    assert 400 == robot.act("waiting/delete_found", queue=worker.queue_name, **body).status
    assert 1 == worker.app.operate.stats()["total"]["length"]


@pytest.mark.parametrize(
    ("path", "left"),
    [("waiting/run_now", ({"2", "3", "fresh"}, set())), ("waiting/kill", ({"0", "2", "3", "fresh"}, {"1"}))],
)
def test_chosen_jobs_are_run_now_and_killed(  # noqa: PLR0913, PLR0917 - the parts of a queue, and what is done to it
    robot: Robot,
    worker: Any,
    handler: FailingHandler,
    caplog: pytest.LogCaptureFixture,
    path: str,
    left: tuple[Any, Any],
) -> None:
    """The ids that are named, and no others; of what has not failed none goes to the morgue; and it is noted."""
    app = worker.app
    handler.failing = {"1", "2", "3"}
    worker.push_many([{"id": n} for n in range(1, 4)])
    app.drain()
    handler.failing = set()
    worker.push_many([{"id": "0", "delay": 60}, {"id": "fresh", "delay": 60}])
    with caplog.at_level(logging.INFO, "lowkiq_lambda.activity"):
        answer = robot.act(path, queue=worker.queue_name, ids=["0", "1", "unknown"])
    if path == "waiting/run_now":
        app.drain()
    operated = app.operate(worker)

    assert 2 - len(left[1]) == answer.json["changed"]
    assert left == tuple({job.id for job in listed.list()} for listed in (operated.waiting, operated.morgue))
    assert "3 selected: '0', '1', 'unknown'" == caplog.records[0].__dict__["target"]


@pytest.mark.parametrize(("how", "dead"), [({}, []), ({"how": "retry"}, []), ({"how": "skip"}, ["a"])])
def test_blocked_jobs_are_unblocked(robot: Robot, worker: Any, how: dict[str, str], dead: list[str]) -> None:
    """E-79: with their oldest payload or without it; a job that is not blocked stays, and a third word is refused."""
    app = worker.app
    blocking = declare(app, f"{worker.queue_name}-2", failing("a"), dead_head="block", max_retry_count=0)
    blocking.push_many([{"id": "a"}, {"id": "later", "delay": 60}])
    app.drain()

    unblocked = robot.act("waiting/unblock", queue=blocking.queue_name, ids=["a", "later"], **how)

    assert 1 == unblocked.json["changed"]
    assert ([], dead) == (app.operate(blocking).waiting.blocked(), ids_of(app.operate(blocking).morgue.list()))
    assert 400 == robot.act("waiting/unblock", queue=blocking.queue_name, ids=["a"], how="drop").status


@pytest.mark.parametrize(
    ("least", "most", "found"),
    [
        ("2027-01-15T08:00:00Z", "+inf", ["at", "behind"]),
        ("(2027-01-15T09:00:00+01:00", "+inf", ["behind"]),
        ("-inf", "(2027-01-15T08:00", ["before"]),
        ("2027-01-15", "2027-01-15T08:00:00.000", ["before", "at"]),
        ("1800000000", "2027-01-16", ["at", "behind"]),
    ],
)
def test_a_time_is_unix_seconds_or_iso_8601(  # noqa: PLR0913, PLR0917 - a queue, and a range of it
    robot: Robot, worker: Any, queue_name: str, least: str, most: str, found: list[str]
) -> None:
    """In ranges and in filters, as a bound or without it, in UTC where it names no zone."""
    at = 1_800_000_000  # 2027-01-15 08:00 UTC
    worker.push_many([{"id": name, "due_at": at + n} for n, name in enumerate(("before", "at", "behind"), -1)])

    page = robot.read("waiting/range_by_due_at", queue=queue_name, min=least, max=most).json
    assert found == [job["id"] for job in page["jobs"]]
    body = {"queue": queue_name, "filter": {"min_due_at": least, "max_due_at": most}}
    assert len(found) == robot.act("waiting/delete_found", **body).json["changed"]


@pytest.mark.parametrize(
    "wrong", ["2027-13-01", "2027-02-29", "2027-01-15 08:00", "2027-01-15T25:00", "1969-01-01", "2027-01", "tomorrow"]
)
@pytest.mark.usefixtures("worker")
def test_a_time_that_is_none_is_refused(robot: Robot, queue_name: str, wrong: str) -> None:
    """A day that no calendar has is no time."""
    answer = robot.read("waiting/range_by_due_at", queue=queue_name, min=wrong)

    assert (400, "bad_parameter") == (answer.status, answer.json["code"])


@pytest.mark.usefixtures("worker")
def test_a_bound_that_is_none_is_refused_in_the_words_of_the_description(robot: Robot, queue_name: str) -> None:
    """Not with the pattern, which only programs read; in a query and in the filter of a body."""
    described = robot.get("/api/v1/openapi.json").json["components"]["schemas"]["WaitingFilter"]["properties"]
    body = {"queue": queue_name, "filter": {"min_retry_count": "abc"}}
    answers = [
        ("min", "min_due_at", robot.read("waiting/range_by_due_at", queue=queue_name, min="nan")),
        ("min_retry_count", "min_retry_count", robot.act("waiting/delete_found", **body)),
    ]

    for name, of_filter, answer in answers:
        sentence = f": `{name}` is not as it must be. {described[of_filter]['description']}"
        assert (400, sentence) == (
            answer.status,
            answer.json["detail"].removeprefix("Invalid query").removeprefix("Invalid body"),
        )


@pytest.mark.parametrize("most", ["+inf", "+2000000000", "2027-01-15T09:00:00+01:00"])
def test_a_plus_of_a_query_need_not_be_escaped(robot: Robot, worker: Any, queue_name: str, most: str) -> None:
    """It arrives as a space, and no bound has a space."""
    worker.push_many([{"id": 1, "due_at": 1_800_000_000}])

    answer = robot.get(f"/api/v1/waiting/range_by_due_at?queue={queue_name}&max={most}")

    assert ["1"] == [job["id"] for job in answer.json["jobs"]]


@pytest.mark.usefixtures("worker")
def test_every_day_is_a_time(robot: Robot, queue_name: str) -> None:
    """From 1970 to 2099, leap years too."""
    days = [date(1970, 1, 1) + timedelta(days=n) for n in range(0, 47_482, 997)] + [
        date(2028, 2, 29),
        date(2099, 12, 31),
    ]
    answers = [robot.read("waiting/range_by_due_at", queue=queue_name, min=day.isoformat()) for day in days]

    assert [200] * len(days) == [answer.status for answer in answers]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/unknown", "not_found"),
        ("/api/v1/shards?queue=unknown", "unknown_queue"),
        ("/api/v1/job?queue={queue}&id=unknown", "unknown_job"),
        ("/api/v1/stats?other=1", "bad_parameter"),
        ("/api/v1/shards", "bad_parameter"),
        ("/api/v1/waiting/range_by_id?queue={queue}&cursor=forged", "bad_cursor"),
        ("/api/v1/waiting/search?queue={queue}&cursor=MDoxXzA", "bad_cursor"),
        ("/api/v1/processing?queue={queue}&cursor=_w", "bad_cursor"),
        ("/api/v1/waiting/delete", "method_not_allowed"),
    ],
)
@pytest.mark.usefixtures("worker")
def test_a_refusal_has_a_code(robot: Robot, queue_name: str, path: str, code: str) -> None:
    """A program need not read the sentence, which may change."""
    answer = robot.get(path.format(queue=queue_name))
    described = robot.get("/api/v1/openapi.json").json["components"]["schemas"]["Problem"]["properties"]["code"]

    assert code == answer.json["code"]
    assert code in described["enum"]


@pytest.mark.usefixtures("worker")
def test_what_cannot_be_done_has_a_code(robot: Robot, app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """As what cannot be shown."""
    answers = [
        robot.act("shard/evict", queue=queue_name, shard=7, token=1),
        robot.act("waiting/delete_found", queue=queue_name, filter={}),
        robot.act("waiting/delete", queue=queue_name, ids=[]),
        robot.ask("POST", "/api/v1/waiting/delete", {"content-type": "text/plain"}, b"{}"),
        _robot(app, clock, READER).act("queue/resume", queue=queue_name),
        _robot(app, clock, "nobody").read("stats"),
    ]

    codes = ["unknown_shard", "empty_filter", "bad_body", "unsupported_media_type", "forbidden"]
    assert [*codes, "unauthorized"] == [answer.json["code"] for answer in answers]


def test_each_call_of_an_action_has_its_filter(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler, caplog: pytest.LogCaptureFixture
) -> None:
    """A `next` goes on with the filter that it began with; the lines of one action share a number and tell the sum."""
    kill(app, mortal, handler, 3_000)
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")
    caplog.clear()
    body: dict[str, Any] = {"queue": mortal.queue_name, "filter": {"prefix": "1"}, "limit": 1, "reason": "a test"}
    first = robot.act("morgue/requeue_all", **body).json

    for other in ({"prefix": "2"}, {}):
        assert 400 == robot.act("morgue/requeue_all", **{**body, "filter": other, "next": first["next"]}).status
    last = robot.act("morgue/requeue_all", **{**body, "next": first["next"], "limit": 10_000}).json

    assert (1_111, None) == (last["changed"], last["next"])
    assert {"length": 1_111, "morgue_length": 1_889} == {
        name: value for name, value in app.operate.stats()["total"].items() if name != "lag"
    }
    lines = [record.__dict__ for record in caplog.records]
    assert 1 == len({line["action_id"] for line in lines})
    assert ("requeue", "done", 1_111) == (lines[-1]["action"], lines[-1]["state"], lines[-1]["in_all"])
    assert 1_111 == sum(line["changed"] for line in lines)


def test_redis_breaks_off_an_action(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-83: what was done is answered, with a `next`; where nothing could be done it is a 503."""
    kill(app, mortal, handler, 2_000)
    run, calls = app.core.backend.run, list[str]()

    def run_once(name: str, *args: Any, **options: Any) -> Any:
        calls.append(name)
        if calls.count("requeue") > 1:
            raise BackendUnavailable("It is gone.")
        return run(name, *args, **options)

    monkeypatch.setattr(app.core.backend, "run", run_once)
    body = {"queue": mortal.queue_name, "reason": "a test"}
    first = robot.act("morgue/requeue_all", **body)
    assert 200 == first.status
    assert 0 < first.json["changed"] < 2_000
    assert 503 == robot.act("morgue/requeue_all", **body, next=first.json["next"]).status

    monkeypatch.setattr(app.core.backend, "run", run)
    last = robot.act("morgue/requeue_all", **body, next=first.json["next"]).json
    assert (2_000, None) == (last["changed"], last["next"])


def test_the_next_of_one_action_is_none_of_another(
    robot: Robot, app: Lowkiq, mortal: Any, handler: FailingHandler, queue_name: str
) -> None:
    """A `next` goes on with its own action on its own queue, and a forged one with nothing."""
    kill(app, mortal, handler, 1_000)
    following = robot.act("morgue/requeue_all", queue=queue_name, limit=1, reason="a test").json["next"]

    assert following
    for path, wrong in (("morgue/delete_all", following), ("morgue/requeue_all", "forged")):
        answer = robot.act(path, queue=queue_name, next=wrong)
        assert (400, "bad_next") == (answer.status, answer.json["code"])


def test_a_paused_queue_rests_until_it_is_resumed(robot: Robot, app: Lowkiq, worker: Any, queue_name: str) -> None:
    """Nothing is drained in a pause, all is after it."""
    worker.push_many([{"id": 1}])

    pause = robot.act("queue/pause", queue=queue_name, seconds=60).json
    assert {} == app.drain()
    (shard,) = robot.read("shards", queue=queue_name).json["shards"]
    assert {"paused": True, "until": shard["paused_until"]} == pause
    assert shard["paused"]

    assert {"paused": False, "until": None} == robot.act("queue/resume", queue=queue_name).json
    assert {"done": 1} == app.drain()


def test_drains_forget_how_long_batches_took(robot: Robot, app: Lowkiq, worker: Any, queue_name: str) -> None:
    """What the shards keep of it is gone, and the next drain keeps what it learned."""
    worker.push_many([{"id": 1}])
    app.drain()
    key = app.core.queues.agreed(worker).shards[0].key("meta")

    assert {"queue": queue_name} == robot.act("queue/forget_timing", queue=queue_name).json
    assert not app.core.backend.client.hexists(key, "pace")
    worker.push_many([{"id": 2}])
    app.drain()
    assert app.core.backend.client.hexists(key, "pace")


@pytest.mark.usefixtures("worker")
def test_a_pause_without_an_end_is_told_from_none(
    robot: Robot, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither has a time, but one is a pause; that there was none to end is noted, too."""
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")

    def paused() -> list[tuple[bool, float | None]]:
        shards = robot.read("shards", queue=queue_name).json["shards"]
        return [(shard["paused"], shard["paused_until"]) for shard in shards]

    assert {"paused": True, "until": None} == robot.act("queue/pause", queue=queue_name).json
    assert [(True, None)] == paused()
    robot.act("queue/resume", queue=queue_name)
    assert [(False, None)] == paused()
    robot.act("queue/resume", queue=queue_name)

    assert [1, 1, 0] == [record.__dict__["changed"] for record in caplog.records]


@pytest.mark.usefixtures("worker")
def test_a_reader_may_look_and_nothing_else(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Every action refuses a token that may only look, before it is even read."""
    reader = _robot(app, clock, READER)

    assert 200 == reader.read("stats").status
    for operation in OPERATIONS:
        if operation.method == "POST":
            answer = reader.act(operation.path.removeprefix("/"), queue=queue_name)
            assert (403, "application/problem+json") == (answer.status, answer.headers["content-type"]), operation.path


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/unknown", 404),
        ("/api/v1/stats/", 404),
        ("/api/v1/stats?queue={queue}", 400),
        ("/api/v1/waiting/search?queue={queue}&prefx=a", 400),
        ("/api/v1/shards", 400),
        ("/api/v1/shards?queue=unknown", 404),
        ("/api/v1/waiting/range_by_id?queue={queue}&limit=1001", 400),
        ("/api/v1/waiting/range_by_id?queue={queue}&limit=1&limit=2", 400),
        ("/api/v1/waiting/range_by_due_at?queue={queue}&min=soon", 400),
        ("/api/v1/waiting/range_by_due_at?queue={queue}&cursor=forged", 400),
        ("/api/v1/waiting/search?queue={queue}&cursor=forged", 400),
        ("/api/v1/waiting/search?queue={queue}&cursor=MDoxXzA", 400),
        ("/api/v1/waiting/search?queue={queue}&cursor=_w", 400),
        ("/api/v1/morgue/search?queue={queue}&prefix=", 400),
        ("/api/v1/waiting/delete", 405),
    ],
)
@pytest.mark.usefixtures("worker")
def test_a_refusal_is_a_problem(robot: Robot, queue_name: str, path: str, status: int) -> None:
    """Errors are problem JSON (RFC 9457), which repeats the status."""
    answer = robot.get(path.format(queue=queue_name))

    assert (status, status) == (answer.status, answer.json["status"])
    assert "application/problem+json" == answer.headers["content-type"]
    assert {"type", "title", "status", "code", "detail"} == set(answer.json)


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json", b"", 400),
        ("application/json", b'{"queue": "\xff"}', 400),
        ("application/json", b'{"queue": "\\ud800", "ids": ["1"]}', 400),
        ("application/json", b'{"queue": "a", "ids": ["1"], "other": 1}', 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b" " * 2_000_000, 413),
    ],
)
@pytest.mark.usefixtures("worker")
def test_a_body_that_does_not_fit_is_refused(robot: Robot, kind: str, body: bytes, status: int) -> None:
    """Whatever is sent, the answer is a problem, and nothing breaks."""
    answer = robot.ask("POST", "/api/v1/morgue/delete", {"content-type": kind}, body)

    assert (status, "application/problem+json") == (answer.status, answer.headers["content-type"])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"queue": "a", "queue": "b", "ids": ["1"]}', "repeated keys: 'queue'."),
        (b'{"queue": "a", "filter": {"prefix": "1", "prefix": "2"}}', "repeated keys: 'prefix'."),
        (b'{"queue": "\\ud800", "ids": ["1"]}', r"a text has half of a surrogate pair, one of \ud800 to \udfff."),
    ],
)
@pytest.mark.usefixtures("worker")
def test_a_body_that_is_no_good_json_is_refused_with_the_reason(robot: Robot, body: bytes, why: str) -> None:
    """Nobody has to guess which of two values counts, or what is truncated."""
    answer = robot.ask("POST", "/api/v1/waiting/delete", {"content-type": "application/json"}, body)

    assert (400, f"Invalid body: {why}") == (answer.status, answer.json["detail"])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/api/v1/unknown", "The API has no such path: see openapi.json."),
        ("/unknown", "The dashboard has no page here."),
        ("/api/v1/waiting/delete", "This address supports POST."),
    ],
)
@pytest.mark.usefixtures("worker")
def test_a_wrong_path_is_told_from_a_wrong_method(robot: Robot, path: str, sentence: str) -> None:
    """A sentence says where to look, or which methods there are."""
    assert sentence in robot.get(path).text


@pytest.mark.usefixtures("worker")
def test_nobody_is_let_in_without_a_token(robot: Robot) -> None:
    """The API, its description and the metrics ask for a token, in a way that programs understand."""
    for headers, sentence in (({}, "Send `Authorization: Bearer SECRET`"), ({"authorization": "Bearer x"}, "unknown")):
        robot.headers = headers
        for path in ("/api/v1/stats", "/api/v1/openapi.json", "/metrics", "/api/v1/unknown"):
            answer = robot.get(path)
            assert (401, "Bearer") == (answer.status, answer.headers["www-authenticate"]), path
            assert sentence in answer.json["detail"]


@pytest.mark.usefixtures("worker")
def test_a_browsers_session_needs_its_proof_here_too(browser: Browser, queue_name: str) -> None:
    """With a cookie alone nothing is changed; with the proof of a page it is."""
    body = json.dumps({"queue": queue_name}).encode()
    headers = {"content-type": "application/json", "sec-fetch-site": "same-origin"}

    refused = browser.ask("POST", "/api/v1/queue/resume", headers, body)
    done = browser.ask("POST", "/api/v1/queue/resume", {**headers, "x-csrf-token": browser.proof()}, body)

    assert (403, 200) == (refused.status, done.status)


def test_metrics_are_told_to_prometheus(app: Lowkiq, clock: ManualClock, handler: FailingHandler) -> None:
    """One line for each queue and number, with names escaped and without ids."""
    worker: Any = declare(app, 'a"b\\c', handler)
    worker.push_many([{"id": "secret-id"}])
    clock.advance(3)

    answer = _robot(app, clock, READER).get("/metrics")
    lines = answer.text.splitlines()

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'lowkiq_queue_length{queue="a\\"b\\\\c"} 1' in lines
    assert any(line.startswith("lowkiq_queue_lag_seconds{") for line in lines)
    assert "# TYPE lowkiq_queue_done_total counter" in lines
    assert "secret-id" not in answer.text


def test_a_queue_that_was_made_otherwise_hides_no_other(
    app: Lowkiq, clock: ManualClock, queue_name: str, server_url: str
) -> None:
    """P9: it is told as what it is, and the others are measured."""
    declare(app, queue_name, FailingHandler()).push_many([{"id": 1}])
    other = Lowkiq(Config(redis_url=server_url), clock=clock)
    declare(other, queue_name, FailingHandler(), shards_count=7)
    declare(other, f"{queue_name}-sound", FailingHandler()).push_many([{"id": 1}])

    lines = _robot(other, clock, READER).get("/metrics").text.splitlines()
    other.core.backend.client.close()

    assert f'lowkiq_queue_mismatched{{queue="{queue_name}"}} 1' in lines
    assert f'lowkiq_queue_mismatched{{queue="{queue_name}-sound"}} 0' in lines
    assert [f'lowkiq_queue_length{{queue="{queue_name}-sound"}} 1'] == [
        line for line in lines if line.startswith("lowkiq_queue_length")
    ]


@pytest.mark.usefixtures("worker")
def test_health_is_told_to_everybody(robot: Robot) -> None:
    """Without signing in one learns that all is well, and no more."""
    robot.headers.clear()

    answer = robot.get("/healthz")

    assert (200, {"status": "ok", "app": "ok", "redis": "ok"}) == (answer.status, answer.json)


def test_health_names_the_part_that_is_away(clock: ManualClock, queue_name: str) -> None:
    """503 with the part that is out of reach; no address, no words of the error; the API says 503 as well."""
    away = Lowkiq(Config(redis_url="redis://:geheim@127.0.0.1:1/0", redis_timeout=0.1), clock=clock)
    away.worker(queue_name=queue_name)(lambda _batch: None)
    robot = _robot(away, clock, READER)

    answer = robot.get("/healthz")

    assert (503, {"status": "unreachable", "app": "ok", "redis": "unreachable"}) == (answer.status, answer.json)
    assert 503 == robot.read("stats").status
    assert "geheim" not in robot.read("stats").text


def test_the_description_knows_where_it_is(make_browser: MakeBrowser) -> None:
    """OpenAPI 3.1, with every operation, at an address that is found from that of the description, behind any proxy."""
    browser = make_browser(None, base_path="/jobs")
    browser.mounted_at = "/jobs"
    browser.sign_in(OPERATORS_PASSWORD)

    described = browser.get("/api/v1/openapi.json")

    assert "3.1.0" == described.json["openapi"]
    (server,) = described.json["servers"]
    assert urljoin(described.url, "/jobs/api/v1") == urljoin(described.url, server["url"])
    assert "/" != server["url"][0]
    assert {*(one.path for one in OPERATIONS), "/healthz", "/metrics"} == set(described.json["paths"])
    for name, way in described.json["paths"].items():
        assert all(one["description"] for one in way.get("get", {}).get("parameters", ())), name


def test_the_history_of_a_queue_is_that_of_its_chart(app: Lowkiq, clock: ManualClock, worker: Any) -> None:
    """SK-21: counts of each step, rates, and the times of batches."""
    worker.push_many([{"id": number} for number in range(3)])
    app.drain()
    clock.advance(120.0)

    told = _robot(app, clock, READER).get(f"/api/v1/history?queue={worker.queue_name}&span=1h").json

    assert (60, 60, 3) == (told["series"]["step"], len(told["series"]["ended"]), sum(told["series"]["ended"]))
    assert {"p50", "p95"} == {*told["took"]} == {*told["waited"]}


def test_metrics_say_that_redis_is_away(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the metrics of queues, and with the versions that run; at once, as Prometheus waits ten seconds."""
    tries = list[object]()
    connect: Any = AbstractConnection.connect

    def count_and_connect(connection: AbstractConnection) -> None:
        tries.append(connection)
        connect(connection)

    with closing_app(Lowkiq(Config(redis_url="redis://127.0.0.1:1/0"), clock=clock)) as away:
        declare(away, "away", FailingHandler())
        robot = _robot(away, clock, READER)
        monkeypatch.setattr(AbstractConnection, "connect", count_and_connect)
        answer = robot.get("/metrics")

    assert 1 == len(tries)
    assert 200 == answer.status
    assert "lowkiq_up 0" in answer.text.splitlines()
    assert 'lowkiq_build_info{version="' in answer.text
    assert "lowkiq_queue" not in answer.text


def test_what_is_wrong_with_a_request_is_said_in_a_sentence(worker: Any, browser: Browser) -> None:
    """With the name of the field, and without the words of a library."""
    waiting = f"/api/v1/waiting/range_by_id?queue={worker.queue_name}"
    assert [
        "Invalid query: `limit` must be at most 1000.",
        "Invalid query: `limit` must be a whole number, not a text.",
        "Invalid query: `order` cannot be 'up'.",
        "Invalid query: `queue` is missing.",
    ] == [
        browser.get(path).json["detail"]
        for path in (f"{waiting}&limit=5000", f"{waiting}&limit=x", f"{waiting}&order=up", "/api/v1/shards")
    ]


def test_the_description_tells_of_the_token_of_forms(browser: Browser) -> None:
    """A program with a cookie needs it for every POST, and monitors find what they read."""
    described = browser.get("/api/v1/openapi.json").json
    posts = [path["post"]["security"] for path in described["paths"].values() if "post" in path]
    assert posts == [[{"token": []}, {"session": [], "form_token": []}]] * len(posts)
    assert "x-csrf-token" == described["components"]["securitySchemes"]["form_token"]["name"]
    assert [] == described["paths"]["/healthz"]["get"]["security"]


def test_a_job_that_moves_between_two_looks_is_found(
    robot: Robot, app: Lowkiq, worker: Any, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists are read one after the other: one that is dead behind the first of them is told all the same."""
    looks: list[int] = []
    fetch = JobListReader.fetch

    def then_moved(listed: Any, ids: list[str]) -> Any:
        found = fetch(listed, ids)
        looks.append(len(found))
        if len(looks) == 1:
            app.operate(worker).waiting.kill(["a"], error="enough")
        return found

    monkeypatch.setattr(JobListReader, "fetch", then_moved)
    worker.push_many([{"id": "a", "delay": 60}])
    job = robot.read("job", queue=queue_name, id="a")

    assert 3 == len(looks)
    assert 200 == job.status
    assert job.json["waiting"]
    assert job.json["morgue"]


def test_waiting_jobs_are_due_at_a_rate_after_a_dry_run(robot: Robot, app: Lowkiq, worker: Any) -> None:
    """Both answers tell by when the last is due; the steps share one row of times."""
    worker.push_many([{"id": n, "delay": 600} for n in range(5)])
    asked = {"queue": worker.queue_name, "rate": 2}
    before = [job.due_at for job in app.operate(worker).waiting.list()]

    planned = robot.act("waiting/run_now_all", **asked, dry_run=True).json
    unchanged = [job.due_at for job in app.operate(worker).waiting.list()]
    done = robot.act("waiting/run_now_all", **asked).json

    times = sorted(job.due_at for job in app.operate(worker).waiting.list())
    assert (5, None, before) == (planned["changed"], planned["next"], unchanged)
    assert (5, times[-1]) == (done["changed"], done["last_due"])
    assert [pytest.approx(times[0] + n / 2) for n in range(5)] == times
    assert planned["last_due"] == pytest.approx(times[-1], abs=60)
    for dry_run in (True, False):
        refused = robot.act("waiting/run_now_all", **{**asked, "rate": 1e-300}, dry_run=dry_run)
        assert (400, "bad_body") == (refused.status, refused.json["code"])
