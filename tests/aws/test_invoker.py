"""The call of Lambda's API, against a server that answers as it is told."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lowkiq_lambda.providers.aws.clients import connect
from lowkiq_lambda.providers.aws.invoker import InvocationRefused, LambdaInvoker, LambdaUnreachable
from lowkiq_lambda.providers.aws.secrets import provider
from tests.kit.servers.ports import HOST


class Api(ThreadingHTTPServer):
    """Takes the invocations that reach it, and notes them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Answers)
        self.requests: list[tuple[str, str | None, Any]] = []
        self.answer: tuple[int, str | None] = (202, None)
        """Status, and the code of the error."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    server: Api

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["X-Amz-Invocation-Type"], json.loads(body)))
        status, code = self.server.answer
        said = json.dumps({"message": "said so"}).encode() if code else b""
        self.send_response(status)
        if code:
            self.send_header("x-amzn-ErrorType", code)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_arguments: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """Lambda's API, as the environment names it."""
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield server
        server.shutdown()
        thread.join()


def test_an_invocation_is_asynchronous_and_carries_its_event(api: Api) -> None:
    """The caller does not wait for the function."""
    invoker = LambdaInvoker()

    for shard in (3, 4):
        invoker.invoke("shop-drain", {"queue": "день", "shard": shard})

    path = "/2015-03-31/functions/shop-drain/invocations"
    assert [(path, "Event", {"queue": "день", "shard": shard}) for shard in (3, 4)] == api.requests


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "AccessDeniedException", "grant the role lambda:InvokeFunction"),
        (404, "ResourceNotFoundException", "correct the name or ARN"),
        (429, "TooManyRequestsException", "takes no more invocations now"),
        (400, "RecursiveInvocationException", "set RecursiveLoop to Allow"),
        (400, "SomethingNewException", "SomethingNewException"),
    ],
)
def test_a_refusal_is_told_in_a_sentence(api: Api, status: int, code: str, advice: str) -> None:
    """It names the function and says what to do; Lambda's own words stand behind."""
    api.answer = status, code

    with pytest.raises(InvocationRefused, match=r"^shop-drain was not started: ") as caught:
        LambdaInvoker().invoke("shop-drain", {})

    assert advice in str(caught.value)
    assert "said so" in str(caught.value)
    assert not isinstance(caught.value, LambdaUnreachable)


def test_an_answer_that_is_no_acceptance_is_a_refusal(api: Api) -> None:
    """Only 202 says that Lambda has taken the event."""
    api.answer = 200, None

    with pytest.raises(InvocationRefused, match="answered 200"):
        LambdaInvoker().invoke("shop-drain", {})


def test_an_api_out_of_reach_is_told_apart(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no route, the sentence says what a VPC needs."""
    del api
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://{HOST}:1")

    with pytest.raises(LambdaUnreachable, match="a NAT gateway, or an interface endpoint for lambda"):
        LambdaInvoker().invoke("shop-drain", {})


def test_without_a_region_nothing_can_be_invoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the variable, and with it there is a region, as in each SDK of AWS."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(InvocationRefused, match="name a region, set AWS_REGION"):
        LambdaInvoker().invoke("shop-drain", {})
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    LambdaInvoker().prepare()


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        ("", "lambda.eu-central-1.amazonaws.com"),
        ("false", "lambda.eu-central-1.amazonaws.com"),
        ("true", "lambda.eu-central-1.api.aws"),
    ],
)
def test_where_a_network_has_ipv6_the_api_is_called_by_it(
    monkeypatch: pytest.MonkeyPatch, asked: str, host: str
) -> None:
    """Of AWS's two endpoints only the second has addresses of IPv6; a function without a NAT gateway needs it."""
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", asked)

    client = connect("lambda", "Invoking functions", InvocationRefused, "eu-central-1")

    assert f"https://{host}" == client.meta.endpoint_url


def test_secrets_are_read_by_ipv6_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other API that functions in a VPC call: that of Secrets Manager."""
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "true")

    reader = provider.__wrapped__("eu-central-1")

    assert "https://secretsmanager.eu-central-1.api.aws" == reader.client.meta.endpoint_url
