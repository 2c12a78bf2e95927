"""Which exit code an error ends a command with."""

from lowkiq_lambda.base.errors import (
    AppNotFound,
    BackendDenied,
    BackendUnavailable,
    ConfigError,
    DeclarationError,
    EmbeddedServerError,
    JobError,
    LowkiqError,
    PushInterrupted,
    ShardMoving,
)
from lowkiq_lambda.cli.codes import AWAY, FAILED, MISUSED


def code_of(error: LowkiqError) -> int:
    """The exit code of a command that an error ended."""
    if isinstance(error, PushInterrupted) and isinstance(error.__cause__, LowkiqError):
        error = error.__cause__
    if isinstance(error, AppNotFound | BackendDenied | ConfigError | DeclarationError | JobError):
        return MISUSED
    if isinstance(error, EmbeddedServerError) or (
        isinstance(error, BackendUnavailable) and not isinstance(error, ShardMoving)
    ):
        return AWAY
    return FAILED
