"""Ordered, grouped background jobs on Redis or Valkey, for almost nothing on AWS.

The names below are imported when they are used first: a program pays for those alone, and pytest, which loads the
plugin in each project of its environment, for none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.base.errors import (
        BackendDenied,
        BackendError,
        BackendFull,
        BackendUnavailable,
        BatchClosed,
        BufferFull,
        ConfigError,
        Conflict,
        CursorError,
        DeclarationError,
        HandlerError,
        JobError,
        LeaseLost,
        LimitExceeded,
        LowkiqError,
        NoSuchEntry,
        NoSuchQueue,
        NoSuchTask,
        NotFlushed,
        NotReplicated,
        PastError,
        PoolExhausted,
        PushInterrupted,
        QueueFull,
        QueueMismatch,
        Rejected,
        RequestsFull,
        SplitInterrupted,
        TaskClosed,
    )
    from lowkiq_lambda.declare.error_rules import ErrorRule, discard_on, kill_on, retry_on
    from lowkiq_lambda.declare.options import Job, JobDict
    from lowkiq_lambda.declare.worker import Worker
    from lowkiq_lambda.engine.batch import Batch, BatchJob
    from lowkiq_lambda.jobs.auto import Auto
    from lowkiq_lambda.jobs.debounce import Debounce
    from lowkiq_lambda.jobs.incoming import Incoming
    from lowkiq_lambda.jobs.job import Failure, JobView, MorgueJob, ProgressView, Pushed, ScoredPayload
    from lowkiq_lambda.jobs.keep_runs import KeepRuns
    from lowkiq_lambda.jobs.limiting import Bucket, Concurrent, Leaky
    from lowkiq_lambda.jobs.rate import Rate
    from lowkiq_lambda.jobs.retry import DISCARD, KILL, Cancelled, Later
    from lowkiq_lambda.jobs.unique import Unique
    from lowkiq_lambda.limiters.grant import Grant, Refusal
    from lowkiq_lambda.settings.config import Config
    from lowkiq_lambda.settings.protocols import Buffer, MorgueLimits, message_only

    __version__: str

_PLACES: Final = {
    **dict.fromkeys(("Failure", "JobView", "MorgueJob", "ProgressView", "Pushed", "ScoredPayload"), "jobs.job"),
    **dict.fromkeys(("Batch", "BatchJob"), "engine.batch"),
    **dict.fromkeys(("Job", "JobDict"), "declare.options"),
    **dict.fromkeys(("Buffer", "MorgueLimits", "message_only"), "settings.protocols"),
    **dict.fromkeys(("Bucket", "Concurrent", "Leaky"), "jobs.limiting"),
    **dict.fromkeys(("Grant", "Refusal"), "limiters.grant"),
    **dict.fromkeys(("ErrorRule", "discard_on", "kill_on", "retry_on"), "declare.error_rules"),
    **dict.fromkeys(("DISCARD", "KILL", "Cancelled", "Later"), "jobs.retry"),
    "Auto": "jobs.auto",
    "Config": "settings.config",
    "Debounce": "jobs.debounce",
    "Incoming": "jobs.incoming",
    "Worker": "declare.worker",
    "KeepRuns": "jobs.keep_runs",
    "Lowkiq": "app",
    "Rate": "jobs.rate",
    "Unique": "jobs.unique",
}
"""The module of each name; those that are not here are errors."""


def __getattr__(name: str) -> object:
    """Import a name when it is used first."""
    if name == "__version__":
        return import_module(f"{__name__}.engine.heartbeat").VERSION
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__name__)
    try:
        member: object = getattr(import_module(f"{__name__}.{_PLACES.get(name, 'base.errors')}"), name)
    except ImportError:
        from lowkiq_lambda.base.target import refuse_other_runtime  # noqa: PLC0415 - where a package is for another machine

        refuse_other_runtime()
        raise
    globals()[name] = member
    return member


__all__ = [
    "DISCARD",
    "KILL",
    "Auto",
    "BackendDenied",
    "BackendError",
    "BackendFull",
    "BackendUnavailable",
    "Batch",
    "BatchClosed",
    "BatchJob",
    "Bucket",
    "Buffer",
    "BufferFull",
    "Cancelled",
    "Concurrent",
    "Config",
    "ConfigError",
    "Conflict",
    "CursorError",
    "Debounce",
    "DeclarationError",
    "ErrorRule",
    "Failure",
    "Grant",
    "HandlerError",
    "Incoming",
    "Job",
    "JobDict",
    "JobError",
    "JobView",
    "KeepRuns",
    "Later",
    "Leaky",
    "LeaseLost",
    "LimitExceeded",
    "Lowkiq",
    "LowkiqError",
    "MorgueJob",
    "MorgueLimits",
    "NoSuchEntry",
    "NoSuchQueue",
    "NoSuchTask",
    "NotFlushed",
    "NotReplicated",
    "PastError",
    "PoolExhausted",
    "ProgressView",
    "PushInterrupted",
    "Pushed",
    "QueueFull",
    "QueueMismatch",
    "Rate",
    "Refusal",
    "Rejected",
    "RequestsFull",
    "ScoredPayload",
    "SplitInterrupted",
    "TaskClosed",
    "Unique",
    "Worker",
    "discard_on",
    "kill_on",
    "message_only",
    "retry_on",
]
