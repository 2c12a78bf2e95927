"""Runs a command line: its commands are imported when they are called, and each error ends in one sentence."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)

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
from lowkiq_lambda.cli.catalog import LOWKIQ, lowkiq
from lowkiq_lambda.cli.codes import AWAY, DONE, FAILED, INTERRUPTED, MISUSED, TERMINATED
from lowkiq_lambda.cli.contexts import in_context
from lowkiq_lambda.cli.terminating import Terminated

_DAEMON: Final = "python -m lowkiq_lambda.local"
"""The program that is `lowkiq run`, without the name of the command."""
_EMBEDDED: Final = (["redis"], ["reset"])
"""Commands that follow it by their names."""
_CANNOT_BE_WRITTEN: Final = (errno.EPIPE, errno.ENOSPC)

_SIMILAR: Final = 0.75


def execute(program: str, words: Sequence[str]) -> int:
    """Run the command line of a program; returns the exit code."""
    try:
        with in_context(words) as rest:
            return _execute(program, rest)
    except ConfigError as error:
        return _refuse(str(error), code_of(error))


def _execute(program: str, words: list[str]) -> int:
    if program == _DAEMON and words[:1] not in _EMBEDDED:
        app, words = _daemon(words)
    else:
        app = lowkiq(*words[:1], " ".join(words[:2]))
    try:
        code = app(words, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except Terminated:
        return TERMINATED
    except KeyboardInterrupt:
        return INTERRUPTED
    except CycloptsError as error:
        return _refuse(sentence_of(error), MISUSED)
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        return _refuse(str(error), code_of(error))
    except OSError as error:
        if error.errno not in _CANNOT_BE_WRITTEN:
            raise
        # What is left of the output would fail again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The reader of a pipe that has seen enough knows it.
        return FAILED if isinstance(error, BrokenPipeError) else _refuse(f"cannot write: {error.strerror}.", FAILED)
    return code if isinstance(code, int) else DONE


def _daemon(words: Sequence[str]) -> tuple[App, list[str]]:
    """`lowkiq run`, whose help names the program."""
    app = lowkiq("run")
    command = app["run"]
    command.usage = str(command.usage).replace(f"{LOWKIQ} run", _DAEMON)
    return app, ["run", *words]


def _refuse(sentence: str, code: int) -> int:
    sys.stderr.write(f"error: {sentence}\n")
    return code


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


def sentence_of(error: CycloptsError) -> str:
    """The sentence."""
    if isinstance(error, UnusedCliTokensError):
        return _too_many(error)
    if isinstance(error, UnknownCommandError):
        option = next((word for word in error.unused_tokens or () if word.startswith("-")), None)
        return str(error) if option is None else f"{option} is unknown here: the options of a command follow its name."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error.argument.name, error.app)
    if isinstance(error, CoercionError) and error.msg is not None and error.token is not None:
        return f"{error.token.keyword} {error.token.value} is refused: {error.msg}."
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def _too_many(error: UnusedCliTokensError) -> str:
    commands = [name for name in error.app or () if not name.startswith("-")]
    for word in error.root_input_tokens or ():
        if word not in commands and (similar := get_close_matches(word, commands, 1, _SIMILAR)):
            return f"{word!r} is unknown: did you mean {similar[0]}?"
    return f"There are too many arguments: {' '.join(error.unused_tokens or ())}."


def _missing(name: str, app: App | None) -> str:
    if name.startswith("-"):
        return f"{name} needs a value."
    usage = app.usage if app is not None else None
    return f"{name} is missing: {str(usage or '').removeprefix('Usage: ')}."
