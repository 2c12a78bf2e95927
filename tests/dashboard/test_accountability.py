"""Who did what, and from where: each change, export, refusal and sign-in leaves a line, and a session has an end."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import Account, Auth, Token
from lowkiq_lambda.dashboard.security import throttle
from lowkiq_lambda.dashboard.security.auth import LONGEST_SESSION
from lowkiq_lambda.dashboard.security.sessions import Cookie
from lowkiq_lambda.dashboard.security.throttle import TOLD_TOGETHER, WRONG_TOKENS
from lowkiq_lambda.operate.inspect import signed_out
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import AUTH, OPERATOR, READER
from tests.kit.web import Browser

pytestmark = pytest.mark.usefixtures("worker")

SECRET = "a secret of some length"  # noqa: S105 - of nobody
TOKENS = Auth(tokens=[Token("ci", SECRET)])
PAUSE = "/actions/queue"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, Any]]]:
    """The lines of the activity log, as they come."""
    found = list[dict[str, Any]]()

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append({**record.__dict__, "text": record.getMessage()})

    activity, keeping = logging.getLogger("lowkiq_lambda.activity"), Keeping()
    with caplog.at_level(logging.INFO, activity.name):
        activity.addHandler(keeping)
        yield found
        activity.removeHandler(keeping)


def test_a_click_leads_to_its_sign_in(make_browser: MakeBrowser, queue_name: str, lines: list[dict[str, Any]]) -> None:
    """With one password for all, an action's line has the address, and the session that the sign-in's line has."""
    browsers = [make_browser(None), make_browser(None)]
    for number, browser in enumerate(browsers):
        browser.client = f"10.0.0.{number}"
        browser.sign_in(OPERATOR)
        assert browser.send(PAUSE, {"queue": queue_name, "do": "pause", "seconds": "60"}).status < 400

    first, click, second, other = lines
    assert ["olga", "olga"] == [line["account"] for line in (first, second)]
    assert ["signed in", "pause"] == [first["outcome"], click["action"]]
    assert [("10.0.0.0", first["session"]), ("10.0.0.1", second["session"])] == [
        (line["address"], line["session"]) for line in (click, other)
    ]
    assert first["session"] != second["session"]
    assert 8 == len(first["session"])
    assert all(f"session {line['session']!r}" in line["text"] for line in lines)
    assert not any(cookie in str(line) for browser in browsers for cookie in browser.cookies.values() for line in lines)


def test_refusals_leave_a_line(make_browser: MakeBrowser, lines: list[dict[str, Any]]) -> None:
    """A reader who acts, a forged form, a page of another site: who, from where, which path and why."""
    reader, operator, stranger = make_browser(READER), make_browser(), make_browser(None)
    assert 403 == reader.post(PAUSE).status
    assert 403 == operator.post(PAUSE, {"csrf": "forged"}).status
    assert 403 == operator.post(PAUSE, sec_fetch_site="cross-site").status
    assert 403 == stranger.post("/sign-in", sec_fetch_site="cross-site").status
    assert 303 == stranger.get("/").status

    told = [(line["who"], line["method"], line["path"], line["status"], line["action"]) for line in lines]
    assert [
        ("rita", "POST", PAUSE, 403, "rejected"),
        ("olga", "POST", PAUSE, 403, "rejected"),
        ("olga", "POST", PAUSE, 403, "rejected"),
        ("nobody", "POST", "/sign-in", 403, "rejected"),
    ] == told
    reasons = "This account can view pages", "The form's token is invalid", "A page of another site"
    assert all(line["reason"].startswith(reason) for line, reason in zip(lines, reasons, strict=False))
    assert {"127.0.0.1"} == {line["address"] for line in lines}
    assert {"WARNING"} == {line["levelname"] for line in lines}


def test_an_export_leaves_a_line(
    make_browser: MakeBrowser, app: Lowkiq, queue_name: str, lines: list[dict[str, Any]]
) -> None:
    """It has the payloads of a list, so a reader who takes them is on record, with what was sought."""
    app.push_many(app.workers[0], [{"id": "a", "payload": "secret"}])
    reader = make_browser(READER)
    assert 200 == reader.get(f"/export?queue={queue_name}&list=waiting&format=csv&find=prefix&text=a").status
    assert 400 == reader.get(f"/export?queue={queue_name}&list=nothing&format=csv").status

    (line,) = lines
    assert ("rita", "export", queue_name) == (line["who"], line["action"], line["queue"])
    assert line["target"].startswith("waiting as csv")
    assert "'a'" in line["target"]


def test_wrong_tokens_are_limited_and_leave_a_line(
    make_browser: MakeBrowser, clock: ManualClock, lines: list[dict[str, Any]]
) -> None:
    """From one address in a minute; then the right one is not read either, and other addresses have their own limit."""
    browser, other = make_browser(None, auth=TOKENS), make_browser(None, auth=TOKENS)

    def ask(browser: Browser, secret: str, path: str = "/api/v1/stats") -> int:
        return browser.get(path, authorization=f"Bearer {secret}").status

    assert [401] * WRONG_TOKENS == [ask(browser, f"guess-{number}") for number in range(WRONG_TOKENS)]
    assert WRONG_TOKENS == len(lines)
    assert {("rejected", 401, "127.0.0.1")} == {(line["action"], line["status"], line["address"]) for line in lines}
    assert not [line for line in lines if "guess" in line["text"]]

    refused = browser.get("/api/v1/stats", authorization=f"Bearer {SECRET}")
    assert (429, True) == (refused.status, 1 <= int(refused.headers["retry-after"]) <= 60)
    assert 429 == ask(browser, "guess")
    assert WRONG_TOKENS == len(lines)
    assert 200 == ask(browser, SECRET, "/healthz")
    other.client = "10.0.0.9"
    assert (200, 401) == (ask(other, SECRET), ask(other, "guess"))

    clock.advance(60)
    assert (200, 401) == (ask(browser, SECRET), ask(browser, "guess"))


def test_a_reader_tries_no_more_tokens_than_a_stranger(
    make_browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]]
) -> None:
    """The cookie opens pages beside a wrong token, which is counted; the right one of an operator is not read then."""
    monkeypatch.setattr(throttle, "WRONG_TOKENS", 3)
    auth = Auth([Account("rita", SECRET)], tokens=[Token("ops", SECRET + "2", "operator")])
    reader = make_browser(None, auth=auth)
    assert 303 == reader.sign_in(SECRET).status

    assert [200] * 4 == [reader.get("/", authorization=f"Bearer guess-{number}").status for number in range(4)]
    assert [("rita", 401)] * 3 == [(line["who"], line["status"]) for line in lines if line["action"] == "rejected"]

    fields = {"queue": "any", "do": "pause"}
    refused = reader.send(PAUSE, fields, authorization=f"Bearer {SECRET}2")
    assert (403, "This account can view pages, but cannot change anything." in refused.words) == (refused.status, True)


def test_a_token_that_no_dashboard_asked_for_is_no_guess(
    make_browser: MakeBrowser, lines: list[dict[str, Any]]
) -> None:
    """A proxy may send one of its own with each request of a browser that has signed in."""
    browser = make_browser(None, auth=Auth([Account("rita", SECRET)]))
    browser.sign_in(SECRET)

    assert 200 == browser.get("/", authorization="Bearer of-the-proxy").status
    assert not [line for line in lines if line["action"] == "rejected"]


def test_wrong_tokens_are_counted_by_all_processes_together(make_browser: MakeBrowser) -> None:
    """A process hears of the guesses at others with the first few that it counts itself."""
    first, second = make_browser(None, auth=TOKENS), make_browser(None, auth=TOKENS)
    for number in range(WRONG_TOKENS - 1):
        first.get("/", authorization=f"Bearer guess-{number}")

    guesses = [*["guess"] * TOLD_TOGETHER, SECRET]
    statuses = [second.get("/api/v1/stats", authorization=f"Bearer {guess}").status for guess in guesses]

    assert [*[401] * TOLD_TOGETHER, 429] == statuses


def test_wrong_tokens_are_counted_without_redis(
    make_browser: MakeBrowser, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process by itself; a browser that has signed in, and signing in, go on."""
    monkeypatch.setattr(throttle, "WRONG_TOKENS", 3)
    away = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0", redis_timeout=0.1), clock=clock)
    browser = make_browser(OPERATOR, app=away)
    stranger = make_browser(None, app=away)

    statuses = [stranger.get("/api/v1/stats", authorization="Bearer guess").status for _ in range(4)]

    assert [401, 401, 401, 429] == statuses
    assert 200 == stranger.get("/sign-in", authorization="Bearer guess").status
    assert 503 == browser.get("/", authorization="Bearer guess").status


def test_a_right_token_costs_no_count(make_browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written to Redis for programs that have one."""
    browser = make_browser(None, auth=TOKENS)
    monkeypatch.setattr("lowkiq_lambda.dashboard.app.count_attempts", None)

    assert 200 == browser.get("/api/v1/stats", authorization=f"Bearer {SECRET}").status


def test_a_copy_of_a_cookie_changes_nothing_after_signing_out(
    make_browser: MakeBrowser, queue_name: str, clock: ManualClock, lines: list[dict[str, Any]]
) -> None:
    """It is led to sign in at any change; what it may look at ends with the session, which is not renewed."""
    browser, thief, other = make_browser(), make_browser(None), make_browser()
    thief.cookies = {**browser.cookies}
    proof = thief.proof()
    assert 303 == browser.send("/sign-out").status

    pause = {"csrf": proof, "queue": queue_name, "do": "pause", "seconds": "60"}
    refused = thief.post(PAUSE, pause)
    assert (303, True) == (refused.status, "/sign-in" in refused.location)
    assert 401 == thief.ask("POST", "/api/v1/queue/pause", {"x-csrf-token": proof}, b"{}").status
    assert ["signed out"] == [line.get("outcome") for line in lines]

    clock.advance(AUTH.session_lifetime / 2)
    assert 303 == thief.get("/").status
    assert 200 == other.get("/").status
    assert other.send(PAUSE, {"queue": queue_name, "do": "pause", "seconds": "60"}).status < 400


def test_only_changes_and_renewals_ask_whether_a_session_is_signed_out(
    browser: Browser, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that refreshes itself costs no command for it."""
    asked = list[str]()
    monkeypatch.setattr("lowkiq_lambda.dashboard.app.is_signed_out", lambda *args: asked.append(args[-1]))
    for path in ("/", f"/waiting?queue={queue_name}", "/api/v1/stats", "/sign-in"):
        browser.get(path)
    assert [] == asked

    browser.send(PAUSE, {"queue": queue_name, "do": "pause", "seconds": "60"})
    assert 1 == len(asked)
    clock.advance(AUTH.session_lifetime / 2)
    browser.get("/")
    browser.get("/")
    assert 2 == len(asked)


def test_an_id_is_kept_until_the_session_could_not_be_renewed(
    app: Lowkiq, make_browser: MakeBrowser, clock: ManualClock
) -> None:
    """And no longer: Redis forgets it then. Who does not sign out has no key."""
    client, pattern = app.core.backend.client, "lowkiq:dashboard:signed_out:*"
    before = {*client.scan_iter(pattern)}
    browser = make_browser()
    clock.advance(600)
    browser.get("/")
    assert before == {*client.scan_iter(pattern)}

    browser.send("/sign-out")
    (key,) = {*client.scan_iter(pattern)} - before
    assert LONGEST_SESSION - 660 < client.ttl(key) <= LONGEST_SESSION - 600


def test_signing_out_works_without_redis(
    make_browser: MakeBrowser, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser loses its cookie; the log says that a copy of it works on. A change waits for Redis."""
    away = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0", redis_timeout=0.1), clock=clock)
    browser = make_browser(app=away)
    ((name, value),) = browser.cookies.items()
    visitor = AUTH.visitor(browser.scope("GET", "/", {}), [Cookie(name, value)], None, clock.time())
    assert visitor is not None
    form = {"csrf": visitor.form_token()}

    assert 503 == browser.post(PAUSE, form).status
    assert 303 == browser.post("/sign-out", form).status
    assert {} == browser.cookies
    assert "a copy of its cookie works on" in caplog.text
    assert value not in caplog.text


def test_the_key_of_a_signed_out_session_is_found_again(app: Lowkiq) -> None:
    """Any id is a key of its own."""
    for session_id in ("a", "a:b", "é{x}"):
        assert not signed_out.is_signed_out(app.core.backend, 1.0, session_id)
        signed_out.sign_out(app.core.backend, 1.0, session_id, 0.2)
        assert signed_out.is_signed_out(app.core.backend, 1.0, session_id)
