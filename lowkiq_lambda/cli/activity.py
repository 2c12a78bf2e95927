"""`lowkiq activity`: the changes that people have made, from where, and why."""

from collections.abc import Iterator
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import remark, say, when, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, whole_number
from lowkiq_lambda.cli.queues import OneQueue, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.views.activity import KEPT, ActivityEntry, ActivityView

_HELP: Final = f"""
Print what people have changed on QUEUE, or on all queues, by the dashboard, its API and the command line: when, who, \
from which address and session, what, on how many jobs, and why; the newest first.

Of each queue the last {KEPT} actions are kept. The activity log of the dashboard has all, and sign-ins too.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The actions are printed, be there none.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  Who has touched a queue since midnight:
    lowkiq activity SyncOrder --since "00:00 today"
  What a person has deleted, for a program:
    lowkiq activity --json | jq '.activity[]
      | select(.who == "ann (lowkiq)" and .action == "delete")'
"""

command: Final = command_app("activity", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq activity [OPTIONS] [QUEUE]")


@command.default
def activity(
    queue: OneQueue = None,
    /,
    *,
    since: Annotated[str | None, Parameter(help='A moment, such as "2h ago": what was done then or later.')] = None,
    limit: Annotated[int, Parameter(help="The largest number of actions.", converter=whole_number(1, 1_000))] = 100,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/activity does; times are Unix seconds.")] = False,
) -> int:
    """Print them; the exit code."""
    from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE, read_activity

    try:
        begin = None if since is None else moment_of(since, SystemClock.time())
    except ValueError as error:
        raise ConfigError(f"{str(error).removesuffix('.')}.") from None
    loaded = app_of(app)
    names = [*(worker.queue_name for worker in loaded.workers), OF_NO_QUEUE]
    if queue is not None:
        names = [queue_of(loaded, queue).name]
    past = read_activity(loaded.core.backend, loaded.config.redis_retry_for, names, limit)
    view = ActivityView(activity=[action for action in past if begin is None or action.at >= begin])
    if json:
        write_json(view)
        return DONE
    for action in view.activity:
        say(*map(visible, _lines(action)))
    number = len(view.activity)
    remark(f"{number:,} action{'s' if number != 1 else ''}")
    return DONE


def _lines(action: ActivityEntry) -> Iterator[str]:
    done = action.action.replace("_", " ")
    on = [action.queue] if action.queue else []
    state = [] if action.state == "done" else [action.state]
    yield "  ".join([when(action.at), action.who, done, *on, action.target, f"{action.changed:,} changed", *state])
    place = [action.address, *([f"session {action.session}"] if action.session else [])]
    if action.address:
        yield f"    from {', '.join(place)}"
    if action.reason:
        yield f"    why: {action.reason}"
