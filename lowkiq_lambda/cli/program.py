"""Runs a command line: its commands are imported when they are called, and each error ends in one sentence."""

import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Final, cast

from cyclopts import App, CycloptsError, Group

from lowkiq_lambda.cli.codes import DONE, FAILED, INTERRUPTED, MISUSED
from lowkiq_lambda.cli.refusals import sentence_of
from lowkiq_lambda.errors import ConfigError, DeclarationError, LowkiqError
from lowkiq_lambda.loading import AppNotFound

_HELP: Final = """
Ordered, grouped background jobs on Redis or Valkey: run them here, play and deploy the functions that run them on AWS.
"""
_EPILOGUE: Final = """
An app is named as MODULE:APP, shop.jobs:app for the variable app in the module
shop.jobs, or by LOWKIQ_APP. `lowkiq COMMAND --help` tells the options, the
settings and the exit codes of a command.

EXAMPLES
  The demo, on a server of its own:
    lowkiq run
  The app, and its dashboard at http://127.0.0.1:8080/:
    lowkiq run shop.jobs:app --dashboard 8080
  What the next deploy would do to the schedules:
    lowkiq drain-schedules shop.jobs:app --stack shop --dry-run
"""
_MACHINE: Final = Group("Commands for this machine", sort_key=0)
_AWS: Final = Group("Commands for AWS", sort_key=1)
_OPTIONS: Final = Group("Options", sort_key=2)

_COMMANDS: Final = {
    "run": (
        _MACHINE,
        "lowkiq_lambda.cli.run:command",
        "Run the daemon, which performs the jobs of an app; or the demo.",
    ),
    "reshard": (
        _MACHINE,
        "lowkiq_lambda.cli.reshard:command",
        "Give a queue another number of shards, while it is pushed to and drained.",
    ),
    "redis": (_MACHINE, "lowkiq_lambda.cli.embedded:redis", "Print the URL of the embedded server."),
    "reset": (_MACHINE, "lowkiq_lambda.cli.embedded:reset", "Remove a queue from the embedded server."),
    "audit": (
        _MACHINE,
        "lowkiq_lambda.cli.audit:command",
        "Judge a queue by its journals: order, and that nothing is lost.",
    ),
    "processes": (
        _MACHINE,
        "lowkiq_lambda.cli.processes:command",
        "List the processes that drain and what they do; have one be quiet, or stop.",
    ),
    "redrive": (
        _MACHINE,
        "lowkiq_lambda.cli.redrive:command",
        "Have jobs of the morgue wait again, so many a second; or tell what would become of them.",
    ),
    "schedules": (
        _MACHINE,
        "lowkiq_lambda.cli.schedules.command:command",
        "Tell when the entries of an app fire, without Redis: next, load, diff, dump.",
    ),
    "invoke": (_AWS, "lowkiq_lambda.cli.invoke:command", "Play an event against a function's handler, without AWS."),
    "drain-schedules": (
        _AWS,
        "lowkiq_lambda.cli.drain_schedules.command:command",
        "Bring the drain function's schedules in line with the app's workers.",
    ),
    "costs": (_AWS, "lowkiq_lambda.cli.costs.command:command", "Estimate what a month costs on AWS, in three ways."),
}
_OLDER: Final = {
    "python -m lowkiq_lambda.local": "lowkiq_lambda.cli.run",
    "python -m lowkiq_lambda.reshard": "lowkiq_lambda.cli.reshard",
    "python -m lowkiq_lambda.aws.drain_schedules": "lowkiq_lambda.cli.drain_schedules.command",
    "python -m lowkiq_lambda.aws.schedules": "lowkiq_lambda.cli.drain_schedules.command",
}


def execute(program: str, words: Sequence[str]) -> int:
    """Run the command line of a program; returns the exit code."""
    app = _older(program) if program in _OLDER else _lowkiq(words)
    try:
        code = app(list(words), print_error=False, exit_on_error=False, result_action="return_value")
    except KeyboardInterrupt:
        return INTERRUPTED
    except CycloptsError as error:
        return _refuse(sentence_of(error), MISUSED)
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        return _refuse(
            str(error), MISUSED if isinstance(error, AppNotFound | ConfigError | DeclarationError) else FAILED
        )
    return code if isinstance(code, int) else DONE


def _lowkiq(words: Sequence[str]) -> App:
    app = App(
        name="lowkiq",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        help_format="plaintext",
        version=version("lowkiq_lambda"),
        group_commands=_OPTIONS,
        usage="Usage: lowkiq COMMAND [OPTIONS]",
    )
    for position, (name, (group, path, summary)) in enumerate(_COMMANDS.items()):
        if name in words[:1]:
            module, _, command = path.partition(":")
            app.command(getattr(import_module(module), command))
        else:
            # Stands for the command in the list, so that nothing of it is imported.
            app.command(App(name=name, help=summary, group=group, sort_key=position))
    return app


def _older(program: str) -> App:
    build = cast("Callable[[str], App]", import_module(_OLDER[program]).build)
    return build(program)


def _refuse(sentence: str, code: int) -> int:
    sys.stderr.write(f"error: {sentence}\n")
    return code
