"""The common part of the commands of the kit: the line behind the name is that of the command `lowkiq`."""

import os
import sys
from typing import ClassVar, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from lowkiq_lambda.cli import main

_VARIABLE: Final = "LOWKIQ_APP"
_SPEC: Final = "lowkiq_lambda.contrib.django.project:app"
"""Found by processes that a command starts, too: manage.py has put the settings into the environment."""


class PassingCommand(BaseCommand):
    """Passes its options to a command of `lowkiq`, for the app of the setting LOWKIQ."""

    command: ClassVar[str]

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command line: what is not Django's goes on, --help too."""
        parser = CommandParser(prog=f"{argv[0]} {argv[1]}", add_help=False, allow_abbrev=False)
        # manage.py has obeyed them before it looked for the command.
        parser.add_argument("--settings")
        parser.add_argument("--pythonpath")
        sys.exit(self._run(parser.parse_known_args(argv[2:])[1]))

    def add_arguments(self, parser: CommandParser) -> None:
        """For `call_command`, which takes the words of the command line one by one."""
        parser.add_argument("args", nargs="*")

    def handle(self, *words: str, **_options: object) -> None:
        """Run it from code. Raises CommandError where it did not do what it should."""
        if code := self._run([*words]):
            raise CommandError(f"lowkiq {self.command} ended with {code}.", returncode=code)

    def _run(self, words: list[str]) -> int:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = _SPEC
        try:
            return main([self.command, *words])
        finally:
            # A process that has called it from code is as before.
            if before is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = before


def passing_command(command: str, what: str) -> type[PassingCommand]:
    """A command of manage.py that is the command of `lowkiq` with this name; `what` is told by `manage.py help`."""
    fields = {"command": command, "help": f"{what} The options are those of `lowkiq {command}`."}
    return type("Command", (PassingCommand,), fields)
