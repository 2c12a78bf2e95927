"""`lowkiq schedules put`: an entry that is made at run time."""

from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError, DeclarationError
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import ACT, ActOptions, QueueName, app_of, worker_of
from lowkiq_lambda.cli.schedules.live import Name
from lowkiq_lambda.operate.presentation.formatting import utc, visible
from lowkiq_lambda.operate.presentation.moments import moment_of, seconds_of

_HELP: Final = """
Make a schedule entry of QUEUE at run time, or replace the one of that name that was made at run time before. One of \
--cron, --every and --at says when it fires.

Entries of code cannot be replaced. An entry that is off stays off. The command names the entry and asks; with --yes \
it does not ask.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  It is made.
  1  Nothing was changed: the answer was not yes.
  2  The entry cannot work; or the command line, the settings or the app cannot;
     or there is no terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.

EXAMPLES
  Each night at three in Berlin:
    lowkiq schedules put SyncOrder nightly --id all --cron "0 3 * * *" \\
      --tz Europe/Berlin
  Every ten minutes, with a payload:
    lowkiq schedules put SyncOrder poll --id erp --every 10m \\
      --payload '{"full": false}'
  Once, in a script:
    lowkiq schedules put SyncOrder once --id 17 --at 2026-12-31T23:00:00Z --yes
"""

command: Final = command_app(
    "put",
    help_=_HELP,
    epilogue=_EPILOGUE,
    usage="lowkiq schedules put [OPTIONS] QUEUE NAME --id ID (--cron EXPRESSION | --every LENGTH | --at MOMENT)",
)


@command.default
def put(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    name: Name,
    /,
    *,
    id_: Annotated[str, Parameter(name="--id", help="The id of the job.")],
    cron: Annotated[str | None, Parameter(help="Five fields, or six with seconds first, in the zone of --tz.")] = None,
    every: Annotated[str | None, Parameter(help="A length of time, such as 10m, 2h or 90.")] = None,
    offset: Annotated[str | None, Parameter(help="How long after the full --every.")] = None,
    at: Annotated[
        str | None, Parameter(help='One moment, such as "in 2h", 2026-12-31T23:00 (UTC) or Unix seconds.')
    ] = None,
    tz: Annotated[str | None, Parameter(help="The name of a time zone, such as Europe/Berlin; else UTC.")] = None,
    payload: Annotated[str | None, Parameter(help="The payload, as JSON.")] = None,
    jitter: Annotated[str | None, Parameter(help="Fire up to so long after a planned time.")] = None,
    off: Annotated[bool, flag("It does not fire until somebody switches it on.")] = False,
    description: Annotated[str | None, Parameter(help="A word for people.")] = None,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write the entry as GET /api/v1/schedules does; times are Unix seconds.")] = False,
) -> int:
    """Put it; the exit code."""
    from lowkiq_lambda.operate.presentation.schedules import EntryResponse, entry_fields

    options = _options(every=every, offset=offset, at=at, payload=payload, jitter=jitter)
    plain = {"cron": cron, "tz": tz, "description": description}
    options |= {field: text for field, text in plain.items() if text is not None}
    loaded = app_of(act.app)
    worker = worker_of(loaded, queue)
    if off:
        options["enabled"] = False
    times = ", ".join(f"{field} {options[field]}" for field in ("cron", "every", "at", "tz") if field in options)
    url = without_password(loaded.core.connections.url)
    question = f"Put schedule entry {name!r} ({times}) for the id {id_!r} of {worker.queue_name} at {url}?"
    if not act.is_agreed(visible(question), json=json):
        return NOT_APPLIED
    try:
        loaded.schedules.put(name, worker, id=id_, **options)
    except DeclarationError as error:
        raise ConfigError(str(error)) from error
    note(loaded, worker.queue_name, "put", f"schedule entry {name!r}, {times}", 1, act.reason)
    view = next(view for view in loaded.schedules.all(worker) if view.name == name)
    if json:
        write_json(EntryResponse(**entry_fields(loaded.schedules, view)))
    else:
        following = "it is off" if view.next is None else f"it fires next at {utc(view.next)}"
        say(visible(f"put schedule entry {name!r}: {following}"))
    return DONE


def _options(**texts: str | None) -> dict[str, Any]:
    """The arguments of `Schedules.put`. Raises ConfigError for a text that cannot be read as such."""
    options: dict[str, Any] = {}
    for field, text in texts.items():
        if text is None:
            continue
        try:
            options[field] = _value(field, text)
        except (ValueError, msgspec.DecodeError) as error:
            raise ConfigError(f"--{field} {text} is refused: {str(error).removesuffix('.')}.") from error
    return options


def _value(field: str, text: str) -> object:
    if field == "payload":
        return msgspec.json.decode(text)
    return moment_of(text, SystemClock.time(), ahead=True) if field == "at" else seconds_of(text)
