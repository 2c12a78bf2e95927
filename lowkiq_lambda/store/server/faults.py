"""The meaning of the server's and the network's errors: they are never a failure of a job."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final, TypeAlias

from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    AuthorizationError,
    BusyLoadingError,
    ClusterCrossSlotError,
    ClusterDownError,
    ClusterError,
    MaxConnectionsError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from lowkiq_lambda.base.errors import (
    BackendDenied,
    BackendError,
    BackendFull,
    BackendUnavailable,
    PoolExhausted,
    ShardDamaged,
)
from lowkiq_lambda.settings.config import variable_of

UnknownScript: TypeAlias = NoScriptError
"""The server does not know a script by its hash."""
REDIS_ERRORS: Final = (RedisError, RedisClusterException, OSError)
"""All that a call of a redis client raises; the errors of a cluster client are not RedisErrors."""

_PASSING: Final = (
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    ReadOnlyError,
    RedisConnectionError,
    RedisTimeoutError,
    SlotNotCoveredError,
    TryAgainError,
    OSError,
)
_PASSING_CODES: Final = frozenset(
    {
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "NOMASTERLINK",
        "NOREPLICAS",
        "READONLY",
        "TRYAGAIN",
    }
)
_DENIED: Final = (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    AuthorizationError,
    NoPermissionError,
)
_DENIED_CODES: Final = frozenset({"DENIED", "NOAUTH", "NOPERM", "WRONGPASS"})
# Patterns are compiled with the first error.
# Older servers wrap the error of a command in a script: "ERR Error running script (…): @user_script:3: -OOM".
_CODE: Final = r"(?:^|[:\s]-)([A-Z]{3,})\b"
_SCRIPT_DENIED: Final = ("ACL failure in script", "The user executing the script can't")
_TLS_REASON: Final = r"\[SSL: (\w+)\]"
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE"})
_NOT_A_CLUSTER: Final = "Cluster mode is not enabled"
_NOT_A_SENTINEL: Final = "unknown command 'SENTINEL'"
_UNANSWERED: Final = r"Error -?\d+ connecting to (\S+:\d+)\. "
_CLIENT: Final = r"<redis\.client\.Redis\(.*?\bhost=([^,]+),port=(\d+)[^>]*>.*?\)>\)>\)>"
_IN_A_SCRIPT: Final = "user_script"
_KILLED: Final = "Script killed by user"

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_DOUBLINGS: Final = 10


class SignInFailed(AuthenticationError):
    """There was no user and password to sign in with; `error` says why. An error that the client lets go its way."""

    def __init__(self, error: BackendError) -> None:
        super().__init__(str(error))
        self.error = error


def translate(error: Exception) -> BackendError:
    """The error as one of ours: raise it `from` the one given."""
    if isinstance(error, BackendError):
        return error
    # A cluster client names its node's error as the cause.
    for cause in (error, error.__cause__):
        if isinstance(cause, SignInFailed):
            return cause.error
    ours = _not_passing(error) or _passing(error) or _refusal(error)
    # A caller that keeps the error as a value, and does not raise it, needs the server's words, too.
    ours.__cause__ = error
    return ours


def is_damage(error: object) -> bool:
    """Whether a script came upon what it cannot read, in a shard that nothing else is wrong with."""
    return isinstance(error, ResponseError) and isinstance(translate(error), ShardDamaged)


def is_wrong_type(answer: object) -> bool:
    """Whether a command met a key of another type than the one it is for."""
    return isinstance(answer, ResponseError) and str(answer).startswith("WRONGTYPE")


@contextmanager
def translated() -> Iterator[None]:
    """Raise the client's errors of the block as BackendErrors."""
    try:
        yield
    except REDIS_ERRORS as error:
        raise translate(error) from error


def unless_error(reply: Any) -> Any:  # noqa: ANN401 - what the server answered
    """The reply; raised if it is an error."""
    if isinstance(reply, Exception):
        raise reply
    return reply


def unless_refused(reply: Any) -> Any:  # noqa: ANN401 - what the server answered
    """The reply; None if the server lacks the command, or the user may not call it. Raises other errors."""
    return None if isinstance(reply, ResponseError) else unless_error(reply)


def is_transient(error: Exception) -> bool:
    """Whether the same call may well succeed a little later.

    An exhausted pool is not: its caller has waited already.
    """
    ours = translate(error)
    return isinstance(ours, BackendUnavailable) and not isinstance(ours, PoolExhausted)


def backoff(attempt: int, rng: Random) -> float:
    """Seconds to wait after failed attempt `attempt`, counted from 0: doubling up to two, with jitter."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * float(2 ** min(attempt, _DOUBLINGS)))
    return longest * rng.uniform(0.5, 1.0)


def _not_passing(error: Exception) -> BackendError | None:
    """The error that waiting does not fix."""
    if isinstance(error, MaxConnectionsError):
        return PoolExhausted()
    if isinstance(error, OutOfMemoryError) or "OOM" in _codes(error):
        return BackendFull(_with_default(BackendFull, error))
    if _is_denial(error):
        return BackendDenied(_with_default(BackendDenied, error))
    hint = _hint(error)
    return BackendError(f"{hint} ({describe(error)})") if hint else None


def _refusal(error: Exception) -> BackendError:
    # The scripts that we wrote fail at what they did not write.
    if _IN_A_SCRIPT in str(error):
        return ShardDamaged(_with_default(ShardDamaged, error))
    return BackendError(f"Redis refused the call: {describe(error)}")


def _is_denial(error: Exception) -> bool:
    # A cluster client names its node's error as the cause. The context is not evidence: it may be a handler's.
    if isinstance(error, _DENIED) or isinstance(error.__cause__, _DENIED):
        return True
    text = str(error)
    # By its name, as its module brings the whole client of redis-py.
    if type(error).__name__ == "MasterNotFoundError" and "auth:" in text:
        return True
    return bool(_codes(error) & _DENIED_CODES) or any(words in text for words in _SCRIPT_DENIED)


def _hint(error: Exception) -> str | None:
    """The correction of the URL, if the error shows that it does not fit the server."""
    text = str(error)
    reasons = frozenset(re.findall(_TLS_REASON, text))
    # A client of one server gives MOVED no class of its own before redis-py 6.
    if isinstance(error, MovedError | ClusterCrossSlotError) or "MOVED" in _codes(error):
        return "The server is a node of a cluster: give its URL as redis+cluster://host:port."
    if _NOT_A_CLUSTER in text:
        return "The server is no node of a cluster: give its URL as redis://host:port."
    if _NOT_A_SENTINEL in text:
        return "The server is no Sentinel: give its URL as redis://host:port."
    if "CERTIFICATE_VERIFY_FAILED" in reasons:
        return (
            "The server's TLS certificate is not accepted: connect by the name that it is issued for, and "
            "name its authority with ?ssl_ca_certs=FILE in the URL."
        )
    if reasons & _NO_TLS:
        return "The server does not speak TLS: give its URL as redis://host:port."
    return None


def _passing(error: Exception) -> BackendUnavailable | None:
    # Other errors of a cluster client: it cannot be reached, or a part of its slots is not served.
    passing = isinstance(error, (*_PASSING, RedisClusterException))
    # Only a script that has written nothing yet can be killed.
    if unanswered := re.search(_UNANSWERED, str(error)):
        advice = f"it may be restarting; if it never answered, check the URL ({variable_of('redis_url')})"
        return BackendUnavailable(f"Nothing answers at {unanswered[1]}: {advice}. ({describe(error)})")
    if passing or _codes(error) & _PASSING_CODES or _KILLED in str(error):
        return BackendUnavailable(_with_default(BackendUnavailable, error))
    return None


def _codes(error: Exception) -> frozenset[str]:
    return frozenset(re.findall(_CODE, str(error)))


def _with_default(ours: type[BackendError], error: Exception) -> str:
    return f"{ours()} ({describe(error)})"


def describe(error: BaseException) -> str:
    """The error in its own words, with its type."""
    # redis-py writes a Sentinel's whole client, if its place would do.
    text = re.sub(_CLIENT, r"\1:\2", str(error))
    return f"{type(error).__name__}: {text}"
