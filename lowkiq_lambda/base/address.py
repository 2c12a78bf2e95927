"""The forms of a server's URL, and its form for logs, without secrets.

    redis://[user:password@]host[:port][/db]                       one server
    redis+sentinel://[user:password@]host[:port],…/service[/db]    the primary that these Sentinels name
    redis+cluster://[user:password@]host[:port],…                  a cluster, by some of its nodes

With `rediss` in place of `redis` all connections use TLS, those to Sentinels too.

Behind a `?` the options of `OPTIONS` may follow. What means something in a URL is percent-encoded in user,
password and options.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from lowkiq_lambda.base.errors import ConfigError

Kind: TypeAlias = Literal["server", "sentinel", "cluster"]

EMBEDDED: Final = "embedded:"
"""How a `redis_url` begins that stands for a server on this machine, started on demand (`providers/embedded/`)."""

NO_SECRETS: Final = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
    }
)
"""The options of a URL whose values may be printed."""
TLS_OPTIONS: Final = NO_SECRETS | {"ssl_password"}
_LOGIN: Final = frozenset({"username", "password"})
OPTIONS: Final = TLS_OPTIONS | _LOGIN | {"sentinel_username", "sentinel_password"}

_KINDS: Final[Mapping[str, Kind]] = {
    "redis": "server",
    "redis+sentinel": "sentinel",
    "redis+cluster": "cluster",
}
_FORMS: Final = (
    f"{', '.join(f'{scheme}://' for scheme in _KINDS)}, the same with rediss for TLS, or {EMBEDDED} for development"
)
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_LAST_PORT: Final = 65_535
_YES_NO: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_HOST: Final = re.compile(r"embedded:[^@{]*|[A-Za-z0-9.-]+:[0-9]{1,5}(/[0-9]*)?")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the server, and the sign-in."""

    kind: Kind
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    db: int = 0
    service: str = ""
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    tls_options: Mapping[str, str | bool] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        # A log may show it: without the sign-in.
        fields = [f"{name}={getattr(self, name)!r}" for name in ("kind", "tls", "hosts", "db", "service")]
        return f"Address({', '.join(fields)})"


def is_embedded(url: str | None) -> bool:
    """Whether the URL stands for the embedded server."""
    return url is not None and url.startswith(EMBEDDED)


def parse_address(url: str) -> Address:
    """The address in a URL. Raises ConfigError, which never holds the password."""
    try:
        return _parse(url)
    except ValueError as error:
        why = f"redis_url={without_password(url)!r} is refused: {error}"
        raise ConfigError(why, setting="redis_url") from None


def without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without user and password of the server, and these, if it has a password. Raises ConfigError."""
    address = parse_address(url)
    if not address.password:
        return url, None
    parts = urlsplit(url)
    options = urlencode(
        [(name, value) for name, value in parse_qsl(parts.query) if name not in _LOGIN], quote_via=quote
    )
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query=options)
    return bare.geturl(), (address.username or "", address.password)


def without_password(url: str) -> str:
    """A URL that may be printed: without user and password, and with option values only if they are not secret.

    A text without a scheme and `://` is not printed, unless it is a host with a port: it may be the secret itself.
    """
    scheme, separator, rest = url.partition("://")
    if not _SCHEME.fullmatch(scheme) or not separator:
        return url if _HOST.fullmatch(url) else "***"
    if "@" in rest:
        # Up to the last "@": a password that was not escaped may hold one itself.
        rest = "***@" + rest.rpartition("@")[2]
    place, mark, options = rest.partition("?")
    return scheme + separator + place + mark + "&".join(map(_shown_option, options.split("&")))


def _shown_option(option: str) -> str:
    # A misspelt name is unknown too: its value may be a password.
    name, is_given, value = option.partition("=")
    if not is_given:
        return option and "***"
    return option if name in NO_SECRETS or not value else f"{name}=***"


def _parse(url: str) -> Address:
    parts = _split(url)
    kind, tls = _kind(parts.scheme)
    login, _, places = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    options = _options(parts.query, tls=tls)
    service, db = _path(parts.path, kind)
    return Address(
        kind=kind,
        tls=tls,
        hosts=_hosts(places, kind),
        db=db,
        service=service,
        username=unquote(user) or options.get("username"),
        password=unquote(password) or options.get("password"),
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
        tls_options=_tls_options(options),
    )


def _split(url: str) -> SplitResult:
    if "://" not in url:
        raise ValueError(f"expected redis://host:port/0; the forms are {_FORMS}")
    try:
        parts = urlsplit(url)
    except ValueError:
        # Its own message may hold a part of the password.
        raise ValueError("the part between :// and / is not a list of hosts: escape [ and ]") from None
    if parts.fragment:
        raise ValueError("it holds a #: write %23 where it belongs to the password")
    return parts


def _kind(scheme: str) -> tuple[Kind, bool]:
    tls = scheme.startswith("rediss")
    kind = _KINDS.get(scheme.replace("rediss", "redis", 1))
    if kind is None:
        raise ValueError(f"expected {_FORMS}")
    return kind, tls


def _hosts(places: str, kind: Kind) -> tuple[tuple[str, int], ...]:
    default_port = _SENTINEL_PORT if kind == "sentinel" else _PORT
    hosts = tuple(_host(place, default_port) for place in places.split(","))
    if kind == "server" and len(hosts) > 1:
        raise ValueError("several hosts need redis+sentinel:// or redis+cluster://")
    return hosts


def _host(place: str, default_port: int) -> tuple[str, int]:
    # An IPv6 address stands in brackets, as its colons would be taken for the port's.
    name, bracket, rest = place.partition("]")
    host, colon, port = (name[1:], *rest.partition(":")[1:]) if bracket else place.partition(":")
    if not colon:
        return host or "localhost", default_port
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
        # Not quoted: it is a part of the password if that holds an unescaped slash.
        raise ValueError("a port is not a number from 1 to 65535 (escape / ? and # in a password)")
    return host or "localhost", int(port)


def _path(path: str, kind: Kind) -> tuple[str, int]:
    steps = [unquote(step) for step in path.split("/") if step]
    service = ""
    if kind == "sentinel":
        if not steps:
            raise ValueError("the service's name is missing: redis+sentinel://host:port/service")
        service = steps.pop(0)
    db = steps.pop(0) if steps else "0"
    if steps or not (db.isascii() and db.isdigit()):
        raise ValueError("the path is not the number of a database")
    if kind == "cluster" and int(db):
        raise ValueError("a cluster has database 0 only")
    return service, int(db)


def _options(query: str, *, tls: bool) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name not in OPTIONS:
            if "@" in query or not value:
                # Not quoted: it is a part of the password if that holds an unescaped question mark.
                raise ValueError("options are written ?name=value (escape / ? and # in a password)")
            raise ValueError(f"option {name!r} is unknown: expected one of {', '.join(sorted(OPTIONS))}")
        if name in TLS_OPTIONS and not tls:
            raise ValueError(f"option {name!r} has a meaning with rediss only")
    return options


def _tls_options(options: Mapping[str, str]) -> dict[str, str | bool]:
    tls: dict[str, str | bool] = {name: options[name] for name in TLS_OPTIONS & options.keys()}
    if tls.get("ssl_cert_reqs", "none") not in {"none", "optional", "required"}:
        raise ValueError("ssl_cert_reqs is none, optional or required")
    if "ssl_check_hostname" in tls:
        try:
            tls["ssl_check_hostname"] = _YES_NO[options["ssl_check_hostname"].lower()]
        except KeyError:
            raise ValueError("ssl_check_hostname is true or false") from None
    return tls
