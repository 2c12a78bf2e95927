"""What the command does: from the app and what is deployed to a plan, and from the plan to its end."""

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.deployed import Group, function_arn, stack_outputs
from lowkiq_lambda.aws.drain_schedules.guard import Stranded, find_stranded
from lowkiq_lambda.aws.drain_schedules.inventory import declarations_of, queues_in_redis
from lowkiq_lambda.aws.drain_schedules.plan import Plan, make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, indexes_of, wanted_schedule
from lowkiq_lambda.aws.drain_schedules.text import describe
from lowkiq_lambda.aws.environment import find_redis
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.config import Config
from lowkiq_lambda.errors import ConfigError, LowkiqError
from lowkiq_lambda.loading import load_app

DONE: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
NOT_APPLIED: Final = 3
"""Exit codes; the help tells them."""

_OF_THE_TEMPLATE: Final = re.compile(r"shard-[0-9]+")
_MOST_INDEXES: Final = 400
"""A CloudFormation template holds 500 resources, and there are others than schedules."""


def print_indexes(arguments: Namespace, environ: Mapping[str, str]) -> int:
    """The value for the template's ShardIndexes; the exit code. Raises LowkiqError."""
    app = _load(arguments, environ)
    stranded = _stranded(app, arguments) or ()
    for one in stranded:
        sys.stderr.write(f"REFUSED  {one.sentence}\n")
    if stranded:
        return FAILED
    indexes = _indexes(app)
    if len(indexes) > _MOST_INDEXES:
        sys.stderr.write(
            f"warning: a template holds at most 500 resources, and these are {len(indexes)} schedules: "
            "without 'indexes' this command makes them without a template.\n"
        )
    sys.stdout.write(",".join(map(str, indexes)) + "\n")
    return DONE


def follow(arguments: Namespace, environ: Mapping[str, str]) -> int:
    """Plan, ask, apply; the exit code. Raises LowkiqError."""
    app = _load(arguments, environ)
    outputs = stack_outputs(arguments.stack) if arguments.stack else {}
    wanted = _wanted(app, arguments, outputs)
    group = Group(arguments.group)
    plan = _plan(app, arguments, wanted, group)
    sys.stdout.write(f"{describe(plan)}\n")
    _note_doubles(outputs, arguments)
    if plan.refused:
        return FAILED
    if not plan.has_changes:
        return DONE
    if arguments.dry_run:
        return NOT_APPLIED
    if not arguments.yes:
        if not _agreed():
            sys.stdout.write("Nothing was changed.\n")
            return NOT_APPLIED
        # People take their time, and meanwhile others push and deploy.
        if plan != _plan(app, arguments, wanted, group):
            sys.stderr.write("Something has changed meanwhile, and the plan with it: run the command again.\n")
            return FAILED
    group.apply(plan, lambda what: sys.stdout.write(f"{what}\n"))
    return DONE


def _load(arguments: Namespace, environ: Mapping[str, str]) -> Lowkiq:
    spec = arguments.app or Config.from_env(environ).app
    if not spec:
        raise ConfigError("No app is named: give MODULE:APP, or set LOWKIQ_APP.")
    app = load_app(spec)
    if not app.workers:
        raise ConfigError(f"{spec} has no workers: name the module that declares them, or one that imports it.")
    if not arguments.unguarded:
        with _hint():
            find_redis(app, Settings.from_env(environ))
    return app


def _indexes(app: Lowkiq) -> range:
    return indexes_of(worker.shards_count for worker in app.workers)


def _wanted(app: Lowkiq, arguments: Namespace, outputs: Mapping[str, str]) -> list[Schedule]:
    function = arguments.function or _output(outputs, arguments.stack, "DrainFunctionArn", "--function")
    like = Schedule(
        name="",
        expression=arguments.expression,
        function=function_arn(function),
        role=arguments.role or _output(outputs, arguments.stack, "SchedulerRoleArn", "--role"),
        event="",
        dead_letters=arguments.dead_letters or outputs.get("FailureQueueArn"),
        enabled=arguments.state == "enabled" if arguments.state else None,
    )
    return [wanted_schedule(arguments.prefix, index, like) for index in _indexes(app)]


def _output(outputs: Mapping[str, str], stack: str, name: str, option: str) -> str:
    if name not in outputs:
        raise ConfigError(f"Stack {stack!r} has no output {name}: give {option}.")
    return outputs[name]


def _note_doubles(outputs: Mapping[str, str], arguments: Namespace) -> None:
    """Tell of schedules for shards that the stack has itself and that fire."""
    theirs = outputs.get("ScheduleGroupName")
    names = Group(theirs).enabled() if theirs and theirs != arguments.group else []
    doubles = sum(_OF_THE_TEMPLATE.fullmatch(name) is not None for name in names)
    if doubles:
        sys.stderr.write(
            f"note: stack {arguments.stack!r} has schedules of its own that fire: {doubles}. Two drains of a shard do "
            "no harm, and the second ends at once, but costs an invocation: deploy with ShardSchedules=false.\n"
        )


def _plan(app: Lowkiq, arguments: Namespace, wanted: list[Schedule], group: Group) -> Plan:
    # Redis is looked at last: what is pushed before the look is seen.
    found = group.read(arguments.prefix)
    return make_plan(arguments.prefix, wanted, found, _stranded(app, arguments), retarget=arguments.retarget)


def _stranded(app: Lowkiq, arguments: Namespace) -> list[Stranded] | None:
    """None where Redis is not to be asked."""
    if arguments.unguarded:
        return None
    with _hint():
        queues = queues_in_redis(app)
    return find_stranded(declarations_of(app), queues, arguments.ignore_queue)


@contextmanager
def _hint() -> Iterator[None]:
    """Errors in the block say how to go on without Redis."""
    try:
        yield
    except LowkiqError as error:
        raise type(error)(f"{error} The drift guard needs Redis; --unguarded goes without it.") from error


def _agreed() -> bool:
    sys.stdout.write("Carry it out? Only 'yes' will do: ")
    sys.stdout.flush()
    return sys.stdin.readline().strip() == "yes"
