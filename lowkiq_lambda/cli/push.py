"""`lowkiq push`: a job of the command line, or the jobs of a file."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from cyclopts import Parameter, Token

from lowkiq_lambda.base.errors import ConfigError, JobError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import say, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, finite_number, flag, number, whole_number
from lowkiq_lambda.cli.queues import QueueName, app_of, worker_of
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.operate.presentation.formatting import duration, visible

_HELP: Final = """
Push a job to QUEUE: its ID, and its payload as JSON, else an empty text. Or push all jobs of a file.

The options set the rest of the job, such as its score and its time. An ID or a payload that begins with a hyphen \
comes after --.
"""
_EPILOGUE: Final = """
FILES
  A line of the file is a job as JSON, as push_many takes it:
    {"id": 17, "payload": {"state": "paid"}, "score": 3}
  Lines are pushed in their order, a thousand in a call; empty ones are left
  out. If a line is wrong, the lines before it are pushed, and the error names
  the --from with which the file goes on. So does the error after Ctrl-C, or
  after an outage of Redis.

EXIT CODES
  0    The jobs are written.
  1    They are not, or not all: the queue was made with another declaration,
       Redis is full, or the ID has work and on_conflict is "raise".
  2    The command line, a job, the settings or the app cannot work.
  3    Redis cannot be reached.
  130  Ctrl-C: the last line says how to go on.

EXAMPLES
  A job, due in a minute:
    lowkiq push SyncOrder 17 '{"state": "paid"}' --delay 60
  An id and a payload that begin with a hyphen:
    lowkiq push SyncOrder -- -17 -1
  What another program writes:
    export-orders | lowkiq push SyncOrder --file -
  The rest of a file, after its line 1200 was corrected:
    lowkiq push SyncOrder --file jobs.jsonl --from 1200
"""
_LATEST: Final = 2.0**53
DROPPED_WORDS: Final = {
    "waiting": "the id waits",
    "running": "the id runs",
    "cursor": "what waits has a cursor",
    "too many": "more than 1,000 payloads wait",
}


def _score(_: Any, tokens: list[Token]) -> float:  # noqa: ANN401 - the type of the parameter, as cyclopts has it
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return finite_number(text)
    except ValueError:
        raise ValueError("give a number") from None


command: Final = command_app(
    "push", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq push [OPTIONS] QUEUE (ID [JSON] | --file FILE)"
)


@command.default
def push(  # noqa: PLR0913 - the options of a command line
    queue: QueueName,
    job_id: Annotated[str | None, Parameter(name="ID", help="The id of the job.")] = None,
    payload: Annotated[
        str | None, Parameter(name="JSON", help="The payload as JSON, or @ and the name of a file that has it.")
    ] = None,
    /,
    *,
    file: Annotated[
        str | None,
        Parameter(help="A file with a job in each line, or - for the standard input.", allow_leading_hyphen=True),
    ] = None,
    from_: Annotated[
        int, Parameter(name="--from", converter=whole_number(1, 2**53), help="The first line of the file to push.")
    ] = 1,
    score: Annotated[
        float | None, Parameter(converter=_score, help="The place of the payload in the order of its id.")
    ] = None,
    delay: Annotated[
        float | None, Parameter(converter=number(0, _LATEST), help="Seconds until the job is due.")
    ] = None,
    due_at: Annotated[
        float | None, Parameter(converter=number(0, _LATEST), help="When the job is due, in Unix seconds.")
    ] = None,
    key: Annotated[
        str | None, Parameter(help="The key of the job: a second job of its id with this key is not pushed.")
    ] = None,
    key_ttl: Annotated[
        float | None, Parameter(converter=number(0, _LATEST), help="Seconds for which the key is remembered.")
    ] = None,
    expires_in: Annotated[
        float | None,
        Parameter(converter=number(0, _LATEST), help="Seconds from when the job is due to when it is no longer run."),
    ] = None,
    unless: Annotated[
        Literal["waiting", "busy"] | None, Parameter(help="Push only if the id does not wait, or does not wait or run.")
    ] = None,
    on_conflict: Annotated[
        Literal["drop", "raise", "replace"] | None,
        Parameter(
            help="If it does: drop the job, drop it and exit with 1, or replace what waits. Else as the worker has it."
        ),
    ] = None,
    header: Annotated[
        list[str] | None, Parameter(help="A header of the job, as NAME=VALUE; may be given again.", negative="")
    ] = None,
    app: AppOption = None,
    json: Annotated[bool, flag("Write what became of the job, or of the file, as JSON.")] = False,
) -> int:
    """Push; the exit code."""
    from lowkiq_lambda.cli.push_file import push_file
    from lowkiq_lambda.push.pushes import raise_conflicts

    fields: dict[str, Any] = {"score": score, "delay": delay, "due_at": due_at, "key": key, "key_ttl": key_ttl}
    fields |= {"expires_in": expires_in, "unless": unless, "on_conflict": on_conflict}
    fields = {name: value for name, value in fields.items() if value is not None}
    if header:
        fields["headers"] = _headers(header)
    if file is not None:
        if job_id is not None or fields:
            raise ConfigError(
                "--file has ids, payloads and all else in its lines: leave ID, JSON and their options out."
            )
        return push_file(app_of(app), queue, file, from_, json=json)
    if job_id is None:
        raise ConfigError("Give the ID of a job, or --file.")
    job = {"id": job_id, **fields}
    if payload is not None:
        job["payload"] = _payload(payload)
    loaded = app_of(app)
    worker = worker_of(loaded, queue)
    try:
        (pushed,) = loaded.core.pushes.push_or_raise(worker, [job])
        raise_conflicts(worker, [job], [pushed])
    except JobError as error:
        # Without a position: there is one job.
        raise JobError(error.reason, field=error.field) from error
    if json:
        write_json(pushed)
    else:
        say(_line(pushed, loaded.core.backend.clock.time()))
    return DONE


def _payload(text: str) -> object:
    if text == "@":
        raise ConfigError("The payload is @ without the name of a file: write @FILE.")
    try:
        return msgspec.json.decode(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError(f"The payload cannot be read from {text[1:]}: {error.strerror}.") from error
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ConfigError(
            f"The payload is not JSON: {str(error).rstrip('.')}. A text stands in double quotes, '\"paid\"'."
        ) from error


def _headers(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for word, (name, sign, _) in zip(words, pairs, strict=True):
        if not (name and sign):
            raise ConfigError(f"--header {word} is refused: write NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _line(pushed: Pushed, now: float) -> str:
    due = pushed.due_at - now
    when = f"due in {duration(due)}" if due > 1 else "due now"
    if pushed.repeated:
        became = "repeated: the key was pushed before, and nothing changed"
    elif pushed.dropped:
        became = f"dropped: {DROPPED_WORDS[pushed.dropped]}, and nothing changed"
    elif pushed.superseded:
        became = "superseded: a newer payload of the id is there, and nothing changed"
    elif pushed.paused:
        became = "paused: it waits for the end of the pause"
    else:
        became = f"merged with what waits under the id, {when}" if pushed.merged else when
    return f"{visible(pushed.id)}: shard {pushed.shard}, {became}"
