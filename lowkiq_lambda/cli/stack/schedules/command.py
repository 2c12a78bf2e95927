"""The command line of `lowkiq stack schedules`, and the help that teaches it."""

import os
import sys
from functools import partial
from typing import Final

from lowkiq_lambda.cli.codes import AWAY, INTERRUPTED
from lowkiq_lambda.cli.output import agreed
from lowkiq_lambda.cli.parts import AppOption, command_app
from lowkiq_lambda.cli.stack.schedules.options import GuardOptions, PlanOptions, target_of

_PLAN: Final = PlanOptions()
_GUARD: Final = GuardOptions()

_HELP: Final = """
Bring the schedules of the drain function in line with the app's workers.

A schedule drains one shard index of every queue, so an app needs as many as its widest queue has shards. With \
--each queue it drains one of a single queue, so that no queue ends the drain of another. The command compares the \
workers with the deployed schedules, prints a plan, asks, and carries it out. It changes only schedules in its group \
whose name is PREFIX-shard-NUMBER or PREFIX-shards.QUEUE-NUMBER, and lists the others.

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
  or LOWKIQ_REDIS_SECRET_ARN, and LOWKIQ_REDIS_IAM.

EXIT CODES
  0  The schedules are as they should be, or have become so.
  1  The plan is refused, or AWS has refused a call; or the plan has changes
     that were not made: a dry run, or the answer was not yes.
  2  The command line, the settings or the app cannot work.
  3  AWS or Redis cannot be reached: run it again later.

EXAMPLES
  What a deploy would change, and whether it would strand anything:
    lowkiq stack schedules shop.jobs:app --stack shop --dry-run
  Carry it out, in a pipeline:
    lowkiq stack schedules shop.jobs:app --stack shop --yes
  A schedule for each shard of each queue, every five minutes:
    lowkiq stack schedules shop.jobs:app --stack shop --each queue \\
      --expression "rate(5 minutes)"
  Without a stack's outputs:
    lowkiq stack schedules shop.jobs:app --function shop-drain \\
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
    indexes=$(lowkiq stack schedules indexes shop.jobs:app) &&
      sam deploy --parameter-overrides "ShardIndexes=$indexes"
"""


command: Final = command_app(
    "schedules",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq stack schedules [indexes] [OPTIONS] [MODULE:APP]",
)
_indexes: Final = command_app(
    "indexes",
    help_=_INDEXES_HELP,
    epilogue=_INDEXES_EPILOGUE,
    usage="lowkiq stack schedules indexes [OPTIONS] [MODULE:APP]",
)
command.command(_indexes)


@command.default
def follow(
    app: AppOption = None,
    *,
    options: PlanOptions = _PLAN,
    guard: GuardOptions = _GUARD,
) -> int:
    """Plan, ask, apply; the exit code."""
    from lowkiq_lambda.aws.drain_schedules.deployed import AwsUnreachable
    from lowkiq_lambda.cli.stack.schedules import flow

    target = target_of(options)
    agree = partial(agreed, "Carry it out?")
    try:
        return flow.follow(flow.Deploy(app=app, target=target, options=options, guard=guard), os.environ, agree)
    except AwsUnreachable as error:
        sys.stderr.write(f"error: {error}\n")
        return AWAY
    except KeyboardInterrupt:
        sys.stderr.write("Broken off: run the command again, it goes on from here.\n")
        return INTERRUPTED


@_indexes.default
def print_indexes(app: AppOption = None, *, guard: GuardOptions = _GUARD) -> int:
    """Print the value for ShardIndexes; the exit code."""
    from lowkiq_lambda.cli.stack.schedules import flow

    return flow.print_indexes(app, guard, os.environ)
