"""`lowkiq new`: a project for somebody to begin with."""

from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import command_app
from lowkiq_lambda.stack.scaffold.write import Web, new_project, next_steps

_HELP: Final = """
Write a new project, in a folder of its name: an app with a typed worker and its tests, and the stack that drains it \
on AWS. The files below lowkiq/ belong to the library, and `lowkiq upgrade` replaces them; all others are yours.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The project is there.
  2  The name is refused, and nothing was written.

EXAMPLES
  A project, its tests, and its stack on this machine:
    lowkiq new shop && cd shop && make test && make cloud
  With a web app that pushes:
    lowkiq new shop --web fastapi
"""
command: Final = command_app("new", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq new NAME [--web (fastapi | none)]")


@command.default
def write_project(
    name: Annotated[str, Parameter(name="NAME", help="Of the project, its folder and its stack, such as shop.")],
    /,
    *,
    web: Annotated[Web, Parameter(help="The web app that it comes with.")] = Web.NONE,
) -> int:
    """Write it, and say what comes next; the exit code."""
    say(next_steps(name, new_project(name, web)).rstrip())
    return DONE
