"""What a stranger without any account can cost: no traceback, no bare answer, and nobody else's way in."""

import base64
import logging
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard import Account, Auth, dashboard
from lowkiq_lambda.dashboard.security import throttle
from lowkiq_lambda.dashboard.security.sessions import LONGEST_NAME
from lowkiq_lambda.dashboard.security.throttle import FROM_ALL, FROM_ONE
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import AUTH, OPERATOR, READER
from tests.kit.web import Browser

pytestmark = pytest.mark.usefixtures("worker")
"""Tries are counted by app, and an app is known by its queues."""


@pytest.mark.parametrize("depth", [0, 100, 300, 1_100, 10_000])
def test_p10_a_cookie_of_nested_json_is_no_session(
    make_browser: MakeBrowser, caplog: pytest.LogCaptureFixture, depth: int
) -> None:
    """P10: however deep it is, a stranger is led to the form, and the log stays empty."""
    browser = make_browser(None)
    nested = f'["olga","x",1,2,{"[" * depth}{"]" * depth}]'.replace(",]", "]")
    content = base64.urlsafe_b64encode(nested.encode()).decode().rstrip("=")
    browser.cookies["lowkiq_session_x"] = f"{content}.AAAA"

    answer = browser.get("/")

    assert (303, "DENY") == (answer.status, answer.headers["x-frame-options"])
    assert [] == caplog.records


def test_an_account_with_a_long_name_signs_in(app: Lowkiq, clock: ManualClock) -> None:
    """The longest name fits into a cookie; a longer one is refused at start, and not at each sign-in."""
    password = "the password of a long name"  # noqa: S105 - of nobody
    auth = Auth([Account("🦉" * LONGEST_NAME, password)])
    browser = Browser(dashboard(app, auth=auth, clock=clock))
    browser.come_in(auth, password, clock.time())

    assert 200 == browser.get("/").status
    with pytest.raises(ConfigError, match=f"more than {LONGEST_NAME} characters"):
        Auth([Account("a" * (LONGEST_NAME + 1), password)])


@pytest.mark.parametrize("path", ["/", "/api/v1/stats", "/healthz"])
def test_what_breaks_before_a_page_is_answered_as_any_other(
    make_browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """A bug in the gate is one entry in the log, and a response with the headers of every response."""
    browser = make_browser(None)

    def broken(*_: Any) -> None:
        raise RuntimeError("gEheim")

    monkeypatch.setattr(Auth, "visitor", broken)
    answer = browser.get(path)

    assert 500 == answer.status
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert ("no-store", "nosniff") == (answer.headers["cache-control"], answer.headers["x-content-type-options"])
    assert "The dashboard failed on this request" in answer.text
    assert "gEheim" not in answer.text
    assert [logging.ERROR] == [record.levelno for record in caplog.records]


def test_a_redirect_to_the_folder_has_the_headers_of_every_response(app: Lowkiq, clock: ManualClock) -> None:
    """The path without its slash, too."""
    browser = Browser(dashboard(app, auth=Auth([Account("a", "some long password")]), clock=clock), mounted_at="/x")
    browser.root_path = "/x"

    answer = browser.get("")

    assert (307, "DENY") == (answer.status, answer.headers["x-frame-options"])


def test_strangers_at_ones_address_keep_no_known_browser_out(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """While they guess in every minute, a browser signs in again with the cookie of a session that has ended."""
    known, stranger, other = make_browser(), make_browser(None), make_browser(None)
    clock.advance(AUTH.session_lifetime)
    assert 303 == known.get("/").status

    for _ in range(3):
        statuses = [stranger.sign_in("guess").status for _ in range(FROM_ONE + 2)]
        assert [*[401] * FROM_ONE, 429, 429] == statuses
        assert (429, 303) == (other.sign_in(OPERATOR).status, known.sign_in(OPERATOR).status)
        clock.advance(60)


def test_strangers_at_all_addresses_keep_no_known_browser_out(make_browser: MakeBrowser) -> None:
    """The total limit is that of browsers which nobody has seen before; so is that of a proxy's address."""
    known, stranger = make_browser(), make_browser(None)
    for number in range(FROM_ALL + 1):
        stranger.client = known.client = f"10.0.0.{number}"
        assert 401 == stranger.sign_in("guess").status

    assert (429, 401, 303) == (
        stranger.sign_in(OPERATOR).status,
        known.sign_in("a slip").status,
        known.sign_in(OPERATOR).status,
    )


def test_a_known_browser_guesses_no_more_than_a_stranger(make_browser: MakeBrowser, clock: ManualClock) -> None:
    """It has ten tries a minute, from whatever address; they are its own, and not those of its neighbours."""
    known, neighbour, stranger = make_browser(READER), make_browser(READER), make_browser(None)
    statuses = list[int]()
    for number in range(FROM_ONE + 1):
        known.client = f"10.0.0.{number}"
        statuses.append(known.sign_in("guess").status)
    assert [*[401] * FROM_ONE, 429] == statuses
    assert 429 == known.sign_in(OPERATOR).status

    neighbour.client = stranger.client = known.client
    assert (303, 303) == (neighbour.sign_in(READER).status, stranger.sign_in(READER).status)
    clock.advance(60)
    assert 303 == known.sign_in(READER).status


def test_who_signs_in_again_and_again_guesses_no_more_for_it(
    make_browser: MakeBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sign-in makes a cookie with tries of its own, so all cookies of an account have limits together."""
    # A thousand take a while.
    monkeypatch.setattr(throttle, "THROUGH_ONE", most := 120)
    elder = browser = make_browser(READER)
    statuses = list[int]()
    for number in range(most + 1):
        if number % (FROM_ONE - 1) == 0 or number >= FROM_ALL:
            browser = make_browser(READER)
        statuses.append(browser.sign_in("guess").status)
    assert [*[401] * most, 429] == statuses

    assert 429 == elder.sign_in(OPERATOR).status
    assert (303, 303) == (make_browser().sign_in(OPERATOR).status, make_browser(None).sign_in(READER).status)


def test_a_cookie_of_ones_own_making_is_no_known_browser(make_browser: MakeBrowser) -> None:
    """What we have not signed counts for its address."""
    stranger, statuses = make_browser(None), list[int]()
    (name,) = make_browser().cookies
    for number in range(FROM_ONE + 1):
        content = base64.urlsafe_b64encode(f'["olga","{number}",1,2]'.encode()).decode().rstrip("=")
        stranger.cookies[name] = f"{content}.AAAA"
        statuses.append(stranger.sign_in("guess").status)

    assert [*[401] * FROM_ONE, 429] == statuses
