"""What Django installs: `lowkiq_lambda.contrib.django` in INSTALLED_APPS."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections
from django.utils.module_loading import autodiscover_modules, import_string

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.contrib.django.installed import LABEL, load_configured_app

JOBS: Final = "jobs"
"""The module of each installed app that is imported, as it may declare workers."""


class LowkiqKit(AppConfig):
    """Loads the app of the jobs and all modules `jobs` when Django is set up; starts no thread, and asks no server."""

    name = "lowkiq_lambda.contrib.django"
    label = LABEL
    verbose_name = "lowkiq"
    default_auto_field = "django.db.models.BigAutoField"

    _app: Lowkiq | None = None

    @property
    def app(self) -> Lowkiq:
        """The app of the jobs. Raises ImproperlyConfigured while it is being loaded."""
        if self._app is None:
            raise ImproperlyConfigured(
                "The app of the jobs is not loaded yet: a module that it imports asks for it already. "
                "Import the app itself there."
            )
        return self._app

    def ready(self) -> None:
        """Load the app and have it give connections back after each batch. Raises ImproperlyConfigured."""
        app = load_configured_app()
        if not any(isinstance(middleware, ConnectionsOfBatch) for middleware in app.server_middlewares):
            # Outermost, so that the app's own middlewares may use the database.
            app.server_middlewares.insert(0, ConnectionsOfBatch())
        self._app = app
        autodiscover_modules(JOBS)
        _declare_tasks(app)


def _declare_tasks(app: Lowkiq) -> None:
    """Have the app perform Django's tasks, where the setting TASKS names the backend of this kit, or one made of it."""
    for alias, params in getattr(settings, "TASKS", {}).items():
        # Other backends have none, and must not be asked for before their own apps are ready.
        if hasattr(import_string(params["BACKEND"]), "declare_workers"):
            from lowkiq_lambda.contrib.django.task_interface import task_backends  # noqa: PLC0415 - only where there are any

            backend: Any = task_backends[alias]
            backend.declare_workers(app)


class ConnectionsOfBatch:
    """A server middleware. Without it a thread keeps its connection while it idles, and one that broke for ever."""

    def __call__(self, _worker: object, _batch: object, call_next: Callable[..., Any]) -> object:
        """Close connections that broke or are older than CONN_MAX_AGE, before the batch and behind it."""
        close_old_connections()
        try:
            return call_next()
        finally:
            close_old_connections()

    async def awaited(self, _worker: object, _batch: object, call_next: Callable[..., Awaitable[Any]]) -> object:
        """Around coroutine handlers: each batch has a thread for its queries, and connections of its own there.

        In one thread for all of them a batch that ends would close the connection that another one reads from.
        """
        async with ThreadSensitiveContext():
            try:
                return await call_next()
            finally:
                # The thread ends with the context.
                await sync_to_async(connections.close_all)()
