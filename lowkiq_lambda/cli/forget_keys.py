"""`lowkiq forget-keys`: jobs with these keys can be pushed again."""

from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.changing import Id, many
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, QueueName, app_of, queue_of
from lowkiq_lambda.cli.requesting import jobs_of
from lowkiq_lambda.operate.presentation.formatting import selected
from lowkiq_lambda.operate.presentation.queues import ForgottenKeys

_HELP: Final = """
Forget the keys of jobs of QUEUE, so that jobs with them can be pushed again: the keys of these ids, one --key of \
each, or --all of the queue. Jobs that wait or run stay.

The command names the jobs and asks; with --yes it does not ask. IDs that begin with a hyphen come after --.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  It is done.
  1  Nothing was changed: the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.

EXAMPLES
  An invoice that has to go out once more:
    lowkiq forget-keys SendInvoice order-7 --key invoice
  All keys of two ids:
    lowkiq forget-keys SendInvoice order-7 order-8
  All keys of a queue, in a script:
    lowkiq forget-keys SendInvoice --all --yes --reason "test data"
"""

command: Final = command_app(
    "forget-keys",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq forget-keys [OPTIONS] QUEUE (ID ... [--key KEY] | --all)",
)


@command.default
def forget_keys(
    queue: QueueName,
    /,
    *ids: Id,
    key: Annotated[str | None, Parameter(help="This key of each id; else all of them.")] = None,
    all_: Annotated[bool, flag("All keys of the queue, in place of ids.")] = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write queue and forgotten as JSON.")] = False,
) -> int:
    """Forget; the exit code."""
    if key == "":
        raise ConfigError("--key is empty: leave it out to forget all keys of these ids.")
    if bool(ids) == all_ or (all_ and key is not None):
        raise ConfigError("Give ids, with or without --key, or --all: one of the two.")
    named_queue = queue_of(app_of(act.app), queue)
    where = f"{named_queue.name} at {without_password(named_queue.app.core.connections.url)}"
    keys = "the keys" if key is None else f"the key {key!r}"
    question = f"Forget all keys of {where}?" if all_ else f"Forget {keys} of {jobs_of(named_queue, ids)}?"
    reason = act.reason_if_agreed(question, len(ids), json=json)
    if reason is None:
        return NOT_APPLIED
    from lowkiq_lambda.operate.acts.forgetting import ALL_KEYS, FORGET_KEYS, forget

    forgotten = forget(named_queue.operate.reader, ids, key or "")
    note(named_queue.app, named_queue.name, FORGET_KEYS, selected(ids) if ids else ALL_KEYS, forgotten, reason)
    if json:
        write_json(ForgottenKeys(queue=named_queue.name, forgotten=forgotten))
    else:
        say(f"{many(forgotten, 'key')} forgotten")
    return DONE
