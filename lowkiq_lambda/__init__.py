"""Ordered, grouped background jobs on Redis or Valkey, for almost nothing on AWS."""

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
    ConfigError,
    CursorError,
    DeclarationError,
    HandlerError,
    JobError,
    LeaseLost,
    LowkiqError,
    NoSuchEntry,
    PoolExhausted,
    PushInterrupted,
    QueueMismatch,
)
from lowkiq_lambda.job import Failure, JobView, MorgueJob, ProgressView, Pushed, ScoredPayload
from lowkiq_lambda.retry import Later
from lowkiq_lambda.worker import Worker

__all__ = [
    "BackendDenied",
    "BackendError",
    "BackendFull",
    "BackendUnavailable",
    "Batch",
    "BatchClosed",
    "BatchJob",
    "Config",
    "ConfigError",
    "CursorError",
    "DeclarationError",
    "Failure",
    "HandlerError",
    "JobError",
    "JobView",
    "Later",
    "LeaseLost",
    "Lowkiq",
    "LowkiqError",
    "MorgueJob",
    "NoSuchEntry",
    "PoolExhausted",
    "ProgressView",
    "PushInterrupted",
    "Pushed",
    "QueueMismatch",
    "ScoredPayload",
    "Worker",
]
