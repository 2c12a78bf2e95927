"""`lowkiq stack build`: the package of a Lambda function."""

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.stack.packaging.build import LOCKS
from lowkiq_lambda.stack.packaging.build import build as build_package
from lowkiq_lambda.stack.packaging.build import finish as finish_package
from lowkiq_lambda.stack.packaging.targets import BuildTarget

_HELP: Final = """
Put the package of a Lambda function together: packages of others in locked versions, this library without what the \
function does not need, the app, and bytecode of it all. `sam build` calls it by the Makefiles beside the template.

A folder of the app that has an __init__.py goes in as a package of its name: app.jobs:app is the same app here and in \
the function. Of any other folder, what is in it goes to the top: jobs:app. The packages that its requirements.txt \
names come along, in our versions where both name one; all must have wheels.

With --finish INTO is a package that SAM's own builder made for a template of yours: what the function does not need \
goes, and bytecode comes.
"""
_EPILOGUE: Final = """
SETTINGS
  LOWKIQ_BUILD_PYTHON  A Python of the runtime's version, which makes the
                       bytecode; by default one is looked for on PATH, in pyenv
                       and at uv.

EXIT CODES
  0  The package is there.
  1  It cannot be built.
  2  The command line cannot work.

EXAMPLES
  The package of the drain function, in a folder to be zipped:
    lowkiq stack build DrainFunction python3.13-arm64 build/drain --app app
  Behind `sam build` with a template of yours, whose function is Drain:
    lowkiq stack build DrainFunction python3.13-arm64 \\
      .aws-sam/build/Drain --finish
"""
command: Final = command_app(
    "build",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq stack build FUNCTION TARGET INTO [--app DIR] [--template FILE] [--finish]",
)


@command.default
def build(  # noqa: PLR0913 - each is an option of the command
    function: Annotated[str, Parameter(name="FUNCTION", help=f"One of {', '.join(LOCKS)}.")],
    target: Annotated[str, Parameter(name="TARGET", help="Runtime and architecture, such as python3.13-arm64.")],
    into: Annotated[Path, Parameter(name="INTO", help="The folder to fill.")],
    /,
    *,
    app: Annotated[Path | None, Parameter(help="The folder of the app; by default the current one.")] = None,
    template: Annotated[
        Path | None,
        Parameter(help="The template that the function is of, by default that of the project; an old one is refused."),
    ] = None,
    finish: Annotated[bool, flag("Only leave out what is not needed and compile: the package is there.")] = False,
) -> int:
    """Build it; the exit code."""
    runtime = BuildTarget.named(target)
    say(*(finish_package(function, runtime, into) if finish else build_package(function, runtime, into, app, template)))
    return DONE
