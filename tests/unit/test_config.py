"""The settings."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from traceback import format_exception
from typing import Any, Final

import pytest

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import parse_address, without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.declare.misspelling import unknown_variables
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.config import Config, each_of, variable_of
from lowkiq_lambda.settings.protocols import Buffer, MorgueLimits, do_nothing

ROOT: Final = Path(__file__).parents[2]
SECRET = "s3cret"  # noqa: S105 - what must not be printed


def test_defaults_are_those_of_lowkiq() -> None:
    """L-47, L-48, L-50, L-51: who sets nothing gets Lowkiq's numbers, and no server."""
    config = Config()

    assert (config.poll_interval, config.threads_per_node) == (1.0, 5)
    assert (config.client_pool_size, config.pool_timeout) == (5, 5.0)
    assert (config.number_of_nodes, config.node_number) == (1, 0)
    assert config.redis_url is None
    assert config.on_server_init is do_nothing


def test_hooks_do_nothing_by_default() -> None:
    """L-53, L-56: the default hooks may be called as the library calls them, and do nothing."""
    config = Config()
    hooks = (
        config.on_server_init,
        config.on_startup,
        config.on_quiet,
        config.on_shutdown,
        config.on_exit,
        config.on_heartbeat,
    )

    assert [hook() for given in hooks for hook in each_of(given)] == [None] * len(hooks)
    assert config.last_words(ValueError()) is None


def test_a8_several_are_called_for_an_event_and_nothing_else_is_taken() -> None:
    """A-8: an event takes one callable or a list of them; other settings that are called take one."""
    config = Config(on_quiet=[do_nothing, do_nothing])

    assert 2 == len(each_of(config.on_quiet))
    for wrong in (7, [7], {do_nothing}):
        with pytest.raises(ConfigError, match=r"on_quiet=.* is refused: expected .*, or a list of it"):
            Config(on_quiet=wrong)  # type: ignore[arg-type]  # it is refused
    with pytest.raises(ConfigError, match=r"last_words=.* is refused"):
        Config(last_words=[do_nothing])  # type: ignore[arg-type]  # as above


def test_error_callables_give_back_their_text() -> None:
    """By default an error is kept as its text; what UTF-8 does not have breaks nothing (E-52)."""
    config = Config()

    assert "boom" in config.format_error(ValueError("boom"))
    assert "KeyError" in config.format_error(KeyError())
    assert config.load_error(config.dump_error("день")) == "день"
    assert config.load_error(config.dump_error("\ud800")) == "\\ud800"
    assert config.load_error(b"\xff") == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("threads_per_node", 0),
        ("threads_per_node", 2.5),
        ("threads_per_node", True),
        ("threads_per_node", "5"),
        ("poll_interval", 0),
        ("poll_interval", math.nan),
        ("poll_interval", math.inf),
        ("poll_interval", 10**400),
        ("lease_ttl", 0.1),
        ("lease_ttl", -30),
        ("settle_interval", -0.1),
        ("settle_interval", 11.0),
        ("wait_replicas", -1),
        ("wait_replicas", 1.5),
        ("wait_replicas", True),
        ("node_number", -1),
        ("node_number", 1),
        ("claim_bytes", 0),
        ("max_payload_bytes", 2**40),
        ("morgue", MorgueLimits(age=0)),
        ("when_unavailable", Buffer(jobs=0)),
        ("when_unavailable", "perhaps"),
        ("wake_function", 3),
        ("redis_url", 6379),
        ("codec", ""),
        ("format_error", None),
        ("last_words", "print"),
        ("build_splitter", 3),
        ("dump_payload", "json"),
        ("mask", "all"),
        ("bad_entries", "drop"),
    ],
)
def test_error_names_setting_and_value(setting: str, value: Any) -> None:
    """What cannot work is refused when the settings are made, by name and with what was given."""
    with pytest.raises(ConfigError) as caught:
        Config(**{setting: value})

    assert caught.value.setting == setting
    assert str(caught.value).startswith(f"{setting}=")
    assert setting == "redis_url" or repr(value) in str(caught.value) or isinstance(value, int)


def test_unknown_setting_is_refused() -> None:
    """A name that is no setting is an error, not ignored."""
    with pytest.raises(TypeError, match="lease_tll"):
        Config(lease_tll=30)  # type: ignore[call-arg]  # wrong on purpose


def test_settings_are_frozen() -> None:
    """Settings do not change under the feet of those who read them."""
    config = Config()

    with pytest.raises(AttributeError):
        config.lease_ttl = 5.0  # type: ignore[misc]  # wrong on purpose


def test_evolve_checks_again() -> None:
    """Changed settings are new settings: checked, with the old ones as they were."""
    config = Config(lease_ttl=9)

    assert config.evolve(threads_per_node=2).threads_per_node == 2
    assert config.evolve(threads_per_node=2).lease_ttl == 9
    assert config.threads_per_node == 5
    with pytest.raises(ConfigError, match="lease_ttl=0 is refused"):
        config.evolve(lease_ttl=0)


def test_codec_pair_comes_together() -> None:
    """One half of a codec could write what nobody reads: both or none."""
    with pytest.raises(ConfigError, match="given together"):
        Config(dump_payload=lambda _payload: b"")
    with pytest.raises(ConfigError, match="given together"):
        Config(load_payload=lambda dumped: dumped)


def test_codec_name() -> None:
    """The name that producers and drains compare follows the callables unless it is given."""

    def dump(payload: object) -> bytes:
        return repr(payload).encode()

    def load(dumped: bytes) -> object:
        return dumped.decode()

    assert Config().codec_name == "json"
    assert Config(dump_payload=dump, load_payload=load).codec_name == "custom"
    assert Config(dump_payload=dump, load_payload=load, codec="repr").codec_name == "repr"
    assert Config().evolve(dump_payload=dump, load_payload=load).codec_name == "custom"


def test_calls_under_a_lease_fit_into_it() -> None:
    """A call under a lease gives up early enough for others before the lease ends."""
    assert Config().lease_timeout == 5.0
    assert Config(lease_ttl=3).lease_timeout == 0.5
    assert Config(redis_timeout=0.2).lease_timeout == 0.2


def test_environment_gives_numbers_and_texts() -> None:
    """Every number and text has a variable of its name, read as that kind of value."""
    config = Config.from_env(
        {
            "LOWKIQ_THREADS_PER_NODE": "7",
            "LOWKIQ_POLL_INTERVAL": " 0.5 ",
            "LOWKIQ_NUMBER_OF_NODES": "3",
            "LOWKIQ_NODE_NUMBER": "2",
            "LOWKIQ_LEASE_TTL": "10",
            "HOME": "/nowhere",
        }
    )

    assert (config.threads_per_node, config.poll_interval, config.lease_ttl) == (7, 0.5, 10.0)
    assert (config.number_of_nodes, config.node_number) == (3, 2)


@pytest.mark.parametrize(
    ("text", "expected"), [("", None), ("0", False), ("false", False), ("1", True), ("true", True), ("True", True)]
)
def test_whether_schedules_fire_is_said_as_any_yes_or_no(text: str, *, expected: bool | None) -> None:
    """C-9: by a number or a word; unset it is for the code to say."""
    assert expected is Config.from_env({"LOWKIQ_SCHEDULES": text}).schedules


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"REDIS_URL": "redis://a"}, "redis://a"),
        ({"LOWKIQ_REDIS_URL": "redis://b"}, "redis://b"),
        ({"LOWKIQ_REDIS_URL": "redis://b", "REDIS_URL": "redis://a"}, "redis://b"),
        ({"LOWKIQ_REDIS_URL": "", "REDIS_URL": "redis://a"}, "redis://a"),
        ({"LOWKIQ_REDIS_URL": "", "REDIS_URL": ""}, None),
    ],
)
def test_own_url_comes_before_the_common_one(environ: dict[str, str], expected: str | None) -> None:
    """L-49: LOWKIQ_REDIS_URL, else REDIS_URL, else none; an empty variable is no variable."""
    assert Config.from_env(environ).redis_url == expected


def test_overrides_come_before_the_environment() -> None:
    """What is passed wins, also over a variable that could not be read, and None is a value."""
    environ = {"LOWKIQ_LEASE_TTL": "soon", "REDIS_URL": "redis://a"}

    config = Config.from_env(environ, lease_ttl=5, redis_url=None)

    assert (config.lease_ttl, config.redis_url) == (5.0, None)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "1e999", "0x10", "1,5"])
def test_error_names_variable_and_value(text: str) -> None:
    """Who set a variable wrongly is told which one, and what it held."""
    with pytest.raises(ConfigError) as caught:
        Config.from_env({"LOWKIQ_LEASE_TTL": text})

    assert str(caught.value).startswith(f"LOWKIQ_LEASE_TTL={text!r} is refused: ")
    assert caught.value.setting == "lease_ttl"


def test_every_plain_setting_has_a_variable() -> None:
    """The name of a variable is the setting's, in capitals, behind the library's."""
    assert variable_of("client_pool_size") == "LOWKIQ_CLIENT_POOL_SIZE"
    for setting in ("settle_interval", "shutdown_timeout", "pool_timeout", "redis_timeout", "claim_bytes"):
        config = Config.from_env({variable_of(setting): "3"})
        assert getattr(config, setting) == 3


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("LOWKIQ_MORGUE", "entries=5, age=60", MorgueLimits(entries=5, age=60.0)),
        ("LOWKIQ_WHEN_UNAVAILABLE", "buffer", "buffer"),
        ("LOWKIQ_WHEN_UNAVAILABLE", "jobs=5,full=drop_oldest", Buffer(jobs=5, full="drop_oldest")),
        ("LOWKIQ_WAKE_FUNCTION", "shop-drain", "shop-drain"),
    ],
)
def test_a_variable_gives_parts_of_a_value(variable: str, text: str, value: object) -> None:
    """The parts that are not there have their defaults, as all have them if the value has one word."""
    setting = variable.removeprefix("LOWKIQ_").lower()

    assert value == getattr(Config.from_env({variable: text}), setting)


@pytest.mark.parametrize("text", ["entries=0", "entries=5,", "5", "=5", "entires=5", "entries=5,age=soon"])
def test_parts_that_are_wrong_are_refused_with_those_there_are(text: str) -> None:
    """A part that is misspelt, or wrong, is not left out."""
    with pytest.raises(
        ConfigError, match=r"^LOWKIQ_MORGUE='.*' is refused: expected .*entries \(a whole number.*age \("
    ):
        Config.from_env({"LOWKIQ_MORGUE": text})


def test_no_variable_gives_a_function() -> None:
    """Functions stand in code."""
    with pytest.raises(ConfigError, match=r"LOWKIQ_WHEN_UNAVAILABLE='jobs=5,on_lost=print' is refused"):
        Config.from_env({"LOWKIQ_WHEN_UNAVAILABLE": "jobs=5,on_lost=print"})


def test_a_buffer_of_one_word_has_the_defaults() -> None:
    """S-5: a thousand jobs."""
    lost = Buffer(on_lost=do_nothing)

    assert (Buffer(), 1_000) == (Config(when_unavailable="buffer").buffer, Buffer().jobs)
    assert lost == Config(when_unavailable=lost).buffer


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("LOWKIQ_THREADS_PER_NODE", "0", "a whole number from 1 to 10000"),
        ("LOWKIQ_THREADS_PER_NODE", "many", "a whole number from 1 to 10000"),
        ("LOWKIQ_POLL_INTERVAL", "0", "a number above 0 and at most 31622400"),
        ("LOWKIQ_LEASE_TTL", "nan", "a number from 0.2 to 3600"),
        ("LOWKIQ_CODEC", "x" * 101, "a text of 1 to 100 characters"),
        ("LOWKIQ_IDLE", "perhaps", "one of end, linger, punctual, start, stay"),
        ("LOWKIQ_SCHEDULES", "perhaps", "true or false"),
        ("LOWKIQ_REDIS_SECRET_ARN", "x" * 2_049, "a text of 1 to 2048 characters"),
        ("LOWKIQ_METRICS_NAMESPACE", "a b", r"a text that matches ^[0-9A-Za-z.\-_/#:]{1,255}$"),
    ],
)
def test_a_refusal_says_in_words_what_would_do(variable: str, value: str, expected: str) -> None:
    """Not in the words of the library that checks it."""
    with pytest.raises(ConfigError) as caught:
        (Config.from_env({variable: value}), Settings.from_env({variable: value}))

    shown = "***" if len(value) > 60 else repr(value)
    assert f"{variable}={shown} is refused: expected {expected}" == str(caught.value)


@pytest.mark.parametrize("variable", ["LOWKIQ_THREADS_PER_NODE", "LOWKIQ_LEASE_TTL", "LOWKIQ_REDIS_URL"])
@pytest.mark.parametrize(
    "value",
    [
        f'{{"username": "app", "password": "{SECRET}"}}',
        f"redis:{SECRET}@db",
        f"{SECRET}\n" + "x" * 60,
        f'"{SECRET}"',
    ],
)
def test_p10_a_value_that_may_hold_a_password_is_not_shown(variable: str, value: str) -> None:
    """P10: a record, a login or a long text in the place of a setting is refused without its text."""
    with pytest.raises(ConfigError) as caught:
        parse_address(str(Config.from_env({variable: value}).redis_url))

    assert SECRET not in "".join(format_exception(caught.value))


def test_each_variable_of_the_docs_is_a_setting() -> None:
    """Whatever the README, the docs or a template name is known: no warning is given of it."""
    pages = [ROOT / "README.md", ROOT / "template.yaml", *ROOT.glob("docs/*.md"), *ROOT.glob("infra/*.md")]
    named = set(re.findall(r"LOWKIQ_[A-Z_]*[A-Z]", "".join(page.read_text() for page in pages)))

    assert len(named) > 30
    assert [] == unknown_variables(named, Config, Settings, DashboardSettings)


def test_repr_shows_what_is_set_and_hides_secrets() -> None:
    """P10: settings may be printed; the URL comes without what signs in."""
    config = Config(redis_url=f"redis://me:{SECRET}@db:6379/1?sentinel_password={SECRET}", lease_ttl=9)

    assert repr(config) == "Config(redis_url='redis://***@db:6379/1?sentinel_password=***', lease_ttl=9.0)"
    assert SECRET not in str(config)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://db:6379/0", "redis://db:6379/0"),
        (f"redis://:{SECRET}@db", "redis://***@db"),
        (f"redis://u:{SECRET}@{SECRET}@db", "redis://***@db"),
        (f"u:{SECRET}@db", "***"),
        (f"://{SECRET}", "***"),
        (f"{SECRET}!://db", "***"),
        (f"redis+sentinel://u:{SECRET}@a,b:1/s/0", "redis+sentinel://***@a,b:1/s/0"),
        (
            f"rediss://db?ssl_password={SECRET}&ssl_cert_reqs=none",
            "rediss://db?ssl_password=***&ssl_cert_reqs=none",
        ),
        (f"redis://db?PASSWORD={SECRET}", "redis://db?PASSWORD=***"),
        (f"redis://db?pasword={SECRET}&ssl_ca_certs=/ca.pem", "redis://db?pasword=***&ssl_ca_certs=/ca.pem"),
        (f"redis://db?pasword:{SECRET}", "redis://db?***"),
        (f"redis://db?sslpw={SECRET}&", "redis://db?sslpw=***&"),
        (f"redis://u:a?x={SECRET}@db", "redis://***@db"),
    ],
)
def test_password_is_cut_from_any_url(url: str, shown: str) -> None:
    """P10: however a URL is written, or miswritten, and its options misspelt, no part of a password is left."""
    assert without_password(url) == shown


def test_a_refused_url_is_not_printed() -> None:
    """P10: the error about a URL of a wrong type does not hold it."""
    with pytest.raises(ConfigError) as caught:
        Config(redis_url=SECRET.encode())  # type: ignore[arg-type]  # wrong on purpose

    assert SECRET not in str(caught.value)


def test_plugs_are_kept_as_given() -> None:
    """L-54, L-55, L-60, L-64: a user's splitter and scheduler are built by their callables."""

    class Backwards:
        def split(self, shards: Sequence[Any], threads: int) -> list[list[Any]]:
            return [list(reversed(shards)), *[[] for _ in range(threads - 1)]]

    config = Config(build_splitter=Backwards)

    assert config.build_splitter is not None
    assert config.build_splitter().split([1, 2], 2) == [[2, 1], []]
    assert config.build_scheduler is None


def test_an_app_takes_settings_and_no_url() -> None:
    """A URL in place of the settings is refused with what to write, and without its password."""
    with pytest.raises(ConfigError) as caught:
        Lowkiq(f"redis://:{SECRET}@db")  # type: ignore[arg-type]  # wrong on purpose

    assert "Lowkiq takes a Config, not str: write Lowkiq(Config(redis_url=...))." == str(caught.value)
