"""What operators do to jobs, by the pages: asked first, then a step at a time."""

import logging
import re
import secrets
import zlib
from random import Random
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from msgspec import structs

from lowkiq_lambda import BackendUnavailable, Lowkiq
from lowkiq_lambda.dashboard.bulk_action import (
    LARGEST_STATE,
    BulkActionRequest,
    BulkActionResult,
    BulkActionState,
    pack,
    unpack,
)
from lowkiq_lambda.dashboard.pages import actions as page
from lowkiq_lambda.dashboard.security.sessions import sign
from lowkiq_lambda.operate.inspect.activity import signing_key
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.desk import Desk
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Server
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

ACTIVITY = "lowkiq_lambda.activity"


@pytest.fixture
def desk(app: Lowkiq, clock: ManualClock, worker: Any, handler: FailingHandler, server: Server) -> Desk:
    """What is known of the queue from below."""
    return Desk(app, clock, worker, handler, server.admin)


def ask(browser: Browser, desk: Desk, do: str, *ids: str, **search: str) -> Answer:
    """The page that asks whether it is meant, where the form leads to."""
    fields = {"queue": desk.worker.queue_name, "do": do, "ids": [quote(one, safe="") for one in ids]}
    narrowed = "&".join(f"{name}={quote(value)}" for name, value in search.items())
    answer = browser.send("/actions/ask", {**fields, "search": narrowed})
    return browser.follow(answer) if answer.status == 303 else answer


def action_state(answer: Answer) -> str:
    """What the page would send on."""
    return str(re.findall(r'name="action_state" value="(.*?)"', answer.text)[0])


def go_on(browser: Browser, answer: Answer, **typed: str) -> Answer:
    """Press the page's only button, where scripts run, with what was typed: a reason where the form has one."""
    reason = {"reason": "a test"} if 'name="reason"' in answer.text else {}
    fields = {"action_state": action_state(answer), **reason, **typed}
    return browser.send("/actions/step", fields, hx_request="true")


def key_of(desk: Desk) -> bytes:
    """What the dashboard signs with."""
    return signing_key(desk.app.core.backend, 0.0)


def test_selected_jobs_are_requeued(browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """LN-25, LN-36: told what it touches first, nothing is done before; then those, no other, are due; and noted."""
    desk.kill([{"id": "a"}, {"id": "b\0\r\n<i>"}, {"id": "c"}])
    asked = ask(browser, desk, "picked:requeue", "a", "b\0\r\n<i>")
    assert (200, 3) == (asked.status, len(desk.state()["morgue"]))
    assert "2 ids that you selected" in asked.words

    with caplog.at_level(logging.INFO, ACTIVITY):
        done = go_on(browser, asked)
    assert "Done. 2 ids were changed." in done.words
    assert (["c"], {"a", "b\0\r\n<i>"}) == ([*desk.state()["morgue"]], set(desk.state()["waiting"]))
    (record,) = caplog.records
    what = r"2 selected: 'a', 'b\x00\r\n<i>'"
    assert ("olga", what, 2) == (record.who, record.target, record.changed)  # type: ignore[attr-defined]  # the log sets it


def test_ids_that_are_paused_are_told_apart(browser: Browser, desk: Desk) -> None:
    """An act that leaves them says how many they were, beside what was no longer there."""
    desk.kill([{"id": job_id} for job_id in "ab"])
    desk.queue.pause_jobs(["a"])

    done = go_on(browser, ask(browser, desk, "picked:requeue", "a", "b", "x")).words

    assert "1 id was changed. 1 id is paused, and did not change: resume it first. 1 of the selected ids was" in done


def test_a_line_has_an_end(browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """E-85: of many chosen ids the first are named, of a long one its beginning; a whole list is `all`."""
    caplog.set_level(logging.INFO, ACTIVITY)
    desk.kill([{"id": "x" * 5_000}, *({"id": n} for n in range(20))])

    go_on(browser, ask(browser, desk, "picked:requeue", "x" * 5_000, *map(str, range(20))))
    go_on(browser, ask(browser, desk, "found:delete", by="due_at", range="gte", value="5"))
    desk.kill([{"id": "a"}])
    go_on(browser, ask(browser, desk, "found:requeue"))

    selected, part, whole = (record.target for record in caplog.records)  # type: ignore[attr-defined]  # the log sets it
    assert selected.startswith(f"21 selected: '{'x' * 100}'…, '0', '1', ")
    assert selected.endswith("'8', 11 more")
    assert ("found by: due at or after 1970-01-01T00:00:05.000Z", "all") == (part, whole)


def test_the_second_operator_finds_nothing_to_do(browser: Browser, desk: Desk) -> None:
    """E-81: two who were asked at one time change everything once."""
    desk.kill([{"id": "a"}, {"id": "b"}])
    first, second = ask(browser, desk, "found:requeue"), ask(browser, desk, "found:requeue")

    assert "2 ids were changed" in go_on(browser, first).words
    told = go_on(browser, second).words
    assert "Done. No id was changed. Not counted" in told
    assert "another operator changed first" in told
    assert {"a", "b"} == set(desk.state()["waiting"])


def test_a_job_that_began_after_the_question_is_said_to_run(browser: Browser, desk: Desk) -> None:
    """A job with a cursor waits between its turns, so it may be asked about and run when it is to be deleted."""
    desk.push([{"id": "a"}, {"id": "b"}])
    asked, told = ask(browser, desk, "picked:delete", "a", "b"), list[str]()
    desk.handler.meanwhile = lambda: told.append(go_on(browser, asked).words)
    desk.queue.waiting.delete(["b"])
    desk.drain()

    (words,) = told
    assert "No id was changed. 1 of the selected ids runs now, and no action touches what runs." in words
    assert "stops at its next checkpoint when its queue is paused : then it waits, and can be changed." in words
    assert "Not counted" not in words


@pytest.mark.nightly("tests of the browser interrupt a smaller action in each check")
def test_ten_thousand_are_requeued_with_an_interruption(
    browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-83: by steps, each telling how far it is; left half-way it goes on later, and a step twice does no harm."""
    # So that a step ends by what it has done, however slow the machine is.
    monkeypatch.setattr(page, "STEP", 60.0)
    jobs = [{"id": n, "payload": n} for n in range(10_000)]
    desk.kill(jobs)
    asked = ask(browser, desk, "found:requeue")
    assert "10,000 ids of the queue" in asked.words

    first = go_on(browser, asked)
    assert "data-going" in first.text
    assert "<html" not in first.text
    (so_far,) = re.findall(r"([\d,]+) changed so far", first.words)
    assert page.IDS_IN_A_STEP <= int(so_far.replace(",", "")) < 10_000
    assert 10_000 - int(so_far.replace(",", "")) == len(desk.state()["morgue"])

    desk.clock.advance(1_800.0)
    desk.drain()
    go_on(browser, first)
    answer = go_on(browser, first)
    while "action_state" in answer.text:
        answer = go_on(browser, answer)
    assert "Done." in answer.words
    assert {} == desk.state()["morgue"]
    desk.drain()
    assert desk.is_empty()


def test_a_page_that_is_loaded_again_says_what_it_cannot_count(
    browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent once more, half-way or when all is done, the first step finds nothing to change, and says why."""
    monkeypatch.setattr(page, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": n} for n in range(1_200)])
    asked = ask(browser, desk, "found:requeue")
    first = go_on(browser, asked)
    assert "500 changed so far" in first.words
    assert "If you reload this page, it asks about the rest" in first.words

    again = go_on(browser, asked)
    while "action_state" in again.text:
        again = go_on(browser, again)
    assert "Done. 700 ids were changed. Not counted" in again.words
    last = go_on(browser, asked)
    while "action_state" in last.text:
        last = go_on(browser, last)
    assert "Done. No id was changed. Not counted" in last.words


def test_what_is_complete_is_done(browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page says that all was looked at, and has a button to go on: the last call is not left to it."""
    monkeypatch.setattr(page, "STEP", 0.0)
    desk.kill([{"id": n} for n in range(600)])
    for do, ids in (("picked:requeue", ["1", "2"]), ("found:delete_dead", [])):
        answer, told = ask(browser, desk, do, *ids), list[str]()
        while "action_state" in answer.text:
            answer = go_on(browser, answer)
            told += re.findall(r"([\d,]+) of \1 ids examined", answer.words)
        assert [] == told
        assert "Done." in answer.words
    assert {} == desk.state()["morgue"]


def test_an_id_that_nobody_sees_is_named_in_quotes(browser: Browser, desk: Desk) -> None:
    """As lists show it; a long one is cut."""
    desk.kill([{"id": " "}, {"id": "x" * 500}])
    words = ask(browser, desk, "picked:delete_dead", " ", "x" * 500).words
    assert "“ ” x" in words
    assert "x" * 199 + "…" in words


def test_all_failed_are_deleted(browser: Browser, desk: Desk) -> None:
    """LN-26, LN-35: what has failed goes; what is fresh stays, and so does what came after the question."""
    desk.fail([{"id": "a"}, {"id": "b"}])
    desk.push([{"id": "fresh"}])
    asked = ask(browser, desk, "found:delete_failed")
    desk.push([{"id": "b", "payload": "new"}])

    assert "2 ids of the queue" in asked.words
    assert "Done." in go_on(browser, asked).words
    assert {"b", "fresh"} == set(desk.state()["waiting"])
    assert [["new"]] == [[payload for payload, _ in job.payloads] for job in desk.queue.waiting.fetch(["b"])]


def test_failed_jobs_are_killed(browser: Browser, desk: Desk) -> None:
    """LN-26: all of them go to the morgue; of selected ones those that have failed."""
    desk.fail([{"id": "a"}, {"id": "b"}, {"id": "c"}])
    desk.push([{"id": "fresh"}])
    assert "1 id was changed" in go_on(browser, ask(browser, desk, "picked:kill", "a", "fresh")).words
    assert "2 ids were changed" in go_on(browser, ask(browser, desk, "found:kill")).words
    assert ({"fresh"}, {"a", "b", "c"}) == (set(desk.state()["waiting"]), set(desk.state()["morgue"]))


def test_all_are_performed_now(browser: Browser, desk: Desk) -> None:
    """E-82: in the order that they have, due at the time of the answer, not of the question."""
    desk.push([{"id": job_id, "delay": delay} for delay, job_id in enumerate("cab", 100)])
    asked = ask(browser, desk, "found:run_now")
    desk.clock.advance(50.0)

    assert "3 ids of the queue" in asked.words
    assert "3 ids were changed" in go_on(browser, asked).words
    due = {job_id: job[1] for job_id, job in desk.state()["waiting"].items()}
    assert [*"cab"] == sorted(due, key=lambda job_id: due[job_id])
    assert all(desk.clock.time() - 1 < at <= desk.clock.time() for at in due.values())
    assert desk.app.operate.stats()["total"]["lag"] < 1


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ({"find": "a"}, {"a1", "a2"}),
        ({"text": "1 IS BRO"}, {"a1", "b1"}),
        ({"find": "a", "text": "1 is"}, {"a1"}),
        ({"by": "id", "range": "gte", "value": "a2"}, {"a2", "b1", "b2"}),
        ({"by": "id", "range": "lte", "value": "a2"}, {"a1", "a2"}),
        ({"by": "updated_at", "range": "gte", "value": "0"}, {"a1", "a2", "b1", "b2"}),
        ({"by": "updated_at", "range": "lte", "value": "0"}, set()),
        ({"by": "updated_at", "range": "desc"}, {"a1", "a2", "b1", "b2"}),
    ],
)
def test_what_a_search_finds(browser: Browser, desk: Desk, search: dict[str, str], found: set[str]) -> None:
    """The action is done to all that the search's pages would show, and to nothing else."""
    desk.kill([{"id": job_id} for job_id in ("a1", "a2", "b1", "b2")])
    asked = ask(browser, desk, "found:delete_dead", **search)
    assert (f"{len(found)} ids" if found else "No job matches") in re.sub("1 id ", "1 ids ", asked.words)
    if found:
        assert "Done." in go_on(browser, asked).words
    assert {"a1", "a2", "b1", "b2"} - found == set(desk.state()["morgue"])


@pytest.mark.parametrize(("way", "left"), [("gte", {"fresh"}), ("lte", {"failed"})])
def test_what_a_search_by_retry_count_finds(browser: Browser, desk: Desk, way: str, left: set[str]) -> None:
    """Those that have not failed count as -1."""
    desk.fail([{"id": "failed"}])
    desk.push([{"id": "fresh"}])
    value = "0" if way == "gte" else "-1"
    go_on(browser, ask(browser, desk, "found:delete", by="retry_count", range=way, value=value))
    assert left == set(desk.state()["waiting"])


def test_a_drain_that_runs_meanwhile(browser: Browser, desk: Desk) -> None:
    """E-80: what is being performed stays, and what is put back meanwhile is performed once."""
    desk.kill([{"id": "dead", "payload": 1}])
    desk.push([{"id": "runs", "payload": 1}])
    seen: list[str] = []

    def meanwhile() -> None:
        desk.push([{"id": "runs", "payload": 2}])
        seen.append(go_on(browser, ask(browser, desk, "picked:delete", "runs")).words)
        seen.append(go_on(browser, ask(browser, desk, "found:requeue")).words)

    desk.handler.meanwhile = meanwhile
    desk.drain()
    assert all("1 id was changed" in words for words in seen)
    assert [{"dead": [1]}, {"runs": [1]}, {"dead": [1]}] == desk.handler.batches
    assert desk.is_empty()


def test_redis_breaks_off(browser: Browser, desk: Desk) -> None:
    """E-83: what was done by then is told, and the page's button goes on with the rest."""
    desk.kill([{"id": n} for n in range(1_200)])
    asked = ask(browser, desk, "found:delete_dead")

    def fail() -> None:
        raise BackendUnavailable("It is gone.")

    desk.before("delete_morgue", fail, calls=2)
    answer = go_on(browser, asked, typed_queue=desk.worker.queue_name)
    assert (200, True) == (answer.status, "It is gone." in answer.words)
    assert "500 changed so far" in answer.words
    assert "data-going" not in answer.text
    assert "1,200 ids were changed" in go_on(browser, answer).words
    assert {} == desk.state()["morgue"]


def test_a_step_ends_in_time(browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow all is, each step gets on a little: within the payloads of one id, too, which counts once."""
    monkeypatch.setattr(page, "STEP", 0.0)
    desk.push([{"id": "large", "payload": n} for n in range(2_500)])
    desk.push([{"id": "small", "payload": n} for n in range(2)])
    answer, taken = ask(browser, desk, "picked:delete", "large", "small"), 0
    left = [2_502]
    while "action_state" in answer.text:
        answer, taken = go_on(browser, answer), taken + 1
        left.append(sum(len(entries) for entries, *_ in desk.state()["waiting"].values()))
    assert 4 <= taken <= 8
    assert left == sorted(left, reverse=True)
    assert "2 ids were changed" in answer.words


def test_a_queue_of_many_shards(
    app: Lowkiq, queue_name: str, handler: FailingHandler, make_browser: MakeBrowser
) -> None:
    """Selected and all, shard after shard; an action state for other shards is refused."""
    worker = declare(app, queue_name, handler, shards_count=5)
    worker.push_many([{"id": n, "delay": 60 + n} for n in range(100)])
    browser = make_browser()

    def order(do: str, *ids: str) -> Answer:
        return browser.follow(browser.send("/actions/ask", {"queue": queue_name, "do": do, "ids": ids}))

    assert "10 ids were changed" in go_on(browser, order("picked:run_now", *map(str, range(10)))).words
    assert "90 ids of the queue" in order("found:run_now").words
    asked, key = order("found:run_now"), signing_key(app.core.backend, 0.0)
    other = unpack(key, action_state(asked), BulkActionState)
    other = structs.replace(other, action=structs.replace(other.action, shards_count=6))
    assert 400 == browser.send("/actions/step", {"action_state": pack(key, other)}).status
    assert "90 ids were changed" in go_on(browser, asked).words
    assert 100 == app.operate.stats()["total"]["length"]


@pytest.mark.parametrize(
    "search",
    [{"by": "due_at", "range": "gte", "value": "soon"}, {"by": "retry_count", "range": "lte", "value": "x"}],
)
def test_a_search_that_is_none(browser: Browser, desk: Desk, search: dict[str, str]) -> None:
    """What is no value means nothing: not everything."""
    desk.push([{"id": "a"}])
    assert 400 == ask(browser, desk, "found:delete", **search).status


def buttons(browser: Browser, path: str) -> set[str]:
    """What the page's buttons would do to jobs."""
    return set(re.findall(r'name="do" value="(.*?)"', browser.get(path).text)) - {"pause"}


def test_only_what_can_be_done_is_offered(browser: Browser, desk: Desk) -> None:
    """No button for what is due already, for failures where nothing has failed, for a list with nothing in it."""
    queue = desk.worker.queue_name
    waiting, morgue = f"/waiting?queue={queue}", f"/morgue?queue={queue}"
    assert (set(), set()) == (buttons(browser, waiting), buttons(browser, morgue))

    desk.push([{"id": "due"}])
    assert {"picked:delete", "found:run_now"} == buttons(browser, waiting)
    assert {"picked:delete"} == buttons(browser, f"/job?queue={queue}&id=due")

    desk.push([{"id": "later", "delay": 60}])
    assert {"picked:delete", "picked:run_now", "found:run_now"} == buttons(browser, waiting)
    assert {"picked:delete", "picked:run_now"} == buttons(browser, f"/job?queue={queue}&id=later")

    desk.fail([{"id": "failed"}])
    of_failed = {"picked:kill", "found:kill", "found:delete_failed"}
    assert {"picked:delete", "picked:run_now", "found:run_now"} | of_failed == buttons(browser, waiting)
    assert {"picked:delete", "picked:run_now", "picked:kill"} == buttons(browser, f"/job?queue={queue}&id=failed")

    desk.queue.waiting.kill(everything=True)
    of_dead = {"picked:requeue", "picked:delete_dead"}
    assert of_dead | {"found:requeue", "found:delete_dead"} == buttons(browser, morgue)
    assert of_dead == buttons(browser, f"/job?queue={queue}&id=failed")


def test_a_state_goes_on_however_long_the_ids_are(
    browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page sends back fits into what the dashboard takes; and what is done to some counts to the end."""
    monkeypatch.setattr(page, "STEP", 0.0)
    random = Random(1)
    long = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=60_000)) for _ in range(58)]
    desk.push([{"id": job_id, "delay": 60} for job_id in long])
    answer, taken = ask(browser, desk, "found:delete", by="due_at", range="gte", value="0"), 0
    while "action_state" in answer.text:
        assert len(action_state(answer)) <= LARGEST_STATE
        answer, taken = go_on(browser, answer), taken + 1
        assert 200 == answer.status
    assert "58 ids were changed" in answer.words
    assert taken > 1
    assert desk.is_empty()


def test_the_lines_of_one_action_belong_together(
    browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step that changed something leaves a line, and the last one tells the sum; other actions have others."""
    monkeypatch.setattr(page, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": n} for n in range(1_200)])
    with caplog.at_level(logging.INFO, ACTIVITY):
        answer = ask(browser, desk, "found:requeue")
        while "action_state" in answer.text:
            answer = go_on(browser, answer)
        go_on(browser, ask(browser, desk, "picked:delete", "1"))
    *steps, other = [record.__dict__ for record in caplog.records]

    assert [500, 500, 200] == [line["changed"] for line in steps]
    assert [500, 1_000, 1_200] == [line["in_all"] for line in steps]
    assert ["in progress", "in progress", "done"] == [line["state"] for line in steps]
    assert 1 == len({line["action_id"] for line in steps})
    assert ("delete", "done", 1) == (other["action"], other["state"], other["changed"])
    assert other["action_id"] != steps[0]["action_id"]


def pages_by_get(browser: Browser, answer: Answer) -> Answer:
    """Where an answer leads without scripts: to a page by GET, which says the same when it is loaded again."""
    assert 303 == answer.status
    page = browser.follow(answer)
    assert (page.status, page.words) == (200, browser.follow(answer).words)
    return page


def test_no_page_is_an_answer_to_a_form(browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form leads on to an address, without scripts too; what was done already is told, and the sum at the end."""
    monkeypatch.setattr(page, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": n} for n in range(1_200)])
    form = {"queue": desk.worker.queue_name, "do": "found:requeue"}
    shown = pages_by_get(browser, browser.send("/actions/ask", form))
    assert "1,200 ids of the queue" in shown.words
    assert 1_200 == len(desk.state()["morgue"])

    for left, why in ((700, {"reason": "ticket 7"}), (200, {})):
        shown = pages_by_get(browser, browser.send("/actions/step", {"action_state": action_state(shown), **why}))
        assert 'name="reason" value="ticket 7"' in shown.text
        assert f"has changed {1_200 - left:,} ids so far" in shown.words
        assert f"{left} ids of the queue" in shown.words
        assert left == len(desk.state()["morgue"])
    shown = pages_by_get(browser, browser.send("/actions/step", {"action_state": action_state(shown)}))
    assert "Done. 1,200 ids were changed." in shown.words
    assert "action_state" not in shown.text


def test_an_address_that_somebody_made_up_changes_nothing(browser: Browser, desk: Desk) -> None:
    """E-84: an address holds a question or an outcome; an action's state is neither, and nonsense is refused."""
    desk.kill([{"id": "a"}, {"id": "b"}])
    queue = desk.worker.queue_name
    key = key_of(desk)
    question = pack(key, BulkActionRequest(queue=queue, act="delete_dead", chosen=["a"]))
    assert "1 id that you selected" in browser.get(f"/actions/ask?q={question}").words
    result = pack(key, BulkActionResult(queue=queue, act="kill", changed=7))
    assert "Done. 7 ids were changed" in browser.get(f"/actions/done?q={result}").words
    other = pack(secrets.token_bytes(32), BulkActionRequest(queue=queue, act="delete_dead", chosen=["a"]))
    for text in ("", "x", "é", action_state(browser.get(f"/actions/ask?q={question}")), other, question[:-1]):
        assert {400} == {browser.get(f"/actions/{name}?q={quote(text)}").status for name in ("ask", "done")}
    elsewhere = pack(key, BulkActionRequest(queue="other", act="delete"))
    assert 404 == browser.get(f"/actions/ask?q={elsewhere}").status
    assert {"a", "b"} == set(desk.state()["morgue"])


def test_a_selection_that_no_address_can_keep(browser: Browser, desk: Desk) -> None:
    """It is asked about at once; the address that stands for it says that it has to be made again."""
    random = Random(1)
    ids = ["".join(random.choices("0123456789abcdef", k=100)) for _ in range(100)]
    desk.kill([{"id": one} for one in ids])

    shown = ask(browser, desk, "picked:requeue", *ids)
    assert "100 ids that you selected" in shown.words
    (address,) = re.findall(r'data-at="\.\.(/actions/ask\?q=.*?)"', shown.text)
    lost = browser.get(address)
    assert "select the jobs again" in lost.words
    assert "action_state" not in lost.text
    assert "Done. 100 ids were changed." in go_on(browser, shown).words


def test_a_reader_may_not(make_browser: MakeBrowser, browser: Browser, desk: Desk) -> None:
    """E-85: he sees no button, and what he sends all the same is refused."""
    desk.kill([{"id": "a"}])
    queue = desk.worker.queue_name
    reader = make_browser(READER)
    for path in ("waiting", "morgue", "shards", "job"):
        text = reader.get(f"/{path}?queue={queue}&id=a").text
        assert 'name="do"' not in text
        assert "checkbox" not in text
    for path in ("/actions/ask", "/actions/step", "/actions/queue"):
        assert 403 == reader.get(f"{path}?queue={queue}&do=pause").status
        assert 403 == reader.send(path, {"queue": queue, "do": "found:requeue"}).status
    stolen = action_state(ask(browser, desk, "found:requeue"))
    assert 403 == reader.send("/actions/step", {"action_state": stolen}).status
    assert ["a"] == [*desk.state()["morgue"]]


def test_a_forged_request(browser: Browser, desk: Desk) -> None:
    """E-84: from another site, or without the proof of a page, it is refused."""
    desk.kill([{"id": "a"}])
    good = action_state(ask(browser, desk, "found:requeue"))
    assert 403 == browser.post("/actions/step", {"action_state": good}).status
    assert 403 == browser.send("/actions/step", {"action_state": good}, sec_fetch_site="cross-site").status
    assert 403 == browser.post("/actions/queue", {"queue": desk.worker.queue_name, "do": "pause"}).status
    assert 405 == browser.get("/actions/step").status
    assert ["a"] == [*desk.state()["morgue"]]


@pytest.mark.parametrize("text", ["", "x", "eJw=", "é", "A" * 4_000])
def test_a_text_that_is_not_an_action_state(browser: Browser, text: str) -> None:
    """It is refused, with a sentence."""
    answer = browser.send("/actions/step", {"action_state": text})
    assert (400, True) == (answer.status, "is damaged" in answer.words)


FORGED: list[dict[str, Any]] = [
    {"chosen": []},
    {"chosen": ["other"]},
    {"after": "nan:0:a"},
    {"after": "x"},
    {"pending": ["gone"], "resume": b"1\xff"},
    {"snapshots": [(2**62, 1.0, 1, 1.0, 1, 1, 1)]},
    {"snapshots": [(0, float("nan"), 1, float("nan"), 1, 1, 1)]},
    {"snapshots": [(0, float("inf"), 2**63, float("inf"), 2**63, 1, 1)], "act": "run_now"},
    {"filter": {"least": "nan"}},
    {"filter": {"least_id": "x"}},
    {"total": -1},
]


@pytest.mark.parametrize("fields", FORGED)
def test_a_state_that_somebody_made_up(browser: Browser, desk: Desk, fields: dict[str, Any]) -> None:
    """Signed by another version, it may ask for what cannot be: that is refused, or finds nothing."""
    desk.push([{"id": "a"}])
    action = {"act": "delete", "shards_count": 1, "snapshots": [(0, 1.0, 1, 1.0, 1, 1, 1)], "total": 1, **fields}
    data = msgspec.msgpack.encode({"queue": desk.worker.queue_name, "action": action})
    forged = sign(key_of(desk), "BulkActionState", zlib.compress(data))

    assert browser.send("/actions/step", {"action_state": forged}, hx_request="true").status in {200, 400}
    assert 200 == browser.get(f"/waiting?queue={desk.worker.queue_name}").status


@pytest.mark.parametrize("do", ["", "picked", "found:drop", "all:requeue"])
def test_an_action_that_is_none(browser: Browser, desk: Desk, do: str) -> None:
    """So is what nobody can do, and a queue that nobody has."""
    assert 400 == ask(browser, desk, do).status
    elsewhere = browser.send("/actions/ask", {"queue": "other", "do": "found:requeue"})
    assert 404 == browser.follow(elsewhere).status


def test_nothing_selected(browser: Browser, desk: Desk) -> None:
    """It is said, and no button leads on."""
    answer = ask(browser, desk, "picked:delete")
    assert "No job is selected" in answer.words
    assert "action_state" not in answer.text


@pytest.mark.parametrize(
    ("search", "asked", "noted"),
    [
        ({"find": "a\0"}, r"id begins with a\u0000", r"id begins with 'a\x00'"),
        (
            {"find": "a", "text": "is <b>"},
            "id begins with a last error contains is <b>",
            "id begins with 'a', last error contains 'is <b>'",
        ),
        ({"by": "id", "range": "gte", "value": "a"}, "id at or after a", "id at or after 'a'"),
        (
            {"by": "retry_count", "range": "lte", "value": "0"},
            "retry count at most 0",
            "retry count at most '0'",
        ),
        (
            {"by": "due_at", "range": "lte", "value": "2031-01-15 08:00"},
            "due before 2031-01-15 08:01:00 UTC",
            "due before 2031-01-15T08:01:00.000Z",
        ),
    ],
)
def test_a_question_and_its_line_say_what_was_searched_for(  # noqa: PLR0913, PLR0917 - what is asked, and where it is told
    browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture, search: dict[str, str], asked: str, noted: str
) -> None:
    """In words, wherever the search was set up."""
    desk.fail([{"id": "a\0b"}, {"id": "ab"}])
    desk.handler.words = "is <b>"
    desk.fail([{"id": "ac"}])
    question = ask(browser, desk, "found:delete", **search)
    assert f"The search: {asked} " in question.words
    with caplog.at_level(logging.INFO, ACTIVITY):
        go_on(browser, question)

    assert [f"found by: {noted}"] == [record.__dict__["target"] for record in caplog.records]


def test_a_question_about_a_whole_list_names_no_search(browser: Browser, desk: Desk) -> None:
    """All of the queue is meant."""
    desk.push([{"id": "a", "delay": 60}])
    question = ask(browser, desk, "found:run_now", by="id", range="asc")

    assert "1 id of the queue" in question.words
    assert "Searched for" not in question.words


def test_no_page_deletes_a_whole_list_of_waiting_jobs(browser: Browser, desk: Desk) -> None:
    """As the API does not: without a condition the question is not even asked, however it is put."""
    desk.push([{"id": "a"}, {"id": "b"}])
    queue = desk.worker.queue_name
    everything = [{}, {"find": ""}, {"by": "id", "range": "desc"}]
    assert {400} == {ask(browser, desk, "found:delete", **search).status for search in everything}
    address = pack(key_of(desk), BulkActionRequest(queue=queue, act="delete"))
    assert "every waiting job" in browser.get(f"/actions/ask?q={address}").words
    assert {"a", "b"} == set(desk.state()["waiting"])


def test_a_large_deletion_wants_the_name_of_the_queue(
    browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above so many ids a click is not enough; an action that goes on does not ask again, a harmless one never."""
    monkeypatch.setattr(page, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": n} for n in range(1_001)])
    asked = ask(browser, desk, "found:delete_dead")
    assert "Type the name of the queue" in asked.words
    for typed in ({}, {"typed_queue": "other"}):
        refused = go_on(browser, asked, **typed)
        assert (400, True) == (refused.status, "Nothing was changed" in refused.words)
    assert 1_001 == len(desk.state()["morgue"])

    assert "Type the name" not in ask(browser, desk, "found:requeue").words
    assert "Type the name" not in ask(browser, desk, "found:delete_dead", find="99").words
    answer = go_on(browser, asked, typed_queue=desk.worker.queue_name)
    while "action_state" in answer.text:
        answer = go_on(browser, answer)
    assert "1,001 ids were changed" in answer.words


def test_a_question_shows_ids_that_were_found(browser: Browser, desk: Desk) -> None:
    """The first of them, of those that the search finds alone; for a short list all of them."""
    desk.kill([{"id": f"k{n:02}"} for n in range(40)])
    words = ask(browser, desk, "found:delete_dead", find="k1").words
    assert "They are: k10 k11" in words
    assert "k20" not in words
    assert "and 20 more" in ask(browser, desk, "found:delete_dead").words


def test_more_than_a_hundred_ids_need_a_reason(browser: Browser, desk: Desk) -> None:
    """The page says so, and the server takes no form without one; a hundred ids need none."""
    desk.kill([{"id": f"k{n:03}"} for n in range(101)])
    asked = ask(browser, desk, "found:delete_dead")
    few = ask(browser, desk, "found:delete_dead", find="k0")

    missing = "An act on more than 100 ids needs a reason: this is on 101."
    assert [True, False] == [missing in each.words for each in (asked, few)]
    assert [False, True] == ["Reason, for the activity log (optional)" in each.words for each in (asked, few)]
    assert 'id="reason" name="reason" value="" maxlength="200" autocomplete="off" required' in asked.text
    for reason in ("", "  "):
        refused = go_on(browser, asked, reason=reason)
        assert (400, True) == (refused.status, f"Nothing was changed. {missing}" in refused.words)
    assert 101 == len(desk.state()["morgue"])
    assert "100 ids were changed" in go_on(browser, few, reason="").words
    assert "Done." in go_on(browser, asked, reason="ticket 7").words
    assert {} == desk.state()["morgue"]


def test_a_reason_goes_to_the_activity_log(
    browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each line of the action, in quotes and no longer than it may be; without one no line has the field."""
    monkeypatch.setattr(page, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": n} for n in range(700)])
    with caplog.at_level(logging.INFO, ACTIVITY):
        answer = go_on(browser, ask(browser, desk, "found:requeue"), reason=" ticket 7\n" + "x" * 300)
        while "action_state" in answer.text:
            answer = go_on(browser, answer)
        go_on(browser, ask(browser, desk, "picked:delete", "1"), reason=" ")

    assert [("ticket 7\n" + "x" * 191)] * 2 + [None] == [record.__dict__.get("reason") for record in caplog.records]
    assert "reason 'ticket 7\\nxxx" in caplog.records[0].getMessage()
