"""`lowkiq undo`: takes back a change of jobs, for ten minutes."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import many, moment
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import NOTHING, agreed, say, write_json
from lowkiq_lambda.cli.parts import AppOption, Yes, command_app, flag
from lowkiq_lambda.cli.queues import NamedQueue, app_of, queue_of

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.acts.undoing import UndoableAction, Undone

command: Final = command_app(
    "undo",
    help_="""Take back a change of jobs: run-now, kill, unblock, delete, cancel and requeue, for ten minutes each.

Without ACTION it is the last change that can be undone, other than an undo, in any queue of the app. Jobs come \
back with their payloads, times, retry counts and errors. Jobs that have run or changed since \
stay as they are, and the command says how many. By its ACTION an undo can be undone, too.
""",
    epilogue="""EXIT CODES
  0    It is undone, or parts of it.
  1    Nothing was changed.
  2    The command line, the settings or the app cannot work; or there is no
       such change, or no terminal to ask at, and no --yes.
  3    Redis cannot be reached: the same command goes on.

EXAMPLES
  The last change:
    lowkiq undo
""",
    usage="lowkiq undo [OPTIONS] [ACTION]",
)


@command.default
def undo(
    action: Annotated[str | None, Parameter(name="ACTION", help="The id of the change, 16 hex digits.")] = None,
    /,
    *,
    app: AppOption = None,
    json: Annotated[bool, flag("Write the result as an object.")] = False,
    yes: Yes = False,
) -> int:
    """Undo; the exit code."""
    queue, one = _action_of(app_of(app), action)
    what = f"{one.act.replace('_', ' ')} of {many(one.ids, 'job')} in {queue.name}, {moment(one.at)}"
    if not yes and not agreed(f"Undo {one.id}: {what}?"):
        say(NOTHING)
        return NOT_APPLIED
    try:
        undone = queue.operate.undo(one.id)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    note(queue.app, queue.name, "undo", f"{one.act} {one.id}", undone.restored, action_id=undone.action_id)
    if json:
        write_json(undone)
    else:
        say(_told(undone))
    return DONE if undone.restored else NOT_APPLIED


def _action_of(app: "Lowkiq", action_id: str | None) -> "tuple[NamedQueue, UndoableAction]":
    from lowkiq_lambda.operate.acts.undoing import UNDOS, undoable_in_all

    by_queue = undoable_in_all(app.core)
    for name in {worker.queue_name for worker in app.workers} - {*by_queue}:
        # It was made with another declaration, which counts.
        by_queue[name] = queue_of(app, name).operate.undoable()
    listed = [(name, one) for name, actions in by_queue.items() for one in actions]
    # Twice the same command takes back two changes, rather than the first undo.
    listed = [(name, one) for name, one in listed if (one.id == action_id if action_id else one.act not in UNDOS)]
    if not listed:
        which = "No change can be" if action_id is None else f"Action {action_id} cannot be"
        raise ConfigError(f"{which} undone: it takes one of the last ten minutes that is not undone already.")
    name, last = max(listed, key=lambda pair: pair[1].at)
    return queue_of(app, name), last


def _told(undone: "Undone") -> str:
    skipped = "".join(f"; skipped {count:,}: {reason}" for reason, count in sorted(undone.skipped.items()))
    again = f"; undo that by: lowkiq undo {undone.action_id}" if undone.action_id else ""
    return f"undone: {many(undone.restored, 'job')}{skipped}{again}"
