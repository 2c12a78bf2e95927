"""What errors of the server and the network mean."""

from itertools import pairwise
from random import Random

import pytest
import redis.exceptions as theirs
from hypothesis import given
from hypothesis import strategies as st
from redis.sentinel import MasterNotFoundError

from lowkiq_lambda.base.errors import (
    BackendDenied,
    BackendError,
    BackendFull,
    BackendUnavailable,
    PoolExhausted,
)
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, backoff, is_transient, translate

UNAVAILABLE: list[Exception] = [
    theirs.ConnectionError("Connection closed by server."),
    theirs.TimeoutError("Timeout reading from socket"),
    theirs.BusyLoadingError("Redis is loading the dataset in memory"),
    theirs.ReadOnlyError("You can't write against a read only replica."),
    theirs.ClusterDownError("Hash slot not served"),
    theirs.MasterDownError("Link with MASTER is down"),
    theirs.TryAgainError("Multiple keys request during rehashing of slot"),
    theirs.SlotNotCoveredError("Slot 5 is not covered"),
    theirs.ClusterError("TTL exhausted."),
    theirs.RedisClusterException("Redis Cluster cannot be connected."),
    theirs.ResponseError("BUSY Redis is busy running a script."),
    theirs.ResponseError("MISCONF Redis is configured to save RDB snapshots"),
    theirs.ResponseError("NOREPLICAS Not enough good replicas to write."),
    theirs.ResponseError("ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write"),
    theirs.ResponseError("Script killed by user with SCRIPT KILL. script: 1, on @user_script:1."),
    MasterNotFoundError("No master found for 'jobs' : Redis<x> - network:TimeoutError"),
    ConnectionResetError("reset"),
    TimeoutError("timed out"),
]
FULL: list[Exception] = [
    theirs.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
    theirs.ResponseError("ERR Error running script (call to f_1): @user_script: 2: -OOM command not allowed"),
]
DENIED: list[Exception] = [
    theirs.AuthenticationError("invalid username-password pair or user is disabled."),
    theirs.AuthorizationError("no"),
    theirs.NoPermissionError("User bob has no permissions to run the 'get' command"),
    theirs.AuthenticationWrongNumberOfArgsError("wrong number of arguments for 'auth' command"),
    theirs.ResponseError("DENIED Redis is running in protected mode"),
    theirs.ResponseError("ACL failure in script: No permissions to access a key script: on @user_script:1."),
    theirs.ResponseError("The user executing the script can't access at least one of the keys"),
    theirs.ResponseError("ERR Error running script (call to f_1): @user_script: 2: -NOPERM no"),
    MasterNotFoundError("No master found for 'jobs' : Redis<x> - auth:AuthenticationError"),
]
REFUSED: list[Exception] = [
    theirs.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
    theirs.ResponseError("unknown command 'NOPE'"),
    theirs.ResponseError("MYCODE a script's own"),
    theirs.NoScriptError("No matching script."),
    theirs.InvalidResponse("Protocol error"),
    theirs.DataError("Invalid input of type"),
    theirs.ClusterCrossSlotError("Keys in request don't hash to the same slot"),
]


def cases(*errors: Exception) -> list[object]:
    """Parameters named by the error and its place."""
    return [pytest.param(error, id=f"{type(error).__name__}-{number}") for number, error in enumerate(errors)]


@pytest.mark.parametrize("error", cases(*UNAVAILABLE))
def test_what_passes_is_unavailable(error: Exception) -> None:
    """E-39, E-44: connections, timeouts, restarts and failovers heal with time."""
    assert type(translate(error)) is BackendUnavailable
    assert is_transient(error)


@pytest.mark.parametrize("error", cases(*FULL))
def test_full_memory_is_told_apart(error: Exception) -> None:
    """E-41: reached maxmemory is an error of its own, and waiting alone does not heal it."""
    assert type(translate(error)) is BackendFull
    assert not is_transient(error)


@pytest.mark.parametrize("error", cases(*DENIED))
def test_denials_are_told_apart(error: Exception) -> None:
    """E-45: a refused login or right is not tried again, though redis-py calls it a connection error."""
    assert type(translate(error)) is BackendDenied
    assert not is_transient(error)


@pytest.mark.parametrize("error", cases(*REFUSED))
def test_anything_else_is_a_refusal(error: Exception) -> None:
    """E-36: what the server refuses for good is not tried again."""
    assert type(translate(error)) is BackendError
    assert not is_transient(error)


def test_exhausted_pool_is_not_tried_again() -> None:
    """E-43: who waited for a connection has waited already; it is unavailability all the same."""
    error = theirs.MaxConnectionsError("No connection became free in time.")

    assert type(translate(error)) is PoolExhausted
    assert isinstance(translate(error), BackendUnavailable)
    assert not is_transient(error)


@pytest.mark.parametrize("error", cases(*UNAVAILABLE, *FULL, *DENIED, *REFUSED))
def test_the_servers_words_are_kept(error: Exception) -> None:
    """Whoever reads the error sees what the server said, and can catch what redis-py raised."""
    assert str(error) in str(translate(error))
    assert isinstance(error, REDIS_ERRORS)


@pytest.mark.parametrize(
    "error",
    [
        theirs.ConnectionError("Error 111 connecting to db:7000. Connection refused."),
        theirs.ConnectionError("Error -2 connecting to db:7000. Name or service not known."),
        theirs.RedisClusterException("No reachable node: Error 111 connecting to db:7000. Connection refused."),
    ],
)
def test_a_server_that_nothing_answers_for_is_named(error: Exception) -> None:
    """It may be restarting, and it may be another name or port than the user meant."""
    sentence = (
        "Nothing answers at db:7000: it may be restarting; if it never answered, check the URL (LOWKIQ_REDIS_URL)."
    )

    assert str(translate(error)).startswith(sentence)
    assert is_transient(error)


def test_the_servers_error_is_the_cause() -> None:
    """Also where nothing is raised."""
    error = theirs.ConnectionError("Connection closed by server.")

    assert error is translate(error).__cause__


def test_own_errors_stay_as_they_are() -> None:
    """An error that was translated before is not wrapped again."""
    error = BackendFull()

    assert translate(error) is error


def test_a_clusters_denial_is_found_in_its_cause() -> None:
    """E-45: a cluster client hides a refused login behind an error of its own."""
    hidden = theirs.RedisClusterException("Redis Cluster cannot be connected.")
    hidden.__cause__ = theirs.AuthenticationError("invalid")

    assert type(translate(hidden)) is BackendDenied


def test_a_handlers_error_is_no_evidence() -> None:
    """What was being handled when the connection broke does not make it a denial."""
    error = theirs.ConnectionError("Connection closed by server.")
    error.__context__ = theirs.AuthenticationError("of the handler's own server")

    assert is_transient(error)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (theirs.MovedError("1234 10.0.0.1:7000"), "redis+cluster://"),
        (theirs.ClusterCrossSlotError("Keys in request don't hash to the same slot"), "redis+cluster://"),
        (theirs.RedisClusterException("x: Cluster mode is not enabled on this node"), "redis://host:port"),
        (theirs.ResponseError("unknown command 'SENTINEL', with args"), "redis://host:port"),
        (theirs.ConnectionError("Error 1. [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "ssl_ca_certs"),
        (theirs.ConnectionError("Error 1. [SSL: WRONG_VERSION_NUMBER] wrong version"), "does not speak TLS"),
    ],
)
def test_wrong_urls_get_a_hint(error: Exception, hint: str) -> None:
    """E-46: where the URL does not fit the server, the error says what to write, and is not tried again."""
    assert hint in str(translate(error))
    assert not is_transient(error)


def test_waiting_grows_up_to_two_seconds() -> None:
    """E-39: each wait is about twice the last one, at most two seconds, and jittered."""
    waits = [backoff(attempt, Random(7)) for attempt in range(8)]

    assert 0.025 <= waits[0] <= 0.05
    assert [round(later / sooner, 6) for sooner, later in pairwise(waits[:6])] == [2] * 5
    assert waits[7] <= 2
    assert len({backoff(3, Random(seed)) for seed in range(20)}) == 20


@given(st.integers(0, 10_000), st.integers())
def test_waiting_stays_in_bounds(attempt: int, seed: int) -> None:
    """However often it failed, the wait is neither nothing nor long."""
    assert 0.025 <= backoff(attempt, Random(seed)) <= 2
