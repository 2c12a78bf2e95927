"""The command line: what may be said on it, and the help that teaches it."""

import argparse
import re
from collections.abc import Mapping
from typing import Final

from lowkiq_lambda.aws.drain_schedules.schedule import NAME_LENGTH, PREFIX_LENGTH

PROGRAM: Final = "python -m lowkiq_lambda.aws.drain_schedules"
INDEXES: Final = "indexes"

_PREFIX: Final = "lowkiq"
_NAME: Final = re.compile(r"[0-9a-zA-Z\-_.]+")

_DESCRIPTION: Final = """\
Bring the schedules of the drain function in line with the app's workers.

A schedule drains one shard index of every queue, so an app needs as many as
its widest queue has shards. The command looks at the workers and at what is
deployed, prints a plan, asks, and carries it out. It changes only schedules
in its group whose name is PREFIX-shard-NUMBER; all else stays and is told.

Before that the drift guard looks into Redis: where the code no longer serves
a queue that holds jobs, or declares one otherwise than it was made, the plan
is refused with a sentence that says what to do, and nothing is changed.

With the word 'indexes' in front it prints the value for the parameter
ShardIndexes of template.yaml instead: see 'indexes --help'.
"""
_EPILOGUE: Final = """\
SETTINGS
  Account, region and rights come from AWS's own settings (AWS_PROFILE,
  AWS_REGION ...). Redis is found as the functions find it: LOWKIQ_REDIS_URL,
  or LOWKIQ_REDIS_SECRET_ARN, and LOWKIQ_REDIS_IAM_USER with the rest.

EXIT CODES
  0  The schedules are as they should be, or have become so.
  1  The plan is refused, or something did not work: run it again, it goes on.
  2  The command line, the settings or the app cannot work.
  3  There is something to change, and it was not: a dry run, or nobody agreed.

EXAMPLES
  What a deploy would change, and whether it would strand anything:
    python -m lowkiq_lambda.aws.drain_schedules shop.jobs:app --stack shop --dry-run
  Carry it out, in a pipeline:
    python -m lowkiq_lambda.aws.drain_schedules shop.jobs:app --stack shop --yes
  Without a stack's outputs:
    python -m lowkiq_lambda.aws.drain_schedules shop.jobs:app --function shop-drain \\
      --role arn:aws:iam::123456789012:role/shop-schedules
"""
_INDEXES_DESCRIPTION: Final = """\
Print the value for the parameter ShardIndexes of template.yaml: the shard
indexes that the app's workers have. The drift guard looks into Redis first;
what it finds is said on the error output, nothing is printed, and the exit
code is 1. AWS is not asked.
"""
_INDEXES_EPILOGUE: Final = """\
EXAMPLE
  In two steps, so that a refusal ends the deploy before it begins:
    indexes=$(python -m lowkiq_lambda.aws.drain_schedules indexes shop.jobs:app) &&
      sam deploy --parameter-overrides "ShardIndexes=$indexes"
"""


def parse(words: list[str], environ: Mapping[str, str]) -> argparse.Namespace:
    """The arguments. Ends the process with code 2, and a sentence, where they cannot work; with 0 after the help."""
    return _indexes_parser().parse_args(words[1:]) if words[:1] == [INDEXES] else _parse_plan(words, environ)


def _parse_plan(words: list[str], environ: Mapping[str, str]) -> argparse.Namespace:
    parser = _plan_parser()
    found = parser.parse_args(words)
    if not found.stack:
        found.function = found.function or environ.get("LOWKIQ_DRAIN_FUNCTION")
    found.prefix = found.prefix or found.stack or _PREFIX
    found.group = found.group or f"{found.prefix}-schedules"
    if not found.stack and not (found.function and found.role):
        parser.error("name what the schedules invoke, and as whom: --stack, or --function and --role")
    for option in ("prefix", "group"):
        name, most = getattr(found, option), PREFIX_LENGTH if option == "prefix" else NAME_LENGTH
        if not (_NAME.fullmatch(name) and len(name) <= most):
            parser.error(f"--{option} {name!r}: at most {most} letters, digits and -_. are allowed")
    return found


def _plan_parser() -> argparse.ArgumentParser:
    parser = _parser(PROGRAM, _DESCRIPTION, _EPILOGUE)
    parser.set_defaults(command="plan")
    _add_app(parser)
    what = parser.add_argument_group("what the schedules do")
    add = what.add_argument
    add("--stack", metavar="NAME", help="take function, role and queue from the outputs of this deployed template")
    add("--function", metavar="NAME", help="the drain function, by name or ARN; else LOWKIQ_DRAIN_FUNCTION")
    add("--role", metavar="ARN", help="the role as which EventBridge Scheduler invokes it")
    add("--expression", default="rate(1 minute)", metavar="TEXT", help="when they fire (default: %(default)s)")
    add("--dead-letters", metavar="ARN", help="an SQS queue for events that could not be delivered")
    add("--state", choices=("enabled", "disabled"), help="of all of them; else what is disabled stays so")
    where = parser.add_argument_group("where they are")
    add = where.add_argument
    add("--prefix", help=f"how their names begin (default: the stack's name, else {_PREFIX})")
    add("--group", metavar="NAME", help="their schedule group, made where it is missing (default: PREFIX-schedules)")
    add("--retarget", action="store_true", help="take over those that invoke another function")
    how = parser.add_argument_group("how it goes")
    add = how.add_argument
    add("--dry-run", action="store_true", help="print the plan, change nothing")
    add("--yes", action="store_true", help="do not ask")
    _add_guard(how, "do not ask Redis: nothing is deleted then, and nobody is warned")
    return parser


def _indexes_parser() -> argparse.ArgumentParser:
    parser = _parser(f"{PROGRAM} {INDEXES}", _INDEXES_DESCRIPTION, _INDEXES_EPILOGUE)
    parser.set_defaults(command=INDEXES)
    _add_app(parser)
    _add_guard(parser.add_argument_group("the drift guard"), "do not ask Redis: nobody is warned")
    return parser


def _parser(program: str, description: str, epilogue: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilogue,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", metavar="MODULE:APP", nargs="?", help="the app with the workers; else LOWKIQ_APP")


# argparse exports no name for the class of its groups.
def _add_guard(parser: "argparse._ArgumentGroup", unguarded: str) -> None:
    parser.add_argument("--unguarded", action="store_true", help=unguarded)
    parser.add_argument(
        "--ignore-queue",
        action="append",
        default=[],
        metavar="NAME",
        help="a queue that another app on the same Redis serves; may have * in it; may be repeated",
    )
