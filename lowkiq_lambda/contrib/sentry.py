"""Sentry: what fails for good, or each time, as one event with its queue, its shard and its ids. Extra `sentry`.

`sentry_sdk.init(integrations=[LowkiqIntegration()])` is all of it. Errors are kept from the moment a handler raises
them until Redis has acknowledged what became of their ids, so that an event tells only what is so.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import msgspec
import sentry_sdk
from sentry_sdk.integrations import Integration
from sentry_sdk.scope import Scope, use_isolation_scope

from lowkiq_lambda.app import Lowkiq, for_each_app
from lowkiq_lambda.base.errors import Rejected
from lowkiq_lambda.declare.worker import Worker, shard_index
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.jobs.job import Outcome
from lowkiq_lambda.jobs.retry import Later
from lowkiq_lambda.settings.protocols import SettledEvent

Capture: TypeAlias = Literal["death", "failure"]
Error: TypeAlias = BaseException | str
Shard: TypeAlias = tuple[str, int]
"""A queue's name, and the number of its shard."""
CONTEXT: Final = "lowkiq"
SHOWN: Final = 20
"""So many ids a context names."""
_UNSEEN: Final = {"dead": "a job went to the morgue", "blocked": "a job is blocked", "retried": "a job failed"}
"""What is told of ids whose error was not seen here: of a process that crashed, or of a payload that cannot be read."""
_FAILURES: Final[dict[Capture, frozenset[Outcome]]] = {
    "death": frozenset({"dead", "blocked"}),
    "failure": frozenset({"dead", "blocked", "retried"}),
}


class LowkiqIntegration(Integration):
    """Tells Sentry of the failures of all apps of the process.

    `capture`: "death" sends an event when an id has failed for the last time, "failure" each time that it fails.
    """

    identifier = "lowkiq"

    def __init__(self, capture: Capture = "death") -> None:
        if capture not in _FAILURES:
            raise ValueError(f"capture must be 'death' or 'failure', not {capture!r}.")
        self.captured = _FAILURES[capture]

    @staticmethod
    def setup_once() -> None:
        """Called by Sentry, once in a process."""
        for_each_app(_watch)


class _Raised(msgspec.Struct):
    """What ids of a shard failed with under one lease, each with the scope in which that was."""

    token: int
    errors: dict[str, tuple[Error, Scope]]


class _Failures:
    """The errors that no settling has told of yet, by queue and shard."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_shard: dict[Shard, _Raised] = {}

    def note(self, shard: Shard, token: int, errors: Mapping[str, Error], scope: Scope) -> None:
        """These ids have failed."""
        with self._lock:
            raised = self._by_shard.get(shard)
            if raised is None or raised.token != token:
                # What an earlier lease still owed, no settling will tell.
                raised = self._by_shard[shard] = _Raised(token, {})
            raised.errors.update({job_id: (error, scope) for job_id, error in errors.items()})

    def take(self, event: SettledEvent) -> dict[str, tuple[Error, Scope]]:
        """The errors of the ids that the event tells of; those of suspects stay, as these are tried once more."""
        with self._lock:
            raised = self._by_shard.get((event.queue_name, event.shard))
            if raised is None or raised.token != event.token or not raised.errors:
                return {}
            settled = [job_id for job_id, outcome in event.outcomes.items() if outcome != "suspected"]
            return {job_id: raised.errors.pop(job_id) for job_id in settled if job_id in raised.errors}


class _Reporter:
    """A server middleware and an observer: gives each batch a scope, and captures what settlings tell."""

    def __init__(self) -> None:
        self._failures = _Failures()

    def __call__(self, worker: Worker, batch: Batch, call_next: Callable[..., object]) -> object:
        """Perform the batch in a scope of its own."""
        if _integration() is None:
            return call_next()
        with self._scope(worker, batch):
            return call_next()

    async def awaited(self, worker: Worker, batch: Batch, call_next: Callable[..., Awaitable[object]]) -> object:
        """As the call, around a coroutine handler."""
        if _integration() is None:
            return await call_next()
        with self._scope(worker, batch):
            return await call_next()

    @contextmanager
    def _scope(self, worker: Worker, batch: Batch) -> Iterator[None]:
        shard = worker.queue_name, shard_index(worker, next(iter(batch)))
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(worker.queue_name, source="task")
            scope.set_tags(_tags(shard))
            scope.set_context(CONTEXT, {**_named(list(batch)), "token": batch.token})
            errors: dict[str, Error] = {}
            try:
                yield
            except (Later, Rejected):
                raise
            except Exception as error:
                errors = dict.fromkeys(batch, error)
                raise
            finally:
                errors |= batch.failed
                if errors:
                    self._failures.note(shard, batch.token, errors, scope)

    def settled(self, event: SettledEvent) -> None:
        """Capture what has failed: one event for each error, with the ids that failed with it."""
        integration = _integration()
        if integration is None:
            return
        errors = self._failures.take(event)
        # Else nobody needs the ids by name.
        if not event.counts.get("failed"):
            return
        alike: dict[object, list[str]] = {}
        for job_id, outcome in event.outcomes.items():
            if outcome in integration.captured:
                error = errors[job_id][0] if job_id in errors else ""
                alike.setdefault((outcome, error if isinstance(error, str) else id(error)), []).append(job_id)
        for ids in alike.values():
            _capture(event, ids, *errors.get(ids[0], ("", None)))


def _capture(event: SettledEvent, ids: Sequence[str], error: Error, scope: Scope | None) -> None:
    """Send one event, in the scope of the batch. `error` is empty where the ids did not fail in this process."""
    outcome = event.outcomes[ids[0]]
    about: dict[str, Any] = {
        "tags": {**_tags((event.queue_name, event.shard)), "lowkiq.outcome": outcome},
        "contexts": {CONTEXT: {**_named(ids), "token": event.token, "outcome": outcome}},
    }
    with sentry_sdk.isolation_scope() if scope is None else use_isolation_scope(scope):
        if isinstance(error, BaseException):
            sentry_sdk.capture_exception(error, **about)
        else:
            sentry_sdk.capture_message(error or f"{event.queue_name}: {_UNSEEN[outcome]}", level="error", **about)


def _named(ids: Sequence[str]) -> dict[str, Any]:
    return {"ids": list(ids[:SHOWN]), "count": len(ids)}


def _tags(shard: Shard) -> dict[str, str]:
    return {"queue": shard[0], "shard": str(shard[1])}


def _integration() -> LowkiqIntegration | None:
    """That of the client, which may have changed since the app was made."""
    return sentry_sdk.get_client().get_integration(LowkiqIntegration)


def _watch(app: Lowkiq) -> None:
    reporter = _Reporter()
    app.server_middlewares.insert(0, reporter)
    app.observers.append(reporter)
    app.before_answer.append(_flush)


def _flush(seconds: float) -> None:
    sentry_sdk.flush(timeout=seconds)
