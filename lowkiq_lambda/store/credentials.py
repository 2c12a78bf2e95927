"""Signs connections in with what a plug says at that moment, and knows when each was signed in.

A managed server ends the connections of users whose password is a token twelve hours after their sign-in, whatever
they are doing. So each is opened anew before, between two calls; no connection signs in a second time.
"""

from typing import Any, Final
from weakref import WeakKeyDictionary

from redis.credentials import CredentialProvider

from lowkiq_lambda.clock import Clock
from lowkiq_lambda.errors import BackendDenied, BackendError
from lowkiq_lambda.plugs import Credentials
from lowkiq_lambda.store.faults import SignInFailed

LONGEST: Final = 11 * 3600.0
"""Seconds that a connection is used for after it signed in."""


class SignIns(CredentialProvider):
    """What redis-py asks for user and password. For all connections of a client, from any thread."""

    def __init__(self, ask: Credentials, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._signed_in_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """User and password, or the password alone. Raises SignInFailed."""
        try:
            user, password = self._ask()
        except BackendError as error:
            raise SignInFailed(error) from error
        except Exception as error:
            why = f"There is no user and password for Redis: `credentials` raised {type(error).__name__}: {error}"
            raise SignInFailed(BackendDenied(why)) from error
        return (user, password) if user else (password,)

    def sign_in(self, connection: Any) -> None:  # noqa: ANN401 - any of redis-py's kinds of connection
        """Begin the connection as redis-py does by itself."""
        connection.on_connect()
        self.remember(connection)

    def remember(self, connection: Any) -> None:  # noqa: ANN401 - as above
        """The connection has just signed in."""
        self._signed_in_at[connection] = self._clock.monotonic()

    def is_over(self, connection: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the connection has to sign in anew before it is used."""
        signed_in_at = self._signed_in_at.get(connection)
        return signed_in_at is not None and self._clock.monotonic() - signed_in_at > LONGEST
