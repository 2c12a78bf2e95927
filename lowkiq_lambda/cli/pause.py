"""`lowkiq pause`, `lowkiq resume`, `lowkiq forget-timing`: whether jobs of a queue may begin."""

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import say, when, write_json
from lowkiq_lambda.cli.parts import LONGEST_LENGTH, command_app, flag, length_of, number
from lowkiq_lambda.cli.queues import ACT, ActOptions, NamedQueue, QueueName, app_of, queue_of
from lowkiq_lambda.cli.requesting import pause_one, resume_one
from lowkiq_lambda.operate.presentation.formatting import duration, visible
from lowkiq_lambda.operate.presentation.queues import ForgottenTiming, Paused

Tenant: TypeAlias = Annotated[str | None, Parameter(help="This tenant alone, if the worker declares tenants.")]
Json: TypeAlias = Annotated[
    bool, flag("Write paused and until (Unix seconds; null: no end) as JSON; with --id what became of it.")
]
JobId: TypeAlias = Annotated[str | None, Parameter(name="--id", help="This job alone, in whatever state it is.")]

_PAUSE_HELP: Final = """
Pause QUEUE for --seconds, or until it is resumed: no job of it begins. Pushes go on, and jobs that run come to their \
end.

The command names the queue and asks; with --yes it does not ask. A second pause replaces the first.
"""
_RESUME_HELP: Final = """
End the pause of QUEUE: its jobs may begin again, the longest due first.

The command names the queue and asks; with --yes it does not ask.
"""
_FORGET_HELP: Final = """
Let the next drains of QUEUE forget how long batches took until now.

They predict by that whether a further batch fits: one that was far slower than usual leaves some of their time unused \
for minutes, which lowkiq doctor shows as "unused time". The command names the queue and asks; with --yes it does not \
ask.
"""
_CODES: Final = """
EXIT CODES
  0  It is done.
  1  Nothing was changed: the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.
"""

pause: Final = command_app(
    "pause",
    help_=_PAUSE_HELP,
    epilogue=f"{_CODES}\nEXAMPLES\n  For ten minutes, in a script:\n    lowkiq pause SyncOrder --seconds 600 --yes\n",
    usage="lowkiq pause [OPTIONS] QUEUE",
)
resume: Final = command_app(
    "resume",
    help_=_RESUME_HELP,
    epilogue=f"{_CODES}\nEXAMPLE\n    lowkiq resume SyncOrder\n",
    usage="lowkiq resume [OPTIONS] QUEUE",
)


forget_timing: Final = command_app(
    "forget-timing",
    help_=_FORGET_HELP,
    epilogue=f"{_CODES}\nEXAMPLE\n    lowkiq forget-timing SyncOrder\n",
    usage="lowkiq forget-timing [OPTIONS] QUEUE",
)


@pause.default
def pause_queue(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    /,
    *,
    seconds: Annotated[
        float | None,
        Parameter(
            converter=number(0, LONGEST_LENGTH, is_least_allowed=False),
            help="Seconds of the pause; else until it is resumed.",
        ),
    ] = None,
    for_: Annotated[str | None, Parameter(name="--for", help="The same with a unit: 90s, 30m, 2h or 1d.")] = None,
    id_: JobId = None,
    tenant: Tenant = None,
    act: ActOptions = ACT,
    json: Json = False,
) -> int:
    """Pause; the exit code."""
    named_queue = queue_of(app_of(act.app), queue)
    seconds = _length(seconds, for_)
    if id_ is not None:
        return _of_one(tenant, lambda: pause_one(named_queue, id_, seconds, act, json=json))
    until = "until it is resumed" if seconds is None else f"for {duration(seconds)}"
    if not act.is_agreed(f"Pause {_named(named_queue, tenant)}, {until}?", json=json):
        return NOT_APPLIED
    try:
        end = named_queue.operate.pause(seconds, tenant=tenant)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    note(named_queue.app, named_queue.name, "pause", f"{_target(tenant)}, {until}", len(named_queue.shards), act.reason)
    if json:
        write_json(Paused(paused=True, until=None if seconds is None else end))
    else:
        say(f"paused {until}" if seconds is None else f"paused {until}, to {when(end)}")
    return DONE


@resume.default
def resume_queue(
    queue: QueueName,
    /,
    *,
    id_: JobId = None,
    tenant: Tenant = None,
    act: ActOptions = ACT,
    json: Json = False,
) -> int:
    """Resume; the exit code."""
    named_queue = queue_of(app_of(act.app), queue)
    if id_ is not None:
        return _of_one(tenant, lambda: resume_one(named_queue, id_, act, json=json))
    if not act.is_agreed(f"Resume {_named(named_queue, tenant)}?", json=json):
        return NOT_APPLIED
    try:
        named_queue.operate.resume(tenant=tenant)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    note(named_queue.app, named_queue.name, "resume", _target(tenant), len(named_queue.shards), act.reason)
    if json:
        write_json(Paused(paused=False, until=None))
    else:
        say("resumed")
    return DONE


@forget_timing.default
def forget_timing_of(
    queue: QueueName,
    /,
    *,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write the queue as JSON.")] = False,
) -> int:
    """Forget; the exit code."""
    named_queue = queue_of(app_of(act.app), queue)
    if not act.is_agreed(f"Forget how long batches took in {_named(named_queue, None)}?", json=json):
        return NOT_APPLIED
    named_queue.operate.forget_timing()
    note(named_queue.app, named_queue.name, "forget timing", _target(None), len(named_queue.shards), act.reason)
    if json:
        write_json(ForgottenTiming(queue=named_queue.name))
    else:
        say("the next drains learn anew how long batches take")
    return DONE


def _length(seconds: float | None, text: str | None) -> float | None:
    if text is None:
        return seconds
    length = length_of(text)
    if seconds is not None or length is None:
        raise ConfigError("Give --seconds, or --for with a whole number and its unit, such as 90s, 30m, 2h or 1d.")
    return length


def _of_one(tenant: str | None, act: Callable[[], int]) -> int:
    if tenant is not None:
        raise ConfigError("Give --id, or --tenant: one of the two.")
    return act()


def _named(queue: NamedQueue, tenant: str | None) -> str:
    whole = f"all {len(queue.shards)} shards of {queue.name}"
    what = whole if tenant is None else f"tenant {visible(tenant)} of {queue.name}"
    return f"{what} at {without_password(queue.app.core.connections.url)}"


def _target(tenant: str | None) -> str:
    return "all shards" if tenant is None else f"tenant {tenant!r}"
