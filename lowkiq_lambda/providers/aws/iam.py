"""Signs in to ElastiCache and MemoryDB as an IAM user: with a token that is signed here, in place of a password.

A token says "let this user connect to this cache" and is good for fifteen minutes. Making one asks nobody anything, so
it needs no route out of a VPC.
"""

import re
from threading import Lock
from typing import Final, Literal

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.providers.aws.keychain import Keychain
from lowkiq_lambda.providers.aws.signing import Request, presigned

LIFETIME: Final = 900
"""Seconds that a token is good for: the longest that the services take."""

RENEWED_AFTER: Final = 600.0
"""Seconds that a token is used for. The AWS credentials that it was signed with live longer than that: botocore renews
them ten minutes before they end."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class IamCredentials:
    """User and token, for `Config(credentials=...)`. Usable from any thread.

    `cache` is the name of the cache (ElastiCache Serverless), of the replication group (ElastiCache) or of the cluster
    (MemoryDB), not its host. `region` is looked up where it is not given. Raises ConfigError; when called,
    BackendDenied where there are no AWS credentials.
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
        raise ConfigError("The IAM user of Redis has no name.", setting="redis_iam_user")
    if not _NAME.fullmatch(cache):
        raise ConfigError(
            f"{cache!r} is refused as the cache that tokens are for: expected its name, such as jobs, no host.",
            setting="redis_iam_cache",
        )
    if service not in {"elasticache", "memorydb"}:
        raise ConfigError(f"{service!r} has no IAM: expected elasticache or memorydb.", setting="redis_iam_service")
    if serverless and service != "elasticache":
        raise ConfigError("Only ElastiCache has serverless caches.", setting="redis_iam_serverless")
