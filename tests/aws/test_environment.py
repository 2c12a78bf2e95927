"""What a function finds when it starts, and what it says where something is missing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.aws.environment import environment
from lowkiq_lambda.base.errors import AppNotFound, ConfigError
from lowkiq_lambda.providers.aws.iam import IamCredentials
from lowkiq_lambda.settings.aws import RedisIam, Settings
from tests.aws.functions import DrainFunction, Install, overdue
from tests.aws.manager import ARN, secrets_manager
from tests.kit.apps import MakeApp, closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare

ROOT = Path(__file__).parents[2]


def test_settings_come_from_the_environment() -> None:
    """Each has its variable and its default; an empty variable is unset, as a template's empty parameter is."""
    environ = {
        "LOWKIQ_APP": "shop.jobs:app",
        "LOWKIQ_RESERVE": "1.5",
        "LOWKIQ_IDLE": "linger",
        "LOWKIQ_QUEUES": "",
        "LOWKIQ_METRICS_NAMESPACE": "",
        "LOWKIQ_REDIS_IAM": "user=jobs,cache=shop,serverless=true",
    }

    assert Settings(
        app="shop.jobs:app",
        reserve=1.5,
        idle="linger",
        redis_iam=RedisIam(user="jobs", cache="shop", serverless=True),
    ) == Settings.from_env(environ)
    assert (3.0, "stay", "lowkiq") == tuple(
        getattr(Settings(), name) for name in ("reserve", "idle", "metrics_namespace")
    )


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"LOWKIQ_RESERVE": "soon"}, "LOWKIQ_RESERVE='soon' is refused"),
        ({"LOWKIQ_RESERVE": "-1"}, "LOWKIQ_RESERVE='-1' is refused"),
        (
            {"LOWKIQ_STACK_VERSION": "0"},
            "The template is of stack version 0, and this lowkiq_lambda needs 1: run",
        ),
        ({"LOWKIQ_IDLE": "perhaps"}, "LOWKIQ_IDLE='perhaps' is refused"),
        ({"LOWKIQ_METRICS_NAMESPACE": "my shop"}, "LOWKIQ_METRICS_NAMESPACE='my shop' is refused"),
        ({"LOWKIQ_REDIS_IAM": "user=jobs"}, "LOWKIQ_REDIS_IAM='user=jobs' is refused"),
        ({"LOWKIQ_REDIS_IAM": "user=,cache=shop"}, "LOWKIQ_REDIS_IAM='user=,cache=shop' is refused"),
        ({"LOWKIQ_REDIS_IAM": "jobs"}, "LOWKIQ_REDIS_IAM='jobs' is refused"),
        ({"LOWKIQ_QUEUES": "reports,-orders"}, "LOWKIQ_QUEUES='reports,-orders' is refused: give names of queues"),
    ],
)
def test_a_bad_setting_is_named_with_its_value(environ: dict[str, str], why: str) -> None:
    """All are checked at start."""
    with pytest.raises(ConfigError) as raised:
        Settings.from_env(environ)

    assert str(raised.value).startswith(why)


def test_a_variable_that_is_no_setting_is_told(
    install: Install, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is refused, as it may be another program's; the values are not printed."""
    app = make_app()
    declare(app, "Greet", Notes())
    install(app)
    monkeypatch.setenv("LOWKIQ_RESREVE", "s3cret")
    monkeypatch.setenv("LOWKIQ_DASHBOARD_PASWORD", "s3cret")

    environment()

    assert ["LOWKIQ_RESREVE is unknown and has no effect: did you mean LOWKIQ_RESERVE?"] == caplog.messages


@pytest.mark.parametrize(("alert", "warned"), [("https://chat.example/hook/s3cret", 1), (None, 0)])
def test_who_asks_for_alerts_is_told_that_no_function_sends_them(
    install: Install, make_app: MakeApp, caplog: pytest.LogCaptureFixture, alert: str | None, warned: int
) -> None:
    """Once in the life of a process, with what tells in their place, and without the address."""
    app = make_app(alert=alert)
    declare(app, "Greet", Notes())
    install(app)

    environment()
    environment()

    assert warned == len(caplog.messages)
    assert all("AlarmTopicArn" in told and "s3cret" not in told for told in caplog.messages)


def test_without_an_app_there_is_a_sentence(install: Install) -> None:
    """A cold start that cannot work says what to set."""
    del install

    with pytest.raises(ConfigError, match="No app is named: set LOWKIQ_APP to MODULE:APP, such as shop"):
        environment()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("shop", "'shop' names no app: expected MODULE:APP"),
        ("no_such_module:app", "There is no module 'no_such_module'"),
        ("broken_on_import:app", "Importing 'broken_on_import' failed: ZeroDivisionError: division by zero"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_a_sentence(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: str, why: str
) -> None:
    """It says what is wrong with LOWKIQ_APP, or with the module."""
    del install
    (tmp_path / "broken_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LOWKIQ_APP", spec)

    with pytest.raises(AppNotFound) as raised:
        environment()

    assert str(raised.value).startswith(why)


def printed_by(code: str, folder: Path, **variables: str) -> str:
    """What a function's process prints while it starts, which finds its modules in the folder."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LOWKIQ_", "AWS_"))}
    environ |= {"AWS_LAMBDA_FUNCTION_NAME": "shop-drain", "PYTHONPATH": str(ROOT), **variables}
    started = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    return started.stdout


@pytest.mark.parametrize(("app", "loaded"), [("warm_app:app", "warm\n"), ("broken_app:app", "")])
def test_lambda_loads_the_app_while_it_starts(tmp_path: Path, app: str, loaded: str) -> None:
    """Before the first event there is time for it; what cannot work fails the invocations, not the start."""
    (tmp_path / "warm_app.py").write_text(
        "from lowkiq_lambda import Config, Lowkiq\n"
        "app = Lowkiq(Config(redis_url='redis://127.0.0.1:1'))\n"
        "@app.worker\n"
        "def greet(batch): pass\n"
        "print('warm')\n"
    )
    assert loaded == printed_by("import lowkiq_lambda.aws.drain_function", tmp_path, LOWKIQ_APP=app)


@pytest.mark.parametrize(
    ("setting", "imported"),
    [({}, "False"), ({"LOWKIQ_IDLE": "start"}, "True"), ({"LOWKIQ_WAKE_FUNCTION": "shop-drain"}, "True")],
)
def test_lambda_imports_the_sdk_while_it_starts_where_a_drain_may_call_it(
    tmp_path: Path, setting: dict[str, str], imported: str
) -> None:
    """Continuation has seconds at the end of an invocation, and a push of a handler waits for its wake."""
    (tmp_path / "warm_app.py").write_text(
        "import os\n"
        "from lowkiq_lambda import Config, Lowkiq\n"
        "app = Lowkiq(Config.from_env(os.environ))\n"
        "@app.worker\n"
        "def greet(batch): pass\n"
    )
    asked = "import sys, lowkiq_lambda.aws.drain_function; print('boto3.session' in sys.modules)"
    known = {"LOWKIQ_APP": "warm_app:app", "LOWKIQ_REDIS_URL": "redis://127.0.0.1:1", "AWS_REGION": "eu-west-1"}

    assert f"{imported}\n" == printed_by(asked, tmp_path, **known, **setting)


def test_an_app_without_workers_is_an_error(install: Install, make_app: MakeApp) -> None:
    """It would drain nothing, each minute, and nobody would know why."""
    install(make_app())

    with pytest.raises(ConfigError, match="declares no worker: import the modules that declare them"):
        environment()


def test_without_a_redis_there_is_a_sentence(install: Install, queue_name: str) -> None:
    """A cold start that cannot work says what to set."""
    app = Lowkiq(Config())
    declare(app, queue_name, Notes())
    install(app)

    with pytest.raises(ConfigError, match="No Redis is named: set LOWKIQ_REDIS_URL or LOWKIQ_REDIS_SECRET_ARN"):
        environment()


def test_a_failed_start_is_tried_again(
    install: Install, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went wrong once is not kept; what went well is."""
    app = make_app()
    declare(app, queue_name, Notes())
    install(app, reserve="x")
    with pytest.raises(ConfigError, match="LOWKIQ_RESERVE"):
        environment()
    monkeypatch.setenv("LOWKIQ_RESERVE", "2")

    assert app is environment().app
    assert environment() is environment()


def test_iam_tokens_are_what_the_app_signs_in_with(install: Install, queue_name: str) -> None:
    """Where the environment names user and cache, there is no password; nothing is signed before it is needed."""
    app = Lowkiq(Config(redis_url="rediss://cache.example:6379"))
    declare(app, queue_name, Notes())
    install(app, redis_iam="user=jobs,cache=shop,serverless=1")

    assert isinstance(environment().app.config.credentials, IamCredentials)


def test_a_secret_is_read_once_and_names_redis(
    drain: DrainFunction, server_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOWKIQ_REDIS_SECRET_ARN: the secret's text is the URL, fetched at the cold start and kept."""
    app = Lowkiq(Config())
    worker = declare(app, queue_name, Notes())
    drain.install(app, redis_secret_arn=ARN)
    with secrets_manager(monkeypatch, {ARN: {"ARN": ARN, "Name": "shop", "SecretString": f"{server_url}\n"}}) as asked:
        drain()
        worker.push_many(overdue("a"))

        assert {"done": 1} == drain()["counts"]
        assert ["secretsmanager.GetSecretValue"] == asked


def test_any_process_finds_redis_as_the_functions_do(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon, a producer or a command line signs in as the environment says, where the app has no settings."""
    user = f"user-{uuid4().hex}"
    # Which token is good only AWS could say.
    server.admin.execute_command("ACL", "SETUSER", user, "reset", "on", "nopass", "~*", "&*", "+@all")
    named = {"REDIS_URL": server.url, "REDIS_IAM": f"user={user},cache=jobs"}
    for name, value in named.items():
        monkeypatch.setenv(f"LOWKIQ_{name}", value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "of-nobody")

    with closing_app(Lowkiq()) as app:
        assert user == app.core.backend.client.acl_whoami()


def test_any_process_reads_the_secret(
    install: Install, server_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read once, at the first use; so it is in a function whose app has no settings of its own."""
    app = Lowkiq()
    worker = declare(app, queue_name, Notes())
    install(app, redis_secret_arn=ARN)
    with (
        secrets_manager(monkeypatch, {ARN: {"ARN": ARN, "Name": "shop", "SecretString": server_url}}) as asked,
        closing_app(app),
    ):
        worker.push(1)

        assert environment().app is app
        assert server_url == app.core.connections.url
        assert ["secretsmanager.GetSecretValue"] == asked


def test_a_secret_needs_the_packages_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are missing a sentence says what to install."""
    monkeypatch.setenv("LOWKIQ_REDIS_SECRET_ARN", ARN)
    for name in ("aws_lambda_powertools", "aws_lambda_powertools.utilities.parameters"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ConfigError, match=r"LOWKIQ_REDIS_SECRET_ARN needs .*: install lowkiq-lambda\[aws\]"):
        _ = Lowkiq().config


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ({}, "cannot be read: .*ResourceNotFoundException"),
        ({ARN: {"ARN": ARN, "Name": "shop", "SecretBinary": "cmVkaXM="}}, "holds no text"),
        ({ARN: {"ARN": ARN, "Name": "shop", "SecretString": " "}}, "holds no text"),
    ],
)
def test_a_secret_that_is_of_no_use_is_a_sentence(
    install: Install, queue_name: str, monkeypatch: pytest.MonkeyPatch, secrets: dict[str, dict[str, Any]], why: str
) -> None:
    """It names the setting and the secret, and what Secrets Manager said."""
    app = Lowkiq(Config())
    declare(app, queue_name, Notes())
    install(app, redis_secret_arn=ARN)

    with (
        secrets_manager(monkeypatch, secrets),
        pytest.raises(ConfigError, match=f"LOWKIQ_REDIS_SECRET_ARN does not help: the secret {ARN} {why}"),
    ):
        environment()


def test_a_secret_that_is_no_url_is_not_printed(
    drain: DrainFunction, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret is never printed, also where it is not what it should be."""
    app = Lowkiq(Config())
    declare(app, queue_name, Notes())
    drain.install(app, redis_secret_arn=ARN)
    secret = {"ARN": ARN, "Name": "shop", "SecretString": "redis://:hunter2@host:port/0"}

    with secrets_manager(monkeypatch, {ARN: secret}), pytest.raises(ConfigError) as raised:
        drain()

    assert "hunter2" not in f"{raised.value!r} {raised.value}"
