"""The pages of a queue: lists, shards, one job."""

import os
import re
import socket
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.dashboard.pages.filters import list_query
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import LATER, FailingHandler
from tests.kit.job_pages import fail, ids_on, link, next_of
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

PAGES = ("waiting", "processing", "morgue", "shards", "job")


def of_job(page: str, job_id: str) -> dict[str, str]:
    """The id, where the page is one of a job."""
    return {"id": job_id} if page == "job" else {}


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_an_empty_queue_say_what_would_be_there(worker: Any, browser: Browser, page: str) -> None:
    """Each answers, also to a reader, and leads back to the overview."""
    answer = browser.get(link(page, worker))
    assert 200 == answer.status
    assert 'href="./">Overview' in answer.text


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("worker")
def test_a_queue_that_is_not_there(browser: Browser, page: str) -> None:
    """It is said, and not looked up in Redis."""
    assert 404 == browser.get(f"/{page}?queue=nobody{'&id=1' if page == 'job' else ''}").status
    assert 404 == browser.get(f"/{page}").status


def test_the_waiting_list_goes_by_due_time(worker: Any, browser: Browser, clock: ManualClock) -> None:
    """LN-34, LN-37: id, time, fresh or retry, the payload's beginning, and how many there are."""
    worker.push_many([{"id": "late", "delay": 600, "payload": {"n": 1}}, {"id": "soon", "payload": ["x"]}])
    worker.push_many([{"id": "late", "payload": {"n": 2}}])

    answer = browser.get(link("waiting", worker))
    assert ["soon", "late"] == ids_on(answer)
    assert '["x"]' in answer.words
    assert '{"n":1} + 1' in answer.words
    assert "in 10m" in answer.words
    assert ["late", "soon"] == ids_on(browser.get(link("waiting", worker, range="desc")))
    at = clock.time() + 60
    assert ["late"] == ids_on(browser.get(link("waiting", worker, by="due_at", range="gte", value=at)))
    assert ["soon"] == ids_on(browser.get(link("waiting", worker, by="due_at", range="lte", value=at)))


def test_the_waiting_list_goes_by_id_and_by_retry_count(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser
) -> None:
    """LN-33, LN-34: fresh are those up to -1, retries those from 0 on."""
    fail(app, worker, handler, "b", "(c")
    worker.push_many([{"id": "a"}, {"id": "-d"}])

    def shown(**query: object) -> list[str]:
        return ids_on(browser.get(link("waiting", worker, **query)))

    assert ["(c", "-d", "a", "b"] == shown(by="id", range="asc")
    assert ["b", "a", "-d", "(c"] == shown(by="id", range="desc")
    assert ["a", "b"] == shown(by="id", range="gte", value="a")
    assert ["(c"] == shown(by="id", range="lte", value="(c")
    assert ["-d", "a"] == sorted(shown(by="retry_count", range="lte", value="-1"))
    assert ["(c", "b"] == sorted(shown(by="retry_count", range="gte", value="0"))
    answer = browser.get(link("waiting", worker, by="retry_count", range="gte", value="0"))
    assert "retry 1" in answer.words
    assert "b is broken" in answer.words


@pytest.mark.parametrize(
    ("words", "lasting"),
    [
        ("yesterday 03:12", 60),
        ("03:12 yesterday", 60),
        ("3:12", 60),
        ("03:12:30 Yesterday", 1),
        ("2026-11-25 03:12+02:00", 60),
        ("2026-11-25+02:00", 86_400),
        ("Yesterday", 86_400),
        ("2h ago", 0),
        ("20261125T0312", 0),
    ],
)
def test_a_time_lasts_as_long_as_it_is_exact(monkeypatch: pytest.MonkeyPatch, words: str, lasting: int) -> None:
    """In whichever order a day and a time of day stand."""
    now = 1_800_000_000.0
    monkeypatch.setattr(SystemClock, "time", lambda: now)
    query = list_query({"by": "due_at", "range": "lte", "value": words}, ["due_at"], "asc")

    most = query.bounds("", "")[1]

    end = moment_of(words, now) + lasting
    assert (f"({end}" if lasting else str(end)) == most


def test_what_is_no_value_is_said(worker: Any, browser: Browser) -> None:
    """The page stays, with a sentence; a time may be given as a date."""
    worker.push_many([{"id": 1}])
    for by, value in (("retry_count", "many"), ("due_at", "soon"), ("due_at", "nan")):
        answer = browser.get(link("waiting", worker, by=by, range="gte", value=value))
        assert 400 == answer.status
        assert value in answer.words
    for words in ("2001-01-01 10:00", "yesterday", "2d ago"):
        assert ["1"] == ids_on(browser.get(link("waiting", worker, by="due_at", range="gte", value=words)))
    assert 400 == browser.get(link("waiting", worker, after="nonsense")).status
    assert 400 == browser.get(link("processing", worker, after="nonsense")).status
    assert 400 == browser.get(link("morgue", worker, after="9:9:9", find="a")).status


@pytest.mark.parametrize(
    ("value", "upwards", "downwards"),
    [
        ("2027-01-15 08:00:58", {"second", "minute", "day", "next"}, {"second"}),
        ("2027-01-15 08:00:58 UTC", {"second", "minute", "day", "next"}, {"second"}),
        ("2027-01-15T08:00:58Z", {"second", "minute", "day", "next"}, {"second"}),
        ("2027-01-15T09:00:58+01:00", {"second", "minute", "day", "next"}, {"second"}),
        ("2027-01-15T08:00:58.300Z", {"second", "minute", "day", "next"}, set()),
        ("2027-01-15T08:00:58.400Z", {"second", "minute", "day", "next"}, {"second"}),
        ("2027-01-15 08:00", {"second", "minute", "day", "next"}, {"second", "minute"}),
        ("2027-01-15", {"second", "minute", "day", "next"}, {"second", "minute", "day"}),
        ("1800000058", {"second", "minute", "day", "next"}, set()),
        ("1800000059", {"minute", "day", "next"}, {"second"}),
    ],
)
def test_a_time_is_all_of_what_it_says(
    worker: Any, browser: Browser, value: str, upwards: set[str], downwards: set[str]
) -> None:
    """Up to a second, a minute or a day is up to its end, as lists cut off what a time has beyond a second."""
    at = 1_800_000_000  # 2027-01-15 08:00 UTC
    times = {"second": 58.4, "minute": 59.9, "day": 16 * 3_600 - 0.5, "next": 16 * 3_600}
    worker.push_many([{"id": name, "due_at": at + ahead} for name, ahead in times.items()])
    for way, found in (("gte", upwards), ("lte", downwards)):
        assert found == set(ids_on(browser.get(link("waiting", worker, by="due_at", range=way, value=value))))


@pytest.mark.parametrize("value", ["21 Nov 2026, 19:28:58", "2027-02-31", "2027-01-15 25:00", "2027-01-15 8"])
def test_what_is_no_time_is_told_from_one(worker: Any, browser: Browser, value: str) -> None:
    """By an example, and no word of a zone: the field says which one it means."""
    answer = browser.get(link("waiting", worker, by="due_at", range="lte", value=value))
    assert 400 == answer.status
    assert f"{value!r} is not a moment: give " in answer.words


@pytest.mark.parametrize("query", [{}, {"by": "id"}, {"by": "retry_count", "range": "desc"}, {"find": "job"}])
def test_lists_go_on_after_a_hundred(worker: Any, browser: Browser, query: dict[str, str]) -> None:
    """Links lead through all of it, and back to the first page."""
    worker.push_many([{"id": f"job/{number} %"} for number in range(250)])

    found, answer = [], browser.get(link("waiting", worker, **query))
    for size in (100, 100, 50):
        assert size == len(ids_on(answer))
        found += ids_on(answer)
        if size == 100:
            answer = browser.get(next_of(answer))
            assert "First page" in answer.words
    assert 250 == len(set(found))
    assert 'id="next"' not in answer.text


def test_searches_find_ids_by_their_beginning_and_errors_by_a_text(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser
) -> None:
    """Among what waits, and in the morgue; with a text in whatever case."""
    fail(app, worker, handler, "order:1", "order:2", "stock:1")
    worker.push_many([{"id": "order:3"}])

    def shown(page: str, **query: object) -> list[str]:
        return sorted(ids_on(browser.get(link(page, worker, **query))))

    assert ["order:1", "order:2", "order:3"] == shown("waiting", find="order:")
    assert ["order:1"] == shown("waiting", text="ORDER:1 is")
    assert ["order:2"] == shown("waiting", find="order:2", text="broken")
    assert "Nothing found" in browser.get(link("waiting", worker, text="unheard of")).words
    app.operate(worker).waiting.kill(everything=True)
    assert ["order:1", "order:2"] == shown("morgue", find="order")
    assert ["stock:1"] == shown("morgue", text="stock")
    assert [] == shown("waiting", text="broken")


def test_the_morgue_goes_by_time_of_death_and_by_id(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, clock: ManualClock
) -> None:
    """LN-36: the last one first, with its error."""
    for job_id in ("b", "a"):
        fail(app, worker, handler, job_id)
        app.operate(worker).waiting.kill(everything=True)
        clock.advance(10)

    answer = browser.get(link("morgue", worker))
    assert ["a", "b"] == ids_on(answer)
    assert "b is broken" in answer.words
    assert ["b", "a"] == ids_on(browser.get(link("morgue", worker, by="updated_at", range="asc")))
    assert ["b", "a"] == ids_on(browser.get(link("morgue", worker, by="id", range="desc")))
    assert ["b"] == ids_on(browser.get(link("morgue", worker, by="id", range="gte", value="b")))


def test_processing_shows_what_is_in_flight_and_who_has_it(
    worker: Any, app: Lowkiq, handler: FailingHandler, browser: Browser
) -> None:
    """LN-24: holder, since when, lease and token, while the handler runs."""
    seen: list[Answer] = []
    handler.meanwhile = lambda: seen.extend(
        browser.get(link(page, worker, **of_job(page, "a/b"))) for page in ("processing", "shards", "job")
    )
    worker.push_many([{"id": "a/b", "payload": {"deep": [1]}}])
    app.drain()

    processing, shards, job = seen
    assert ["a/b"] == ids_on(processing)
    assert '{"deep":[1]}' in processing.words
    for answer in seen:
        assert f"{socket.gethostname()}:{os.getpid()}" in answer.words
    assert "30 s" in shards.words
    assert "It is in flight right now" in job.words
    assert "No job is in flight" in browser.get(link("processing", worker)).words


def test_parts_are_parts(worker: Any, browser: Browser) -> None:
    """What refreshes itself is answered without the page around it."""
    worker.push_many([{"id": 1}])
    for page in ("processing", "shards", "job"):
        answer = browser.part(link(page, worker, **of_job(page, "1")))
        assert 200 == answer.status
        assert "<html" not in answer.text
        assert "<section" in answer.text


def test_a_job_is_shown_whole(worker: Any, browser: Browser, clock: ManualClock) -> None:
    """LN-37: payloads as pretty JSON in order, with scores; a version is no date, a time is one beside its number."""
    now = clock.time()
    worker.push_many(
        [
            {"id": 7, "payload": {"b": 1, "a": [2]}, "score": 41},
            {"id": 7, "payload": "later", "score": now},
        ]
    )

    answer = browser.get(link("job", worker, id=7))
    first, second = answer.text.split('<article class="payload"')[1:]
    assert '{\n  "a": [\n    2\n  ],\n  "b": 1\n}' in unescape(first)
    assert ">41<" in first
    assert "<time" not in first
    assert "<time" in second
    assert "no drain has ever acquired its shard" in answer.words


def test_a_failed_job_shows_its_error_wherever_it_is(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser
) -> None:
    """How often it failed and why, while it waits and in the morgue; then new payloads beside it."""
    handler.words = "\nfell over\n  <b>"
    fail(app, worker, handler, "bad")
    answer = browser.get(link("job", worker, id="bad"))
    assert "It failed once (with bad, " in answer.words
    assert "bad \nfell over\n  &lt;b&gt;</pre>" in answer.text
    app.operate(worker).waiting.kill(everything=True)
    assert "It has been in the morgue" in browser.get(link("job", worker, id="bad")).words
    worker.push_many([{"id": "bad", "payload": "new"}])
    answer = browser.get(link("job", worker, id="bad"))
    assert "In the morgue" in answer.words
    assert "Other payloads of this id died" in answer.words
    assert '"new"' in unescape(answer.text)


def test_a_job_shows_how_it_failed_so_far(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, clock: ManualClock
) -> None:
    """E-76, E-84: each time with its attempt and its error in brief, once for all places where the id is."""
    for words in ("fell <b>", "x" * 500):
        handler.words = words
        fail(app, worker, handler, "bad")
        clock.advance(LATER)
    app.operate(worker).waiting.kill(everything=True)
    worker.push_many([{"id": "bad", "payload": "new"}])

    answer = browser.get(link("job", worker, id="bad"))
    rows = re.findall(r"<span>(Try \d failed.)</span>.*<pre>(.*)</pre>", answer.text)
    assert [
        ("Try 2 failed.", f"bad {'x' * 85} [of 504 characters] {'x' * 90}"),
        ("Try 1 failed.", "bad fell &lt;b&gt;"),
    ] == rows
    assert " failed." not in browser.get(link("job", worker, id="other")).text


def test_an_unknown_job_and_no_job(worker: Any, browser: Browser) -> None:
    """The one is told from the other, which is asked for."""
    assert "never pushed" in browser.get(link("job", worker, id="nobody")).words
    assert "Id of the job" in browser.get(link("job", worker)).words


HOSTILE = {
    "nul": "a\0b",
    "script": "</script><script>alert(1)</script>",
    "slashes": "../../%2e/?#&;=",
    "quotes": "\"'><img src=x onerror=alert(1)>",
    "turned": "\u202eevil\u2066",
    "lines": "a\r\nb\n",
    "empty": "",
    "blank": " ",
    "long": "x" * 2_000,
    "jinja": "{{ 7 * 7 }}{% raw %}",
    "last": "\U0010ffff\uffff",
}


@pytest.mark.parametrize("job_id", HOSTILE.values(), ids=HOSTILE)
def test_hostile_ids_break_no_page(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, job_id: str
) -> None:
    """E-84: lists, searches and the job's own page show them as text, and their links lead to them."""
    handler.failing = {job_id}
    worker.push_many([{"id": job_id, "payload": {job_id: job_id}}])
    app.drain()
    for page, do in (("waiting", lambda: None), ("morgue", lambda: app.operate(worker).waiting.kill(everything=True))):
        do()
        for query in ({}, {"by": "id"}, {"by": "id", "range": "gte", "value": job_id}, {"find": job_id}):
            listed = browser.get(link(page, worker, **query))
            assert 200 == listed.status, query
            assert 1 == len(ids_on(listed)), query
            check_harmless(listed)
        (href,) = re.findall(r'<a id="job-0"[^>]* href="\./([^"]*)"', browser.get(link(page, worker)).text)
        shown = browser.get(f"/{unescape(href)}")
        check_harmless(shown)
        assert 200 == shown.status
        assert "never pushed" not in shown.words
        assert 200 == browser.part(f"/{unescape(href)}").status


def check_harmless(answer: Answer) -> None:
    """Nothing that was pushed is markup, and nothing in it is invisible."""
    assert "<script>alert" not in answer.text
    assert "<img" not in answer.text
    assert ">49<" not in answer.text
    assert not set(answer.text) & {"\0", "\u202e", "\u2066", "\r"}


PAYLOADS: dict[str, object] = {
    "nul": "\0",
    "script": {"</script><script>alert(1)</script>": ["<img src=x>", "\u202e"]},
    "deep": None,
    "numbers": [2**60, -0.0, 1e308],
    "large": "y" * 5_000_000,
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_hostile_payloads_break_no_page(worker: Any, browser: Browser, name: str) -> None:
    """E-84: those of five megabytes too, of which the beginning is shown, and nothing in lists."""
    payload = PAYLOADS[name]
    if name == "deep":
        for _ in range(300):
            payload = [payload]
    worker.push_many([{"id": 1, "payload": payload}, {"id": 2, "payload": payload}])
    worker.push_many([{"id": 2, "payload": "another", "score": 1}])

    listed, shown = browser.get(link("waiting", worker)), browser.get(link("job", worker, id=1))
    for answer in (listed, shown, browser.get(link("job", worker, id=2))):
        assert 200 == answer.status
        check_harmless(answer)
        assert len(answer.text) < 1_000_000
    is_large = name == "large"
    assert is_large == ('<span class="dim">large</span>' in listed.text)
    assert is_large == ("leaves out the last" in shown.words)


def test_many_payloads_are_shown_as_far_as_a_page_takes(worker: Any, browser: Browser) -> None:
    """E-84: however they grow when they are indented; and an id that no address takes has no link."""
    payload: object = [0]
    for _ in range(30):
        payload = [payload, 1]
    worker.push_many([{"id": 1, "payload": [payload, number]} for number in range(1_500)])
    worker.push_many([{"id": "x" * 60_000}])

    answer = browser.get(link("job", worker, id=1))
    assert "more payloads." in answer.words
    assert len(answer.text) < 2_000_000
    listed = browser.get(link("waiting", worker))
    assert 200 == listed.status
    assert ["1"] == ids_on(listed)


def test_unreadable_payloads_and_errors_break_no_page(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, server: Any
) -> None:
    """E-84: bytes that are neither JSON nor text are shown as what they are."""
    fail(app, worker, handler, "bad")
    (shard,) = app.core.queues.agreed(worker).shards
    record = server.admin.hget(shard.key("jobs"), "bad")
    server.admin.hset(shard.key("jobs"), "bad", record[:15] + b"\xff\0</pre><script>alert(1)")
    server.admin.hset(shard.key("errors"), "bad", b"\xfe\0<script>alert(2)" + b"z" * 100_000)

    for page in ("waiting", "job"):
        answer = browser.get(link(page, worker, **of_job(page, "bad")))
        assert 200 == answer.status
        check_harmless(answer)
        assert "\\xff" in answer.text
        assert (page == "job") == ("codec cannot read it" in answer.words)


def test_a_mask_hides_payloads_everywhere(worker: Any, make_browser: MakeBrowser) -> None:
    """What the app's function returns is shown instead; where it fails, nothing is."""
    worker.push_many([{"id": 1, "payload": {"secret": "s3cret"}}])

    def break_down(_queue: str, _job_id: str, _payload: object) -> object:
        raise ValueError("s3cret")

    for mask, words in ((lambda *_: "***", "***"), (break_down, "the mask failed")):
        browser = make_browser(mask=mask)
        for page in ("waiting", "job"):
            answer = browser.get(link(page, worker, **of_job(page, "1")))
            assert 200 == answer.status
            assert words in answer.words
            assert "s3cret" not in answer.text


def test_words_of_code_are_shown_as_code(worker: Any, browser: Browser) -> None:
    """What a terminal shows in backticks is marked on a page, and has none."""
    page = browser.get(link("job", worker, id="gone"))

    assert "ended with <code>Rejected</code>" in page.text
    assert "`" not in page.words


def test_readers_see_the_same(worker: Any, make_browser: MakeBrowser) -> None:
    """Without what they may not do."""
    worker.push_many([{"id": 1}])
    reader = make_browser(READER)
    for page in PAGES:
        answer = reader.get(link(page, worker, **of_job(page, "1")))
        assert 200 == answer.status
        assert 'name="ids"' not in answer.text
        assert "data-pick-all" not in answer.text


def test_queue_names_are_text(app: Lowkiq, queue_name: str, browser: Browser) -> None:
    """E-84: a queue may be named as it likes."""
    worker = declare(app, f"{queue_name}/<b>%?#&\u202e", FailingHandler())
    for page in PAGES:
        answer = browser.get(f"/{page}?queue={quote(worker.queue_name)}")
        assert 200 == answer.status
        assert "<b>%" not in answer.text
        assert "\u202e" not in answer.words


def test_an_id_is_found_as_it_is_shown(worker: Any, browser: Browser) -> None:
    """Who pastes what a page writes out is led to the job, and told which one it is."""
    worker.push_many([{"id": "a\0b", "payload": "hidden"}])
    listed = browser.get(link("waiting", worker))
    assert r"a\u0000b" in listed.words

    job = browser.get(link("job", worker, id=r"a\u0000b"))
    assert r"No job has the id “a\u0000b”, where the backslash is" in job.words
    assert "hidden" in unescape(job.text)
    assert "id=a%00b" in job.text
    found = browser.get(link("waiting", worker, find=r"a\u0000"))
    assert [r"a\u0000b"] == ids_on(found)
    assert r"No id begins with “a\u0000”, where the backslash is" in found.words
    assert "never pushed" in browser.get(link("job", worker, id=r"c\u0000d")).words
    assert "Nothing found" in browser.get(link("waiting", worker, find=r"c\u0000d")).words


def test_an_id_with_a_backslash_is_found_before_one_that_looks_like_it(worker: Any, browser: Browser) -> None:
    """The very text comes first; and what pages never write out, such as a letter, is a text alone."""
    worker.push_many([{"id": "a\0", "payload": "zero"}, {"id": r"a\u0000", "payload": "text"}])
    worker.push_many([{"id": "A", "payload": "letter"}])

    job = browser.get(link("job", worker, id=r"a\u0000"))
    assert ("text" in unescape(job.text), "zero" in job.words) == (True, False)
    assert "”, where the backslash is" not in job.words
    found = browser.get(link("waiting", worker, find=r"a\u0000"))
    assert 1 == len(ids_on(found))
    assert "”, where the backslash is" not in found.words
    assert "never pushed" in browser.get(link("job", worker, id=r"\u0041")).words
    assert "never pushed" in browser.get(link("job", worker, id=r"\ud800")).words


@pytest.mark.parametrize("page", ["waiting", "morgue"])
def test_a_value_that_cannot_be_read_is_all_that_is_said(worker: Any, browser: Browser, page: str) -> None:
    """Nobody knows how many jobs lie in a range that is none."""
    worker.push_many([{"id": 1}])
    by = "due_at" if page == "waiting" else "updated_at"
    words = browser.get(link(page, worker, by=by, range="gte", value="soon")).words

    assert "'soon' is not a moment" in words
    assert "this range" not in words
    assert "on this page" not in words


def test_what_was_set_aside_is_listed_without_its_bytes(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """The page of shards tells of damaged records, whose bytes a mask could not hide."""
    shard = app.core.queues.agreed(worker).shards[0]
    app.core.backend.client.hset(shard.key("trouble"), "an-id", b"secret bytes")
    assert "Damaged records" not in browser.get(link("shards", worker)).words

    app.operate(worker).repair()

    words = browser.get(link("shards", worker)).words
    assert "Damaged records" in words
    assert "an-id" in words
    assert "secret" not in words
