"""Django's tasks, of whichever package has them."""

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task  # type: ignore[no-redef]  # the same in another package

__all__ = ["task"]
