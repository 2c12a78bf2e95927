"""`lowkiq record`: writes the pushes of a queue to a file, as input of a fuzz."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import progress, remark, say, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, number, whole_number
from lowkiq_lambda.cli.queues import NamedQueue, QueueName, app_of, queue_of, worker_named
from lowkiq_lambda.jobs.job import JobView
from lowkiq_lambda.settings.loading import load_value
from lowkiq_lambda.testing.fuzz.recording import RecordedPush

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq

Mask: TypeAlias = Callable[[str, Any], object]
"""Given an id and a payload: what is written in place of the payload."""

_HELP: Final = """
Write the payloads of QUEUE to a file, so that a fuzz pushes what production pushes.

Payloads that wait are read, then those that are pushed while the command looks on. Nothing is claimed, and nothing \
changes in Redis. Each line of the file is a push, in its order: id, payload, score, and the seconds after the push \
before. A payload that was performed between two looks is not in the file.
"""
_EPILOGUE: Final = """
WHAT IS MASKED
  Ids are numbered in the order in which they come, and no file says which is
  which; --keep-ids writes them as they are. A payload is what the function
  of --mask returns for its id and itself, or else what the app's mask
  returns. Without either it is written as it is, and a note says so. The file
  can be read by its owner alone.

EXIT CODES
  0  The file is written.
  2  The command line, the settings or the app cannot work, the queue is empty,
     or the mask failed: then no file is written.
  3  Redis cannot be reached.

EXAMPLES
  500 payloads, without names:
    lowkiq record SyncOrder --count 500 --mask shop.masks:without_names
"""
_MOST: Final = 10_000
_MOST_SECONDS: Final = 86_400
_LOOK: Final = 0.25
"""Seconds between two looks."""
_TIMES: Final = 31 * 86_400.0
"""A score of so many seconds before now is the time of a push."""

command: Final = command_app("record", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq record [OPTIONS] QUEUE")


class _Payload(NamedTuple):
    at: float
    id: str
    payload: object
    score: float


@command.default
def record(  # noqa: PLR0913 - the options of the command
    queue: QueueName,
    /,
    *,
    count: Annotated[int, Parameter(help="Payloads at most.", converter=whole_number(1, _MOST))] = 500,
    seconds: Annotated[
        float, Parameter(help="Seconds for which it looks on.", converter=number(0, _MOST_SECONDS))
    ] = 60.0,
    mask: Annotated[str | None, Parameter(help="MODULE:FUNCTION, called with an id and a payload.")] = None,
    keep_ids: Annotated[bool, flag("Write ids as they are.")] = False,
    output: Annotated[Path, Parameter(help="The file; one that is there is replaced.")] = Path("recorded.jsonl"),
    app: AppOption = None,
    json: Annotated[bool, flag("Write what was written as JSON.")] = False,
) -> int:
    """Record; the exit code."""
    loaded = app_of(app)
    named_queue = _queue(loaded, queue)
    masking = _mask(named_queue, mask)
    payloads = _payloads(named_queue, count, seconds)
    lines = [*_lines(payloads, masking, keep_ids=keep_ids)]
    _replace(output, lines)
    done = {"payloads": len(payloads), "ids": len({one.id for one in payloads}), "output": str(output)}
    if json:
        write_json(done)
    else:
        say(f"wrote {output}: payloads {done['payloads']:,}, ids {done['ids']:,}")
    return DONE


def _queue(app: "Lowkiq", word: str) -> NamedQueue:
    """Raises ConfigError for a queue that is unknown, or that nobody has pushed to: to look it up would make it."""
    from lowkiq_lambda.store.shard.declarations import read_registered

    worker = worker_named(app, word)
    if worker is not None and read_registered(app.core.backend, worker.queue_name, app.config.redis_retry_for) is None:
        raise _empty(worker.queue_name)
    return queue_of(app, word)


def _mask(queue: NamedQueue, spec: str | None) -> Mask:
    if spec is not None:
        function = load_value(spec)
        if not callable(function):
            raise ConfigError(f"--mask: {spec} is not a function.")
        return function
    of_app = queue.app.config.mask
    if of_app is not None:
        return lambda job_id, payload: of_app(queue.name, job_id, payload)
    remark("note: no mask is there, so payloads are written as they are.")
    return lambda _id, payload: payload


def _empty(name: str) -> ConfigError:
    return ConfigError(f"The queue {name!r} is empty, so there is nothing to record.")


def _payloads(queue: NamedQueue, count: int, seconds: float) -> Sequence[_Payload]:
    """The first payloads, in the order of their pushes. Raises ConfigError if none came."""
    end, payloads = SystemClock.monotonic() + seconds, dict[tuple[str, float, str], _Payload]()
    pause, operate, is_first = threading.Event(), queue.operate, True
    with suppress(KeyboardInterrupt), progress("recording", count) as show:
        while True:
            jobs = [*operate.waiting.list(limit=count), *operate.in_flight.list(limit=count)]
            for one in _of_jobs(jobs, SystemClock.time(), is_first=is_first):
                payloads.setdefault((one.id, one.score, repr(one.payload)), one)
            is_first = False
            show(len(payloads))
            left = end - SystemClock.monotonic()
            if len(payloads) >= count or left <= 0:
                break
            pause.wait(min(left, _LOOK))
    if not payloads:
        raise _empty(queue.name)
    return sorted(payloads.values(), key=lambda one: one.at)[:count]


def _of_jobs(jobs: Iterable[JobView], now: float, *, is_first: bool) -> Iterator[_Payload]:
    for job in jobs:
        for payload, score in job.payloads:
            # Of what has waited already, the time of the push is its score, unless that is a version.
            before = score if 0 <= now - score < _TIMES else min(job.due_at, now)
            yield _Payload(before if is_first else now, job.id, payload, score)


def _lines(payloads: Sequence[_Payload], mask: Mask, *, keep_ids: bool) -> Iterator[bytes]:
    """Raises ConfigError, without a word of a payload."""
    numbers: dict[str, str] = {}
    before = payloads[0].at
    for position, one in enumerate(payloads, 1):
        text = one.id if keep_ids else numbers.setdefault(one.id, str(len(numbers) + 1))
        if isinstance(one.payload, bytes):
            raise ConfigError(f"Payload {position:,} cannot be decoded. No file is written.")
        try:
            masked = mask(one.id, one.payload)
        except Exception as error:  # noqa: BLE001 - a mask may raise anything
            # Its message may have the payload in it.
            raise ConfigError(
                f"The mask failed on payload {position:,}, by {type(error).__name__}. No file is written."
            ) from None
        try:
            yield msgspec.json.encode(RecordedPush(text, masked, one.score, round(one.at - before, 3)))
        except (TypeError, ValueError, msgspec.MsgspecError):
            raise ConfigError(
                f"Payload {position:,} is not JSON: let --mask return some. No file is written."
            ) from None
        before = one.at


def _replace(output: Path, lines: Iterable[bytes]) -> None:
    """Write the file as a whole, for its owner alone. Raises ConfigError."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(b"%b\n" % line for line in lines)
            Path(name).replace(output)
        except BaseException:
            Path(name).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}.") from error
