"""Django's tasks: `django.tasks` of Django 6, or the package django-tasks, which has the same for older versions."""

try:
    from django.tasks import Task, TaskContext, TaskResult, TaskResultStatus, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import InvalidTask
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ImportError:
    from django_tasks import task_backends  # type: ignore[assignment]  # the same in another package
    from django_tasks.backends.base import BaseTaskBackend  # type: ignore[assignment]  # as above
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus  # type: ignore[assignment]  # as above
    from django_tasks.exceptions import InvalidTaskError as InvalidTask  # type: ignore[assignment]  # as above
    from django_tasks.signals import task_enqueued, task_finished, task_started

__all__ = [
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultStatus",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
