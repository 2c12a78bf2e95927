"""Tokens of IAM: signed as AWS says, kept while they are good, and no riddle where they cannot be made."""

import threading
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.base.errors import BackendDenied, ConfigError
from lowkiq_lambda.providers.aws.iam import LIFETIME, RENEWED_AFTER, IamCredentials, Keychain, Keys, Request, presigned
from lowkiq_lambda.testing import ManualClock
from tests.kit.examples import examples

ENVIRON = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "FwoGZXIvYXdzEBY/+=",
    "AWS_REGION": "eu-central-1",
}
CONNECT = {"Action": "connect", "User": "lowkiq"}
START = datetime(2026, 11, 21, 8, 5, 9, tzinfo=UTC).timestamp()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at START."""
    return ManualClock(START)


def credentials_of(clock: ManualClock, **options: Any) -> IamCredentials:
    """Credentials for a user and cache, with the keys of ENVIRON unless `options` say otherwise."""
    return IamCredentials(
        **{"user": "lowkiq", "cache": "jobs", "keychain": Keychain(ENVIRON), "clock": clock, **options}
    )


def signed_by_botocore(request: Request, keys: Keys, at: float, lifetime: int, patch: pytest.MonkeyPatch) -> str:
    """The same URL, with its scheme, by the library that AWS makes."""
    now = datetime.fromtimestamp(at, UTC).replace(tzinfo=None)
    patch.setattr(botocore.auth, "get_current_datetime", lambda: now)
    credentials = Credentials(keys.access_key, keys.secret_key, keys.session_token)
    signer = botocore.auth.SigV4QueryAuth(credentials, request.service, request.region, expires=lifetime)
    signed = AWSRequest("GET", f"https://{request.host}/", params=dict(request.query))
    signer.add_auth(signed)
    return str(signed.url)


def fields(url: str) -> dict[str, list[str]]:
    """What the URL's query holds."""
    return parse_qs(urlsplit(url).query, strict_parsing=True)


def test_the_signature_is_that_of_awss_own_example() -> None:
    """The published test suite of Signature Version 4 has this request, `get-vanilla-with-session-token`."""
    keys = Keys(
        "AKIDEXAMPLE",
        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
    )
    at = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()

    url = presigned(Request("example.amazonaws.com", {}, "us-east-1", "service"), keys, at=at, lifetime=3600)

    assert ["7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c"] == fields(url)["X-Amz-Signature"]


texts = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f"), min_size=1)


@given(
    user=texts,
    secret_key=texts,
    session_token=st.none() | texts,
    region=st.sampled_from(["us-east-1", "eu-central-1", "us-gov-west-1"]),
    at=st.integers(1_500_000_000, 3_000_000_000).map(float),
)
@settings(max_examples=examples(200))
def test_botocore_signs_the_same(user: str, secret_key: str, session_token: str | None, region: str, at: float) -> None:
    """Whatever the names and keys are, all parts of the URL are those that botocore makes."""
    request = Request("jobs", {"Action": "connect", "User": user}, region, "memorydb")
    keys = Keys("AKIDEXAMPLE", secret_key, session_token)

    with pytest.MonkeyPatch.context() as patch:
        theirs = signed_by_botocore(request, keys, at, 900, patch)

    ours = "https://" + presigned(request, keys, at=at, lifetime=900)
    assert fields(theirs) == fields(ours)
    assert urlsplit(theirs)[:3] == urlsplit(ours)[:3]


@pytest.mark.parametrize(
    ("options", "request_signed"),
    [
        ({"cache": "Jobs-1"}, Request("jobs-1", CONNECT, "eu-central-1", "elasticache")),
        (
            {"serverless": True},
            Request("jobs", {**CONNECT, "ResourceType": "ServerlessCache"}, "eu-central-1", "elasticache"),
        ),
        ({"service": "memorydb", "region": "eu-west-3"}, Request("jobs", CONNECT, "eu-west-3", "memorydb")),
    ],
)
def test_a_token_names_cache_user_and_service(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], request_signed: Request
) -> None:
    """The token is the presigned URL of a connect, without its scheme: host is the cache's name in lower case."""
    keys = Keys(*list(ENVIRON.values())[:3])

    user, token = credentials_of(clock, **options)()

    expected = signed_by_botocore(request_signed, keys, START, 900, monkeypatch)
    assert "lowkiq" == user
    assert token.startswith(f"{request_signed.host}/?")
    assert fields(expected) == fields(f"https://{token}")


def test_a_token_is_kept_and_renewed_in_time(clock: ManualClock) -> None:
    """The same token for ten minutes, then the next: what is handed out is good for five minutes more."""
    credentials = credentials_of(clock)
    _, first = credentials()
    clock.advance(RENEWED_AFTER - 1)
    _, same = credentials()
    clock.advance(1)
    _, second = credentials()

    assert first == same != second
    assert ["20261121T081509Z"] == fields(f"https://{second}")["X-Amz-Date"]
    assert LIFETIME == 900
    assert RENEWED_AFTER <= LIFETIME - 300


def test_a_clock_that_was_set_back_makes_a_token_anew(clock: ManualClock) -> None:
    """A token from the future is not good: it is signed again by what the clock says now."""
    credentials = credentials_of(clock)
    _, early = credentials()
    clock.set_wall(START - 3_600)

    _, late = credentials()

    assert early != late
    assert ["20261121T070509Z"] == fields(f"https://{late}")["X-Amz-Date"]


def test_threads_share_a_token(clock: ManualClock) -> None:
    """Connections that open at once sign in with one token."""
    credentials = credentials_of(clock)
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(credentials()[1])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 8 == len(tokens)
    assert 1 == len(set(tokens))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"user": ""}, "no name"),
        ({"cache": "jobs.x1.cache.amazonaws.com"}, "its name, such as jobs, no host"),
        ({"cache": ""}, "its name"),
        ({"service": "redis"}, "elasticache or memorydb"),
        ({"service": "memorydb", "serverless": True}, "Only ElastiCache"),
    ],
)
def test_what_cannot_work_is_refused_at_once(clock: ManualClock, options: dict[str, Any], says: str) -> None:
    """A host in place of a name, or a service that has no such tokens, shows before anything is connected."""
    with pytest.raises(ConfigError, match=says) as raised:
        credentials_of(clock, **options)

    assert "redis_iam" == raised.value.setting


@pytest.fixture
def _no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A process without a profile, a role, or a machine that would tell of one."""
    for name in ENVIRON:
        monkeypatch.delenv(name, raising=False)
    nowhere = tmp_path_factory.mktemp("aws") / "absent"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(nowhere))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("_no_aws")
def test_missing_credentials_are_told(clock: ManualClock) -> None:
    """Who has no AWS credentials is told what to do about it."""
    credentials = credentials_of(clock, region="eu-west-1", keychain=Keychain({}))

    with pytest.raises(BackendDenied, match=r"There are no AWS credentials .* give .* a role"):
        credentials()


@pytest.mark.usefixtures("_no_aws")
def test_a_missing_region_is_told(clock: ManualClock) -> None:
    """So is who does not say where the cache is."""
    with pytest.raises(BackendDenied, match="set AWS_REGION"):
        credentials_of(clock, keychain=Keychain({}))()


@pytest.mark.usefixtures("_no_aws")
def test_a_profile_is_found(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Outside of Lambda the credentials and the region are where botocore finds them: a machine can use tokens too."""
    profile = tmp_path_factory.mktemp("aws") / "config"
    profile.write_text(
        "[default]\nregion = eu-north-1\naws_access_key_id = AKPROFILE\naws_secret_access_key = secret\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))

    _, token = credentials_of(clock, keychain=Keychain({}))()

    assert ["AKPROFILE/20261121/eu-north-1/elasticache/aws4_request"] == fields(f"https://{token}")["X-Amz-Credential"]


@pytest.mark.usefixtures("_no_aws")
def test_credentials_that_cannot_be_renewed_are_told(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container whose credentials cannot be fetched gets an error that says so, not a stale token."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost:1/credentials")
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)

    with pytest.raises(BackendDenied, match="cannot be had: CredentialRetrievalError"):
        credentials_of(clock, region="eu-west-1", keychain=Keychain({}))()


def test_secrets_are_not_shown(clock: ManualClock) -> None:
    """Neither keys nor tokens stand in what may be printed or logged."""
    credentials = credentials_of(clock)
    _, token = credentials()
    shown = repr(Keys("AK", "hidden", "hidden too")) + repr(credentials)

    assert "hidden" not in shown
    assert token not in shown
