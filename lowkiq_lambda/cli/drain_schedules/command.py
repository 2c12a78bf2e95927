"""The command line of `lowkiq drain-schedules`, and the help that teaches it."""

import os
import sys
from functools import partial
from typing import Final

from cyclopts import App

from lowkiq_lambda.cli.asking import agreed
from lowkiq_lambda.cli.codes import INTERRUPTED
from lowkiq_lambda.cli.drain_schedules import flow
from lowkiq_lambda.cli.drain_schedules.options import AppName, GuardOptions, PlanOptions, target_of
from lowkiq_lambda.cli.parts import command_app

_PLAN: Final = PlanOptions()
_GUARD: Final = GuardOptions()

_HELP: Final = """
Bring the schedules of the drain function in line with the app's workers.

A schedule drains one shard index of every queue, so an app needs as many as its widest queue has shards. The command \
compares the workers with the deployed schedules, prints a plan, asks, and carries it out. It changes only schedules \
in its group whose name is PREFIX-shard-NUMBER, and lists the others.

Before that the drift guard looks into Redis: if the code no longer serves a queue that holds jobs, or declares a \
queue in another way than the stored declaration, the plan is refused with a sentence that says what to do, and \
nothing is changed.

With the word 'indexes' in front the command prints the value for the parameter ShardIndexes of template.yaml \
instead: see 'indexes --help'.
"""
_EPILOGUE: Final = """
SETTINGS
  Account, region and rights come from AWS's own settings (AWS_PROFILE,
  AWS_REGION ...). Redis is found as the functions find it: LOWKIQ_REDIS_URL,
  or LOWKIQ_REDIS_SECRET_ARN, and LOWKIQ_REDIS_IAM_USER with the rest.

EXIT CODES
  0  The schedules are as they should be, or have become so.
  1  The plan is refused, or a call of AWS or Redis failed: run it again.
  2  The command line, the settings or the app cannot work.
  3  The plan has changes that were not made: a dry run, or the answer was not yes.

EXAMPLES
  What a deploy would change, and whether it would strand anything:
    lowkiq drain-schedules shop.jobs:app --stack shop --dry-run
  Carry it out, in a pipeline:
    lowkiq drain-schedules shop.jobs:app --stack shop --yes
  Without a stack's outputs:
    lowkiq drain-schedules shop.jobs:app --function shop-drain \\
      --role arn:aws:iam::123456789012:role/shop-schedules
"""
_INDEXES_HELP: Final = """
Print the value for the parameter ShardIndexes of template.yaml: the shard indexes that the app's workers have.

The drift guard looks into Redis first. If it finds jobs that the deploy would strand, it says so on the error \
output, nothing is printed, and the exit code is 1. AWS is not asked.
"""
_INDEXES_EPILOGUE: Final = """
EXAMPLE
  In two steps, so that a refusal ends the deploy before it begins:
    indexes=$(lowkiq drain-schedules indexes shop.jobs:app) &&
      sam deploy --parameter-overrides "ShardIndexes=$indexes"
"""


def follow(
    app: AppName = None,
    /,
    *,
    options: PlanOptions = _PLAN,
    guard: GuardOptions = _GUARD,
) -> int:
    """Plan, ask, apply; the exit code."""
    target = target_of(options, os.environ)
    agree = partial(agreed, "Carry it out?")
    try:
        return flow.follow(flow.Deploy(app=app, target=target, options=options, guard=guard), os.environ, agree)
    except KeyboardInterrupt:
        sys.stderr.write("Broken off: run the command again, it goes on from here.\n")
        return INTERRUPTED


def print_indexes(app: AppName = None, /, *, guard: GuardOptions = _GUARD) -> int:
    """Print the value for ShardIndexes; the exit code."""
    return flow.print_indexes(app, guard, os.environ)


def build(program: str) -> App:
    """The command line of a program that runs this command."""
    return _app(program, program)


def _app(name: str, program: str) -> App:
    app = command_app(name, help_=_HELP, epilogue=_EPILOGUE, usage=f"{program} [indexes] [OPTIONS] [MODULE:APP]")
    app.default(follow)
    indexes = command_app(
        "indexes", help_=_INDEXES_HELP, epilogue=_INDEXES_EPILOGUE, usage=f"{program} indexes [OPTIONS] [MODULE:APP]"
    )
    indexes.default(print_indexes)
    app.command(indexes)
    return app


command: Final = _app("drain-schedules", "lowkiq drain-schedules")
