"""Runs a command line: its commands are imported when they are called, and each error ends in one sentence."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError

from lowkiq_lambda.base.errors import AppNotFound, LowkiqError
from lowkiq_lambda.cli.catalog import LOWKIQ, lowkiq
from lowkiq_lambda.cli.codes import DONE, FAILED, INTERRUPTED, MISUSED, TERMINATED
from lowkiq_lambda.cli.endings import code_of
from lowkiq_lambda.cli.refusals import sentence_of
from lowkiq_lambda.cli.terminating import Terminated

_DAEMON: Final = "python -m lowkiq_lambda.local"
"""The program that is `lowkiq run`, without the name of the command."""
_EMBEDDED: Final = (["redis"], ["reset"])
"""Commands that follow it by their names."""
_CANNOT_BE_WRITTEN: Final = (errno.EPIPE, errno.ENOSPC)


def execute(program: str, words: Sequence[str]) -> int:
    """Run the command line of a program; returns the exit code."""
    words = [*words]
    if program == _DAEMON and words[:1] not in _EMBEDDED:
        app, words = _daemon(words)
    else:
        app = lowkiq(*words[:1])
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
