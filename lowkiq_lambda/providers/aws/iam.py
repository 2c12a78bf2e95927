"""Signs in to ElastiCache and MemoryDB as an IAM user: with a token that is signed here, in place of a password.

A token says "let this user connect to this cache" and is good for fifteen minutes. Making one asks nobody anything, so
it needs no route out of a VPC.

Signature Version 4 is made here, as far as a presigned GET without a body needs it: botocore would cost a cold start
more time than all the rest of a drain function together; a test compares the two.
"""

import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote, urlencode

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import BackendDenied, ConfigError

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session


LIFETIME: Final = 900
"""Seconds that a token is good for: the longest that the services take."""

RENEWED_AFTER: Final = 600.0
"""Seconds that a token is used for. The AWS credentials that it was signed with live longer than that: botocore renews
them ten minutes before they end."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_NO_BODY: Final = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of an AWS identity; with them a process has the rights of their owner."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


class Keychain:
    """Those that the environment names, as Lambda does, else what botocore finds: a profile, a container, a machine.

    botocore is imported in the latter case only, and keeps them fresh.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._session: Session | None = None
        self._found: Credentials | None = None

    def keys(self) -> Keys:
        """The current keys. Raises BackendDenied if there are none, or if they cannot be had."""
        environ = self._environ
        access_key, secret_key = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
        if access_key and secret_key:
            return Keys(access_key, secret_key, environ.get("AWS_SESSION_TOKEN"))
        return self._searched()

    def region(self) -> str:
        """The region that this process is in. Raises BackendDenied if it is not said."""
        environ = self._environ
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        region = region or self._opened().get_config_variable("region")
        if not region:
            raise BackendDenied("The AWS region is not known: set AWS_REGION, or give `region`.")
        return str(region)

    def _searched(self) -> Keys:
        session = self._opened()
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - only where the environment names none

        try:
            self._found = self._found or session.get_credentials()
            # Not kept: these expire, and what was found renews them.
            frozen = self._found and self._found.get_frozen_credentials()
        except (BotoCoreError, RuntimeError) as error:
            raise BackendDenied(f"The AWS credentials cannot be had: {type(error).__name__}: {error}") from error
        if not frozen or not frozen.access_key or not frozen.secret_key:
            raise BackendDenied(
                "There are no AWS credentials to sign in to Redis with: give the function, container or machine a "
                "role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    def _opened(self) -> "Session":
        if self._session is None:
            try:
                from botocore.session import Session  # noqa: PLC0415 - slow to import, and not needed on Lambda
            except ImportError:
                raise BackendDenied(
                    "The environment does not name AWS credentials and region, and botocore, which would look "
                    "further, is not installed: install lowkiq-lambda[aws]."
                ) from None
            self._session = Session()
        return self._session


class IamCredentials:
    """User and token, for `Config(credentials=...)`. Usable from any thread.

    `cache` is the name of the cache (ElastiCache Serverless), of the replication group (ElastiCache) or of the cluster
    (MemoryDB), not its host. `region` is looked up if it is not given. Raises ConfigError; when called, BackendDenied
    if there are no AWS credentials.
    """

    def __init__(  # noqa: PLR0913 - all of it by keyword
        self,
        *,
        user: str,
        cache: str,
        service: Literal["elasticache", "memorydb"] = "elasticache",
        serverless: bool = False,
        region: str | None = None,
        keychain: Keychain | None = None,
        clock: Clock | None = None,
    ) -> None:
        _check(user, cache, service, serverless=serverless)
        self._user = user
        # The services know the names of caches in lower case alone.
        self._host = cache.lower()
        self._query = {"Action": "connect", "User": user}
        if serverless:
            self._query["ResourceType"] = "ServerlessCache"
        self._service = service
        self._region = region
        self._keychain = keychain or Keychain()
        self._clock = clock or SystemClock()
        self._lock = Lock()
        self._token = ""
        self._signed_at = float("-inf")

    def __call__(self) -> tuple[str, str]:
        """The user, and a token that is good for five minutes more at least."""
        with self._lock:
            now = self._clock.time()
            # A clock that was set back makes a token look as if it came from the future.
            if not 0 <= now - self._signed_at < RENEWED_AFTER:
                self._token = self._signed(now)
                self._signed_at = now
            return self._user, self._token

    def _signed(self, now: float) -> str:
        if self._region is None:
            self._region = self._keychain.region()
        request = Request(self._host, self._query, self._region, self._service)
        return presigned(request, self._keychain.keys(), at=now, lifetime=LIFETIME)


def _check(user: str, cache: str, service: str, *, serverless: bool) -> None:
    if not user:
        raise ConfigError("The IAM user of Redis has no name.", setting="redis_iam")
    if not _NAME.fullmatch(cache):
        raise ConfigError(
            f"{cache!r} is refused as the cache that tokens are for: expected its name, such as jobs, no host.",
            setting="redis_iam",
        )
    if service not in {"elasticache", "memorydb"}:
        raise ConfigError(f"{service!r} has no IAM: expected elasticache or memorydb.", setting="redis_iam")
    if serverless and service != "elasticache":
        raise ConfigError("Only ElastiCache has serverless caches.", setting="redis_iam")


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a request that are signed, and its host."""

    host: str
    query: Mapping[str, str]
    region: str
    service: str


def presigned(request: Request, keys: Keys, *, at: float, lifetime: int) -> str:
    """`host/?…`, the request's URL without its scheme that is good from `at` (unix seconds) for `lifetime` seconds."""
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")
    day = stamp.partition("T")[0]
    credential = f"{day}/{request.region}/{request.service}/aws4_request"
    signed = {
        **request.query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{credential}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(lifetime),
        "X-Amz-SignedHeaders": "host",
    }
    if keys.session_token:
        signed["X-Amz-Security-Token"] = keys.session_token
    text = urlencode(sorted(signed.items()), quote_via=quote, safe="")
    canonical = f"GET\n/\n{text}\nhost:{request.host}\n\nhost\n{_NO_BODY}"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{credential}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_key}".encode()
    for step in (day, request.region, request.service, "aws4_request"):
        key = _hmac(key, step)
    return f"{request.host}/?{text}&X-Amz-Signature={_hmac(key, to_sign).hex()}"


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
