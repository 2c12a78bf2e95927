"""What the command does: from the app and what is deployed to a plan, and from the plan to its end."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.drain_schedules.deployed import Group, function_arn, function_environment, stack_outputs
from lowkiq_lambda.aws.drain_schedules.guard import (
    Stranded,
    declarations_of,
    find_stranded,
    queues_in_redis,
    shards_counts,
)
from lowkiq_lambda.aws.drain_schedules.plan import Plan, describe, make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import Schedule, indexes_of, wanted_schedule
from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.parts import app_spec
from lowkiq_lambda.cli.stack.schedules.options import GuardOptions, PlanOptions, Target
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.loading import load_app

_OF_THE_TEMPLATE: Final = re.compile(r"shard-[0-9]+")
_MOST_INDEXES: Final = 400
"""A CloudFormation template holds 500 resources, and there are others than schedules."""


@dataclass(frozen=True, kw_only=True)
class Deploy:
    """What is to be done: the app as it is named, the target, and the options."""

    app: str | None
    target: Target
    options: PlanOptions
    guard: GuardOptions


def print_indexes(spec: str | None, guard: GuardOptions, environ: Mapping[str, str]) -> int:
    """The value for the template's ShardIndexes; the exit code. Raises LowkiqError."""
    app = _load(spec, guard, environ)
    stranded = _stranded(app, guard) or ()
    for queue in stranded:
        sys.stderr.write(f"REFUSED  {queue.sentence}\n")
    if stranded:
        return FAILED
    indexes = indexes_of(_counts(app, guard).values())
    if len(indexes) > _MOST_INDEXES:
        sys.stderr.write(
            f"warning: a template holds at most 500 resources, and these are {len(indexes)} schedules: "
            "without 'indexes' this command makes them without a template.\n"
        )
    sys.stdout.write(",".join(map(str, indexes)) + "\n")
    return DONE


def follow(deploy: Deploy, environ: Mapping[str, str], agree: Callable[[], bool]) -> int:
    """Plan, ask, apply; the exit code. Raises LowkiqError."""
    app = _load(deploy.app, deploy.guard, environ)
    stack = deploy.target.stack
    outputs = stack_outputs(stack) if stack else {}
    schedules = _wanted(app, deploy, outputs)
    group = Group(deploy.target.group)
    plan = _plan(app, deploy, schedules, group)
    sys.stdout.write(f"{describe(plan)}\n")
    _note_doubles(outputs, deploy.target)
    if plan.refused:
        return FAILED
    if not plan.has_changes:
        return DONE
    if deploy.options.dry_run:
        return NOT_APPLIED
    if not deploy.options.yes:
        if not agree():
            sys.stdout.write("Nothing was changed.\n")
            return NOT_APPLIED
        # People take their time, and meanwhile others push and deploy.
        if plan != _plan(app, deploy, schedules, group):
            sys.stderr.write("Something has changed meanwhile, and the plan with it: run the command again.\n")
            return FAILED
    group.apply(plan, lambda what: sys.stdout.write(f"{what}\n"))
    return DONE


def _load(app_name: str | None, guard: GuardOptions, environ: Mapping[str, str]) -> Lowkiq:
    spec = app_spec(app_name, environ)
    app = load_app(spec, Lowkiq)
    if not app.workers:
        raise ConfigError(f"{spec} has no workers: name the module that declares them, or one that imports it.")
    if not guard.unguarded:
        with _hint():
            from lowkiq_lambda.aws.environment import find_redis

            find_redis(app, Settings.from_env(environ))
    return app


def _counts(app: Lowkiq, guard: GuardOptions) -> dict[str, int]:
    """How many shard indexes each queue has, by its name."""
    counts = {worker.queue_name: count_of(worker) for worker in app.workers}
    with _hint():
        resharded = {} if guard.unguarded else shards_counts(app)
    return {name: max(count, resharded.get(name, 0)) for name, count in counts.items()}


def _wanted(app: Lowkiq, deploy: Deploy, outputs: Mapping[str, str]) -> list[Schedule]:
    target, options = deploy.target, deploy.options
    function = target.function or _output(outputs, target.stack, "DrainFunctionArn", "--function")
    arn = function_arn(function)
    like = Schedule(
        name="",
        expression=options.expression,
        function=arn,
        role=target.role or _output(outputs, target.stack, "SchedulerRoleArn", "--role"),
        event="",
        dead_letters=options.dead_letters or outputs.get("FailureQueueArn"),
        enabled=options.state == "enabled" if options.state else None,
    )
    counts = _counts(app, deploy.guard)
    queues = _own(counts, arn) if options.each == "queue" else {"": max(counts.values())}
    return [
        wanted_schedule(target.prefix, index, like, queue) for queue, count in queues.items() for index in range(count)
    ]


def _own(counts: Mapping[str, int], function: str) -> dict[str, int]:
    """Those of the queues that are the function's: it would drain any that an event names."""
    settings = Settings.from_env(function_environment(function))
    return {name: count for name, count in counts.items() if settings.drains(name)}


def _output(outputs: Mapping[str, str], stack: str | None, name: str, option: str) -> str:
    if name not in outputs:
        raise ConfigError(f"Stack {stack!r} has no output {name}: give {option}.")
    return outputs[name]


def _note_doubles(outputs: Mapping[str, str], target: Target) -> None:
    """Tell of schedules for shards that the stack has itself and that fire."""
    theirs = outputs.get("ScheduleGroupName")
    names = Group(theirs).enabled() if theirs and theirs != target.group else []
    doubles = sum(_OF_THE_TEMPLATE.fullmatch(name) is not None for name in names)
    if doubles:
        sys.stderr.write(
            f"note: stack {target.stack!r} has schedules of its own that fire: {doubles}. Two drains of a shard do "
            "no harm, and the second ends at once, but costs an invocation: deploy with ShardSchedules=none.\n"
        )


def _plan(app: Lowkiq, deploy: Deploy, schedules: list[Schedule], group: Group) -> Plan:
    # Redis is looked at last: what is pushed before the look is seen.
    prefix = deploy.target.prefix
    deployed = group.read(prefix)
    return make_plan(prefix, schedules, deployed, _stranded(app, deploy.guard), retarget=deploy.options.retarget)


def _stranded(app: Lowkiq, guard: GuardOptions) -> list[Stranded] | None:
    """None where Redis is not to be asked."""
    if guard.unguarded:
        return None
    with _hint():
        queues = queues_in_redis(app)
    return find_stranded(declarations_of(app), queues, guard.ignore_queue)


@contextmanager
def _hint() -> Iterator[None]:
    """Errors in the block say how to go on without Redis."""
    try:
        yield
    except LowkiqError as error:
        raise type(error)(f"{error} The drift guard needs Redis; --unguarded goes without it.") from error
