"""The dashboard's function: what API Gateway sends becomes pages, for those whom the settings let in."""

import asyncio
import base64
import gzip
import json
import logging
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Config, Lowkiq, LowkiqError
from lowkiq_lambda.aws.dashboard_function import KEPT, Entrance
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.dashboard.security.throttle import FROM_ONE

EVENT = json.loads((Path(__file__).parents[2] / "local" / "events" / "dashboard.json").read_text())
ARN = "arn"
PASSWORD = "pä:ss, and more"  # noqa: S105 - of a page that only the tests see
TOKEN = "t" * 20
ENVIRON = {"LOWKIQ_DASHBOARD_SECRET_ARN": ARN, "LOWKIQ_DASHBOARD_TOKENS": f"scraper:reader:{TOKEN}"}


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """The event loop that Mangum finds or makes, and would leave open."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield
    asyncio.set_event_loop(None)
    made.close()


class Client:
    """Asks as API Gateway does, and keeps cookies."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance
        self._context: Any = None  # nobody looks at it
        self.cookies: dict[str, str] = {}
        self.address: str = EVENT["requestContext"]["http"]["sourceIp"]

    def ask(self, path: str = "/", *, method: str = "GET", body: str = "", **headers: str) -> dict[str, Any]:
        """The answer, its body as bytes, unpacked; `path` with its query."""
        path, _, query = path.partition("?")
        http = {**EVENT["requestContext"]["http"], "method": method, "path": path}
        about = {**EVENT["requestContext"], "http": {**http, "sourceIp": self.address}}
        sent = {"host": "example.org", "x-forwarded-proto": "https", "accept-encoding": "gzip", **headers}
        cookies = [f"{name}={value}" for name, value in self.cookies.items()]
        event = {
            **EVENT,
            "rawPath": path,
            "rawQueryString": query,
            "headers": sent,
            "requestContext": about,
            "body": body,
            "cookies": cookies,
        }
        answer = self._entrance(event, self._context)
        raw = base64.b64decode(answer["body"]) if answer["isBase64Encoded"] else answer["body"].encode()
        packed = answer["headers"].get("content-encoding") == "gzip"
        for cookie in answer.get("cookies", ()):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(cookie).items()}
        return {**answer, "raw": gzip.decompress(raw) if packed else raw, "packed": packed}

    def sign_in(self, password: str, **headers: str) -> int:
        """The status of the answer."""
        kind = "application/x-www-form-urlencoded"
        status: int = self.ask(
            "/sign-in", method="POST", body=urlencode({"password": password}), **{"content-type": kind, **headers}
        )["statusCode"]
        return status


@pytest.fixture
def app(server_url: str, queue_name: str) -> Lowkiq:
    """An app with a queue."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=0.5))
    app.worker(queue_name=queue_name, shards_count=3)(lambda _batch: None)
    return app


def client_of(app: Lowkiq | Callable[[], Lowkiq], password: str = PASSWORD, **environ: str) -> Client:
    """For an app and what the environment says."""
    load = (lambda: app) if isinstance(app, Lowkiq) else app
    return Client(Entrance({**ENVIRON, **environ}, load, lambda _arn: password))


def test_who_signs_in_sees_the_queues(app: Lowkiq, queue_name: str) -> None:
    """The password of the secret opens the overview, whose answer is packed and says where nothing is loaded from."""
    client = client_of(app)
    assert (401, 303) == (client.sign_in("wrong"), client.sign_in(PASSWORD))

    page = client.ask()

    assert 200 == page["statusCode"]
    assert queue_name in page["raw"].decode()
    assert page["packed"]
    assert "default-src 'none'" in page["headers"]["content-security-policy"]


def test_a_program_asks_with_a_token(app: Lowkiq, queue_name: str) -> None:
    """What the API answers is what the app says."""
    answer = client_of(app).ask("/api/v1/stats", authorization=f"Bearer {TOKEN}")

    assert app.operate.stats() == json.loads(answer["raw"])
    assert queue_name in json.loads(answer["raw"])["by_worker"]


def test_the_apps_own_mask_hides_payloads(server_url: str, queue_name: str) -> None:
    """E-85: what the app's settings hide is hidden here, too, where nobody gives the dashboard anything else."""
    app = Lowkiq(Config(redis_url=server_url, mask=lambda queue, job_id, _payload: ["hidden", queue, job_id]))
    worker = app.worker(queue_name=queue_name, shards_count=3)(lambda _batch: None)
    worker.push_many([{"id": "a", "payload": "4111"}])

    answer = client_of(app).ask(f"/api/v1/job?queue={queue_name}&id=a", authorization=f"Bearer {TOKEN}")

    (payload,) = json.loads(answer["raw"])["waiting"]["payloads"]
    assert ["hidden", queue_name, "a"] == payload["payload"]


@pytest.mark.parametrize("path", ["/", "/api/v1/stats", "/metrics", "/anything"])
def test_nobody_gets_in_without_password_or_token(path: str) -> None:
    """Whatever is asked for, those who are unknown are told to sign in; the app is not even loaded."""

    def load() -> Lowkiq:
        raise AssertionError("loaded")

    answer = client_of(load).ask(path, authorization="Bearer unknown")

    assert answer["statusCode"] in {303, 401}


def test_behind_a_path_of_a_domain_all_is_found(app: Lowkiq) -> None:
    """With a base path the pages begin there, and nowhere else."""
    client = client_of(app, LOWKIQ_DASHBOARD_BASE_PATH="/jobs")

    assert 200 == client.ask("/jobs/healthz")["statusCode"]
    assert 200 == client.ask("/jobs/sign-in")["statusCode"]


def test_without_a_password_nobody_gets_in(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """Where the settings name nobody every request is refused, and told what to set."""
    answer = Client(Entrance({}, lambda: app, str)).ask()

    assert 503 == answer["statusCode"]
    assert "LOWKIQ_DASHBOARD_ACCOUNTS" in answer["body"]
    assert "no authentication" in caplog.text


def test_a_password_that_cannot_be_read_lets_nobody_in(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """Where the secret is out of reach the answer says no more than that; the reason is in the log."""

    def read(_arn: str) -> str:
        raise LowkiqError("no right to read it")

    answer = Client(Entrance(ENVIRON, lambda: app, read)).ask()

    assert 503 == answer["statusCode"]
    assert "no right" not in answer["body"]
    assert "no right" in caplog.text


def test_a_changed_secret_ends_sessions(app: Lowkiq) -> None:
    """What the reader of secrets says counts at once; sessions of the old password end. It keeps texts for a while."""
    secrets = {ARN: "the first of two"}
    client = Client(Entrance(ENVIRON, lambda: app, secrets.__getitem__))
    assert 303 == client.sign_in("the first of two")
    assert 200 == client.ask()["statusCode"]

    secrets[ARN] = "the second of two"

    assert 300 == KEPT
    assert 303 == client.ask()["statusCode"]
    assert (401, 303) == (client.sign_in("the first of two"), client.sign_in("the second of two"))


def test_an_app_that_cannot_be_loaded_is_told_to_those_who_signed_in() -> None:
    """What is wrong with the app stands on the page, and health names the part."""

    def load() -> Lowkiq:
        raise LowkiqError("There is no module 'shop'.")

    client = client_of(load)
    client.sign_in(PASSWORD)

    page, health = client.ask(), client.ask("/healthz")

    assert 503 == page["statusCode"]
    assert "There is no module" in page["raw"].decode()
    assert 503 == health["statusCode"]
    assert {"status": "unreachable", "app": "unreachable", "redis": "unknown"} == json.loads(health["raw"])


def test_the_event_tells_the_address_and_no_header_does(
    app: Lowkiq, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes another `X-Forwarded-For` with each guess is locked out after ten; each try leaves a line."""
    now = SystemClock().time()
    # Guesses are counted by the minute.
    monkeypatch.setattr(SystemClock, "time", lambda _clock: now)
    client = client_of(app)
    with caplog.at_level(logging.INFO, "lowkiq_lambda.activity"):
        statuses = [client.sign_in("wrong", **{"x-forwarded-for": f"10.0.0.{n}"}) for n in range(FROM_ONE + 2)]
        client.address = "203.0.113.8"
        statuses.append(client.sign_in(PASSWORD))
    lines = [record.__dict__ for record in caplog.records]

    assert [*[401] * FROM_ONE, 429, 429, 303] == statuses
    told = ["wrong password"] * FROM_ONE, ["locked out"] * 2, ["signed in"]
    assert [one for part in told for one in part] == [line["outcome"] for line in lines]
    assert [EVENT["requestContext"]["http"]["sourceIp"]] * (FROM_ONE + 2) == [line["address"] for line in lines[:-1]]
    assert ("203.0.113.8", "operator") == (lines[-1]["address"], lines[-1]["account"])
    assert not any("proxy" in line for line in lines)


def test_a_secret_that_others_could_guess_lets_nobody_in(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """It is too short for a password: the log names the setting, and not the secret."""
    client = client_of(app, "elevenchars")

    assert [503, 503] == [client.ask()["statusCode"], client.ask()["statusCode"]]
    assert 2 == caplog.text.count("LOWKIQ_DASHBOARD_SECRET_ARN has 11 characters")
    assert "elevenchars" not in caplog.text


def test_no_secret_is_logged(app: Lowkiq, caplog: pytest.LogCaptureFixture) -> None:
    """Neither what was tried nor what would have been right."""
    with caplog.at_level(logging.DEBUG):
        client = client_of(app)
        client.sign_in("tried")
        client.sign_in(PASSWORD)

    assert not {word for word in ("tried", PASSWORD, TOKEN) if word in caplog.text}
