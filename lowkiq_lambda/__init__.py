"""Ordered, grouped background jobs on Redis or Valkey, for almost nothing on AWS."""

from typing import TYPE_CHECKING

try:
    from lowkiq_lambda.app import Lowkiq
except ImportError:
    from lowkiq_lambda.target import refuse_other_runtime

    refuse_other_runtime()
    raise
from lowkiq_lambda.config import Config
from lowkiq_lambda.engine.batch import Batch, BatchJob
from lowkiq_lambda.errors import (
    BackendDenied,
    BackendError,
    BackendFull,
    BackendUnavailable,
    BatchClosed,
    BufferFull,
    ConfigError,
    CursorError,
    DeclarationError,
    Failed,
    HandlerError,
    JobError,
    LeaseLost,
    LowkiqError,
    NoSuchEntry,
    NoSuchTask,
    NotFlushed,
    PoolExhausted,
    PushInterrupted,
    QueueMismatch,
    TaskClosed,
)
from lowkiq_lambda.job import Failure, JobView, MorgueJob, ProgressView, Pushed, ScoredPayload
from lowkiq_lambda.retry import Later
from lowkiq_lambda.worker import Worker

if TYPE_CHECKING:
    from lowkiq_lambda.gather import Gather
    from lowkiq_lambda.incoming import Incoming
    from lowkiq_lambda.rate import Rate
else:

    def __getattr__(name: str) -> object:
        """Import what few programs need only for those: cold start."""
        if name not in ("Gather", "Incoming", "Rate"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__name__)
        from importlib import import_module  # noqa: PLC0415 - as said above

        return getattr(import_module(f"{__name__}.{name.lower()}"), name)


__all__ = [
    "BackendDenied",
    "BackendError",
    "BackendFull",
    "BackendUnavailable",
    "Batch",
    "BatchClosed",
    "BatchJob",
    "BufferFull",
    "Config",
    "ConfigError",
    "CursorError",
    "DeclarationError",
    "Failed",
    "Failure",
    "Gather",
    "HandlerError",
    "Incoming",
    "JobError",
    "JobView",
    "Later",
    "LeaseLost",
    "Lowkiq",
    "LowkiqError",
    "MorgueJob",
    "NoSuchEntry",
    "NoSuchTask",
    "NotFlushed",
    "PoolExhausted",
    "ProgressView",
    "PushInterrupted",
    "Pushed",
    "QueueMismatch",
    "Rate",
    "ScoredPayload",
    "TaskClosed",
    "Worker",
]
