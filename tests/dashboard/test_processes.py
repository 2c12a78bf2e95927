"""Processes that drain, on the dashboard and in its API."""

import logging
import os
import socket
from urllib.parse import urlencode
from uuid import uuid4

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Doing, Process
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, jobs_of

ACTIVITY = "lowkiq_lambda.activity"
SECRET = "o" * 20


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


@pytest.fixture
def sender(app: Lowkiq, queue_name: str, clock: ManualClock) -> HeartbeatSender:
    """A daemon with three threads, one of which runs five ids of a queue of the app."""
    declare(app, queue_name, print)
    doing = Doing(queue=queue_name, shard=2, since=clock.time() - 7.0, count=5, ids=("a<1>", "b", "c"))
    told = Process(
        host=f"host{uuid4().hex}",
        pid=4711,
        kind="daemon",
        version="9.9",
        since=clock.time() - 3_600.0,
        threads=3,
        state="running",
        doing=(doing,),
        rss=64 * 1024**2,
        round_trip=0.08,
        is_slow=True,
    )
    sender = HeartbeatSender(app.core.backend, told.host)
    sender.send(told)
    return sender


@pytest.fixture
def process(app: Lowkiq, sender: HeartbeatSender) -> Process:
    """The same, as it is listed: other tests have processes on the server too."""
    return next(process for process in app.operate.processes() if process.id == sender._id)


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Browser:
    """A program with an operator's token."""
    auth = Auth(tokens=[Token("robot", SECRET, "operator")])
    return Browser(dashboard(app, auth=auth, clock=clock), headers={"authorization": f"Bearer {SECRET}"})


def order_by_api(robot: Browser, order: str, process_id: str) -> Answer:
    """A program's order."""
    body = msgspec.json.encode({"id": process_id})
    return robot.ask("POST", f"/api/v1/process/{order}", {"content-type": "application/json"}, body)


def test_s24_the_page_tells_who_lives_and_what_each_does(process: Process, queue_name: str, browser: Browser) -> None:
    """S-24, SK-1: host, state, the ids that run with a link to each, memory, and a warning of a slow way to Redis."""
    page = browser.part("/processes")

    assert "<html" not in page.text
    row = page.words[page.words.index(process.host) :]
    assert f"{queue_name}, shard 2, for 7.0 s: a<1> , b , c and 2 more" in row
    assert all(word in row for word in ("daemon", "running", "64 MB", "80 ms slow", "9.9"))
    assert f'href="./job?{urlencode({"queue": queue_name, "id": "a<1>"}).replace("&", "&amp;")}"' in page.text
    assert "Processes" in browser.get("/").words


def test_a_process_that_is_silent_is_gone(process: Process, clock: ManualClock, browser: Browser) -> None:
    """SK-1: after a minute it says so, and there is nothing to be ordered; what it did last goes on no longer."""
    clock.advance(61.0)

    page = browser.get("/processes").text

    row = page[page.index(process.host) :].partition("</tr>")[0]
    assert ">gone<" in row
    assert "shard 2, for 7.0 s:" in row
    assert "Quiet…" not in row
    assert "may never hear this" in browser.get(f"/actions/process?{urlencode({'id': process.id, 'do': 'stop'})}").words


def test_sk2_an_operator_is_asked_before_a_process_gets_an_order(
    app: Lowkiq, sender: HeartbeatSender, process: Process, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """SK-2: the order is given once it is confirmed, the log has who gave it, and the list says what is asked."""
    caplog.set_level(logging.INFO, logger=ACTIVITY)
    asked = browser.get(f"/actions/process?{urlencode({'id': process.id, 'do': 'quiet'})}")
    assert "Quiet the process?" in asked.words
    assert "" == next(one.order for one in app.operate.processes() if one.id == process.id)

    answer = browser.send("/actions/process", {"id": process.id, "do": "quiet"})

    assert (303, True) == (answer.status, answer.location.endswith("/processes"))
    assert "told to be quiet" in browser.get("/processes").words
    assert caplog.records[-1].getMessage().startswith(f"'olga': quiet, process {process.id!r}, address ")
    assert "quiet" == sender.send(process)


@pytest.mark.parametrize("order", ["quiet", "stop"])
def test_sk2_a_program_gives_orders(sender: HeartbeatSender, process: Process, robot: Browser, order: str) -> None:
    """SK-2: by the id that the list has; of a process that nobody knows it hears that."""
    listed = {one["id"]: one for one in robot.get("/api/v1/processes").json["processes"]}

    assert (4711, "running", 5) == (
        listed[process.id]["pid"],
        listed[process.id]["state"],
        listed[process.id]["doing"][0]["count"],
    )
    assert {"order": order} == order_by_api(robot, order, process.id).json
    assert order == sender.send(process)
    unknown = order_by_api(robot, order, "nobody")
    assert (404, "unknown_process") == (unknown.status, unknown.json["code"])


def test_strangers_and_readers_order_nothing(
    process: Process, sender: HeartbeatSender, make_browser: MakeBrowser
) -> None:
    """P10: a reader sees the processes; neither he nor another site's page gives orders."""
    stranger, reader, operator = make_browser(None), make_browser(READER), make_browser()
    assert [401, 200] == [browser.get("/api/v1/processes").status for browser in (stranger, reader)]
    assert "sign-in" in stranger.get("/processes").location
    assert "Stop…" not in reader.get("/processes").text
    fields = {"id": process.id, "do": "stop"}
    assert [403, 403] == [browser.post("/actions/process", fields).status for browser in (reader, operator)]
    assert 403 == reader.get(f"/actions/process?{urlencode(fields)}").status
    assert "" == sender.send(process)


@pytest.mark.parametrize(("fields", "status"), [({"id": "nobody", "do": "stop"}, 404), ({"do": "dance"}, 400)])
def test_an_order_that_cannot_be_given_is_refused(browser: Browser, fields: dict[str, str], status: int) -> None:
    """By a sentence, on the page that asks."""
    assert status == browser.get(f"/actions/process?{urlencode(fields)}").status


def test_a_process_that_is_gone_does_nothing_now(
    process: Process, browser: Browser, app: Lowkiq, clock: ManualClock
) -> None:
    """What it did when it was heard of last may have been taken over since: it is told as the past."""
    sender = HeartbeatSender(app.core.backend, process.host)
    sender.send(process)
    row = row_of(browser, process)
    assert "nothing; when it was heard of last" not in row

    clock.advance(61.0)

    assert "nothing; when it was heard of last" in row_of(browser, process)


def row_of(browser: Browser, process: Process) -> str:
    """The process on the page; the name of a host may be two letters, which a nonce in the head may have, too."""
    rows = browser.get("/processes").text.replace("<wbr>", "").partition("<tbody>")[2]
    return rows.partition(process.host)[2].partition("</tr>")[0]


def test_a_process_that_has_lost_its_shard_is_marked(
    app: Lowkiq, queue_name: str, browser: Browser, clock: ManualClock
) -> None:
    """P1: Redis accepts nothing of an evicted holder any more, nor of one whose shard another has by now."""
    rows, notes = list[str](), Notes()
    worker = declare(app, queue_name, notes)
    process = Process(
        host=socket.gethostname(),
        pid=os.getpid(),
        kind="daemon",
        version="9.9",
        since=clock.time(),
        threads=1,
        state="running",
    )
    sender = HeartbeatSender(app.core.backend, process.host)

    def look() -> None:
        doing = Doing(queue=queue_name, shard=0, since=clock.time(), count=1, ids=("a",))
        clock.advance(1.0)
        sender.send(msgspec.structs.replace(process, doing=(doing,)))
        rows.append(row_of(browser, process))
        (shard,) = app.operate(worker).shards()
        app.operate(worker).in_flight.evict_holder(0, shard.token)
        rows.append(row_of(browser, process))

    notes.then = lambda _batch: look()
    worker.push_many(jobs_of("a"))
    app.drain()

    assert ["fenced" in row for row in rows] == [False, True]
    assert "its writes are refused" in rows[1]
