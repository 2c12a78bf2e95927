"""Errors as sentences."""

import builtins
import copy
import inspect
import pickle

import pytest

from lowkiq_lambda.base import errors
from lowkiq_lambda.base.errors import (
    BackendError,
    ConfigError,
    JobError,
    LeaseLost,
    LowkiqError,
    PoolExhausted,
    PushInterrupted,
    QueueMismatch,
)

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]


@pytest.mark.parametrize("error_class", CLASSES)
def test_docstring_is_the_default_message(error_class: type[LowkiqError]) -> None:
    """Without a message an error says its class's docstring, as one line."""
    assert str(error_class()) == " ".join((error_class.__doc__ or "").split())


@pytest.mark.parametrize("error_class", CLASSES)
def test_every_error_has_the_one_base(error_class: type[Exception]) -> None:
    """One `except LowkiqError` catches all of them, and none hides a builtin."""
    assert issubclass(error_class, LowkiqError)
    assert not hasattr(builtins, error_class.__name__)


@pytest.mark.parametrize("error_class", CLASSES)
def test_errors_survive_copies(error_class: type[LowkiqError]) -> None:
    """An error may cross a process pool or be copied by a reporter, and keeps message and data."""
    error = error_class("what happened")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(twin) is error_class
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_job_error_names_position_and_field() -> None:
    """A bad job of a push is found by its place in the call and the field that is wrong."""
    error = JobError("JSON has no form for bytes", field="payload").at(3)

    assert str(error) == "job 3: payload: JSON has no form for bytes"
    assert (error.position, error.field) == (3, "payload")
    assert isinstance(error, ValueError)


def test_job_error_without_place() -> None:
    """A job error may be raised where its place is not known yet."""
    assert str(JobError("too large")) == "too large"


def test_push_interrupted_lists_positions() -> None:
    """A push that broke off tells what is written, what is not, and what is unknown."""
    error = PushInterrupted("broke off", written=range(2), not_written=[2], unknown=(3,))

    assert (error.written, error.not_written, error.unknown) == ([0, 1], [2], [3])


def test_config_error_names_setting() -> None:
    """The setting is there as data too."""
    assert ConfigError("no", setting="lease_ttl").setting == "lease_ttl"


def test_queue_mismatch_keeps_both_sides() -> None:
    """Who handles a mismatch sees what is declared and what Redis has."""
    error = QueueMismatch(queue_name="Q", declared="5", stored="6")

    assert (error.queue_name, error.declared, error.stored) == ("Q", "5", "6")


def test_backend_errors_are_told_apart_from_lease_errors() -> None:
    """A lost lease is no trouble of the server, an exhausted pool is."""
    assert issubclass(PoolExhausted, BackendError)
    assert not issubclass(LeaseLost, BackendError)
