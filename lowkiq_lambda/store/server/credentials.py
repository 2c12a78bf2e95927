"""Signs connections in with the current credentials of a plug, and keeps the time of each sign-in.

If the password of a user is a token, a managed server ends the connections of that user twelve hours after their
sign-in, even during a call. So each connection is opened anew before, between two calls; a connection never signs in a
second time.

If the server refuses the credentials of a plug that can renew them, it is asked to, and the connection is opened once
more.
"""

from collections.abc import Callable
from threading import local
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from redis.credentials import CredentialProvider

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import BackendDenied, BackendError
from lowkiq_lambda.settings.protocols import Credentials, RenewableCredentials
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, SignInFailed, translate

Told = TypeVar("Told")

LONGEST: Final = 11 * 3600.0
"""Seconds that a connection is used for after it signed in."""


class SignIns(CredentialProvider):
    """The provider of user and password for redis-py.

    For all connections of a client, from any thread.
    """

    def __init__(self, ask: Credentials, clock: Clock) -> None:
        self._ask = ask
        self._renew = ask.renew if isinstance(ask, RenewableCredentials) else None
        self._clock = clock
        self._signed_in_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        self._under_way = _UnderWay()

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """User and password, or the password alone. Raises SignInFailed."""
        user, password = self._under_way.login = _told_by(self._ask)
        return (user, password) if user else (password,)

    def sign_in(self, connection: Any, begin: Callable[[], object]) -> None:  # noqa: ANN401 - any of redis-py's kinds
        """Begin the connection by `begin`; if that is refused and the plug has something newer, open it again."""
        try:
            begin()
        except REDIS_ERRORS as error:
            if self._under_way.again or not self._has_newer(error):
                raise
            self._under_way.again = True
            try:
                connection.disconnect()
                # Which comes here again.
                connection.connect()
            finally:
                self._under_way.again = False
        self._signed_in_at[connection] = self._clock.monotonic()

    def begin(self, connection: Any) -> None:  # noqa: ANN401 - as above
        """The function that redis-py calls to begin a connection to a single server."""
        self.sign_in(connection, connection.on_connect)

    def is_over(self, connection: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the connection has to sign in anew before it is used."""
        signed_in_at = self._signed_in_at.get(connection)
        return signed_in_at is not None and self._clock.monotonic() - signed_in_at > LONGEST

    def _has_newer(self, error: Exception) -> bool:
        renew = self._renew
        if renew is None or isinstance(error, SignInFailed) or not isinstance(translate(error), BackendDenied):
            return False
        return _told_by(lambda: renew(self._under_way.login))


class _UnderWay(local):
    """The sign-in of a thread: with what, and whether it is the second of the same connection."""

    login = ("", "")
    again = False


def _told_by(plug: Callable[[], Told]) -> Told:
    try:
        return plug()
    except BackendError as error:
        raise SignInFailed(error) from error
    except Exception as error:
        why = f"There is no user and password for Redis: `credentials` raised {type(error).__name__}: {error}"
        raise SignInFailed(BackendDenied(why)) from error
