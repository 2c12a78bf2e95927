"""The forms of a server's URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowkiq_lambda.base.address import Address, parse_address, without_login
from lowkiq_lambda.base.errors import ConfigError

SECRET = "s3cret"  # noqa: S105 - what must not be printed


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://db", Address(kind="server", tls=False, hosts=(("db", 6379),))),
        ("redis://", Address(kind="server", tls=False, hosts=(("localhost", 6379),))),
        ("redis://:7000", Address(kind="server", tls=False, hosts=(("localhost", 7000),))),
        ("redis://db:7000/3", Address(kind="server", tls=False, hosts=(("db", 7000),), db=3)),
        ("redis://[::1]:7000/", Address(kind="server", tls=False, hosts=(("::1", 7000),))),
        ("redis://[fe80::1]", Address(kind="server", tls=False, hosts=(("fe80::1", 6379),))),
        ("rediss://db", Address(kind="server", tls=True, hosts=(("db", 6379),))),
        (
            "redis+cluster://a:7000,b:7001,c",
            Address(kind="cluster", tls=False, hosts=(("a", 7000), ("b", 7001), ("c", 6379))),
        ),
        ("rediss+cluster://a/0", Address(kind="cluster", tls=True, hosts=(("a", 6379),))),
        (
            "redis+sentinel://a,b:1,[::1]:2/jobs/4",
            Address(
                kind="sentinel",
                tls=False,
                hosts=(("a", 26379), ("b", 1), ("::1", 2)),
                service="jobs",
                db=4,
            ),
        ),
        (
            "rediss+sentinel://a/jobs",
            Address(kind="sentinel", tls=True, hosts=(("a", 26379),), service="jobs"),
        ),
    ],
)
def test_forms_of_a_url(url: str, expected: Address) -> None:
    """A plain server, Sentinels and a cluster each have their form, with and without TLS."""
    assert parse_address(url) == expected


def test_user_and_password_are_decoded() -> None:
    """What signs in may hold any character, percent-encoded."""
    address = parse_address("redis://us%40er:p%2Fw%3A%23@db")

    assert (address.username, address.password) == ("us@er", "p/w:#")


@pytest.mark.parametrize(
    ("url", "username", "password"),
    [
        ("redis://:pw@db", None, "pw"),
        ("redis://user@db", "user", None),
        ("redis://db?username=user&password=p%26w", "user", "p&w"),
        ("redis://p@w@db", "p@w", None),
        ("redis://db", None, None),
    ],
)
def test_forms_of_a_login(url: str, username: str | None, password: str | None) -> None:
    """User and password may each be left out, or stand among the options."""
    address = parse_address(url)

    assert (address.username, address.password) == (username, password)


@pytest.mark.parametrize(
    ("url", "bare", "login"),
    [
        ("redis://db", "redis://db", None),
        ("redis://jobs@db", "redis://jobs@db", None),
        ("redis://:p%2Fq@db:1/2", "redis://db:1/2", ("", "p/q")),
        ("rediss+cluster://jobs:x%40y@a:1,b:2", "rediss+cluster://a:1,b:2", ("jobs", "x@y")),
        ("redis://db?username=jobs&password=a%26b", "redis://db", ("jobs", "a&b")),
        (
            "rediss+sentinel://jobs:x@[::1]:1/svc/2?sentinel_password=a%20b&ssl_ca_certs=/ca.pem",
            "rediss+sentinel://[::1]:1/svc/2?sentinel_password=a%20b&ssl_ca_certs=%2Fca.pem",
            ("jobs", "x"),
        ),
    ],
)
def test_a_url_without_its_login_leads_to_the_same_place(url: str, bare: str, login: tuple[str, str] | None) -> None:
    """Only user and password are taken out, and told as they are typed at a prompt."""
    assert (bare, login) == without_login(url)
    whole = parse_address(url)
    assert parse_address(bare) == (replace(whole, username=None, password=None) if login else whole)


def test_sentinels_have_a_login_of_their_own() -> None:
    """Sentinels are signed in to with their own options, not with the server's password."""
    address = parse_address(f"redis+sentinel://me:{SECRET}@a/jobs?sentinel_username=watch&sentinel_password=dog")

    assert (address.sentinel_username, address.sentinel_password) == ("watch", "dog")
    assert (address.username, address.password) == ("me", SECRET)


def test_tls_options_are_taken_over() -> None:
    """The options about certificates go to the connection as it knows them."""
    address = parse_address("rediss://db?ssl_ca_certs=/ca.pem&ssl_cert_reqs=optional&ssl_check_hostname=false")

    assert address.tls_options == {
        "ssl_ca_certs": "/ca.pem",
        "ssl_cert_reqs": "optional",
        "ssl_check_hostname": False,
    }


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "expected redis://host:port/0"),
        ("localhost:6379", "expected redis://host:port/0"),
        ("http://db", "expected redis://, redis"),
        ("unix:///tmp/redis.sock", "expected redis://, redis"),
        ("redis+proxy://db", "expected redis://, redis"),
        ("embeded:", "or embedded: for development"),
        ("reddis://db", "redis+cluster://, the same with rediss for TLS, or embedded: for development"),
        ("redis://a,b", "several hosts need"),
        ("redis://db:port", "not a number from 1 to 65535"),
        ("redis://db:0", "not a number from 1 to 65535"),
        ("redis://db:65536", "not a number from 1 to 65535"),
        ("redis://db:", "not a number from 1 to 65535"),
        ("redis://db/first", "not the number of a database"),
        ("redis://db/0/1", "not the number of a database"),
        ("redis://[::1", "not a list of hosts"),
        ("redis+cluster://a/1", "database 0 only"),
        ("redis+sentinel://a", "service's name is missing"),
        ("redis+sentinel://a/jobs/one", "not the number of a database"),
        ("redis://db?sokcet_timeout=5", "option 'sokcet_timeout' is unknown"),
        ("redis://db?password:x", "options are written ?name=value"),
        ("redis://db?ssl_ca_certs=/ca.pem", "with rediss only"),
        ("rediss://db?ssl_cert_reqs=maybe", "none, optional or required"),
        ("rediss://db?ssl_check_hostname=maybe", "true or false"),
        ("redis://db#0", "holds a #"),
    ],
)
def test_bad_url_is_told_why(url: str, why: str) -> None:
    """A URL that cannot work is refused with a sentence that says what is wrong with it."""
    with pytest.raises(ConfigError) as caught:
        parse_address(url)

    assert str(caught.value).startswith("redis_url=")
    assert why in str(caught.value)
    assert caught.value.setting == "redis_url"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{SECRET}@db:port",
        f"redis://me:{SECRET}/x@db",
        f"redis://me:{SECRET}#x@db",
        f"redis://me:{SECRET}?x@db",
        f"redis://me:[{SECRET}@db",
        f"redis://{SECRET}@a,b",
        f"{SECRET}@db",
        f"http://me:{SECRET}@db",
        f"rediss://db?ssl_password={SECRET}&ssl_cert_reqs=maybe",
        f"redis+sentinel://a?sentinel_password={SECRET}",
        f"redis://db?pasword={SECRET}",
        f"redis://db?{SECRET}",
        f"redis://:1?{SECRET}@db",
        f"redis://:1?{SECRET}=2@db",
    ],
)
def test_refusal_never_prints_the_password(url: str) -> None:
    """P10: also a miswritten URL is refused without its password, in message and chain."""
    with pytest.raises(ConfigError) as caught:
        parse_address(url)

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_address_hides_its_secrets() -> None:
    """P10: an address may be printed."""
    url = f"rediss+sentinel://me:{SECRET}@a/jobs?sentinel_password={SECRET}&ssl_password={SECRET}"

    assert SECRET not in repr(parse_address(url))


@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    """Whatever stands in the setting, it is understood or it is a ConfigError."""
    for url in (text, f"redis://{text}", f"rediss+sentinel://{text}/jobs", f"redis+cluster://{text}"):
        try:
            assert parse_address(url).hosts
        except ConfigError:
            continue
