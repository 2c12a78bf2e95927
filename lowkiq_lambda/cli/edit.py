"""`lowkiq edit`: another payload takes the place of one that waits or is dead."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError, JobError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note, person
from lowkiq_lambda.cli.output import NOTHING, agreed, remark, say, write_json
from lowkiq_lambda.cli.parts import AppOption, Yes, command_app, flag
from lowkiq_lambda.cli.queues import QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.presentation.masking import MaskFailed, Masking
from lowkiq_lambda.operate.presentation.payload_json import payload_json

if TYPE_CHECKING:
    from lowkiq_lambda.operate.acts.editing import StoredPayload

_SHOWN: Final = 200
command: Final = command_app(
    "edit",
    help_="""Put another payload in the place of one of ID that waits in QUEUE or lies in its morgue.

Without ARRIVAL it prints the payloads of ID, as the app's mask shows them, with their arrival numbers. Place, score, \
time and retry count stay. An equal payload that waits becomes one with it. A job that runs does not \
change. For ten minutes `lowkiq undo` takes the edit back.
""",
    epilogue="""EXIT CODES
  0    It is edited, or the payloads are printed.
  1    Nothing was changed: the payload has changed or runs, the app's mask
       hides parts of it, or the answer was not yes.
  2    The command line, the payload, the settings or the app cannot work; or
       there is no terminal to ask at, and no --yes.
  3    Redis cannot be reached.

EXAMPLES
  Which payloads the id has, and another one in place of the first:
    lowkiq edit SyncOrder 17
    lowkiq edit SyncOrder 17 4711 --payload '{"status": "paid"}' \\
      --reason "ticket 12: the webhook sent a wrong status"
""",
    usage="lowkiq edit [OPTIONS] QUEUE ID [ARRIVAL]",
)


@command.default
def edit(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    job_id: Annotated[str, Parameter(name="ID", help="The id of the job.")],
    arrival: Annotated[int | None, Parameter(name="ARRIVAL", help="The arrival number of the payload.")] = None,
    /,
    *,
    payload: Annotated[str | None, Parameter(help="The payload, as JSON.")] = None,
    reason: Annotated[
        str, Parameter(help="Why, for the activity, which an edit needs: 1 to 200 characters.", show_default=False)
    ] = "",
    keep_cursor: Annotated[bool, flag("Let a started job go on at its cursor.")] = False,
    app: AppOption = None,
    json: Annotated[bool, flag("Write the result, or the payloads, as JSON.")] = False,
    yes: Yes = False,
) -> int:
    """Edit; the exit code."""
    from lowkiq_lambda.operate.acts.editing import EditRefused

    target = queue_of(app_of(app), queue)
    there, masking = target.operate.payloads(job_id), Masking(target.app.config.mask, target.name)
    if arrival is None:
        if payload is not None:
            raise ConfigError(f"--payload needs ARRIVAL: lowkiq edit {target.name} ID prints the payloads with theirs.")
        if json:
            write_json({"payloads": [_fields(masking, job_id, one) for one in there]})
        else:
            say(*(_line(masking, job_id, one) for one in there))
        return DONE
    value = _decoded(payload)
    old = next((one for one in there if one.arrival == arrival), None)
    if old is None or not masking.shows(job_id, old.payload):
        gone = f"{visible(job_id)} has no payload {arrival} that waits or is dead: look again"
        remark(gone if old is None else "the app's mask hides parts of this payload: what is not seen cannot be edited")
        return FAILED
    if not yes and not agreed(f"Replace in {target.name} {_line(masking, job_id, old)}"):
        say(NOTHING)
        return NOT_APPLIED
    try:
        edited = target.operate.edit(
            job_id, arrival, value, reason=reason, keep_cursor=keep_cursor, digest=old.digest, by=person()
        )
    except EditRefused as error:
        remark(str(error))
        return FAILED
    except (JobError, ValueError) as error:
        raise ConfigError(str(error)) from error
    subject = f"payload {arrival} of {visible(job_id)}"
    note(target.app, target.name, "edit", subject, 1, reason.strip(), action_id=edited.action_id)
    if json:
        write_json(edited)
        return DONE
    merged = ", one with an equal payload" if edited.merged else ""
    again = f"; for ten minutes it can be undone: lowkiq undo {edited.action_id}" if edited.action_id else ""
    say(f"edited payload {arrival}, which is {edited.place}{merged}{again}")
    return DONE


def _decoded(payload: str | None) -> object:
    if payload is None:
        raise ConfigError("Give --payload, as JSON.")
    try:
        return msgspec.json.decode(payload.encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(f"--payload is not JSON: {error}.") from error


def _fields(masking: Masking, job_id: str, one: "StoredPayload") -> dict[str, object]:
    """As GET /api/v1/job/payloads writes them: null where the mask hides a part."""
    value = msgspec.Raw(payload_json(one.payload)) if masking.shows(job_id, one.payload) else None
    return {**msgspec.structs.asdict(one), "payload": value}


def _line(masking: Masking, job_id: str, one: "StoredPayload") -> str:
    try:
        text = visible(payload_json(masking.of(job_id, one.payload)).decode())
    except MaskFailed:
        text = "(not shown, as the app's mask failed)"
    return f"{one.arrival} {one.place}, score {one.score:.17g}: {text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}"
