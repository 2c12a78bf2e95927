"""Pushes the lines of a file, in calls of many: it ends at what is wrong, and says how to go on."""

import os
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

import msgspec

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError, JobError, LowkiqError, PushInterrupted
from lowkiq_lambda.cli.codes import DONE, INTERRUPTED
from lowkiq_lambda.cli.output import progress, remark, say, write_json
from lowkiq_lambda.cli.queues import worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed

STDIN: Final = "-"
JOBS_AT_ONCE: Final = 1_000
BYTES_AT_ONCE: Final = 1024 * 1024


class FilePushed(msgspec.Struct, kw_only=True):
    """What became of a file: how many jobs were written, and of them those that changed less than a new job does.

    `merged`: the id was waiting already. `repeated`: the key was pushed before. `superseded`: a newer payload is there.
    `paused`: an operator has paused the id. `dropped`: the id had work, and the job was to be pushed `unless` it has.
    `next`: the first line that was not handled.
    """

    written: int = 0
    merged: int = 0
    repeated: int = 0
    superseded: int = 0
    paused: int = 0
    dropped: int = 0
    next: int

    def count(self, pushed: Sequence[Pushed]) -> None:
        """Take note of what a call has written."""
        self.written += len(pushed)
        self.merged += sum(one.merged for one in pushed)
        self.repeated += sum(one.repeated for one in pushed)
        self.superseded += sum(one.superseded for one in pushed)
        self.paused += sum(one.paused for one in pushed)
        self.dropped += sum(bool(one.dropped) for one in pushed)

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in ("merged", "repeated", "superseded", "paused", "dropped")}
        more = "".join(f", {count:,} of them {name}" for name, count in parts.items() if count)
        jobs = "1 job is" if self.written == 1 else f"{self.written:,} jobs are"
        return f"{jobs} written{more}"


class _Line(NamedTuple):
    number: int
    text: bytes


def push_file(app: Lowkiq, queue: str, name: str, first: int, *, json: bool) -> int:
    """Push the lines from the first one on; the exit code. Raises LowkiqError, which says how to go on."""
    worker, done = worker_of(app, queue), FilePushed(next=first)
    try:
        with _opened(name) as (source, size), progress("pushing", size) as show:
            for lines in _calls(source, first, show):
                _push(app, worker, lines, done)
    except KeyboardInterrupt:
        remark(f"{done}; go on with --from {done.next}, which may push up to {JOBS_AT_ONCE:,} jobs again")
        return INTERRUPTED
    if json:
        write_json(done)
    else:
        say(f"{done}, up to line {done.next - 1:,}")
    return DONE


def _push(app: Lowkiq, worker: type[Worker[Any]], lines: Sequence[_Line], done: FilePushed) -> None:
    jobs, numbers, wrong = _decoded(lines)
    while True:
        try:
            done.count(app.core.pushes.push_or_raise(worker, jobs) if jobs else ())
            break
        except JobError as error:
            if error.position is None:
                raise
            # Nothing of the call was written: what comes before the bad one is, by another.
            of_job = f"{error.field}: {error.reason}" if error.field else str(error.reason)
            wrong, jobs = (numbers[error.position], of_job), jobs[: error.position]
        except PushInterrupted as error:
            _broken_off(error, numbers, done)
        except LowkiqError as error:
            raise type(error)(f"{error} {done}; go on with --from {done.next}.") from error
    if wrong is not None:
        number, reason = wrong
        raise JobError(f"line {number:,}: {reason.rstrip('.')}. {done}; correct it, and go on with --from {number}.")
    done.next = lines[-1].number + 1


def _decoded(lines: Sequence[_Line]) -> tuple[list[Any], list[int], tuple[int, str] | None]:
    """The jobs up to a line that is not JSON, the numbers of their lines; and that of the wrong one, with why."""
    jobs: list[Any] = []
    numbers: list[int] = []
    for line in lines:
        try:
            if line.text.strip():
                jobs.append(msgspec.json.decode(line.text))
                numbers.append(line.number)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            return jobs, numbers, (line.number, f"it is not JSON: {error}")
    return jobs, numbers, None


def _broken_off(error: PushInterrupted, numbers: Sequence[int], done: FilePushed) -> NoReturn:
    """Raise an error that tells by lines what the push tells by positions."""
    done.written += len(error.written)
    first = min(error.not_written + error.unknown)
    again = sum(position > first for position in error.written)
    unknown = f", of {len(error.unknown):,} more it is not known" if error.unknown else ""
    repeats = f", which pushes {again:,} that are written again" if again else ""
    message = f"The push broke off ({error.__cause__}): {done}{unknown}; go on with --from {numbers[first]}{repeats}."
    raise PushInterrupted(message) from error.__cause__


def _calls(source: BinaryIO, first: int, show: Callable[[int], object]) -> Iterator[list[_Line]]:
    lines: list[_Line] = []
    through = size = number = 0
    for number, text in enumerate(source, 1):
        size += len(text)
        if number < first:
            continue
        # Editors of some systems begin a file with it.
        lines.append(_Line(number, text.removeprefix(BOM_UTF8) if number == 1 else text))
        if len(lines) >= JOBS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield lines
            through += size
            show(through)
            lines, size = [], 0
    if lines:
        yield lines
    show(through + size)
    if number + 1 < first:
        raise ConfigError(f"--from {first} is beyond the end: there are {number:,} lines. Nothing was pushed.")


@contextmanager
def _opened(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file, and its bytes; None for the standard input."""
    if name == STDIN:
        yield sys.stdin.buffer, None
        return
    with _readable(name) as source:
        yield source, os.fstat(source.fileno()).st_size


def _readable(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise ConfigError(f"The jobs cannot be read from {name}: {error.strerror}.") from error
