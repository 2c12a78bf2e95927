"""`lowkiq stack rollback`: the version before, at once and without a build."""

import sys
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import AWAY, DONE, NOT_APPLIED
from lowkiq_lambda.cli.output import NOTHING, agreed, remark, say, table, write_json
from lowkiq_lambda.cli.parts import command_app, flag

_HELP: Final = """
Let the functions of a stack run the version before: the alias that schedules, event sources and the dashboard start \
is moved, in a second for each function. The stack needs the parameter Alias=live.

The command shows what runs and what would run, and asks. Invocations that have begun end in the version that they \
began with. Jobs, schedules and parameters of the stack stay as they are. The next deploy moves the alias on.
"""
_EPILOGUE: Final = """
SETTINGS
  Account, region and rights come from AWS's own settings (AWS_PROFILE,
  AWS_REGION ...).

EXIT CODES
  0  The functions run that version.
  1  AWS has refused a call, or there is no such version; or it was a dry run,
     or the answer was not yes.
  2  The command line cannot work.
  3  AWS cannot be reached: run it again later.

EXAMPLES
  What would run:
    lowkiq stack rollback shop --dry-run
  Back to the version before, in a pipeline:
    lowkiq stack rollback shop --yes
  To one that is older, or forward again:
    lowkiq stack rollback shop --to 17
  One function alone:
    lowkiq stack rollback shop --to drain=17
"""
command: Final = command_app(
    "rollback",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq stack rollback STACK [--to [FUNCTION=]VERSION] [--dry-run] [--yes] [--json]",
)


@command.default
def rollback(
    stack: Annotated[str, Parameter(name="STACK", help="The stack, by its name.")],
    /,
    *,
    to: Annotated[
        list[str] | None,
        Parameter(
            help="The version, or that of a function as FUNCTION=VERSION, which may be given again; by default the one "
            "that ran before the newest deploy.",
            negative="",
        ),
    ] = None,
    dry_run: Annotated[bool, flag("Print what would run, and change nothing.")] = False,
    yes: Annotated[bool, flag("Do not ask.")] = False,
    json: Annotated[bool, flag("Print the moves as JSON.")] = False,
) -> int:
    """Show, ask, move; the exit code."""
    from lowkiq_lambda.aws.drain_schedules.deployed import AwsUnreachable, DeployError
    from lowkiq_lambda.stack.rollback import AliasMove, Version, move, plan_rollback

    def text(version: Version) -> str:
        release = f" ({version.release})" if version.release else ""
        return f"{version.number}{release}, of {version.published_at[:16].replace('T', ' ')}"

    def show(moves: list[AliasMove]) -> None:
        if json:
            return write_json(msgspec.to_builtins(moves))
        rows = [[each.function, text(each.runs), text(each.then)] for each in moves]
        return say(*table(("FUNCTION", "RUNS VERSION", "WOULD RUN"), rows, left=(0, 1, 2)))

    try:
        moves = plan_rollback(stack, _versions(to or ()))
        if not moves:
            if json:
                show(moves)
            remark(f"Nothing to do: version {', '.join(to or ())} runs.")
            return DONE
        show(moves)
        if dry_run or not (yes or agreed("Let them run it?", aside=json)):
            remark(NOTHING)
            return NOT_APPLIED
        for number, each in enumerate(moves):
            try:
                move(each)
            except DeployError as error:
                done = ", ".join(one.function for one in moves[:number]) or "none"
                raise type(error)(f"{error} Moved before: {done}. Run it again: it goes on.") from error
            remark(f"{each.function} runs version {each.then.number}")
    except AwsUnreachable as error:
        sys.stderr.write(f"error: {error}\n")
        return AWAY
    return DONE


def _versions(words: Iterable[str]) -> dict[str, int]:
    versions = {}
    for word in words:
        function, _, version = word.rpartition("=")
        if not version.isdecimal():
            raise ConfigError(f"--to {word} is refused: write VERSION or FUNCTION=VERSION, such as drain=17.")
        versions[function] = int(version)
    return versions
