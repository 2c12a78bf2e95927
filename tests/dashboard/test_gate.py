"""P10, closed by default: who gets in, who may act, and that no page of another site can."""

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from lowkiq_lambda import Config, ConfigError, Lowkiq
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.dashboard import Account, Auth, Token, TrustedClaims, Visitor, dashboard, hashed
from lowkiq_lambda.dashboard.security import throttle
from lowkiq_lambda.dashboard.security.auth import LONGEST_SESSION
from lowkiq_lambda.dashboard.security.caller import Caller
from lowkiq_lambda.dashboard.security.passwords import LEAST
from lowkiq_lambda.dashboard.security.settings import DashboardSettings, entry_for
from lowkiq_lambda.dashboard.security.throttle import (
    FROM_ALL,
    FROM_ONE,
    MINUTE,
    TOLD_TOGETHER,
    WRONG_TOKENS,
    Throttle,
    TokenThrottle,
)
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import AUTH, OPERATOR, READER
from tests.kit.web import Browser

pytestmark = pytest.mark.usefixtures("worker")
"""Tries are counted by app, and an app is known by its queues."""

SECRET = "a secret of some length"  # noqa: S105 - of nobody
ACTION = "/actions/ask"
BEGUN = ManualClock().time()


@pytest.mark.parametrize("path", ["/", "/waiting?queue=x", "/job", "/nothing/here", "/%00", "/static", "/sign-in/x"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PROPFIND"])
def test_p10_a_stranger_is_sent_to_sign_in(make_browser: MakeBrowser, path: str, method: str) -> None:
    """P10: any path but the open ones, also one that does not exist, asks who is there."""
    answer = make_browser(None).ask(method, path)

    assert (303, b"") == (answer.status, answer.body)
    assert answer.location.split("?")[0].endswith("/sign-in")


@pytest.mark.parametrize("path", ["/api/v1/stats", "/api/nothing", "/api/v1/queues"])
def test_p10_a_strange_program_gets_a_problem(make_browser: MakeBrowser, path: str) -> None:
    """P10: a program is told in its own words, and nothing else."""
    answer = make_browser(None).get(path)

    assert 401 == answer.status
    assert "application/problem+json" == answer.headers["content-type"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("cookie", ["", "x", "x.y", "é", "W10.W10", "." * 99, "WyJvbGdhIiwieCIsOWU5OV0.AAAA"])
def test_p10_a_cookie_of_ones_own_making_opens_nothing(make_browser: MakeBrowser, cookie: str) -> None:
    """P10: what we have not signed is no session."""
    browser = make_browser()
    (name,) = browser.cookies
    browser.cookies[name] = cookie

    assert 303 == browser.get("/").status


def test_signing_in_and_out(make_browser: MakeBrowser) -> None:
    """The password opens the page that was asked for; signing out closes it."""
    browser = make_browser(None)
    refused = browser.get("/?span=1h")
    form = browser.follow(refused)
    wrong = browser.sign_in("not it")

    assert (200, 401) == (form.status, wrong.status)
    assert "The password is wrong" in wrong.words
    assert {} == browser.cookies

    assert 303 == browser.sign_in(OPERATOR).status
    assert 200 == browser.get("/").status
    assert "olga" in browser.get("/").words

    assert 303 == browser.send("/sign-out").status
    assert 303 == browser.get("/").status


def test_the_cookie_tells_nothing_and_goes_nowhere_else(make_browser: MakeBrowser) -> None:
    """No script reads it, no other site's page sends it, it is for this folder only, and on TLS for TLS only."""
    browser = make_browser(None)
    plain = browser.sign_in(OPERATOR).cookies[0]
    secure = browser.post("/sign-in", {"password": OPERATOR}, x_scheme="https").cookies[0]

    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in plain.split(";")}
    assert "path" not in plain.lower()
    assert OPERATOR not in plain
    assert "secure" not in plain.lower()
    assert "secure" in secure.lower()


def test_a_session_ends(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """After its lifetime one has to sign in again, unless one has looked at a page meanwhile."""
    browser = make_browser()
    clock.advance(AUTH.session_lifetime - 1)
    assert 200 == browser.get("/api/v1/stats").status

    clock.advance(2)
    assert 303 == browser.get("/").status


def test_a_session_lasts_while_it_is_used(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """Pages renew its cookie, as they were given it, now and then; its forms stay good; after twelve hours it ends."""
    browser = make_browser()
    proof = browser.proof()
    assert () == browser.get("/").cookies

    clock.advance(AUTH.session_lifetime / 2)
    for path in ("/api/v1/stats", "/sign-out/x", "/static/x/dashboard.css"):
        assert () == browser.get(path).cookies, path
    (plain,) = browser.get("/").cookies
    assert {"httponly", "samesite=lax"} == {part.strip().lower() for part in plain.split(";")[1:]}
    clock.advance(AUTH.session_lifetime / 2)
    (secure,) = browser.part("/job", x_scheme="https").cookies
    assert "; Secure" in secure

    while clock.time() < BEGUN + LONGEST_SESSION - 1:
        assert 200 == browser.get("/").status
        clock.advance(min(AUTH.session_lifetime / 2, BEGUN + LONGEST_SESSION - 1 - clock.time()))
    # Nothing is given with the answer that takes it back.
    (gone,) = browser.post("/sign-out", {"csrf": proof}).cookies
    assert "Max-Age=0" in gone


def test_a_session_ends_however_much_it_is_used(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """Twelve hours after signing in; or after the lifetime, where that was set to more."""
    long = Auth([*AUTH.accounts.values()], session_lifetime=2 * LONGEST_SESSION)
    browser, longer = make_browser(), make_browser(auth=long)
    while clock.time() < BEGUN + LONGEST_SESSION:
        assert 200 == browser.get("/").status
        clock.advance(AUTH.session_lifetime / 2)

    assert 303 == browser.get("/").status
    clock.advance(LONGEST_SESSION - 1)
    assert 200 == longer.get("/").status
    clock.advance(1)
    assert 303 == longer.get("/").status


def test_another_password_ends_all_sessions(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """The account's own password is what sessions hang on; another account's key opens nothing."""
    changed = make_browser(None, auth=Auth([Account("olga", "another password", "operator")]))
    changed.come_in(AUTH, OPERATOR, clock.time())

    assert 303 == changed.get("/").status


def test_each_value_of_a_cookie_that_comes_twice_is_tried(make_browser: MakeBrowser) -> None:
    """An outer folder's cookie of the same name shuts nobody out, whichever of the two comes first."""
    browser, stranger = make_browser(), make_browser(None)
    ((name, good),) = browser.cookies.items()
    for values in ((good, "bad"), ("bad", good), ("", "x.y", "bad", good)):
        sent = "; ".join(f"{name}={value}" for value in values)
        assert 200 == stranger.get("/", cookie=f"theme=dark; {sent}").status, values
    assert 303 == stranger.get("/", cookie=f"{name}=bad; {name}=x.y").status


def test_a_dashboards_cookie_is_no_other_dashboards(make_browser: MakeBrowser) -> None:
    """By port, path and password: so nobody is signed out by signing in next door, or in by it."""
    browser = make_browser()
    beside = Auth([Account("olga", OPERATOR + "!", "operator")])
    names = {*browser.cookies}
    others: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({}, {"host": "127.0.0.1:8001"}),
        ({}, {"host": "127.0.0.1"}),
        ({"base_path": "/ops/jobs"}, {}),
        ({"auth": beside}, {}),
    ]
    for options, headers in others:
        other = make_browser(None, **options)
        other.mounted_at = options.get("base_path", "")
        other.cookies |= browser.cookies
        other.headers |= headers
        assert 303 == other.get("/").status, options
        assert 303 == other.sign_in(OPERATOR + "!" * ("auth" in options)).status
        assert 200 == other.get("/").status
        names |= {*other.cookies}

    assert 5 == len(names)


def test_the_way_on_stays_in_the_dashboard(make_browser: MakeBrowser) -> None:
    """E-84: no link to us sends anybody to another site."""
    for wanted in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "..//x", "a//b"):
        answer = make_browser(None).post("/sign-in", {"password": OPERATOR, "next": wanted})
        assert "./" == answer.headers["location"], wanted

    answer = make_browser(None).post("/sign-in", {"password": OPERATOR, "next": "waiting?queue=a%2Fb"})
    assert "./waiting?queue=a%2Fb" == answer.headers["location"]


def test_signing_in_again_leads_back_to_the_page(make_browser: MakeBrowser) -> None:
    """Whose session ends on a page comes back to it: by its refresh, by its forms, wherever it is mounted."""
    stranger = make_browser(None)
    at, job = "https://shop.example/ops/jobs/", "job?queue=a%2Fb&id=%22x%22"
    refreshed = {path: stranger.part(f"/{path}", hx_current_url=at + path) for path in (job, "", "?span=1h")}
    for path, answer in refreshed.items():
        assert (204, path) == (answer.status, next_of(answer.headers["hx-redirect"]))
    for path, page in (
        ("/actions/ask", "waiting?queue=x"),
        ("/actions/step", "actions/ask?q=eJw="),
        ("/actions/queue", "actions/queue?queue=x&do=pause"),
        ("/sign-out", ""),
    ):
        assert page == next_of(stranger.post(path, referer=at + page).headers["location"]), path
        assert page == next_of(stranger.post(path, hx_request="true", hx_current_url=at + page).headers["hx-redirect"])
    assert "?span=1h" == next_of(stranger.get("/?span=1h").headers["location"])
    entered = stranger.post("/sign-in", {"password": OPERATOR, "next": "?span=1h"})
    assert "./?span=1h" == entered.headers["location"]


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example",
        "https://evil.example//evil.example",
        "http://[::1",
        "javascript:alert(1)",
        "x:/\\evil",
        "é",
    ],
)
def test_no_address_that_a_request_claims_leads_away(make_browser: MakeBrowser, address: str) -> None:
    """E-84: what a page's address is said to be is cut down to a page of ours."""
    for name in ("referer", "hx_current_url"):
        answer = make_browser(None).post("/actions/ask", {}, **{name: address})
        assert "../sign-in" == answer.headers["location"]


def next_of(link: str) -> str:
    """The page that a link to the sign-in form leads on to."""
    (_, query) = link.rsplit("sign-in", 1)
    return dict(parse_qsl(query.removeprefix("?"))).get("next", "")


def test_p10_who_may_look_may_not_act(make_browser: MakeBrowser) -> None:
    """P10: the role of a reader is to read, whatever is sent and wherever it goes."""
    reader = make_browser(READER)

    assert 200 == reader.get("/").status
    for path in (ACTION, "/actions/queue", "/api/v1/anything"):
        assert 403 == reader.send(path).status
    assert 303 == reader.send("/sign-out").status


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "same-origin, cross-site"},
        {"sec_fetch_site": "cross-site", "origin": "http://127.0.0.1:8000"},
    ],
)
def test_p10_a_page_of_another_site_cannot_act(browser: Browser, headers: dict[str, str]) -> None:
    """P10: what a browser says comes from elsewhere is refused, with the right cookie and even the right token."""
    assert 403 == browser.send(ACTION, None, "/", **headers).status
    assert 403 == browser.post("/sign-in", {"password": OPERATOR}, **headers).status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8000", 303),
        ("http://127.0.0.1", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[::1", 403),
        ("http://127.0.0.1:8000@evil.example", 403),
        ("", 403),
    ],
)
def test_p10_an_older_browser_tells_the_origin(browser: Browser, origin: str, status: int) -> None:
    """P10: where there is no Sec-Fetch-Site, the origin must be our own host."""
    body = f"csrf={browser.proof()}".encode()
    headers = {"origin": origin, "content-type": "application/x-www-form-urlencoded"}

    assert status == browser.ask("POST", "/sign-out", headers, body).status


def test_p10_a_form_needs_the_token_of_its_session(make_browser: MakeBrowser, browser: Browser) -> None:
    """P10: no token, a made up one, and one of another session are refused; a header serves as well as a field."""
    foreign = make_browser().proof()

    for token in ("", "x", "x.y", foreign):
        assert 403 == browser.post("/sign-out", {"csrf": token}).status
    assert 303 == browser.post("/sign-out", x_csrf_token=browser.proof()).status


def test_each_form_has_a_token_of_its_own(browser: Browser) -> None:
    """What is compressed together with it tells nothing of it: it is never the same, and always good."""
    assert browser.proof() != browser.proof()


def test_a_body_is_bounded(browser: Browser) -> None:
    """More than a megabyte, or ten thousand fields, is not read."""
    assert 413 == browser.send("/sign-out", {"x": "x" * 1_100_000}).status
    assert 400 == browser.send("/sign-out", {"x": ["1"] * 10_001}).status


def test_tries_are_counted(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """After ten tries in a minute even the right password is refused, from that address, by any process."""
    browser, other = make_browser(None), make_browser(None)
    for number in range(10):
        assert 401 == (browser, other)[number % 2].sign_in("guess").status

    refused = browser.sign_in(OPERATOR)
    assert 429 == refused.status
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert 429 == other.sign_in(OPERATOR).status
    other.client = "127.0.0.2"
    assert 303 == other.sign_in(OPERATOR).status

    clock.advance(60)
    assert 303 == browser.sign_in(OPERATOR).status


def test_who_knows_the_password_may_come_in_often(make_browser: MakeBrowser) -> None:
    """What is right is no guess; it makes none of those that were made undone."""
    browser = make_browser(None)

    def sign_in(password: str) -> int:
        browser.cookies.clear()
        return browser.sign_in(password).status

    for _ in range(2 * FROM_ONE):
        assert 303 == sign_in(OPERATOR)
    for _ in range(FROM_ONE - 1):
        assert 401 == sign_in("guess")

    assert [303, 401, 429] == [sign_in(password) for password in (OPERATOR, "guess", "guess")]


def test_those_who_guess_keep_no_other_out(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """After a hundred guesses from many addresses each has one for itself; an IPv6 network is one address."""
    browser = make_browser(None)
    for number in range(FROM_ALL):
        browser.client = f"10.0.0.{number}"
        assert 401 == browser.sign_in("guess").status

    assert 429 == browser.sign_in("guess").status
    browser.client = "10.0.1.1"
    assert [401, 429, 429] == [browser.sign_in(password).status for password in ("guess", "guess", OPERATOR)]
    for address, status in (("2001:db8::1", 401), ("2001:db8::2:1", 429), ("2001:db8:0:1::1", 401), ("unknown", 401)):
        browser.client = address
        assert status == browser.sign_in("guess").status, address
    browser.client = "10.0.1.2"
    assert 303 == browser.sign_in(OPERATOR).status

    clock.advance(60)
    browser.client = "10.0.1.1"
    assert 303 == browser.sign_in(OPERATOR).status


def test_a_made_up_way_through_proxies_is_no_new_address(make_browser: MakeBrowser) -> None:
    """A load balancer adds the caller's address to what the caller has said of others."""
    browser, statuses = make_browser(None), list[int]()
    for number in range(FROM_ONE + 1):
        browser.client = f"10.0.0.{number}, 203.0.113.7"
        statuses.append(browser.sign_in("guess").status)

    assert [*[401] * FROM_ONE, 429] == statuses


def test_what_is_refused_is_no_guess(make_browser: MakeBrowser) -> None:
    """However often one address goes on, others have their ten tries."""
    browser, other = make_browser(None), make_browser(None)
    other.client = "10.0.0.1"
    assert {401, 429} == {browser.sign_in("guess").status for _ in range(FROM_ALL)}

    assert [401] * FROM_ONE == [other.sign_in("guess").status for _ in range(FROM_ONE)]


def test_a_proxy_that_lets_callers_choose_their_address_has_a_limit(
    make_browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a thousand wrong ones through it nobody gets in, but those who have come in from that browser before."""
    # A thousand take a while.
    monkeypatch.setattr(throttle, "THROUGH_ONE", most := 120)
    browser, known = make_browser(None), make_browser()
    statuses = []
    for number in range(most + 1):
        browser.client = f"10.{number // 250}.0.{number % 250}"
        statuses.append(browser.post("/sign-in", {"password": "guess"}, x_forwarded_for=browser.client).status)
    assert [*[401] * most, 429] == statuses

    def enter(browser: Browser, address: str, **headers: str) -> int:
        browser.client = address
        return browser.post("/sign-in", {"password": OPERATOR}, **headers).status

    assert 429 == enter(browser, "10.9.0.1", x_forwarded_for="10.9.0.1")
    assert 303 == enter(known, "10.9.0.2", x_forwarded_for="10.9.0.2")
    assert 303 == enter(browser, "10.9.0.3")


def test_each_sign_in_leaves_a_line(make_browser: MakeBrowser, caplog: pytest.LogCaptureFixture) -> None:
    """Good, bad and locked out, with address and account, never with what was tried; a line has an end."""
    browser = make_browser(None)
    browser.client = "10.0.0.1"
    with caplog.at_level(logging.INFO, "lowkiq_lambda.activity"):
        browser.sign_in(OPERATOR)
        browser.cookies.clear()
        for _ in range(FROM_ONE + 1):
            browser.sign_in("guess")
        browser.client = "\n" * 5_000
        browser.sign_in("guess")
    lines = [record.__dict__ for record in caplog.records]

    assert ["signed in", *["wrong password"] * FROM_ONE, "locked out", "wrong password"] == [
        line["outcome"] for line in lines
    ]
    assert ("olga", "10.0.0.1", "INFO") == tuple(lines[0][name] for name in ("account", "address", "levelname"))
    assert {"WARNING"} == {line["levelname"] for line in lines[1:]}
    assert not any("account" in line for line in lines[1:])
    assert not [word for word in (OPERATOR, "guess") if word in caplog.text]
    assert len(lines) == len([line for line in caplog.text.splitlines() if "sign-in" in line])
    assert all(len(record.getMessage()) < 300 for record in caplog.records)


@pytest.mark.parametrize("setting", ["DASHBOARD_PASSWORD", "DASHBOARD_READER_PASSWORD"])
def test_a_password_that_others_could_guess_is_refused(setting: str) -> None:
    """Less than twelve characters are an error that names the variable, and not the password."""
    with pytest.raises(ConfigError, match=f"LOWKIQ_{setting} has 11 characters") as refused:
        DashboardSettings.from_env({f"LOWKIQ_{setting}": "elevenchars"})

    assert setting.lower() == refused.value.setting
    assert "elevenchars" not in str(refused.value)


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("a" * 12, "has fewer than 5 different characters"),
        ("passwordPassword", "repeats itself"),
        ("123456789012", "is a sequence"),
    ],
)
def test_a_weak_password_is_refused_with_a_way_to_a_good_one(password: str, why: str) -> None:
    """The error names the variable and the reason, and not the password; `secrets` makes one that passes."""
    with pytest.raises(ConfigError, match=f"LOWKIQ_DASHBOARD_PASSWORD {why}.*secrets.token_urlsafe") as refused:
        DashboardSettings.from_env({"LOWKIQ_DASHBOARD_PASSWORD": password})

    assert password not in str(refused.value)
    for _ in range(100):
        assert DashboardSettings(dashboard_password=secrets.token_urlsafe(12)).has_auth()


def test_operators_and_readers_have_different_passwords() -> None:
    """The error names both variables."""
    both = {"LOWKIQ_DASHBOARD_PASSWORD": SECRET, "LOWKIQ_DASHBOARD_READER_PASSWORD": SECRET}

    with pytest.raises(ConfigError, match="LOWKIQ_DASHBOARD_PASSWORD and LOWKIQ_DASHBOARD_READER_PASSWORD") as refused:
        DashboardSettings.from_env(both)

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("other", [SECRET, "sha256:" + sha256(SECRET.encode()).hexdigest()], ids=["plain", "digest"])
def test_each_program_has_a_secret_of_its_own(other: str) -> None:
    """Or the one that may only look would act in the name of the other."""
    with pytest.raises(ConfigError, match="have the same secret") as refused:
        Auth(tokens=[Token("deploy", SECRET, "operator"), Token("graphs", other)])

    assert SECRET not in str(refused.value)


def test_two_hashes_of_one_password_let_nobody_in(make_browser: MakeBrowser) -> None:
    """Their salts hide that until the password is known; a reader does not become an operator by it."""
    auth = Auth([Account("olga", hashed(SECRET), "operator"), Account("rita", hashed(SECRET))])
    browser = make_browser(None, auth=auth)

    refused = browser.sign_in(SECRET)

    assert 503 == refused.status
    assert "The accounts 'olga' and 'rita' of the dashboard have the same password" in refused.words
    assert {} == browser.cookies


@pytest.mark.parametrize(
    "proxies", ["*", "example.org", "10.0.0.1, 0.0.0.0/0", "::/0", "10.0.0.0/33", "10.0.0.1 10.0.0.2"]
)
def test_a_proxy_is_an_address(proxies: str) -> None:
    """What is none, and what would be everybody, is refused by the name of its setting."""
    with pytest.raises(ConfigError, match="LOWKIQ_DASHBOARD_TRUSTED_PROXIES is refused at"):
        DashboardSettings.from_env({"LOWKIQ_DASHBOARD_TRUSTED_PROXIES": proxies})


def test_guesses_are_counted_without_redis(clock: ManualClock, make_browser: MakeBrowser) -> None:
    """Each process counts for itself where they cannot count together, and takes back what was right."""
    away = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0", redis_timeout=0.1), clock=clock)
    browser = make_browser(None, app=away)

    assert {303} == {browser.sign_in(OPERATOR).status for _ in range(2)}
    assert [401] * FROM_ONE == [browser.sign_in("guess").status for _ in range(FROM_ONE)]
    assert 429 == browser.sign_in(OPERATOR).status


def test_a_try_that_began_in_the_minute_before_makes_none_of_this_one_undone() -> None:
    """Several are counted at once: who read the clock before the minute was over may count after others of the next."""

    def alone(_minute: int, _sources: Sequence[str], _more: int) -> Sequence[int]:
        raise BackendUnavailable

    times = iter([MINUTE] * FROM_ONE + [MINUTE - 0.001, MINUTE])
    counting, guesser = Throttle(lambda: next(times), alone), Caller("127.0.0.1")

    assert [0.0] * FROM_ONE == [counting.seconds_to_wait(guesser) for _ in range(FROM_ONE)]
    assert 0.0 < counting.seconds_to_wait(guesser) <= MINUTE
    assert MINUTE == counting.seconds_to_wait(guesser)


def test_wrong_tokens_of_a_minute_that_ended_while_they_were_counted_are_forgotten() -> None:
    """The answer of the other processes is of the minute of the question: the next one begins at none."""
    times, program = [0.0], Caller("127.0.0.1")

    def slowly(_minute: int, _sources: Sequence[str], _more: int) -> Sequence[int]:
        times[0] = MINUTE
        waits.append(counting.seconds_to_wait(program))
        return [WRONG_TOKENS]

    waits = list[float]()
    counting = TokenThrottle(lambda: times[0], slowly)
    counting.seconds_to_wait(program)
    counting.count_together(program, max(counting.count(program) for _ in range(TOLD_TOGETHER)))

    assert [0.0, 0.0] == [*waits, counting.seconds_to_wait(program)]


def test_tokens_are_for_programs(make_browser: MakeBrowser) -> None:
    """A bearer token opens what its role may do, with no cookie, and needs no form's token; a wrong one nothing."""
    digest = "sha256:" + "0" * 64
    auth = Auth(tokens=[Token("ci", SECRET), Token("ops", SECRET + "2", "operator"), Token("old", digest)])
    browser = make_browser(None, auth=auth)

    assert 200 == browser.get("/", authorization=f"Bearer {SECRET}").status
    assert 403 == browser.ask("POST", ACTION, {"authorization": f"bearer {SECRET}"}).status
    assert 403 != browser.ask("POST", ACTION, {"authorization": f"bearer {SECRET}2"}).status
    for wrong in ("", "Bearer", "Bearer x", f"Basic {SECRET}", f"Bearer {digest}", f"Bearer {SECRET} x"):
        assert 303 == browser.get("/", authorization=wrong).status


JWT = {
    "requestContext": {
        "authorizer": {
            "jwt": {"claims": {"email": "a@example.org", "email_verified": "true", "cognito:groups": "[dev ops]"}}
        }
    }
}
COGNITO = {"requestContext": {"authorizer": {"claims": {"email": "a@example.org", "cognito:groups": "ops"}}}}
IAM = {"requestContext": {"authorizer": {"iam": {"userArn": "arn:aws:sts::1:assumed-role/ops/a"}}}}
REST = {"requestContext": {"identity": {"userArn": "arn:aws:sts::1:assumed-role/ops/a"}}}


@pytest.mark.parametrize(
    ("claims", "event", "role"),
    [
        (TrustedClaims(source="jwt", operators=["cognito:groups=ops"]), JWT, "operator"),
        (TrustedClaims(source="jwt", operators=["cognito:groups=ops"]), COGNITO, "operator"),
        (TrustedClaims(source="jwt", readers=["email=*@example.org"]), JWT, "reader"),
        (TrustedClaims(source="jwt", operators=["cognito:groups=o"], readers=["email=*@example.net"]), JWT, None),
        (TrustedClaims(source="jwt", operators=["email=*"]), IAM, None),
        (TrustedClaims(source="iam", operators=["userArn=*:assumed-role/ops/*"]), IAM, "operator"),
        (TrustedClaims(source="iam", operators=["userArn=*:assumed-role/ops/*"]), REST, "operator"),
        (TrustedClaims(source="iam", operators=["userArn=*"]), JWT, None),
        (TrustedClaims(source="iam", operators=["userArn=*"]), {}, None),
        (TrustedClaims(source="jwt", operators=["email=*"]), {"requestContext": {"authorizer": None}}, None),
    ],
    ids=range(10),
)
def test_the_gateways_word_counts_where_it_is_trusted(
    claims: TrustedClaims, event: Mapping[str, Any], role: str | None
) -> None:
    """What the authorizer found out stands in the event; rules say what it is worth, and without one it is nothing."""
    visitor = Auth(claims=claims).visitor({"aws.event": event}, (), None, 0.0)

    assert role == (visitor and visitor.role)


def test_a_host_app_may_know_its_users(make_browser: MakeBrowser) -> None:
    """`trust` is asked with the scope, and its word counts."""
    auth = Auth(trust=lambda scope: Visitor("host", "operator") if scope["client"][0] == "10.0.0.1" else None)
    browser = make_browser(None, auth=auth)

    assert 303 == browser.get("/").status
    browser.client = "10.0.0.1"
    assert 200 == browser.get("/").status
    assert "no passwords" in make_browser(None, auth=auth).get("/sign-in").words


REFUSED: Mapping[str, Callable[[], object]] = {
    "nobody": Auth,
    "empty password": lambda: Auth([Account("a", "")]),
    "blank password": lambda: Auth([Account("a", "  ")]),
    "short password": lambda: Auth([Account("a", "x" * (LEAST - 1))]),
    "short password, hashed": lambda: hashed("x" * (LEAST - 1)),
    "a character": lambda: Auth([Account("a", "a" * LEAST)]),
    "a few characters": lambda: Auth([Account("a", "abcd" + "abdcabdc")]),
    "digits": lambda: Auth([Account("a", "123456789012")]),
    "digits backwards, hashed": lambda: hashed("9876543210987"),
    "a row of keys and digits": lambda: Auth([Account("a", "Qwertyuiop12")]),
    "letters and digits": lambda: Auth([Account("a", "abcdef123456")]),
    "a word twice": lambda: Auth([Account("a", "passwordPassword")]),
    "one password of two": lambda: Auth([Account("a", SECRET, "operator"), Account("b", SECRET)]),
    "one password, hashed, of two": lambda: Auth([Account("a", hashed(SECRET), "operator"), Account("b", SECRET)]),
    "one password of operators and readers": lambda: DashboardSettings(
        dashboard_password=SECRET, dashboard_reader_password=SECRET
    ),
    "one password of operators and readers, hashed": lambda: DashboardSettings(
        dashboard_password=SECRET, dashboard_reader_password=hashed(SECRET)
    ).auth(),
    "broken hash": lambda: Auth([Account("a", "scrypt:broken")]),
    "odd hash": lambda: Auth([Account("a", "scrypt:3:AAAA:AAAA")]),
    "two of a name": lambda: Auth([Account("a", SECRET), Account("a", SECRET)]),
    "no lifetime": lambda: Auth([Account("a", SECRET)], session_lifetime=0),
    "short token": lambda: Auth(tokens=[Token("a", "short")]),
    "broken digest": lambda: Auth(tokens=[Token("a", "sha256:xyz")]),
    "no rule": lambda: TrustedClaims(source="jwt"),
    "half a rule": lambda: TrustedClaims(source="jwt", readers=["email"]),
    "token without role": lambda: DashboardSettings(dashboard_tokens="name:secret").auth(),
    "token of no role": lambda: DashboardSettings(dashboard_tokens=f"name:root:{SECRET}").auth(),
    "claims without rules": lambda: DashboardSettings(dashboard_claims="jwt").auth(),
    "empty environment": lambda: DashboardSettings.from_env({"LOWKIQ_DASHBOARD_PASSWORD": ""}).auth(),
    "no auth": lambda: dashboard(Lowkiq()),
    "everywhere": lambda: entry_for("0.0.0.0", {}),  # noqa: S104 - that is the point
    "anywhere": lambda: entry_for("", {}),
    "by name": lambda: entry_for("example.org", {}),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_p10_what_would_let_everybody_or_nobody_in_is_refused(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, E-85: without an authentication, or with a broken one, there is no dashboard."""
    monkeypatch.delenv("LOWKIQ_DASHBOARD_PASSWORD", raising=False)

    with pytest.raises(ConfigError):
        make()


def test_a_machine_of_ones_own_has_a_password_of_its_own(make_browser: MakeBrowser) -> None:
    """On loopback, without a password set, one is made up; it opens the page for this machine, by its own name."""
    entry = entry_for("127.0.0.1", {})
    assert entry.password is not None
    browser = make_browser(entry.password, auth=entry.auth)

    assert 200 == browser.get("/").status
    assert 403 == browser.get("/", host="rebound.example:8000").status
    assert 200 == browser.get("/", x_forwarded_for="127.0.0.1, ::1").status
    assert 403 == browser.get("/", x_forwarded_for="10.0.0.9").status
    for local in ("for=127.0.0.1", 'For="[::1]:4711";proto=http, for=127.0.0.1:80'):
        assert 200 == browser.get("/", forwarded=local).status, local
    for other in (
        "for=10.0.0.9",
        'for=127.0.0.1, For = "[2001:db8::1]"',
        "for=_hidden",
        "for=unknown",
        "by=127.0.0.1",
        "",
    ):
        assert 403 == browser.get("/", forwarded=other).status, other
    assert (200, 403) == tuple(browser.get("/", x_real_ip=address).status for address in ("::1", "10.0.0.9"))
    browser.client = "10.0.0.9"
    assert 403 == browser.get("/").status
    assert entry_for("::1", {}).password != entry.password
    assert entry_for("10.0.0.9", {"LOWKIQ_DASHBOARD_PASSWORD": SECRET}).password is None


def test_the_environment_says_who_may_come_in(make_browser: MakeBrowser) -> None:
    """Two passwords, tokens and claims; nothing of it is printed."""
    settings = DashboardSettings.from_env(
        {
            "LOWKIQ_DASHBOARD_PASSWORD": hashed("the first of them"),
            "LOWKIQ_DASHBOARD_READER_PASSWORD": "the second one",
            "LOWKIQ_DASHBOARD_TOKENS": f"ci:reader:{SECRET}, ops:operator:{SECRET}2",
        }
    )
    auth = settings.auth()

    assert "olga" not in auth.accounts
    assert make_browser("the first of them", auth=auth).get("/").words.count("read only") == 0
    assert "read only" in make_browser("the second one", auth=auth).get("/").words
    assert 200 == make_browser(None, auth=auth).get("/", authorization=f"Bearer {SECRET}2").status
    for secret in ("the second one", SECRET):
        assert secret not in repr(settings)
        assert secret not in repr([*auth.accounts.values()])


def test_a_wrong_password_takes_as_long_as_a_right_one(clock: ManualClock) -> None:
    """All accounts are compared, whichever fits."""
    first, second = "the first of them", "the second one"
    auth = Auth([Account("a", hashed(first)), Account("b", hashed(second))])
    scope: dict[str, Any] = {"headers": []}
    took = {}
    for password in (first, second, "neither of them"):
        times = list[float]()
        for _ in range(3):
            began = time.process_time()
            auth.sign_in(scope, password, clock.time())
            times.append(time.process_time() - began)
        # Load makes some of them longer, and none shorter.
        took[password] = min(times)

    assert max(took.values()) < 3 * min(took.values())


def test_answers_shut_everything_else_out(browser: Browser) -> None:
    """Nothing runs but our own scripts, by a nonce that is never the same; no frame, no cache, no guess."""
    first, second = browser.get("/"), browser.get("/")
    policy = first.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    (nonce,) = set(re.findall(r"'nonce-(.*?)'", policy))
    assert {nonce} == set(re.findall(r'nonce="(.*?)"', first.text))
    assert nonce not in second.text
    assert "no-store" == first.headers["cache-control"]
    assert "nosniff" == first.headers["x-content-type-options"]
    assert "DENY" == first.headers["x-frame-options"]
    assert "same-origin" == first.headers["referrer-policy"]
    assert [] == re.findall(r"<[^>]*\s(?:on\w+|style)=", first.text)


def test_a_browser_that_came_over_tls_comes_over_tls_again(browser: Browser) -> None:
    """For a week, by any response; without TLS nothing is said about it."""
    for path in ("/", "/nothing", "/sign-in", "/static/x/dashboard.css"):
        assert "max-age=604800" == browser.get(path, x_scheme="https").headers["strict-transport-security"], path
        assert "strict-transport-security" not in browser.get(path).headers


def test_assets_are_kept_for_a_year_by_version(browser: Browser, make_browser: MakeBrowser) -> None:
    """A file's path changes with its content; an older one is served too, and not kept; nothing else can be had."""
    path = re.findall(r'src="\.(/static/.*?dashboard\.js)"', browser.get("/").text)[0]
    stranger = make_browser(None)

    kept, old = stranger.get(path), stranger.get(re.sub("/[0-9a-f]{12}/", "/000000000000/", path))
    assert "immutable" in kept.headers["cache-control"]
    assert "max-age=31536000" in kept.headers["cache-control"]
    assert "gzip" == kept.headers["content-encoding"]
    assert (200, "no-store") == (old.status, old.headers["cache-control"])
    for bad in ("..%2f..%2fapp.py", "..%2fapp.py", "app.py", "%00", "dashboard.css%00"):
        assert 404 == stranger.get(f"/static/x/{bad}").status


@pytest.mark.parametrize(
    ("mounted_at", "root_path", "base_path"),
    [("", "", ""), ("/admin/jobs", "/admin/jobs", ""), ("/prod", "", "/prod"), ("/a/b", "/a", "b")],
)
def test_it_works_under_any_prefix(
    app: Lowkiq, clock: ManualClock, mounted_at: str, root_path: str, base_path: str
) -> None:
    """By the server's root path, by the setting, by both: links are relative, so all of them lead back here."""
    served = dashboard(app, auth=AUTH, clock=clock, base_path=base_path)
    browser = Browser(served, mounted_at=mounted_at, root_path=root_path)
    refused = browser.get("/?span=1h")
    form = browser.follow(refused)
    browser.come_in(AUTH, OPERATOR, clock.time())

    assert f"{mounted_at}/sign-in" in refused.location
    assert 200 == form.status
    assert 200 == browser.get("/").status
    style = re.findall(r'href="\.(/static/.*?\.css)"', browser.get("/").text)[0]
    assert 200 == browser.get(style).status
    assert 404 == browser.get("/nothing").status
    assert 404 == browser.get("/waiting/").status
    if mounted_at:
        bare = browser.get("")
        assert 307 == bare.status
        assert bare.location.endswith(f"{mounted_at}/")
        beside = Browser(served, mounted_at=f"{mounted_at}x", root_path=root_path)
        beside.come_in(AUTH, OPERATOR, clock.time(), root_path)
        assert 404 == beside.get("/x").status


def test_it_can_be_mounted_in_another_app(app: Lowkiq, clock: ManualClock) -> None:
    """In any ASGI app, below any path, with the host's own pages beside it."""
    host = Starlette(routes=[Mount("/ops/queues", dashboard(app, auth=AUTH))])
    browser = Browser(host, mounted_at="/ops/queues")
    browser.come_in(AUTH, OPERATOR, clock.time())

    assert 200 == browser.get("/").status
    assert browser.get("/static/x/dashboard.css").text
    assert 404 == browser.get("/nothing").status
    clock.advance(AUTH.session_lifetime)
    assert 303 == browser.get("/").status


def test_an_apps_dashboard_is_made_as_any_other(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`app.dashboard` takes what `dashboard` takes: base path, mask and clock are heeded, and nobody is no auth."""
    with pytest.raises(ConfigError):
        dashboard(app)
    app.push_many(app.workers[0], [{"id": "a", "payload": "secret"}])
    later = ManualClock()
    later.advance(clock.time() + AUTH.session_lifetime - later.time())
    served = dashboard(app, auth=AUTH, base_path="/jobs", mask=lambda *_: "hidden", clock=later)
    browser = Browser(served, mounted_at="/jobs")

    browser.come_in(AUTH, OPERATOR, clock.time())
    assert 303 == browser.get("/").status
    browser.come_in(AUTH, OPERATOR, later.time())
    words = browser.get(f"/job?queue={queue_name}&id=a").words
    assert "hidden" in words
    assert "secret" not in words


def test_what_breaks_is_told_without_its_reason(
    make_browser: MakeBrowser, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug is a page and a line in the log, with no trace on the page."""
    browser = make_browser()
    monkeypatch.setattr(Operations, "overview", lambda *_: int("gEheim"))

    answer = browser.get("/")

    assert 500 == answer.status
    assert "gEheim" not in answer.text
    assert "gEheim" in caplog.text


def test_two_accounts_of_one_name_are_refused_by_that_name() -> None:
    """The others are not in the message."""
    accounts = [Account(name, f"{OPERATOR} {number}") for number, name in enumerate(("olga", "rita", "olga"))]
    with pytest.raises(ConfigError, match=r"have the same name: olga\.$"):
        Auth(accounts)
