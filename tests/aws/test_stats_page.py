"""The dashboard's function until there is a dashboard: a page of numbers, shown to those who sign in."""

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, LowkiqError
from lowkiq_lambda.aws.dashboard_function import KEPT, Password, adapter
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.aws.sign_in import Credentials
from lowkiq_lambda.testing import ManualClock

EVENT = json.loads((Path(__file__).parents[2] / "local" / "events" / "dashboard.json").read_text())
CREDENTIALS = Credentials("lowkiq", "pä:ss")
GEHEIM = "geheim"
ARN = "arn"


def basic(user: str, password: str) -> str:
    """The header that a browser sends."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


SIGNED_IN = basic("lowkiq", "pä:ss")


class Client:
    """Asks as API Gateway does."""

    def __init__(self, load: Callable[[], Lowkiq], credentials: Callable[[], Credentials | None]) -> None:
        self._handler = adapter(load, credentials)
        self._context: Any = None  # nobody looks at it

    def ask(self, path: str = "/", *, method: str = "GET", authorization: str | None = SIGNED_IN) -> dict[str, Any]:
        """The answer, its body as text."""
        headers = {"host": "example.org", **({"authorization": authorization} if authorization else {})}
        about = {**EVENT["requestContext"], "http": {**EVENT["requestContext"]["http"], "method": method, "path": path}}
        event = {**EVENT, "rawPath": path, "headers": headers, "requestContext": about}
        answer: dict[str, Any] = self._handler(event, self._context)
        assert not answer["isBase64Encoded"]
        return answer


@pytest.fixture
def app(server_url: str, queue_name: str) -> Lowkiq:
    """An app with a queue whose name has what HTML takes for its own."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=0.5))

    @app.worker(queue_name=f"<b>{queue_name}&", shards_count=3, max_retry_count=0)
    def fail(_batch: Mapping[str, object]) -> None:
        raise ValueError("as told")

    @app.worker(queue_name=queue_name, shards_count=2)
    def greet(_batch: Mapping[str, object]) -> None:
        """Nothing."""

    return app


@pytest.fixture
def client(app: Lowkiq) -> Client:
    """Asks for the app's pages."""
    return Client(lambda: app, lambda: CREDENTIALS)


def cells(page: str) -> dict[str, list[str]]:
    """The table's rows by the name in front, without markup."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    return {name: [re.sub("<.*?>", "", cell) for cell in rest] for name, *rest in rows}


def test_the_page_has_a_row_for_each_queue(client: Client, app: Lowkiq, queue_name: str) -> None:
    """Each queue's numbers stand in its row, under a name that is text and nothing else."""
    failing, greeting = app.workers
    failing.perform_async([{"id": n} for n in range(1_200)])
    app.drain()
    greeting.perform_async([{"id": n} for n in range(7)])

    answer = client.ask()
    rows = cells(answer["body"])
    numbers = dict(zip(rows.pop("Queue"), zip(*rows.values(), strict=True), strict=True))

    assert 200 == answer["statusCode"]
    assert [f"&lt;b&gt;{queue_name}&amp;", queue_name] == list(rows)
    assert ("0", "7") == numbers["Waiting"]
    assert ("1\N{NARROW NO-BREAK SPACE}200", "0") == numbers["Morgue"]
    assert ("1\N{NARROW NO-BREAK SPACE}200", "0") == numbers["Dead"]
    assert ("3", "2") == numbers["Shards"]
    assert "<b>" not in answer["body"]


def test_the_page_shuts_everything_else_out(client: Client) -> None:
    """No script runs, nothing is loaded from elsewhere or framed, nothing stays in a cache, no link is absolute."""
    answer = client.ask()
    policy = answer["headers"]["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "no-store" == answer["headers"]["cache-control"]
    assert "nosniff" == answer["headers"]["x-content-type-options"]
    assert [] == [link for link in re.findall(r'(?:href|src)="(.*?)"', answer["body"]) if re.match(r"/|\w+://", link)]


@pytest.mark.parametrize("path", ["/", "/healthz", "/anything"])
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        basic("lowkiq", "wrong"),
        basic("lowkiq", ""),
        basic("", "pä:ss"),
        basic("root", "pä:ss"),
        "Basic",
        "Basic ???",
        "Basic bG93a2lx",
        SIGNED_IN.replace("Basic", "Bearer"),
        SIGNED_IN + "x",
        "Basic \xff",
    ],
)
def test_nobody_gets_in_without_user_and_password(path: str, authorization: str | None) -> None:
    """Whatever is asked for, those who do not sign in are asked to; the app is not even loaded."""

    def load() -> Lowkiq:
        raise AssertionError("loaded")

    answer = Client(load, lambda: CREDENTIALS).ask(path, authorization=authorization)

    assert 401 == answer["statusCode"]
    assert answer["headers"]["www-authenticate"].startswith("Basic ")


def test_a_refused_sign_in_is_logged_without_what_was_tried(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """A guess leaves a line in the log, a browser's first request leaves none, and no line has a password."""
    with caplog.at_level(logging.INFO):
        client.ask(authorization=None)
        client.ask(authorization=basic("lowkiq", "tried"))

    assert ["GET / 401", "a sign-in to the dashboard was refused", "GET / 401"] == caplog.messages


def test_without_a_password_nobody_gets_in(app: Lowkiq) -> None:
    """Where no password is set every request is refused, and told what to set."""
    answer = Client(lambda: app, Password(Settings(), read=str)).ask(authorization=basic("lowkiq", ""))

    assert 503 == answer["statusCode"]
    assert "LOWKIQ_DASHBOARD_PASSWORD" in answer["body"]


def test_a_password_that_cannot_be_read_lets_nobody_in(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """Where the secret is out of reach the page says no more than that; the reason is in the log."""

    def read(_arn: str) -> str:
        raise LowkiqError("no right to read it")

    answer = Client(lambda: app, Password(Settings(dashboard_secret_arn=ARN), read)).ask()

    assert 503 == answer["statusCode"]
    assert "no right" not in answer["body"]
    assert "no right" in caplog.text


def test_a_changed_secret_counts_after_a_while() -> None:
    """A secret is read when it is needed, and again after five minutes; an empty one is none."""
    clock = ManualClock(1_000.0)
    secrets = {ARN: "first"}
    password = Password(Settings(dashboard_secret_arn=ARN, dashboard_user="me"), secrets.__getitem__, clock.time)
    assert Credentials("me", "first") == password()

    secrets[ARN] = "second"
    clock.advance(KEPT - 1)
    assert Credentials("me", "first") == password()

    clock.advance(2)
    assert Credentials("me", "second") == password()

    secrets[ARN] = ""
    clock.advance(KEPT + 1)
    assert password() is None


def test_no_password_is_printed() -> None:
    """Neither the settings nor the credentials show it."""
    settings = Settings(dashboard_password=GEHEIM, dashboard_user="me")

    assert GEHEIM not in f"{settings!r} {Password(settings, str)()!r}"
    assert "'me'" in repr(settings)


def test_a_redis_that_is_away_is_told(queue_name: str) -> None:
    """Where Redis does not answer the page says so, and so does the word on health."""
    away = Lowkiq(Config(redis_url="redis://127.0.0.1:1/0", redis_timeout=0.1))
    away.worker(queue_name=queue_name)(lambda _batch: None)
    client = Client(lambda: away, lambda: CREDENTIALS)

    page, health = client.ask(), client.ask("/healthz")

    assert 503 == page["statusCode"]
    assert "Redis does not answer" in page["body"]
    assert 503 == health["statusCode"]
    assert health["body"].startswith("Redis does not answer: ")


def test_an_app_that_cannot_be_loaded_is_told_to_those_who_signed_in() -> None:
    """What is wrong with the app stands on the page."""

    def load() -> Lowkiq:
        raise LowkiqError("There is no module 'shop'.")

    answer = Client(load, lambda: CREDENTIALS).ask()

    assert 503 == answer["statusCode"]
    assert "There is no module &#x27;shop&#x27;." in answer["body"]


def test_there_is_a_word_on_health_and_little_else(client: Client) -> None:
    """A healthy Redis is worth one word, and what is not there is not found."""
    assert (200, "ok\n") == (client.ask("/healthz")["statusCode"], client.ask("/healthz")["body"])
    assert 404 == client.ask("/api")["statusCode"]


def test_nothing_can_be_changed(client: Client) -> None:
    """The page can be read, also without its body, and nothing else."""
    head = client.ask(method="HEAD")

    assert (200, "") == (head["statusCode"], head["body"])
    assert 405 == client.ask(method="POST")["statusCode"]


def test_an_app_without_workers_has_an_empty_page(server_url: str) -> None:
    """Without a queue there is a sentence in place of the table."""
    empty = Lowkiq(Config(redis_url=server_url))

    answer = Client(lambda: empty, lambda: CREDENTIALS).ask()

    assert 200 == answer["statusCode"]
    assert "declares no worker" in answer["body"]
