"""The settings of an app: a frozen value, checked when it is made; the environment can give most of them."""

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import msgspec
from msgspec import Meta

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.error_text import bytes_to_text, say_error, text_to_bytes
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.protocols import (
    DAY,
    MEBIBYTE,
    YEAR,
    Buffer,
    BuildScheduler,
    BuildSplitter,
    Count,
    Credentials,
    DumpError,
    DumpPayload,
    FormatError,
    Hook,
    Hooks,
    LastWords,
    LoadError,
    LoadPayload,
    LoopFactory,
    Mask,
    MorgueLimits,
    Overflow,
    RedisPlug,
    SendAlert,
    StartDrain,
    do_nothing,
)

logger = logging.getLogger(__name__)

ALERT_URL: Final = "LOWKIQ_ALERT_URL"
"""The variable of the webhook that `alert` is."""
_FUNCTION_VERSION: Final = "AWS_LAMBDA_FUNCTION_VERSION"
_EVENTS: Final = frozenset({"on_server_init", "on_startup", "on_quiet", "on_shutdown", "on_exit", "on_heartbeat"})
"""Settings of which each may be several callables."""

_SECRET: Final = ("accounts", "password", "tokens")
"""The last words of names of secret settings."""
_MAY_BE_SECRET: Final = re.compile(r"[{@\"]|://|.{61}", re.DOTALL)
"""A record, an address or a long text: something else was put in the place of this setting, with a password perhaps."""

Threads = Annotated[int, Meta(ge=1, le=10_000)]
Number = Annotated[int, Meta(ge=0, le=1_000_000)]
Bytes = Annotated[int, Meta(ge=1, le=512 * MEBIBYTE)]
Seconds = Annotated[float, Meta(gt=0, le=YEAR)]
# Below a fifth of a second a lease ends in an ordinary pause of the network or the interpreter.
LeaseSeconds = Annotated[float, Meta(ge=0.2, le=3_600)]


# No letter of it means anything to a key, a hash tag or a pattern of keys.
Namespace = Annotated[
    str, Meta(pattern=r"^[0-9A-Za-z._-]{1,40}\Z", description="1 to 40 letters, digits, hyphens, underscores and dots")
]


Release = Annotated[str, Meta(min_length=1, max_length=40)]
WhenUnavailable: TypeAlias = Literal["raise", "buffer"] | Buffer
Function = Annotated[str, Meta(min_length=1, max_length=2_048)]
"""The name or the ARN of a function on Lambda."""


def each_of(hooks: Hooks) -> Sequence[Hook]:
    """What is called for an event, one or several."""
    return (hooks,) if callable(hooks) else hooks


class EnvSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings with an environment variable each, `LOWKIQ_` and the name in capitals; checked when they are made.

    A `ConfigError` names the setting that cannot work.
    """

    def __post_init__(self) -> None:
        """Check each setting against its type."""
        for name, kind in self.kinds().items():
            msgspec.structs.force_setattr(self, name, _checked(name, getattr(self, name), kind))

    @classmethod
    def kinds(cls) -> Mapping[str, Any]:
        """The types of the settings that the environment can give, by name."""
        return _kinds(cls)

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **overrides: Any) -> Self:  # noqa: ANN401 - any setting
        """The settings of `LOWKIQ_…` variables, with `overrides` before them; an empty variable is unset."""
        values = {
            name: _checked(name, environ[variable].strip(), kind, text=True)
            for name, kind in cls.kinds().items()
            if name not in overrides and environ.get(variable := variable_of(name))
        }
        return cls(**{**values, **overrides})

    def __repr__(self) -> str:
        """The settings that differ from their defaults; without passwords."""
        values = ((field, getattr(self, field.name)) for field in msgspec.structs.fields(self))
        parts = [f"{field.name}={_shown(field.name, value)}" for field, value in values if value != field.default]
        return f"{type(self).__name__}({', '.join(parts)})"


class PlainSettings(EnvSettings, frozen=True, kw_only=True, eq=False):
    """The texts and numbers among the settings of an app. Times are seconds, sizes bytes."""

    redis_url: str | None = None
    """The URL of the server; for development `embedded:` or `embedded:FOLDER`, which is started on demand."""

    namespace: Namespace | None = None
    """What all keys and channels of the app begin with, so that apps on one server share nothing; None adds nothing."""

    embedded_server: str | None = None
    """The program of the embedded server, a path or a name on PATH; the Valkey of its package where it is not given."""

    client_pool_size: Threads = 5
    """Connections for pushing."""
    pool_timeout: Seconds = 5.0
    """How long a push waits for a free connection."""
    redis_timeout: Seconds = 5.0
    """How long a call waits for Redis; under a lease at most a sixth of `lease_ttl`."""
    wait_replicas: Annotated[int, Meta(ge=0, le=100)] = 0
    """How many replicas must have a push before it returns; a drain waits for them for half a second at most."""

    threads_per_node: Threads = 5
    """Drain threads of a daemon's process; shards that an invocation of the drain function visits at the same time."""
    calls_at_once: Annotated[int, Meta(ge=1, le=10_000)] = 100
    """Calls of one queue that a process makes at once, at most, where its worker has `concurrency = "auto"`."""
    poll_interval: Seconds = 1.0
    """How long an idle drain thread waits at most where no notification comes."""
    number_of_nodes: Threads = 1
    """Among how many daemons the shards are dealt out."""
    node_number: Number = 0
    """Which of them this one is, from 0."""
    heartbeat_interval: Annotated[float, Meta(ge=0.05, le=30)] = 10.0
    """Seconds from one heartbeat of a process to the next; it hears that late that it is to be quiet, or to stop."""
    shutdown_timeout: Annotated[float, Meta(ge=0, le=DAY)] = 25.0
    """How long running handlers may go on after the stop signal."""
    visit_seconds: Seconds = 300.0
    """How long a visit of the daemon lasts at most, if no other shard waits; also the default of `app.drain`."""

    schedules: bool | None = None
    """Whether this process fires schedule entries; None fires them if the app's code declares any."""

    bad_entries: Literal["raise", "report"] = "raise"
    """What a schedule entry of code or of a file does that cannot work: no app, or it is shown broken and rings."""

    release: Release | None = None
    """The version of your own code, as kept runs and charts name it; None: that of the function on Lambda, if any."""

    history_days: Annotated[int, Meta(ge=0, le=400)] = 0
    """For how many days outcomes and times are kept by the day, 1 KB a queue and day; above 0 queues are watched."""

    verify: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """The share of the shards' time that housekeeping records and verifies, such as 0.01; 0 verifies nothing."""
    on_violation: Literal["report", "pause"] = "report"
    """What a violation that `verify` finds does to its queue: nothing, or it pauses it until an operator resumes it."""

    skew: bool = False
    """Whether drains count the payloads of the most frequent ids, for `lowkiq simulate`; with "auto" they do anyway."""
    auto: Literal["propose", "act", "off"] = "propose"
    """What housekeeping does for queues with `shards_count = "auto"`: says what they need, does it too, or neither."""
    burst_after: Annotated[float, Meta(ge=0, le=YEAR)] = 0.0
    """Seconds of waiting without a holder before functions and `app.drain` visit a shard beside daemons; 0: at once."""

    lease_ttl: LeaseSeconds = 30.0
    """Seconds for which a dead holder blocks its shard."""
    settle_interval: Annotated[float, Meta(ge=0, le=60)] = 0.05
    """How much finished work may be unacknowledged, so how much a crash repeats."""
    claim_payloads: Count = 1_000
    """The largest claim, in payloads."""
    claim_bytes: Bytes = 4 * MEBIBYTE
    """The largest claim, in bytes of payloads."""

    max_payload_bytes: Bytes = 16 * MEBIBYTE
    """The largest payload that a push accepts."""
    codec: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    """A name for what `dump_payload` does, the same for producers and drains; None is json, or custom."""
    morgue: MorgueLimits = MorgueLimits()
    """How many payloads the morgue of a shard keeps, of how many bytes, for how many seconds; the oldest go first."""

    task_max_age: Annotated[float, Meta(gt=0, le=YEAR)] = 7 * DAY
    """How long a task and its items are kept once it has completed."""


class Config(PlainSettings, frozen=True, kw_only=True, eq=False):
    """All settings of an app: `PlainSettings`, and those that may be, or are, functions or objects of the app's."""

    when_unavailable: WhenUnavailable | Overflow = "raise"
    """What a push does that Redis cannot take now: raise, keep the jobs in a `Buffer`, or hand them to an object."""
    wake_function: Function | StartDrain | None = None
    """The drain function that a push into an idle shard invokes, or a callable that starts a drain; None: neither."""

    redis: RedisPlug | None = None
    """A client of redis-py with `protocol=2`, or a function that makes one, in place of `redis_url`."""
    credentials: Credentials | None = None
    """Called for user and password whenever a connection signs in, in place of those in `redis_url`."""

    dump_payload: DumpPayload | None = None
    """Makes the bytes of a payload; None is canonical JSON."""
    load_payload: LoadPayload | None = None
    """Makes the payload of its bytes; given together with `dump_payload`."""
    format_error: FormatError = say_error
    """Makes the text of a handler's error that is kept."""
    dump_error: DumpError = text_to_bytes
    """Makes the bytes of such a text."""
    load_error: LoadError = bytes_to_text
    """Makes the text of its bytes."""
    mask: Mask | None = None
    """Given a queue's name, an id and a payload: what the dashboard shows in place of it, wherever it is served."""

    on_server_init: Hooks = do_nothing
    """Called once in a process that drains, before its first batch."""
    on_startup: Hooks = do_nothing
    """Called before the first thread of the daemon starts."""
    on_quiet: Hooks = do_nothing
    """Called when the daemon starts nothing new any more; the last of several first."""
    on_shutdown: Hooks = do_nothing
    """Called when the daemon begins to stop; running handlers are coming to their end; the last of several first."""
    on_exit: Hooks = do_nothing
    """Called when the daemon's last thread has ended, before the process does; the last of several first."""
    on_heartbeat: Hooks = do_nothing
    """Called by the daemon before each heartbeat, whether Redis takes it or not."""
    last_words: LastWords = do_nothing
    """Called with an exception that came from outside a handler, or that ended a drain thread."""

    alert: SendAlert | str | None = None
    """A webhook's URL, or a callable, told when something begins or ends to need somebody; `LOWKIQ_ALERT_URL`."""

    loop_factory: LoopFactory | None = None
    """Makes the event loop of coroutine handlers, such as `uvloop.new_event_loop`; None is asyncio's own."""

    build_splitter: BuildSplitter | None = None
    """None deals by node where there are several nodes, else to the threads in turn."""
    build_scheduler: BuildScheduler | None = None
    """None visits the most lagging shard first."""

    def __post_init__(self) -> None:
        """Check each setting, then those that depend on one another."""
        super().__post_init__()
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if field.name in self.kinds() or value is field.default or callable(value):
                continue
            if field.name == "redis":
                if hasattr(value, "execute_command"):
                    continue
                raise _refused("redis", value, "expected a client of redis-py, or a function that makes one")
            if field.name == "alert":
                _check_webhook(value)
                continue
            if field.name not in _EVENTS:
                raise _refused(field.name, value, "expected something that can be called")
            if not isinstance(value, list | tuple) or not all(map(callable, value)):
                raise _refused(field.name, value, "expected something that can be called, or a list of it")
        self._check_together()

    def _check_together(self) -> None:
        if self.redis is not None and (self.redis_url is not None or self.credentials is not None):
            also = "credentials" if self.redis_url is None else "redis_url"
            raise _refused("redis", self.redis, f"it knows its server, and {also} is given too: take one away")
        if self.node_number >= self.number_of_nodes:
            nodes = f"nodes count from 0 to number_of_nodes - 1, and number_of_nodes={self.number_of_nodes}"
            raise _refused("node_number", self.node_number, nodes)
        if self.settle_interval > self.lease_ttl / 3:
            raise _refused("settle_interval", self.settle_interval, f"more than a third of lease_ttl={self.lease_ttl}")
        if (self.dump_payload is None) != (self.load_payload is None):
            missing = "dump_payload" if self.dump_payload is None else "load_payload"
            raise _refused(missing, None, "dump_payload and load_payload are given together or not at all")

    @classmethod
    def kinds(cls) -> Mapping[str, Any]:
        """The types of all that the environment can give, by name: of `when_unavailable`, say, no object."""
        return _app_kinds()

    @classmethod
    def from_env(cls, environ: Mapping[str, str], **overrides: Any) -> Self:  # noqa: ANN401 - any setting
        """The settings of `LOWKIQ_…` variables, with `overrides` before them; `REDIS_URL` serves for the URL too."""
        if overrides.get("redis") is not None:
            overrides.setdefault("redis_url", None)
        url = environ.get("REDIS_URL")
        if url and "redis_url" not in overrides and not environ.get("LOWKIQ_REDIS_URL", "").strip():
            logger.info("Redis is that of REDIS_URL, as LOWKIQ_REDIS_URL is not set")
            overrides["redis_url"] = url
        if webhook := environ.get(ALERT_URL, "").strip():
            overrides.setdefault("alert", webhook)
        version = environ.get(_FUNCTION_VERSION, "")
        if version.isdecimal() and not environ.get("LOWKIQ_RELEASE", "").strip():
            overrides.setdefault("release", version)
        return super().from_env(environ, **overrides)

    def evolve(self, **changes: Any) -> Self:  # noqa: ANN401 - any setting
        """The same settings with some changed, checked again; a server that is named anew replaces the one before."""
        if changes.get("redis") is not None:
            changes = {"redis_url": None, "credentials": None, **changes}
        elif changes.get("redis_url") is not None:
            changes = {"redis": None, **changes}
        return msgspec.structs.replace(self, **changes)

    @property
    def names_server(self) -> bool:
        """Whether they say which Redis is used."""
        return self.redis_url is not None or self.redis is not None

    @property
    def buffer(self) -> Buffer:
        """The buffer of `when_unavailable`; the default one for `"buffer"`."""
        return self.when_unavailable if isinstance(self.when_unavailable, Buffer) else Buffer()

    @property
    def lease_timeout(self) -> float:
        """How long a call under a lease waits for Redis: six of them fit into the lease."""
        return min(self.redis_timeout, self.lease_ttl / 6)

    @property
    def redis_retry_for(self) -> float:
        """How long a call outside a lease is tried while Redis cannot serve, in seconds."""
        return 2 * self.redis_timeout

    @property
    def codec_name(self) -> str:
        """What the drift guard compares: `codec`, else "json", or "custom" where `dump_payload` is given."""
        return self.codec or ("json" if self.dump_payload is None else "custom")


def _check_webhook(value: object) -> None:
    """Raises ConfigError, which does not have the address: it is the secret of a webhook."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only where there is one

    try:
        address = urlsplit(value) if isinstance(value, str) else urlsplit("")
        _ = address.port
        is_sound = address.scheme in {"http", "https"} and bool(address.hostname)
        has_user = is_sound and "@" in address.netloc
    except ValueError:
        is_sound = has_user = False
    if has_user:
        raise ConfigError("alert is refused: its URL has a user or a password, which is not sent", setting="alert")
    if not is_sound:
        raise ConfigError("alert is refused: expected an http(s) URL, or something that can be called", setting="alert")


def variable_of(setting: str) -> str:
    """The environment variable that a setting is read from."""
    return f"LOWKIQ_{setting.upper()}"


@cache
def _kinds(settings: type[EnvSettings]) -> Mapping[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(settings)}


@cache
def _app_kinds() -> Mapping[str, Any]:
    return {**_kinds(PlainSettings), "when_unavailable": WhenUnavailable, "wake_function": Function | None}


def _checked(name: str, value: object, kind: Any, *, text: bool = False) -> object:  # noqa: ANN401 - any type
    """The value as that kind, which a `text` is read as. Raises ConfigError, which names the setting."""
    try:
        if isinstance(value, msgspec.Struct):
            # An object that is of the kind already would pass unchecked.
            return msgspec.convert(msgspec.structs.asdict(value), kind)
        return _read(value, kind) if text else msgspec.convert(value, kind)
    except msgspec.ValidationError:
        if _is_plug(name, value):
            return value
        from lowkiq_lambda.settings.expected import expected  # noqa: PLC0415 - imported lazily: cold start

        raise _refused(name, value, f"expected {expected(kind)}", variable_of(name) if text else name) from None


def _read(text: Any, kind: Any) -> object:  # noqa: ANN401 - any text and type
    """The text of a variable as that kind; a value with several parts is `name=value` of each, with commas between.

    Raises ValidationError.
    """
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        parts = [part.partition("=") for part in text.split(",")]
        if not all(equals for _, equals, _ in parts):
            raise
        return msgspec.convert({name.strip(): value.strip() for name, _, value in parts}, kind, strict=False)


def _is_plug(name: str, value: object) -> bool:
    """Whether it is an object or a function that the setting takes in place of a text."""
    if name == "when_unavailable":
        return isinstance(value, Overflow) and not isinstance(value, type)
    return name == "wake_function" and callable(value)


def _refused(name: str, value: object, why: str, shown_name: str | None = None) -> ConfigError:
    return ConfigError(f"{shown_name or name}={_shown(name, value)} is refused: {why}", setting=name)


def _shown(name: str, value: object) -> str:
    if name == "redis_url":
        return repr(without_password(value)) if isinstance(value, str) else f"<{type(value).__name__}>"
    if name == "alert":
        return "***"
    if name in {"credentials", "redis"}:
        return f"<{type(value).__name__}>"
    if name.endswith(_SECRET) or (isinstance(value, str) and _MAY_BE_SECRET.search(value)):
        return "***"
    return repr(value)
