"""What may be said on the command line of `lowkiq stack schedules`."""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Group, Parameter

from lowkiq_lambda.aws.drain_schedules.schedule import (
    EACH_QUEUE_PREFIX_LENGTH,
    NAME_LENGTH,
    PREFIX_LENGTH,
    is_expression,
)
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.parts import flag

_PREFIX: Final = "lowkiq"
_NAME: Final = re.compile(r"[0-9a-zA-Z\-_.]+")
_TARGET: Final = Group("What the schedules do", sort_key=1)
_PLACE: Final = Group("Their names", sort_key=2)
_GUARD: Final = Group("The drift guard", sort_key=3)


@Parameter(name="*", group=_GUARD)
@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """What the drift guard asks Redis."""

    unguarded: Annotated[
        bool, flag("Skip the drift guard: Redis is not asked, and a plan deletes no schedule.", _GUARD)
    ] = False
    ignore_queue: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            help="A queue that another app on the same Redis serves; may have * in it; may be repeated.",
            show_default=False,
        ),
    ] = ()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is to be deployed, where, and how."""

    stack: Annotated[
        str | None,
        Parameter(group=_TARGET, help="Take function, role and queue from the outputs of this deployed template."),
    ] = None
    function: Annotated[str | None, Parameter(group=_TARGET, help="The drain function, by name or ARN.")] = None
    role: Annotated[
        str | None, Parameter(group=_TARGET, help="The ARN of the role as which EventBridge Scheduler invokes it.")
    ] = None
    each: Annotated[
        Literal["index", "queue"],
        Parameter(
            group=_TARGET, help="One for each shard index of all queues, or one for each shard index of each queue."
        ),
    ] = "index"
    expression: Annotated[
        str, Parameter(group=_TARGET, help="Their schedule expression: rate(...), or cron(...) with six fields.")
    ] = "rate(1 minute)"
    dead_letters: Annotated[
        str | None,
        Parameter(group=_TARGET, help="The ARN of an SQS queue for events that could not be delivered."),
    ] = None
    state: Annotated[
        Literal["enabled", "disabled"] | None,
        Parameter(group=_TARGET, help="Enable or disable all; else disabled ones stay disabled."),
    ] = None
    prefix: Annotated[
        str | None,
        Parameter(group=_PLACE, help=f"The prefix of their names: the stack's name, else {_PREFIX}."),
    ] = None
    group: Annotated[
        str | None,
        Parameter(group=_PLACE, help="Their schedule group, made if it is missing: PREFIX-schedules."),
    ] = None
    retarget: Annotated[bool, flag("Take over those that invoke another function.", _PLACE)] = False
    dry_run: Annotated[bool, flag("Print the plan and change nothing.")] = False
    yes: Annotated[bool, flag("Do not ask.")] = False


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the options mean: the names are checked, and what was not said is filled in."""

    stack: str | None
    function: str | None
    role: str | None
    prefix: str
    group: str


def target_of(options: PlanOptions) -> Target:
    """The target of the options. Raises ConfigError where it is not complete, or a name cannot be one."""
    if not options.stack and not (options.function and options.role):
        raise ConfigError("Name what the schedules invoke, and as whom: --stack, or --function and --role.")
    prefix = options.prefix or options.stack or _PREFIX
    group = options.group or f"{prefix}-schedules"
    longest = EACH_QUEUE_PREFIX_LENGTH if options.each == "queue" else PREFIX_LENGTH
    for option, name, most in (("prefix", prefix, longest), ("group", group, NAME_LENGTH)):
        if not (_NAME.fullmatch(name) and len(name) <= most):
            raise ConfigError(f"--{option} {name!r} is refused: at most {most} letters, digits and -_. are allowed.")
    if not is_expression(options.expression):
        raise ConfigError(
            f"--expression {options.expression!r} is refused: EventBridge Scheduler takes rate(1 minute), "
            "rate(5 minutes), or cron(0/5 * * * ? *), which has six fields and one ? in place of a day."
        )
    return Target(stack=options.stack, function=options.function, role=options.role, prefix=prefix, group=group)
