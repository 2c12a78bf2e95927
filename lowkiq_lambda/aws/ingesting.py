"""Maps the records of an event to jobs, and pushes these: one push for each worker, in the order of the records.

A record that fails comes again with all of its jobs. Those that were written carry a key by then, and change nothing
the second time.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.inbox_messages import jobs_in, says_it_is_of_an_inbox
from lowkiq_lambda.aws.sources import Record, unwrapped
from lowkiq_lambda.base.error_text import loggable, shown
from lowkiq_lambda.base.errors import BackendError, DeclarationError, PushInterrupted, QueueFull, QueueMismatch
from lowkiq_lambda.declare.ingest import MappingFunctions
from lowkiq_lambda.declare.worker import LATEST, Worker, worker_of
from lowkiq_lambda.jobs.incoming import Incoming

LONGEST_KEY: Final = 180
"""Bytes of what came in's id that a default key has as they are; a push takes 200 of a key."""

logger = logging.getLogger(__name__)

_LOGGED: Final = 10
"""How many failures of one event are logged one by one: a server that is away fails all of them."""


class _Mapped(NamedTuple):
    """A job and the position of the record that it came from."""

    record: int
    job: Mapping[str, Any]


_Target: TypeAlias = tuple[type[Worker[Any]], bool]
"""A worker, and whether its jobs have yet to go through the client middlewares."""


class Failures:
    """The records that failed, and those that must not overtake them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._errors: dict[int, Exception] = {}
        self._first_of_group: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __contains__(self, position: int) -> bool:
        group = self._records[position].group
        is_behind = group is not None and self._first_of_group.get(group, position) < position
        return is_behind or position in self._errors

    def add(self, position: int, error: Exception) -> None:
        """The record failed: it comes again, with all that is behind it in its group."""
        self._errors.setdefault(position, error)
        group = self._records[position].group
        if group is not None:
            self._first_of_group[group] = min(position, self._first_of_group.get(group, position))

    @property
    def identifiers(self) -> list[str]:
        """Of all records that are to come again, in their order."""
        return [record.identifier for position, record in enumerate(self._records) if position in self]

    @property
    def first(self) -> Exception:
        """What went wrong with the first record that failed."""
        return self._errors[min(self._errors)]

    def log(self) -> None:
        """Say what went wrong with the first of them, and how many there are."""
        for position in sorted(self._errors)[:_LOGGED]:
            error = loggable(self._errors[position])
            logger.error("a record failed", extra={"record": self._records[position].identifier}, exc_info=error)
        if self:
            logger.warning("%d of %d records are to come again", len(self.identifiers), len(self._records))


def ingest(app: Lowkiq, records: Sequence[Record], inbox_arn: str | None = None) -> Failures:
    """Push the jobs of all records. Those that it returns could not be pushed.

    `inbox_arn`: the queue whose messages may name any queue of the app, besides those that the app declares.
    """
    failures = Failures(records)
    pushing = _Pushing(app, failures)
    for target, mapped in _mapped(app, records, failures, inbox_arn).items():
        pushing.push(target, mapped)
    return failures


def _mapped(
    app: Lowkiq, records: Sequence[Record], failures: Failures, inbox_arn: str | None
) -> dict[_Target, list[_Mapped]]:
    """The jobs of the records that can be mapped, none of which is behind one that cannot."""
    by_target: dict[_Target, list[_Mapped]] = {}
    latest: dict[str, float] = {}
    for position, record in enumerate(records):
        if position in failures:
            continue
        try:
            jobs = [
                job
                for incoming in _told_by(app, record)
                for job in _jobs_of(app, incoming, _floor(record, latest, incoming), inbox_arn)
            ]
        except Exception as error:  # noqa: BLE001 - a mapping function may raise anything: the record comes again
            failures.add(position, error)
            continue
        for target, job in jobs:
            by_target.setdefault(target, []).append(_Mapped(position, job))
    return by_target


def _told_by(app: Lowkiq, record: Record) -> Iterator[Incoming]:
    """What came in by a record. A message of SQS is what its queue's sender wrote, unless the app says otherwise."""
    for incoming in record.read():
        if incoming.kind == "sqs" and app.core.registry(MappingFunctions).unwraps(incoming.source):
            yield from unwrapped(incoming)
        else:
            yield incoming


def _floor(record: Record, latest: dict[str, float], incoming: Incoming) -> float:
    """The default score: the source's time, which within a group must not fall as the clocks of AWS may."""
    if record.group is None:
        return incoming.time
    latest[record.group] = max(incoming.time, latest.get(record.group, incoming.time))
    return latest[record.group]


def _jobs_of(
    app: Lowkiq, incoming: Incoming, score: float, inbox_arn: str | None
) -> Iterator[tuple[_Target, Mapping[str, Any]]]:
    is_new = not says_it_is_of_an_inbox(incoming)
    mapped = (
        app.core.registry(MappingFunctions).for_source(incoming)(incoming)
        if is_new
        else jobs_in(incoming, app, inbox_arn)
    )
    for number, pair in enumerate(mapped or ()):
        worker, job = _checked(pair)
        target = worker_of(worker)
        # With merge="latest" scores are versions, and a time among them would be newer than all of them.
        default = {} if target.merge == LATEST else {"score": score}
        yield (target, is_new), {"key": _default_key(incoming, number), **default, **job}


def _checked(pair: object) -> tuple[Any, Mapping[str, Any]]:
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Mapping)):  # noqa: PLR2004 - a pair
        raise DeclarationError(f"A mapping function yields pairs of a worker and a job, not {shown(pair)}.")
    return pair


def _default_key(incoming: Incoming, number: int) -> str:
    identity = incoming.id
    if len(identity.encode()) > LONGEST_KEY:
        identity = sha256(identity.encode()).hexdigest()
    return f"{identity}#{number}"


class _Pushing:
    """Pushes until the server cannot be reached; what is not written by then has failed."""

    def __init__(self, app: Lowkiq, failures: Failures) -> None:
        self._app = app
        self._failures = failures
        self._broken: BackendError | None = None
        self._full: dict[type[Worker[Any]], BackendError] = {}
        """The queues that take no new id now."""

    def push(self, target: _Target, mapped: Sequence[_Mapped]) -> None:
        """One push; where a job or a middleware refuses it, one for each record."""
        left = [one for one in mapped if one.record not in self._failures]
        if not left:
            return
        worker, is_new = target
        if broken := self._broken or self._full.get(worker):
            # The next push would wait for the server as long as that one did; or it would pass those that were refused.
            self._fail(left, broken)
            return
        push = self._app.core.pushes.push_or_raise if is_new else self._app.core.pushes.push_past_middlewares
        try:
            push(worker, [one.job for one in left])
        except BackendError as error:
            if isinstance(error, QueueFull) or isinstance(error.__cause__, QueueFull):
                self._full[worker] = error
            else:
                self._broken = error
            self._fail(self._not_written(left, error, is_new=is_new), error)
        except (QueueMismatch, DeclarationError) as error:
            self._fail(left, error)
        except Exception as error:  # noqa: BLE001 - a middleware may raise anything
            self._push_apart(target, left, error)

    def _push_apart(self, target: _Target, mapped: Sequence[_Mapped], error: Exception) -> None:
        records = dict.fromkeys(one.record for one in mapped)
        if len(records) == 1:
            self._fail(mapped, error)
            return
        for record in records:
            self.push(target, [one for one in mapped if one.record == record])

    def _not_written(self, pushed: Sequence[_Mapped], error: BackendError, *, is_new: bool) -> Sequence[_Mapped]:
        """Those that are not written for certain; by their positions, unless a middleware may have changed these."""
        if not isinstance(error, PushInterrupted) or (is_new and self._app.client_middlewares):
            return pushed
        return [pushed[position] for position in (*error.not_written, *error.unknown)]

    def _fail(self, mapped: Sequence[_Mapped], error: Exception) -> None:
        for one in mapped:
            self._failures.add(one.record, error)
