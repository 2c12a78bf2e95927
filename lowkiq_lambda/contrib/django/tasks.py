"""Django's tasks as jobs: `"BACKEND": "lowkiq_lambda.contrib.django.tasks.LowkiqBackend"` in the setting TASKS."""

import inspect
import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from uuid import uuid4

import msgspec
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.contrib.django.installed import lowkiq_app
from lowkiq_lambda.contrib.django.task_interface import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import BatchJob
from lowkiq_lambda.jobs.job import MorgueJob
from lowkiq_lambda.jobs.retry import Later

_EARLY: Final = 0.1
"""Seconds by which a job may begin before its time."""
_OPTIONS: Final = frozenset({"keys", "shards_count", "max_retry_count"})


class Call(msgspec.Struct):
    """The payload of a job: one task that was enqueued."""

    task: str
    """The dotted path of the function."""
    result: str
    """The id of the result."""
    args: list[Any]
    kwargs: dict[str, Any]
    enqueued_at: datetime
    run_after: datetime | None = None


class LowkiqBackend(BaseTaskBackend):
    """Enqueues tasks as jobs; the workers for them belong to the app of the setting LOWKIQ.

    OPTIONS: `keys` has for a task, by its dotted path, the argument whose value is the id: tasks that name an argument
    alike run one after the other where their values are equal, in the order in which they were enqueued. Without one
    each task has an id of its own. `shards_count`, `max_retry_count`: as those of a worker, for each of QUEUES.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = False
    """The return value of a task is not kept."""
    supports_priority = False

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.alias = alias
        if unknown := self.options.keys() - _OPTIONS:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]['OPTIONS'] has no {min(unknown)!r}: it has {', '.join(sorted(_OPTIONS))}."
            )
        if not self.queues:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]['QUEUES'] must name the queues: each has a worker.")
        self._keys: Mapping[str, str] = self.options.get("keys", {})

    def declare_workers(self, app: Lowkiq) -> None:
        """Declare the worker of each queue that the app does not have yet. Raises DeclarationError."""
        fields = {name: value for name, value in self.options.items() if name != "keys"}
        for queue in sorted(self.queues):
            name = self._queue_name(queue)
            if app.core.queues.worker_named(name) is None:
                body = {**fields, "queue_name": name, "backend": self}
                app.worker(type("PerformTask", (PerformTask,), body))

    def enqueue(self, task: "Task[..., Any]", args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a TaskResult
        """Push the job of a task. Raises InvalidTask, and what `push` raises."""
        self.validate_task(task)
        now = timezone.now()
        call = Call(task.module_path, uuid4().hex, [*args], {**kwargs}, now, _aware(task.run_after))
        result = self.result_of(task, call, TaskResultStatus.READY)
        job_id = self._id(task, args, kwargs) or call.result
        # As the result has them: what JSON cannot hold was refused there.
        call.args, call.kwargs = result.args, result.kwargs
        worker = lowkiq_app().core.queues.worker_named(self._queue_name(task.queue_name))
        if worker is None:
            raise InvalidTask(f"No worker is declared for the queue {task.queue_name!r} of TASKS[{self.alias!r}].")
        worker.push(job_id, call, due_at=call.run_after)
        task_enqueued.send(type(self), task_result=result)
        return result

    def result_of(self, task: "Task[..., Any]", call: Call, status: TaskResultStatus, **fields: Any) -> Any:  # noqa: ANN401 - a TaskResult
        """The result of a call, as far as it is known."""
        result_fields = {
            "started_at": None,
            "finished_at": None,
            "last_attempted_at": fields.get("started_at"),
            "errors": [],
            "worker_ids": [],
            **fields,
        }
        return TaskResult(
            task=task,
            id=call.result,
            status=status,
            enqueued_at=call.enqueued_at,
            args=call.args,
            kwargs=call.kwargs,
            backend=self.alias,
            **result_fields,
        )

    def _id(self, task: "Task[..., Any]", args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The id of the call by the argument that is its key; None for a task without one."""
        name = self._keys.get(task.module_path)
        if name is None:
            return None
        signature = inspect.signature(task.func)
        if name not in signature.parameters:
            raise InvalidTask(f"OPTIONS['keys'] of TASKS[{self.alias!r}]: {task.module_path} has no argument {name!r}.")
        bound = signature.bind(*([None] if task.takes_context else []), *args, **kwargs)
        bound.apply_defaults()
        return f"{name}:{bound.arguments[name]}"

    def _queue_name(self, queue: str) -> str:
        return f"tasks-{self.alias}-{queue}"


class PerformTask(Worker[Call]):
    """Runs the tasks of one queue."""

    backend: ClassVar[LowkiqBackend]
    payload = Call
    merge = "never"
    # A task that fails behind another one of its id must not have that run again.
    payloads_at_once = 1

    def perform_job(self, job: BatchJob[Call]) -> None:
        """Run the function of the task."""
        (call,) = job.payloads
        # An id has one time, the earliest that its tasks asked for.
        if call.run_after is not None and (ahead := (call.run_after - datetime.now(UTC)).total_seconds()) > _EARLY:
            raise Later(ahead, "run_after lies ahead")
        task = _task_at(call.task)
        worker_ids = [_worker_id()] * (int(job.retry_count) + 2)
        fields = {"started_at": timezone.now(), "worker_ids": worker_ids}
        result = self.backend.result_of(task, call, TaskResultStatus.RUNNING, **fields)
        task_started.send(type(self.backend), task_result=result)
        context: list[Any] = [TaskContext(task_result=result)] if task.takes_context else []
        task.call(*context, *call.args, **call.kwargs)
        done = self.backend.result_of(task, call, TaskResultStatus.SUCCESSFUL, **fields, finished_at=timezone.now())
        task_finished.send(type(self.backend), task_result=done)

    def retries_exhausted(self, jobs: Sequence[MorgueJob]) -> None:
        """Tell that the tasks have failed for the last time."""
        for job in jobs:
            for scored in job.payloads:
                call = msgspec.convert(scored.payload, Call)
                error = TaskError(exception_class_path="builtins.Exception", traceback=job.error or "")
                failed = self.backend.result_of(
                    _task_at(call.task), call, TaskResultStatus.FAILED, errors=[error], finished_at=timezone.now()
                )
                task_finished.send(type(self.backend), task_result=failed)


def _task_at(path: str) -> "Task[..., Any]":
    task: object = import_string(path)
    if not isinstance(task, Task):
        raise InvalidTask(f"{path} is not a task, but of type {type(task).__name__}: decorate it with @task.")
    return task


def _worker_id() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _aware(at: datetime | None) -> datetime | None:
    return timezone.make_aware(at) if at is not None and timezone.is_naive(at) else at
