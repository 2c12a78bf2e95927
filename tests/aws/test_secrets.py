"""When secrets are read again, and what of them counts."""

import logging
from datetime import datetime, timedelta
from traceback import format_exception

import pytest
from aws_lambda_powertools.utilities.parameters import base

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.providers.aws.secrets import REST, RedisSecret, secret_text
from lowkiq_lambda.testing import ManualClock
from tests.aws.manager import ARN, secrets_manager

FIRST, SECOND = ("jobs", "first"), ("jobs", "second")


class CountedSecret:
    """A secret that says what a test lets it say, and counts how often it is read."""

    def __init__(self) -> None:
        self.url = "redis://jobs:first@db:6380/1"
        self.readings = 0

    def __call__(self) -> str:
        """Its text."""
        self.readings += 1
        if not self.url:
            raise ConfigError("it is out of reach")
        return self.url


@pytest.fixture
def told() -> CountedSecret:
    """One that has a password."""
    return CountedSecret()


@pytest.fixture
def secret(told: CountedSecret, clock: ManualClock) -> RedisSecret:
    """As a function has it once it is warm."""
    return RedisSecret("arn", told, clock)


def test_user_and_password_are_apart_from_the_url(secret: RedisSecret) -> None:
    """The address goes where it may be printed."""
    assert ("redis://db:6380/1", FIRST) == (secret.url, secret())


def test_a_refused_password_is_looked_up_once_in_a_while(
    secret: RedisSecret, told: CountedSecret, clock: ManualClock
) -> None:
    """However many connections are refused; a rotation that the secret tells late is found by a later search."""
    assert [False, False] == [secret.renew(FIRST), secret.renew(FIRST)]
    assert 2 == told.readings

    told.url = "redis://jobs:second@db:6380/1"
    assert not secret.renew(FIRST)
    clock.advance(REST)

    assert secret.renew(FIRST)
    assert SECOND == secret()
    assert 3 == told.readings


def test_what_another_connection_has_found_needs_no_search(secret: RedisSecret, told: CountedSecret) -> None:
    """Many are refused at the same time: the first one reads, the others try what it found."""
    told.url = "redis://jobs:second@db:6380/1"

    assert [True, True, True] == [secret.renew(FIRST) for _ in range(3)]
    assert 2 == told.readings
    assert not secret.renew(SECOND)
    assert 2 == told.readings


@pytest.mark.parametrize(
    ("url", "says"),
    [("", "it is out of reach"), ("redis://jobs:second@other", "names another server now"), ("nonsense", "is refused")],
)
def test_what_cannot_be_used_is_logged_and_changes_nothing(
    secret: RedisSecret, told: CountedSecret, url: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis refused the password, and that is what the caller is told."""
    told.url = url

    assert not secret.renew(FIRST)

    assert says in caplog.text
    assert "second" not in caplog.text
    assert ("redis://db:6380/1", FIRST) == (secret.url, secret())


JSON_SECRET = '{"username":"app","password":"S3CRETPW","user_arn":"arn:aws:elasticache:eu-west-1:1:user:app"}'  # noqa: S105 - of nobody


def test_the_json_of_a_managed_rotation_signs_in_to_the_server_of_the_url(
    told: CountedSecret, clock: ManualClock
) -> None:
    """AWS writes user and password alone, and rotates them; the server stands in LOWKIQ_REDIS_URL."""
    told.url = JSON_SECRET
    secret = RedisSecret("arn", told, clock, server="rediss://cache:6380/0")

    assert ("rediss://cache:6380/0", ("app", "S3CRETPW")) == (secret.url, secret())

    told.url = JSON_SECRET.replace("S3CRETPW", "rotated")

    assert secret.renew(("app", "S3CRETPW"))
    assert ("app", "rotated") == secret()


def test_the_json_of_a_secret_may_name_its_server(told: CountedSecret, clock: ManualClock) -> None:
    """Rotation functions note host and port beside the password."""
    told.url = '{"password": "S3CRETPW", "host": "cache", "port": 6380}'

    secret = RedisSecret("arn", told, clock)

    assert ("rediss://cache:6380", ("", "S3CRETPW")) == (secret.url, secret())


@pytest.mark.parametrize(
    ("text", "server", "says"),
    [
        (JSON_SECRET, "", "names no server"),
        (JSON_SECRET, "redis://:S3CRETPW@cache", "has a password, too"),
        ('{"password": ["S3CRETPW"]}', "redis://cache", "without the texts username and password"),
        ('{"password": "S3CRETPW"', "redis://cache", "without the texts username and password"),
        ('{"S3CRETPW": 1}', "redis://cache", "without the texts username and password"),
        ("S3CRETPW", "redis://cache", r"redis_url='\*\*\*' is refused"),
        ('["S3CRETPW"]', "redis://cache", r"redis_url='\*\*\*' is refused"),
    ],
)
def test_p10_a_secret_that_cannot_be_used_is_refused_without_its_text(
    told: CountedSecret, clock: ManualClock, text: str, server: str, says: str
) -> None:
    """P10: neither the error nor its chain has the password, whatever form the secret has."""
    told.url = text

    with pytest.raises(ConfigError, match=says) as refused:
        RedisSecret("arn", told, clock, server=server)

    assert "S3CRETPW" not in "".join(format_exception(refused.value))


def test_a_search_is_logged_without_the_password(
    secret: RedisSecret, told: CountedSecret, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the secret's name is."""
    told.url = "redis://jobs:second@db:6380/1"

    with caplog.at_level(logging.DEBUG):
        secret.renew(FIRST)

    assert ["Redis refused the password: the secret has a newer one"] == caplog.messages
    assert not any("second" in str(vars(record)) for record in caplog.records)


def test_a_text_is_kept_as_long_as_its_reader_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard asks for the password at each request, AWS is asked once in a while."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    later = [timedelta(0)]

    class Time:
        @staticmethod
        def now() -> datetime:
            return datetime.now() + later[0]  # noqa: DTZ005 - as Powertools has it

    def read() -> str:
        return secret_text(ARN, "dashboard_secret_arn", max_age=300)

    monkeypatch.setattr(base, "datetime", Time)
    secrets = {ARN: {"ARN": ARN, "Name": "shop", "SecretString": "first"}}
    with secrets_manager(monkeypatch, secrets) as asked:
        assert ["first", "first"] == [read(), read()]
        secrets[ARN]["SecretString"] = "second"
        later[0] = timedelta(seconds=299)
        assert "first" == read()
        assert 1 == len(asked)

        later[0] = timedelta(seconds=301)
        assert "second" == read()
        assert 2 == len(asked)
